package ledgerview

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/domain/unit"
	"bahi/readmodels"
)

// Closing requests an account's balance at the end of a day, as known at a position.
type Closing struct {
	Account int64
	Day     unit.Date
	KnownAt event.Position
}

// Closed is an account's closing balance. Its sums are nil if the account did not exist then.
type Closed struct {
	Cash *unit.Sum
	Fine *unit.Sum
}

// closingsSQL reads totals as known at a position. Each closing has its own position.
var closingsSQL = strings.ReplaceAll(`
	select b.cash::text, b.fine::text
	from unnest($2::bigint[], $3::bigint[], $4::bigint[]) with ordinality asked (account, day, known, nth)
	left join books.account a on a.id = asked.account and a.workspace_id = $1 and `+then.account+`
	left join lateral (`+then.before(`(asked.day + 1)`)+`) b on a.id is not null
	order by asked.nth`, `@known`, `asked.known`)

// Closings returns the balance for each closing, in their order.
func (v *Views) Closings(ctx context.Context, at *readmodels.At, workspace uuid.UUID, asked []Closing) ([]Closed, error) {
	var (
		accounts, days, known []int64
		last                  event.Position
	)
	for _, c := range asked {
		accounts, days, known = append(accounts, c.Account), append(days, int64(c.Day)), append(known, int64(c.KnownAt))
		last = max(last, c.KnownAt)
	}
	return readmodels.Rows(ctx, v.Reader.From(at.AsKnownAt(last), "books"), pgx.RowToStructByPos[Closed], closingsSQL, workspace, accounts,
		days, known)
}
