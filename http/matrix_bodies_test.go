package http_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/actor"
	"bahi/http/api"
	"bahi/internal/app/apptest"
)

// tooLong is more than any body that is no file may have.
var tooLong = strings.Repeat(" ", 5<<20)

func TestABodyWithUnknownFieldsOrOfAnySizeIsRefused(t *testing.T) {
	t.Parallel()
	s := startShop(t)
	requests := s.things().requests(t, func(op api.Op) bool { return len(s.samples[op.ID].Body) > 0 })
	before, refused := s.Head(), asked{}
	for _, op := range s.ops {
		r, there := requests[op.ID]
		if !there || !strings.HasPrefix(r.body, "{") {
			continue
		}
		a := refused.note(r.with(r.body + tooLong).ask(s.may(op)))
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
var strictElsewhere = []string{"rebuild-projection", "skip-event", "skip-parked", "throttle-rebuild", "write-web-chat"}

func TestABodyWithUnknownFieldsIsTakenOutsideTheLedger(t *testing.T) {
	t.Parallel()
	s := startShop(t)
	var strict []string
	for _, op := range s.ops {
		switch {
		case op.Area == actor.Ledger || len(s.samples[op.ID].Body) == 0:
			continue
		case op.StrictBody:
			strict = append(strict, op.ID)
			continue
		}
		s.again(op)
		want := []int{status(op), http.StatusOK}
		if refused := s.samples[op.ID].Refused; refused != 0 {
			want = []int{refused}
		}
		a := s.things().request(t, op).strange().ask(s.may(op))
		require.Contains(t, want, a.Response.StatusCode, "%s: %s", op.ID, a.Text)
		require.NotContains(t, a.Text, "no_such_field", op.ID)
	}
	slices.Sort(strict)
	require.Equal(t, strictElsewhere, strict)
}

func TestAFileAboveTheLimitIsRefused(t *testing.T) {
	t.Parallel()
	s := startShop(t)
	uploads := func(op api.Op) bool { return s.samples[op.ID].Upload || s.samples[op.ID].File != "" }
	requests := s.things().requests(t, uploads)
	before, refused := s.Head(), asked{}
	for _, op := range s.ops {
		r, there := requests[op.ID]
		if !there {
			continue
		}
		limit := fmt.Sprintf("The file is too large: at most %d MB", op.MaxBody>>20)
		for _, kind := range []string{"image/png", "application/pdf", "text/csv", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"} {
			form, contentType := apptest.Form(t, kind, make([]byte, op.MaxBody+1))
			r.contentType = contentType
			refused.note(r.with(string(form)).ask(s.may(op))).Problem(http.StatusRequestEntityTooLarge, limit)
		}
	}
	require.Empty(t, refused.wrote(t, s, before))
}

func TestARepeatedKeyHasOneEffectInEveryOperation(t *testing.T) {
	t.Parallel()
	s := startShop(t)
	for _, op := range s.ops {
		if !writes(op) || op.NoKey || s.samples[op.ID].Refused != 0 {
			continue
		}
		s.again(op)
		w := s.things() // what one operation deletes, another one wants
		r := w.request(t, op)
		key := uuid.NewString()
		first := r.ask(s.may(op).With("Idempotency-Key", key))
		require.Equal(t, 2, first.Response.StatusCode/100, "%s: %s", op.ID, first.Text)
		s.again(op)
		before, repeated := s.Head(), asked{}
		second := repeated.note(r.ask(s.may(op).With("Idempotency-Key", key)))
		require.Equal(t, first.Response.StatusCode, second.Response.StatusCode, "%s: %s", op.ID, second.Text)
		require.Empty(t, repeated.wrote(t, s, before), op.ID)
		require.Equal(t, "true", second.Header("Idempotency-Replayed"), op.ID)
	}
}
