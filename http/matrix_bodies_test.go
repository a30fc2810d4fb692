package http_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/http/api"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/readmodels/opsview"
)

func (s fixture) aBodyWithUnknownFieldsOrOfAnySizeIsRefused(t *testing.T, requests map[string]request) {
	t.Helper()
	before, refused := s.Head(), asked{}
	for _, op := range s.ops {
		r := requests[op.ID]
		if len(s.samples[op.ID].Body) == 0 || !strings.HasPrefix(r.body, "{") {
			continue
		}
		a := refused.note(r.with(r.body + strings.Repeat(" ", int(op.MaxBody))).ask(s.may(op)))
		require.Equal(t, http.StatusRequestEntityTooLarge, a.Response.StatusCode, "%s: %s", op.ID, a.Text)
		require.True(t, op.StrictBody || op.Area != actor.Ledger, "%s must refuse unknown fields (CONTRACT.md 0.3)", op.ID)
		if !op.StrictBody {
			continue
		}
		a = refused.note(r.strange().ask(s.may(op)))
		require.Equal(t, faulty(op), a.Response.StatusCode, "%s: %s", op.ID, a.Text)
		require.Contains(t, a.Text, "no_such_field", op.ID)
	}
	require.Empty(t, refused.wrote(t, s, before))
}

// strictElsewhere are the operations outside the ledger that refuse unknown fields: a misspelt field of an operator's would rebuild or skip
// something else, and a visitor's page must learn that it cannot send files.
var strictElsewhere = []string{"rebuild-projection", "reopen-period", "skip-event", "skip-parked", "throttle-rebuild", "write-web-chat"}

// unknownFieldsAreTaken sends the operation's sample with an unknown field, unless the operation is strict.
func (s *fixture) unknownFieldsAreTaken(t *testing.T, op api.Op, want ...int) {
	t.Helper()
	if op.Area == actor.Ledger || len(s.samples[op.ID].Body) == 0 {
		return
	}
	require.Equal(t, slices.Contains(strictElsewhere, op.ID), op.StrictBody, op.ID)
	if op.StrictBody {
		return
	}
	s.again(op)
	a := s.things().request(t, op).strange().ask(s.may(op))
	require.Contains(t, want, a.Response.StatusCode, "%s: %s", op.ID, a.Text)
	require.NotContains(t, a.Text, "no_such_field", op.ID)
}

func (s fixture) aFileAboveTheLimitIsRefused(t *testing.T, requests map[string]request) {
	t.Helper()
	before, refused := s.Head(), asked{}
	for _, op := range s.ops {
		r := requests[op.ID]
		if !s.samples[op.ID].Upload && s.samples[op.ID].File == "" {
			continue
		}
		limit := fmt.Sprintf("The file is too large: at most %d MB", op.MaxBody>>20)
		form, contentType := apptest.Form(t, "image/png", make([]byte, op.MaxBody+1))
		r.contentType = contentType
		refused.note(r.with(string(form)).ask(s.may(op))).Problem(http.StatusRequestEntityTooLarge, limit)
	}
	require.Empty(t, refused.wrote(t, s, before))
}

// ofTheFirstTime are the operations whose response to a retry differs from the first response: it lacks the secret, or is of a later
// sign-in.
var ofTheFirstTime = []string{"create-api-key", "create-bot-webhook", "update-me", "upload-picture"}

// aRepetitionHasNoEffect repeats a request with its key.
func (s *fixture) aRepetitionHasNoEffect(t *testing.T, op api.Op, r request, key string, first *apitest.Answer) {
	t.Helper()
	s.again(op)
	before, repeated := s.Head(), asked{}
	second := repeated.note(r.ask(s.may(op).With("Idempotency-Key", key)))
	if slices.Contains(ofTheFirstTime, op.ID) {
		require.NotEqual(t, first.Text, second.Text, op.ID)
		second.Text = first.Text
	}
	same(t, first, second)
	require.Empty(t, repeated.wrote(t, *s, before), op.ID)
}

// unlike returns a value of another type.
func unlike(value any) any {
	if _, text := value.(string); text {
		return []any{}
	}
	return "x"
}

