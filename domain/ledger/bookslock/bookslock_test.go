package bookslock_test

import (
	"testing"
	"time"

	"bahi/domain/fault"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/unit"
	"bahi/internal/test/eventtest"
)

func day(y int, m time.Month, d int) *unit.Date {
	return new(unit.DateOf(time.Date(y, m, d, 0, 0, 0, 0, time.UTC)))
}

var (
	yearEnd, quarter = day(2025, time.March, 31), day(2025, time.June, 30)
	today            = *day(2025, time.July, 14)
)

func TestSet(t *testing.T) {
	t.Parallel()
	type set = bookslock.Set
	wantsReason := fault.New(fault.Invalid, "Moving the lock back requires a reason (header Bahi-Reason)")
	notOver := fault.Fields(fault.Field{Field: "locked_through", Message: "must be before today"})

	open := eventtest.Given(t, bookslock.Kind)
	open.Case("the first lock").When(set{Through: yearEnd, Today: today}).Then(bookslock.Moved{To: yearEnd})
	open.Case("yesterday is over").When(set{Through: new(today - 1), Today: today}).Then(bookslock.Moved{To: new(today - 1)})
	open.Case("today is not over").When(set{Through: &today, Today: today}).ThenFails(notOver)
	open.Case("nor is the future, whatever the reason").When(set{Through: new(today + 1), Today: today, Reason: "audit"}).ThenFails(notOver)
	open.Case("no lock where there is none").When(set{Today: today}).ThenNothing()

	locked := open.And(bookslock.Moved{To: quarter})
	locked.Case("the same day changes nothing").When(set{Through: new(*quarter), Today: today}).ThenNothing()
	locked.Case("the same day changes nothing, even if it is not over on this clock").When(set{Through: quarter,
		Today: *quarter}).ThenNothing()
	locked.Case("forwards without a reason").When(set{Through: new(*quarter + 1), Today: today}).Then(bookslock.Moved{From: quarter,
		To: new(*quarter + 1)})
	locked.Case("back without a reason").When(set{Through: yearEnd, Today: today}).ThenFails(wantsReason)
	locked.Case("back with a blank reason").When(set{Through: yearEnd, Today: today, Reason: " \t"}).ThenFails(wantsReason)
	locked.Case("back with a reason").When(set{Through: yearEnd, Today: today, Reason: "auditor's finding"}).
		Then(bookslock.Moved{From: quarter, To: yearEnd})
	locked.Case("away without a reason").When(set{Today: today}).ThenFails(wantsReason)
	locked.Case("away with a reason").When(set{Today: today, Reason: "auditor's finding"}).Then(bookslock.Moved{From: quarter})

	closed := fault.New(fault.Conflict, "The period through 2025-03-31 is closed: an operator may reopen it")
	locked.Case("back to the end of a closed period").When(set{Through: yearEnd, Closed: yearEnd, Today: today, Reason: "a late bill"}).
		Then(bookslock.Moved{From: quarter, To: yearEnd})
	locked.Case("back behind it").When(set{Through: new(*yearEnd - 1), Closed: yearEnd, Today: today, Reason: "a late bill"}).ThenFails(closed)
	locked.Case("away").When(set{Closed: yearEnd, Today: today, Reason: "a late bill"}).ThenFails(closed)

	locked.And(bookslock.Moved{From: quarter}).
		Case("after it was taken away it is as at first").When(set{Through: yearEnd, Today: today}).Then(bookslock.Moved{To: yearEnd})
}
