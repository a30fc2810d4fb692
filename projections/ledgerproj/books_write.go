package ledgerproj

import (
	"context"

	"github.com/jackc/pgx/v5"

	"bahi/domain/person"
	"bahi/domain/unit"
	"bahi/projections"
)

// write writes the batch's result to the tables.
func (f *books) write(ctx context.Context, b *projections.Batch) error {
	if err := f.copyVersions(ctx, b.Tx); err != nil {
		return err
	}
	if err := f.copyPostings(ctx, b.Tx); err != nil {
		return err
	}
	f.queueEnded(b)
	f.queueAccounts(b)
	if !b.Filling {
		queueTotals(b, f.sums.touched)
		f.queueLedgers(b)
	}
	f.queueCrowded(b)
	f.queueLocks(b)
	for _, m := range f.metals {
		b.Exec(`insert into books_metal (workspace_id, from_position, metal, revision) values ($1, $2, $3, $4)`,
			m.workspace, int64(m.position), m.metal, m.revision)
	}
	return nil
}

func (f *books) queueLocks(b *projections.Batch) {
	for workspace, l := range f.locks {
		var through *string
		if l.through != nil {
			through = new(l.through.String())
		}
		b.Exec(`
			insert into books_lock (workspace_id, locked_through, moved_position, revision) values ($1, $2::text::date, $3, $4)
			on conflict (workspace_id) do update set
				locked_through = excluded.locked_through, moved_position = excluded.moved_position, revision = excluded.revision`,
			workspace, through, int64(l.position), l.revision)
	}
}

func (f *books) copyVersions(ctx context.Context, tx pgx.Tx) error {
	return projections.CopyInto(ctx, tx, `row_version (row_id, from_position, to_position, account_id, date, in_entries, out_entries, warnings,
		in_cash, out_cash, in_fine, out_fine, loss, metal, revision, deleted, void, reverses, reversed_by, paired_with, actor, reason,
			recorded_at)`,
		len(f.versions), func(c *projections.Copy, row int) {
			v := f.versions[row]
			c.Bigint(v.row)
			c.Bigint(v.from)
			c.Bigint(v.to)
			c.Bigint(v.Account)
			c.Date(v.Date)
			c.Text(string(v.In.JSON()))
			c.Text(string(v.Out.JSON()))
			optional(c, string(v.Warnings))
			in, out := v.Counts()
			c.Numeric(int64(in.Cash), unit.MoneyPlaces)
			c.Numeric(int64(out.Cash), unit.MoneyPlaces)
			c.Numeric(int64(in.Fine), unit.GramsPlaces)
			c.Numeric(int64(out.Fine), unit.GramsPlaces)
			c.Numeric(int64(v.Lost()), unit.GramsPlaces)
			optional(c, v.Metal())
			c.Bigint(v.revision)
			c.Boolean(v.Deleted)
			c.Boolean(v.Void)
			for _, id := range [...]int64{v.Reverses, v.ReversedBy, v.PairedWith} {
				if id == 0 {
					c.Null()
				} else {
					c.Bigint(id)
				}
			}
			c.Text(v.actor)
			optional(c, v.reason)
			c.Timestamptz(v.at)
		})
}

// optional adds a text, null for none.
func optional(c *projections.Copy, text string) {
	if text == "" {
		c.Null()
	} else {
		c.Text(text)
	}
}

func (f *books) copyPostings(ctx context.Context, tx pgx.Tx) error {
	return projections.CopyInto(ctx, tx, `balance_history (account_id, position, ordinal, period, day, account_rows, account_cash,
		account_fine, account_loss, period_rows, period_cash, period_fine, period_loss, day_rows, day_cash, day_fine, day_loss,
		period_in_cash, period_in_fine)`,
		len(f.sums.postings), func(c *projections.Copy, row int) {
			p := &f.sums.postings[row]
			c.Bigint(p.account)
			c.Bigint(p.position)
			c.Integer(int32(p.ordinal))
			c.Integer(int32(p.day >> periodShift))
			c.Integer(int32(p.day))
			for i := range p.sums {
				p.sums[i].into(c)
			}
			p.sums[levelPeriod].sidesInto(c)
		})
}

