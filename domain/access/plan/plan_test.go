package plan_test

import (
	"testing"

	"bahi/domain/access/plan"
	"bahi/internal/test/eventtest"
)

func TestReportsOfAPlan(t *testing.T) {
	t.Parallel()
	gold := plan.Reported{CustomerKey: "k", Name: "gold", Status: "active", Created: 5}
	eventtest.Given(t, plan.Kind).Case("the first").When(plan.Report(gold)).Then(gold)
	given := eventtest.Given(t, plan.Kind, gold)
	given.Case("the same").When(plan.Report(gold)).ThenNothing()
	given.Case("an older one").When(plan.Report{CustomerKey: "k", Status: "canceled", Created: 4}).ThenNothing()
	given.Case("another customer's").When(plan.Report{CustomerKey: "l", Status: "canceled", Created: 6}).ThenNothing()
	given.Case("a newer one without the plan's name").When(plan.Report{CustomerKey: "k", Status: "past_due", Created: 6}).
		Then(plan.Reported{CustomerKey: "k", Name: "gold", Status: "past_due", Created: 6})
}
