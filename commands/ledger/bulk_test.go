package ledger_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/ledger"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	"bahi/eventstore"
	views "bahi/readmodels/ledger"
)

func three() []asked {
	return []asked{{Date: new(today), In: rupees(1)}, {Date: new(today - 1), In: rupees(1)}, {Date: new(today), In: rupees(1)}}
}

// postsAndDies posts three rows and dies before their own streams are filled.
func (n *node) postsAndDies(t *testing.T, account int64) (first int64) {
	t.Helper()
	n.store.fails(errCrash)
	out, err := ledger.PostRows(patient(t), as(t), n.Books, bank.Ledger, account, three())
	require.NoError(t, err)
	n.Wait()
	require.Empty(t, n.o.names(t, bank.Ledger.Rows.Stream(out.ID)))
	return id(t, out.ID)
}

func TestABulkIsThereAtOnceAndItsRowsHaveStreamsOfTheirOwn(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	n := o.node(t)
	account := n.open(t)
	out, err := ledger.PostRows(patient(t), as(t), n.Books, bank.Ledger, account, three())
	require.NoError(t, err)
	first := id(t, out.ID)
	require.Equal(t, first+3, n.add(t, account, today), "its numbers follow one another")
	rows, total, err := o.views.Rows(patient(t), workspace, bank.Ledger, account, views.Selection{Page: 1})
	require.NoError(t, err)
	require.EqualValues(t, 4, total)
	require.Equal(t, []int64{first + 1, first, first + 2, first + 3}, []int64{rows[0].ID, rows[1].ID, rows[2].ID, rows[3].ID})
	n.Wait()
	for row := first; row < first+3; row++ {
		require.Equal(t, []string{"BankRowAdded"}, o.names(t, bank.Ledger.Rows.Stream(idText(row))))
	}
	unfinished, err := o.views.UnfinishedBulks(patient(t), "bank")
	require.NoError(t, err)
	require.Empty(t, unfinished)
	o.agree(t)
}

func TestEventsThatFillABulkTellOfTheDecisiveOne(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	n := o.node(t)
	account := n.open(t)
	first := n.postsAndDies(t, account)
	require.NoError(t, ledger.ResumeBulks(t.Context(), o.node(t).Books))
	var decisive event.Stored
	for e, err := range o.store.ReadStream(t.Context(), bank.Ledger.Bulks.Stream(idText(first)), 0, eventstore.Forwards) {
		require.NoError(t, err)
		decisive = e
	}
	var want event.Meta
	require.NoError(t, json.Unmarshal(decisive.Meta, &want))
	require.Equal(t, "user:7", want.Actor)
	require.Equal(t, "because", want.Reason)
	want.Of, want.CausationID = decisive.Position, decisive.ID.String()
	for e, err := range o.store.ReadStream(t.Context(), bank.Ledger.Rows.Stream(idText(first+1)), 0, eventstore.Forwards) {
		require.NoError(t, err)
		var meta event.Meta
		require.NoError(t, json.Unmarshal(e.Meta, &meta))
		require.Equal(t, want, meta)
	}
}

func TestABulkIsThereWhereverTheProcessDies(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	sure := o.node(t)
	o.whereverItDies(t, 3, func(int) deed {
		account, first := sure.open(t), int64(0)
		return deed{
			decides: "bankbulk-",
			do: func(n *node) error {
				out, err := ledger.PostRows(patient(t), as(t), n.Books, bank.Ledger, account, three())
				if err == nil {
					first = id(t, out.ID)
				}
				return err
			},
			undone: func() { require.Equal(t, "0", o.balance(t, account)) },
			told: func() int {
				return o.count(t, []string{"BankRowAdded"}, streamsOf(bank.Ledger.Rows, numbersFrom(first, 3)...)...)
			},
			done:   func(*node) { require.Equal(t, "3", o.balance(t, account)) },
			resume: func(n *node) error { return ledger.ResumeBulks(patient(t), n.Books) },
		}
	})
	o.agree(t)
}

func TestAnUnfilledRowIsFilledByWhoeverNeedsIt(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(req commands.Request, n *node, account, row int64) error{
		"edit": func(req commands.Request, n *node, account, row int64) error {
			_, err := ledger.EditRow(patient(t), req, n.Books, bank.Ledger, account, row, asked{In: rupees(5)})
			return err
		},
		"delete": func(req commands.Request, n *node, account, row int64) error {
			_, err := ledger.DeleteRow(patient(t), req, n.Books, bank.Ledger, account, row)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := openOffice(t)
			n := o.node(t)
			account := n.open(t)
			first := n.postsAndDies(t, account)
			unfinished, err := o.views.UnfinishedBulks(patient(t), "bank")
			require.NoError(t, err)
			require.Equal(t, []int64{first}, unfinished)
			o.agree(t)

			other := o.node(t)
			match := as(t, keyed, func(r *commands.Request) { r.IfMatch = &o.row(t, account, first+1).Revision })
			require.NoError(t, change(match, other, account, first+1))
			require.Len(t, o.names(t, bank.Ledger.Rows.Stream(idText(first+1))), 2)
			o.agree(t)
			require.NoError(t, change(match, n, account, first+1), "and the same again is the same")
			require.Len(t, o.names(t, bank.Ledger.Rows.Stream(idText(first+1))), 2)

			require.NoError(t, ledger.ResumeBulks(patient(t), o.node(t).Books))
			unfinished, err = o.views.UnfinishedBulks(patient(t), "bank")
			require.NoError(t, err)
			require.Empty(t, unfinished)
			o.agree(t)
		})
	}
}