func (f *books) queueEnded(b *projections.Batch) {
	if len(f.ended) == 0 {
		return
	}
	var rows, from, to []int64
	for _, v := range f.ended {
		rows, from, to = append(rows, v.row), append(from, v.from), append(to, v.to)
	}
	b.Exec(`
		update row_version v set to_position = e.to_position
		from unnest($1::bigint[], $2::bigint[], $3::bigint[]) e (row_id, from_position, to_position)
		where v.row_id = e.row_id and v.from_position = e.from_position`, rows, from, to)
}

func (f *books) queueAccounts(b *projections.Batch) {
	for _, a := range f.changed {
		a.changed = false
		deleted := int64(stillCurrent)
		if a.Deleted != 0 {
			deleted = int64(a.Deleted)
		}
		b.Exec(`
			insert into account (id, ledger, workspace_id, name, name_folded, type, metal, revision, opened_position, deleted_position)
			values ($1, $2, $3, $4, $9, $5, nullif($10, ''), $6, $7, $8)
			on conflict (id) do update set
				name = excluded.name, name_folded = excluded.name_folded, type = excluded.type, metal = excluded.metal, revision = excluded.revision,
				deleted_position = excluded.deleted_position`,
			a.id, a.ledger, a.workspace, a.Name, a.Type, a.revision, int64(a.Opened), deleted, person.Folded(a.Name), a.Metal)
	}
	for _, n := range f.names {
		if !n.first {
			b.Exec(`update account_name set to_position = $2 where account_id = $1 and to_position = $3`, n.account, n.position, int64(stillCurrent))
		}
		b.Exec(`insert into account_name (account_id, from_position, name, name_folded, type, metal, revision)
			values ($1, $2, $3, $6, $4, nullif($7, ''), $5)`,
			n.account, n.position, n.name, n.kind, n.revision, person.Folded(n.name), n.metal)
	}
}

const upsertTotals = `
	insert into total (account_id, level, node, row_count, cash, fine, loss, in_cash, in_fine)
	select account_id, level, node, row_count, cash::numeric, fine::numeric, nullif(loss::numeric, 0), in_cash::numeric, in_fine::numeric
	from unnest($1::bigint[], $2::smallint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[])
		t (account_id, level, node, row_count, cash, fine, loss, in_cash, in_fine)
	on conflict (account_id, level, node) do update set
		row_count = excluded.row_count, cash = excluded.cash, fine = excluded.fine, loss = excluded.loss,
		in_cash = excluded.in_cash, in_fine = excluded.in_fine`

func queueTotals(b *projections.Batch, totals map[node]*amount) {
	if len(totals) > 0 {
		b.Exec(upsertTotals, columns(totals)...)
	}
}

func columns(totals map[node]*amount) []any {
	n := len(totals)
	var (
		accounts, nodes, rows = make([]int64, 0, n), make([]int64, 0, n), make([]int64, 0, n)
		levels                = make([]int16, 0, n)
		cash, fine, loss      = make([]string, 0, n), make([]string, 0, n), make([]string, 0, n)
		inCash, inFine        = make([]*string, n), make([]*string, n)
	)
	for k, a := range totals {
		accounts, levels, nodes = append(accounts, k.account), append(levels, k.level), append(nodes, k.node)
		rows, cash, fine = append(rows, a.rows), append(cash, a.cash.String()), append(fine, a.fine.String())
		loss = append(loss, a.loss.String())
		if k.level == levelPeriod {
			inCash[len(loss)-1], inFine[len(loss)-1] = new(a.inCash.String()), new(a.inFine.String())
		}
	}
	return []any{accounts, levels, nodes, rows, cash, fine, loss, inCash, inFine}
}
