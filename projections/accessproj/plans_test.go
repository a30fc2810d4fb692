package accessproj_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/access/plan"
	"bahi/domain/event"
	"bahi/internal/test/projectiontest"
	"bahi/projections/accessproj"
)

func TestPlansAreAsTheProviderLastSaid(t *testing.T) {
	t.Parallel()
	reported := func(id, name, status string) projectiontest.Event {
		return projectiontest.Happened(plan.Kind, id, plan.Reported{CustomerKey: "k", Name: name, Status: status}, event.Meta{})
	}
	const one, two = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
	tables := projectiontest.Run(t, accessproj.Plans, reported(one, "gold", "active"), reported(two, "", "past_due"),
		reported(one, "gold", "canceled"))
	require.Equal(t, []string{"(" + one + ",gold,canceled)", "(" + two + ",,past_due)"},
		tables.Rows(`select workspace_id, name, status from plan order by 1`))
}