func TestEveryFaultOfABodyIsNamedWhateverItsKind(t *testing.T) {
	t.Parallel()
	s := startFixture(t)
	pairs := map[string]int{}
	for _, op := range s.ops {
		if !strings.HasPrefix(string(s.samples[op.ID].Body), "{") || op.Operator || op.Untried || !writes(op) {
			continue
		}
		s.again(op)
		r := s.things().request(t, op)
		var good map[string]any
		require.NoError(t, json.Unmarshal([]byte(r.body), &good))
		wrong := func(values map[string]any) (names []string) {
			all := maps.Clone(good)
			maps.Copy(all, values)
			text, err := json.Marshal(all)
			require.NoError(t, err)
			a := r.with(string(text)).ask(s.may(op))
			if a.Response.StatusCode != faulty(op) {
				return nil
			}
			var p struct{ Errors []struct{ Field string } }
			require.NoError(t, json.Unmarshal([]byte(a.Text), &p))
			for _, e := range p.Errors {
				names = append(names, e.Field)
			}
			return names
		}
		for name, value := range good {
			const unseemly = "a\u202eb\u0001" // only rules refuse this text
			if _, text := value.(string); !text || !slices.Contains(wrong(map[string]any{name: unseemly}), name) {
				continue
			}
			for other, value := range good {
				if other == name || !slices.Contains(wrong(map[string]any{other: unlike(value)}), other) {
					continue
				}
				pairs[op.ID]++
				both := wrong(map[string]any{name: unseemly, other: unlike(value)})
				require.Contains(t, both, name, "%s beside %s", op.ID, other)
				require.Contains(t, both, other, "%s beside %s", op.ID, name)
			}
		}
	}
	for _, id := range []string{
		"create-enquiry", "create-company", "add-product", "add-contact", "register", "add-messaging-contact", "create-campaign", "create-bot",
	} {
		require.Positive(t, pairs[id], id)
	}
}

// odd returns values to send instead of a field's value, by the kind of the value in the sample. An invisible text is empty only after
// normalisation.
func odd(value any) []any {
	switch value.(type) {
	case string:
		return []any{nil, "", " ", "\ufeff", "\u200b\u200b", "\u202e", "0000-01-01"}
	case float64:
		return []any{nil, 0, -1, 1e15, json.RawMessage("0.0000001"), json.RawMessage("9223372036854775807")}
	case []any:
		return []any{nil, []any{}, []any{nil}, []any{""}}
	default:
		return []any{nil, map[string]any{}}
	}
}

// oddly calls f with each form of a JSON value in which one part has an odd value.
func oddly(value any, f func(any)) {
	for _, other := range odd(value) {
		f(other)
	}
	switch value := value.(type) {
	case map[string]any:
		for name, part := range value {
			oddly(part, func(other any) {
				all := maps.Clone(value)
				all[name] = other
				f(all)
			})
		}
	case []any:
		for i, part := range value {
			oddly(part, func(other any) {
				all := slices.Clone(value)
				all[i] = other
				f(all)
			})
		}
	}
}

func TestNoValueOfAFieldStopsWhatFollowsTheLog(t *testing.T) {
	t.Parallel()
	s := startFixture(t)
	document := readDocument(t)
	for _, op := range s.ops {
		if !strings.HasPrefix(string(s.samples[op.ID].Body), "{") || op.Operator {
			continue
		}
		s.again(op)
		r := s.things().request(t, op)
		var good map[string]any
		require.NoError(t, json.Unmarshal([]byte(r.body), &good))
		body := document.Paths[op.Path][strings.ToLower(op.Method)].RequestBody.Content["application/json"]
		for name := range document.Components.Schemas[path.Base(body.Schema.Ref)].Properties {
			if _, sampled := good[name]; !sampled {
				good[name] = "" // absent, until it has an odd value
			}
		}
		oddly(good, func(value any) {
			if part, is := value.(map[string]any); is { // a copy
				maps.DeleteFunc(part, func(name string, v any) bool { return v == "" && good[name] == "" })
			}
			text, err := json.Marshal(value)
			require.NoError(t, err)
			a := r.with(string(text)).ask(s.may(op))
			require.Less(t, a.Response.StatusCode, 500, "%s: %s: %s", op.ID, text, a.Text)
		})
	}
	head := event.Position(s.Head())
	require.Eventually(t, func() bool {
		all := apitest.Read[[]opsview.Projection](s.Operator().GET("/ops/projections").Status(200))
		return !slices.ContainsFunc(all, func(p opsview.Projection) bool { return p.State != "parked" && p.Position < head })
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, "[]", strings.TrimSpace(s.Operator().GET("/ops/parked").Status(200).Text))
}
