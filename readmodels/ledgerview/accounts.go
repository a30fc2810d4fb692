package ledgerview

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/person"
	"bahi/readmodels"
)

// AccountFilter selects accounts. Empty fields select all.
type AccountFilter struct {
	Search string `query:"search" maxLength:"200" doc:"Part of the name; case does not matter"`
	Kind   string `query:"kind" enum:"bank,bullion,client,karigar,polisher" doc:"Only this ledger"`
}

// NamedAccount is an account in a list over all ledgers.
type NamedAccount struct {
	Ledger string
	Account
	Contact *int64 // the account's contact; nil: none
}

// AccountsNamed lists a page of the workspace's accounts of all ledgers by name. It computes balances only for the page.
func (v *Views) AccountsNamed(
	ctx context.Context, at *readmodels.At, workspace uuid.UUID, page readmodels.Page, f AccountFilter, as As,
) ([]NamedAccount, int64, error) {
	s := as.sources()
	values := pgx.NamedArgs{"known": as.known(), "workspace": workspace, "ledger": f.Kind, "text": person.Folded(f.Search)}
	where, tallied := ` where a.workspace_id = @workspace and `+s.account, ` where a.workspace_id = @workspace`
	if f.Kind != "" {
		where, tallied = where+` and a.ledger = @ledger`, tallied+` and a.ledger = @ledger`
	}
	if values["text"] != "" {
		where += ` and strpos(` + s.folded + `, @text) > 0`
	}
	count := `select count(*) from books.account a` + where
	if as.KnownAt == nil && values["text"] == "" {
		count = `select coalesce(sum(a.accounts), 0)::bigint from books.ledger_total a` + tallied
	}
	sql := `
		select a.ledger, a.id, a.name, a.type, coalesce(a.metal, ''), coalesce(b.cash, 0)::text, coalesce(b.fine, 0)::text,
			coalesce(b.loss, 0)::text,
			a.revision, p.contact_id
		from (
			select a.ledger, a.id, ` + s.name + ` as name, ` + s.folded + ` as folded, ` + s.kind + ` as type, ` + s.metal + ` as metal,
				` + s.revision + ` as revision
			from books.account a` + where + ` order by folded, a.ledger, a.id limit @limit offset @skip
		) a left join lateral (` + as.amounts(values) + `) b on true left join confirmations.party p on p.account_id = a.id
		order by a.folded, a.ledger, a.id`
	return readmodels.List[NamedAccount]{
		As: pgx.RowToStructByPos[NamedAccount], SQL: sql, Count: count, Args: values,
	}.Page(ctx, v.Reader.From(as.reading(at), "books", "confirmations"), page)
}
