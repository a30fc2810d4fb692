package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/actor"
	"bahi/domain/fault"
	"bahi/http/api"
)

type ruled struct {
	Rows []row `json:"rows"`
}

// ruledRoutes registers operations with a rule for amounts above 0; the second is not tried.
func (s *server) ruledRoutes(ran *bool) {
	type input struct {
		Limit int64 `query:"limit" minimum:"1"`
		Body  ruled
	}
	rule := func(ctx context.Context, in *input) (*api.Nothing, error) {
		var wrong []fault.Field
		for i, r := range in.Body.Rows {
			for j, e := range r.In {
				if e.Amount <= 0 {
					wrong = append(wrong, fault.Field{Field: fmt.Sprintf("rows[%d].in_entries[%d].amount", i, j), Message: "must be more than 0"})
				}
			}
			if len(r.In) == 0 {
				wrong = append(wrong, fault.Field{Field: fmt.Sprintf("rows[%d].in_entries", i), Message: "at least one entry is needed"})
			}
			if r.Kind == "cash" {
				panic("a rule that a half-read body breaks")
			}
		}
		if wrong != nil {
			return nil, fmt.Errorf("add rows: %w", fault.Fields(wrong...))
		}
		*ran = *ran || !api.Request(ctx).DryRun
		return &api.Nothing{}, nil
	}
	op := api.Op{ID: "ruled", Method: "POST", Path: "/ruled", Area: actor.Ledger, StrictBody: true, DryRun: true, StrictQuery: true,
		Status: 204}
	api.Handle(s.API, op, rule)
	op.ID, op.Path, op.DryRun, op.Untried = "unruled", "/unruled", false, true
	api.Handle(s.API, op, rule)
}

func TestAllFaultsOfARequestAreListed(t *testing.T) {
	t.Parallel()
	s := serve(t)
	ran := false
	s.ruledRoutes(&ran)
	clerk := s.as(t, "bahi_clerk")
	const body = `{"rows":[
		{"date":"2025-02-30","in_entries":[{"amount":12.345},{"amount":-1}]},
		{"date":"2025-03-31","amuont":1,"in_entries":[{"amount":"x"},{"amount":0}]},
		{"date":"2025-03-31","in_entries":{}},
		{"date":"2025-03-31"}]}`
	readFaults := []string{
		"rows[0].date", "expected a date such as 2025-03-31, from 1900 to 2199",
		"rows[0].in_entries[0].amount", "at most 2 decimal places",
		"rows[1].amuont", "unknown field",
		"rows[1].in_entries[0].amount", "expected a number",
		"rows[2].in_entries", "expected a list",
	}
	rules := []string{
		"rows[0].in_entries[1].amount", "must be more than 0",
		"rows[1].in_entries[1].amount", "must be more than 0",
		"rows[3].in_entries", "at least one entry is needed",
	}
	clerk.POST("/ruled", body).Problem(422, "Validation error", append(readFaults, rules...)...)
	clerk.POST("/unruled", body).Problem(422, "Validation error", readFaults...)
	clerk.With("Bahi-Reason", "%ff").With("Idempotency-Key", "").With("Bahi-Dry-Run", "maybe").POST("/ruled?x=1", `{"rows":[{}],"y":1}`).
		Problem(422, "Validation error",
			"x", "unknown parameter",
			"Bahi-Dry-Run", "expected true or false",
			"Bahi-Reason", "expected percent-encoded UTF-8",
			"rows[0].date", "is required",
			"y", "unknown field",
			"rows[0].in_entries", "at least one entry is needed")
	clerk.POST("/ruled", `{"rows":[{"date":"2025-03-31","in_entires":[]},{"date":"2025-03-31","x":1,"in_entries":[]}]}`).
		Problem(422, "Validation error",
			"rows[0].in_entires", "unknown field",
			"rows[1].x", "unknown field",
			"rows[1].in_entries", "at least one entry is needed")
	clerk.POST("/ruled", `[]`).Problem(422, "Validation error", "body", "expected an object")
	clerk.With("Bahi-Reason", "%ff").POST("/ruled?limit=0", `{"rows":[{}]}`).
		Problem(422, "Validation error",
			"limit", "expected number >= 1",
			"Bahi-Reason", "expected percent-encoded UTF-8",
			"rows[0].date", "is required")
	clerk.POST("/ruled", `{"rows":[{"kind":"cash"}]}`).Problem(422, "Validation error", "rows[0].date", "is required")
	require.False(t, ran)
	clerk.POST("/ruled", `{"rows":[{"date":"2025-03-31","in_entries":[{"amount":1}]}]}`).Status(204)
	require.True(t, ran)
}

func TestAHundredFaultsAreListedAtMost(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.ruledRoutes(new(bool))
	clerk := s.as(t, "bahi_clerk")
	for _, entry := range []string{`{"amount":0}`, `{"amount":"x"}`, `{"amount":1,"x":0}`} {
		body := `{"rows":[` + strings.Repeat(`{"date":"2025-03-31","in_entries":[`+entry+`]},`, 200) + `{}]}`
		text := clerk.POST("/ruled", body).Status(422).Text
		require.Equal(t, 100, strings.Count(text, `"field"`), entry)
	}
}
