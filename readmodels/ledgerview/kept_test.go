package ledgerview_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/commands/ledgercmd"
	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/unit"
	"bahi/projections/ledgerproj"
	"bahi/readmodels"
	"bahi/readmodels/ledgerview"
)

// shown is a page of rows.
type shown struct {
	rows  []ledgerview.Row
	total int64
}

// page reads a page as it is served; read counts those that were not kept.
func page(ctx context.Context, v *ledgerview.Views, workspace uuid.UUID, account int64, sel ledgerview.Selection,
	read *atomic.Int64) (shown, error) {
	key, _ := sel.Key(workspace, bank.Ledger, account)
	return readmodels.Cached(ctx, v.Reader, key, func(shown) int { return 1 }, func(ctx context.Context) (s shown, err error) {
		read.Add(1)
		s.rows, s.total, err = v.Rows(ctx, workspace, bank.Ledger, account, sel)
		return s, err
	})
}

func TestWhatTwoNodesKeepIsWhatTheTablesSay(t *testing.T) {
	t.Parallel()
	o := open(t)
	reader := func() *ledgerview.Views {
		return &ledgerview.Views{Reader: readmodels.NewReader(o.pool, map[string]int{"books": ledgerproj.Books.Version}, nil)}
	}
	nodes := []*ledgerview.Views{o.views, reader()}
	var asked, read atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		type place struct {
			workspace uuid.UUID
			account   int64
			rows      []int64
		}
		var places []*place
		for range 2 {
			workspace := uuid.New()
			for range 2 {
				a, err := ledgercmd.OpenAccount(o.patient(), as(workspace), o.books, bank.Ledger, book.OpenAccount{Name: "SBI"})
				require.NoError(t, err)
				places = append(places, &place{workspace: workspace, account: number(t, a.ID)})
			}
		}
		somewhere := func(t *rapid.T) *place { return rapid.SampledFrom(places).Draw(t, "place") }
		entered := func(t *rapid.T) book.RowInput {
			date := today - unit.Date(rapid.IntRange(0, 3).Draw(t, "age"))
			return book.RowInput{Date: &date,
				In: book.Entries([]bank.Entry{{Description: "x", Amount: unit.Money(rapid.IntRange(1, 99).Draw(t, "amount"))}})}
		}
		post := func(t *rapid.T) {
			p := somewhere(t)
			out, err := ledgercmd.AddRow(o.patient(), as(p.workspace), o.books, bank.Ledger, p.account, entered(t))
			require.NoError(t, err)
			p.rows = append(p.rows, number(t, out.ID))
		}
		ofRow := func(change func(*rapid.T, *place, int64) error) func(*rapid.T) {
			return func(t *rapid.T) {
				p := somewhere(t)
				if len(p.rows) == 0 {
					post(t)
					return
				}
				_ = change(t, p, rapid.SampledFrom(p.rows).Draw(t, "row")) // the rules may refuse it
			}
		}
		// same asks a node twice, and the tables until they are at the same position.
		same := func(t *rapid.T, ask func(context.Context, *ledgerview.Views) (any, error),
			plain func(context.Context, *ledgerview.Views) (any, error)) {
			node := rapid.SampledFrom(nodes).Draw(t, "node")
			for range 2 {
				for {
					kept, fresh := o.patient(), o.patient()
					got, err := ask(kept, node)
					require.NoError(t, err)
					want, err := plain(fresh, reader())
					require.NoError(t, err)
					if positionOf(kept) == positionOf(fresh) { // otherwise a bulk is being carried out
						require.Equal(t, want, got)
						break
					}
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"post": post,
			"bulk": func(t *rapid.T) {
				p := somewhere(t)
				out, err := ledgercmd.PostRows(o.patient(), as(p.workspace), o.books, bank.Ledger, p.account, []book.RowInput{entered(t), entered(t)})
				require.NoError(t, err)
				p.rows = append(p.rows, out.First, out.First+1)
			},
			"edit": ofRow(func(t *rapid.T, p *place, row int64) error {
				_, err := ledgercmd.EditRow(o.patient(), as(p.workspace), o.books, bank.Ledger,
					ledgercmd.RowAt{Account: p.account, Row: row}, entered(t))
				return err
			}),
			"delete": ofRow(func(_ *rapid.T, p *place, row int64) error {
				_, err := ledgercmd.DeleteRow(o.patient(), as(p.workspace), o.books, bank.Ledger, p.account, row)
				return err
			}),
			"reverse": ofRow(func(_ *rapid.T, p *place, row int64) error {
				_, err := ledgercmd.ReverseRows(o.patient(), as(p.workspace), o.books, bank.Ledger, p.account, ledgercmd.Reversal{Rows: []int64{row}})
				return err
			}),
			"lock": func(t *rapid.T) {
				through := today - unit.Date(rapid.IntRange(4, 6).Draw(t, "age"))
				_, _ = o.books.SetLock(o.patient(), as(somewhere(t).workspace), bookslock.Set{Through: &through}) // it may be there already
			},
			"read": func(t *rapid.T) {
				p, sel := somewhere(t), ledgerview.Selection{Page: rapid.IntRange(1, 2).Draw(t, "page"), PageSize: 3}
				if rapid.Bool().Draw(t, "as of") {
					sel.Of = new(today - 1)
				}
				asked.Add(2)
				same(t, func(ctx context.Context, v *ledgerview.Views) (any, error) {
					return page(ctx, v, p.workspace, p.account, sel, &read)
				}, func(ctx context.Context, v *ledgerview.Views) (any, error) {
					rows, total, err := v.Rows(ctx, p.workspace, bank.Ledger, p.account, sel)
					return shown{rows, total}, err
				})
			},
			"sum up": func(t *rapid.T) {
				p, of := somewhere(t), ledgerview.As{}
				if rapid.Bool().Draw(t, "as of") {
					of.Of = new(today)
				}
				sum := func(ctx context.Context, v *ledgerview.Views) (any, error) {
					return v.Summary(ctx, p.workspace, today, 2, of)
				}
				same(t, sum, sum)
			},
		})
	})
	require.Less(t, read.Load(), asked.Load(), "pages were kept")
}

func positionOf(ctx context.Context) event.Position {
	at, _ := readmodels.FreshnessOf(ctx).Position()
	return at
}
