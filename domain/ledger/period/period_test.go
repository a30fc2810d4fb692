package period_test

import (
	"testing"
	"time"

	"bahi/domain/fault"
	"bahi/domain/ledger/period"
	"bahi/domain/unit"
	"bahi/internal/test/eventtest"
)

func day(y int, m time.Month, d int) unit.Date {
	return unit.DateOf(time.Date(y, m, d, 0, 0, 0, 0, time.UTC))
}

var (
	first, second = day(2024, time.March, 31), day(2025, time.March, 31)
	today         = day(2025, time.July, 14)
	seal          = period.Seal{Digest: "7b58", LogSize: 40, LogRoot: "cm9vdA==", Position: 40}
	closed        = period.Closed{Through: first, Seal: seal}
	following     = period.Closed{From: new(first + 1), Through: second, Seal: seal}
)

func TestClose(t *testing.T) {
	t.Parallel()
	type c = period.Close
	notOver := fault.Fields(fault.Field{Field: "through", Message: "must be before today"})

	open := eventtest.Given(t, period.Kind)
	open.Case("the first period has no first day").When(c{Through: first, Today: today, Seal: seal}).Then(closed)
	open.Case("yesterday is over").When(c{Through: today - 1, Today: today}).Then(period.Closed{Through: today - 1})
	open.Case("today is not over").When(c{Through: today, Today: today}).ThenFails(notOver)
	open.Case("nor is a later day").When(c{Through: today + 1, Today: today}).ThenFails(notOver)

	one := open.And(closed)
	one.Case("the next period follows").When(c{Through: second, Today: today, Seal: seal}).Then(following)
	one.Case("the same day twice").When(c{Through: first, Today: today}).ThenNothing()
	one.Case("an earlier day").When(c{Through: first - 1, Today: today}).
		ThenFails(fault.New(fault.Conflict, "A period is already closed through 2024-03-31"))
	one.And(following).Case("the same day twice, with a later period").When(c{Through: first, Today: today}).ThenNothing()
}

func TestReopen(t *testing.T) {
	t.Parallel()
	type c = period.Reopen
	reopened := period.Reopened{From: new(first + 1), Through: second, Digest: "7b58", Reason: "a late bill"}

	two := eventtest.Given(t, period.Kind).And(closed).And(following)
	two.Case("the newest").When(c{Through: second, Reason: "a late bill"}).Then(reopened)
	two.Case("an older one").When(c{Through: first, Reason: "a late bill"}).
		ThenFails(fault.New(fault.Conflict, "Only the newest closed period can be reopened: the one through 2025-03-31"))
	two.Case("a day on which none ends").When(c{Through: first + 1, Reason: "a late bill"}).ThenFails(period.ErrNotFound)
	two.Case("without a reason").When(c{Through: second, Reason: " \t"}).
		ThenFails(fault.New(fault.Invalid, "Reopening a period requires a reason (header Bahi-Reason)"))

	one := two.And(reopened)
	one.Case("a reopened period is not reopened again").When(c{Through: second, Reason: "again"}).ThenFails(period.ErrNotFound)
	one.Case("a reopened period is closed again").When(period.Close{Through: second, Today: today, Seal: seal}).Then(following)
	one.Case("the one before is the newest").When(c{Through: first, Reason: "older"}).
		Then(period.Reopened{Through: first, Digest: "7b58", Reason: "older"})
}