func TestRowsThatNoBulkHasAreNotFound(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	n := o.node(t)
	account := n.open(t)
	first := n.postsAndDies(t, account)
	for name, err := range map[string]error{
		"no such row": func() error {
			_, err := ledger.EditRow(patient(t), as(t), n.Books, bank.Ledger, account, first+3, asked{Date: new(today - 2)})
			return err
		}(),
		"another account": func() error {
			_, err := ledger.EditRow(patient(t), as(t), n.Books, bank.Ledger, account+1, first, asked{Date: new(today - 2)})
			return err
		}(),
		"another workspace": func() error {
			foreign := as(t, func(r *commands.Request) { r.Workspace = stranger })
			_, err := ledger.DeleteRow(patient(t), foreign, n.Books, bank.Ledger, account, first+1)
			return err
		}(),
	} {
		require.ErrorIs(t, err, bank.Ledger.NoRow, name)
	}
}

func TestSeveralProcessesFillABulkOnce(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	n := o.node(t)
	account := n.open(t)
	first := n.postsAndDies(t, account)
	var all sync.WaitGroup
	for range 4 {
		other := o.node(t)
		all.Go(func() {
			if err := ledger.ResumeBulks(patient(t), other.Books); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for row := first; row < first+3; row++ {
		require.Equal(t, []string{"BankRowAdded"}, o.names(t, bank.Ledger.Rows.Stream(idText(row))))
	}
	o.agree(t)
}

func TestABulkThatCannotBeFilledNowIsAnsweredAllTheSame(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	n := o.node(t)
	account := n.open(t)
	first := n.postsAndDies(t, account)
	n.store.fails(eventstore.ErrUnavailable)
	require.ErrorIs(t, ledger.ResumeBulks(patient(t), n.Books), eventstore.ErrUnavailable)
	n.store.fails(eventstore.ErrUnavailable)
	_, err := ledger.EditRow(patient(t), as(t), n.Books, bank.Ledger, account, first, asked{Date: new(today - 2)})
	require.ErrorIs(t, err, eventstore.ErrUnavailable, "and not that there is no such row")
}

func TestABulkWithAKeyIsPostedOnce(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	one, two := o.node(t), o.node(t)
	account := one.open(t)
	post := func(n *node) commands.Outcome[book.Bulk] {
		out, err := ledger.PostRows(patient(t), as(t, keyed), n.Books, bank.Ledger, account, three())
		require.NoError(t, err)
		n.Wait()
		return out
	}
	first := post(one)
	again := post(two)
	first.Replayed = true
	require.Equal(t, first, again)
	_, total, err := o.views.Rows(patient(t), workspace, bank.Ledger, account, views.Selection{Page: 1})
	require.NoError(t, err)
	require.EqualValues(t, 3, total)
	o.agree(t)
}

// blind is books that know nothing.
type blind struct{ ledger.Reads }

func (blind) EarliestRow(context.Context, uuid.UUID, int64) (*unit.Date, event.Position, error) {
	return nil, 0, errCrash
}
func (blind) BulkOf(context.Context, uuid.UUID, int64) (int64, int64, error) {
	return 0, 0, errCrash
}
func (blind) UnfinishedKhatas(context.Context) ([]int64, error) { return nil, errCrash }
func (blind) UnfinishedBulks(context.Context, string) ([]int64, error) {
	return nil, errCrash
}

func TestBooksThatDoNotAnswerAreNotTakenForEmpty(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	n := o.node(t)
	account := n.open(t)
	n.Reads = blind{}
	_, err := ledger.DeleteAccount(patient(t), as(t), n.Books, bank.Ledger, account)
	require.ErrorIs(t, err, errCrash)
	_, err = ledger.EditRow(patient(t), as(t), n.Books, bank.Ledger, account, 1, asked{Date: new(today)})
	require.ErrorIs(t, err, errCrash)
	_, refused := errors.AsType[*fault.Error](err)
	require.False(t, refused)
	require.ErrorIs(t, ledger.ResumeBulks(patient(t), n.Books), errCrash)
	require.Equal(t, []string{"BankAccountOpened"}, o.names(t, bank.Ledger.Accounts.Stream(idText(account))))
}

// A projection that has stopped lacks the newest rows. Commands must not decide by it.
func TestBooksThatAreLateAreNotTakenForComplete(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	n := o.node(t)
	account := n.open(t)
	o.park(t)
	n.add(t, account, today-10)
	n.store.fails(errCrash)
	bulk, err := ledger.PostRows(patient(t), as(t), n.Books, bank.Ledger, account, three())
	require.NoError(t, err)
	n.Wait()
	n.lock(t, new(today-10))
	unavailable := func(err error) {
		refused, _ := errors.AsType[*fault.Error](err)
		require.NotNil(t, refused, "%v", err)
		require.Equal(t, fault.Unavailable, refused.Kind)
	}
	_, err = ledger.DeleteAccount(patient(t), as(t), n.Books, bank.Ledger, account)
	unavailable(err)
	_, err = ledger.EditRow(patient(t), as(t), n.Books, bank.Ledger, account, id(t, bulk.ID), asked{Date: new(today - 2)})
	unavailable(err)
	require.Equal(t, []string{"BankAccountOpened"}, o.names(t, bank.Ledger.Accounts.Stream(idText(account))))
	unavailable(ledger.ResumeBulks(patient(t), n.Books))
}

// park stops the books at an event that they cannot read.
func (o *office) park(t *testing.T) {
	t.Helper()
	_, err := o.store.Append(t.Context(), eventstore.To("bankrow-999999", eventstore.NoStream, event.New{
		ID: uuid.New(), Type: "BankRowAdded", Data: []byte(`{}`), Meta: []byte(`{"schema":99}`),
	}))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		var parked bool
		require.NoError(t, o.pool.QueryRow(t.Context(), `select error is not null from projection.generation where live and name = 'books'`).Scan(&parked))
		return parked
	}, 30e9, 5e6)
}
