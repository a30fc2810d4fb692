// Package bookscli has the commands of the books.
package bookscli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/domain/ledger/replay"
	"bahi/domain/unit"
	"bahi/internal/app"
	"bahi/projections"
	"bahi/projections/ledgerproj"
)

type Command struct {
	Export exportCommand `cmd:"" help:"Write the books from the tables, with their digests, for bahi-verify books --compare."`
}

type exportCommand struct {
	app.Settings

	AsOf    string         `name:"as-of" placeholder:"DAY" help:"Only rows dated up to this day."`
	KnownAt event.Position `placeholder:"POSITION" help:"Only events up to this position of the log."`
}

// Run writes the books of all workspaces from one snapshot of the tables.
func (c exportCommand) Run(ctx context.Context, sys *app.System) error {
	h := replay.Header{KnownAt: c.KnownAt}
	if c.AsOf != "" {
		day, err := unit.ParseDate(c.AsOf)
		if err != nil {
			return fmt.Errorf("--as-of: %w", err)
		}
		h.AsOf = &day
	}
	err := sys.CatchUp(ctx, ledgerproj.Books, ledgerproj.Orders, ledgerproj.Periods)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(c.Shell.Out, 1<<16)
	for range maxSnapshots {
		err = pgx.BeginTxFunc(ctx, sys.Pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			return Write(ctx, tx, h, func(l replay.Line) error { return l.Print(out, true) })
		})
		if !errors.Is(err, ErrApart) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	return out.Flush()
}

// maxSnapshots limits the attempts to get a snapshot in which all projections are at one position.
const maxSnapshots = 100

// ErrApart reports that the projections are at different positions.
var ErrApart = errors.New("the tables of the books, orders and periods are not at one position; try again")

// Write writes the books of all workspaces as a transaction sees the tables. The position of the text is the header's KnownAt, or that of
// the tables.
func Write(ctx context.Context, tx pgx.Tx, h replay.Header, yield func(replay.Line) error) error {
	x := &export{Header: h, tx: tx}
	if err := x.find(ctx); err != nil {
		return err
	}
	if x.KnownAt != 0 {
		x.Position = x.KnownAt
	}
	x.args = pgx.NamedArgs{"known": int64(x.Position), "day": "infinity"}
	if x.AsOf != nil {
		x.args["day"] = x.AsOf.String()
	}
	return x.write(ctx, yield)
}

// find finds the tables and their position. All three projections must be at one position, or at KnownAt or later if that is set.
func (x *export) find(ctx context.Context) error {
	var names []string
	found := 0
	for _, p := range []*projections.Projection{ledgerproj.Books, ledgerproj.Orders, ledgerproj.Periods} {
		var generation int
		var at event.Position
		err := x.tx.QueryRow(ctx, `select generation, position from projection.generation
			where status = 'live' and name = $1 and version = $2`, p.Name, p.Version).Scan(&generation, &at)
		switch found++; {
		case err != nil:
			return fmt.Errorf("find the tables of %s: %w", p.Name, err)
		case x.KnownAt > at:
			return fmt.Errorf("--known-at: the tables end at position %d", at)
		case found > 1 && x.KnownAt == 0 && at != x.Position:
			return ErrApart
		}
		x.Position = at
		names = append(names, p.Name+".", fmt.Sprintf("%s_g%d.", p.Name, generation))
	}
	x.names = strings.NewReplacer(names...)
	return nil
}

// export reads the tables.
type export struct {
	replay.Header

	tx    pgx.Tx
	names *strings.Replacer // names of the schemas of the live generations
	args  pgx.NamedArgs
}

// rows calls take for each row of a query. Into are the destinations of its columns.
func (x *export) rows(ctx context.Context, sql string, args pgx.NamedArgs, into []any, take func() error) error {
	found, _ := x.tx.Query(ctx, x.names.Replace(sql), args)
	_, err := pgx.ForEachRow(found, into, take)
	return err
}

// opened is an account with its balance.
type opened struct {
	workspace uuid.UUID
	ledger    string
	metal     string // "": that of the workspace
	id        int64
	at        event.Position
	net       replay.Amount
	rows      int64
}

func (x *export) write(ctx context.Context, yield func(replay.Line) error) error {
	w, err := replay.NewWriter(x.Header, yield)
	if err != nil {
		return err
	}
	accounts, err := x.accounts(ctx)
	if err != nil {
		return err
	}
	for i, a := range accounts {
		if i == 0 || accounts[i-1].workspace != a.workspace {
			if err := x.workspace(ctx, w, a.workspace); err != nil {
				return err
			}
		}
		if err := x.account(ctx, w, a); err != nil {
			return err
		}
		if i+1 < len(accounts) && accounts[i+1].workspace == a.workspace {
			continue
		}
		if err := w.Totals(); err != nil {
			return err
		}
		if x.Now() {
			if err := x.orders(ctx, w, a.workspace); err != nil {
				return err
			}
		}
	}
	return nil
}

// accounts returns the accounts that are not deleted. Their balances equal those of the interface. Current balances come from the totals,
// balances at an earlier position from the postings, and balances as of a day from the rows.
func (x *export) accounts(ctx context.Context) (all []opened, err error) {
	balance := `select t.row_count, t.cash, t.fine from books.total t where t.account_id = a.id and t.level = 0`
	switch {
	case x.AsOf != nil:
		balance = `select count(*), sum(v.in_cash - v.out_cash), sum(v.in_fine - v.out_fine) from books.row_version v
			where v.account_id = a.id and not v.deleted and v.from_position <= @known and v.to_position > @known and v.date <= @day::date`
	case x.KnownAt != 0:
		balance = `select p.account_rows, p.account_cash, p.account_fine from books.balance_history p
			where p.account_id = a.id and p.position <= @known order by p.position desc, p.ordinal desc limit 1`
	}
	var one opened
	err = x.rows(ctx, `
		select a.workspace_id, a.ledger, a.id, a.opened_position, coalesce(b.cash * 100, 0)::bigint, coalesce(b.fine * 1000, 0)::bigint,
			coalesce(b.rows, 0), coalesce((select n.metal from books.account_name n where n.account_id = a.id and n.from_position <= @known
				and n.to_position > @known), '')
		from books.account a left join lateral (`+balance+`) b (rows, cash, fine) on true
		where a.opened_position <= @known and a.deleted_position > @known order by a.workspace_id, a.id`,
		x.args, []any{&one.workspace, &one.ledger, &one.id, &one.at, &one.net.Cash, &one.net.Fine, &one.rows, &one.metal},
		func() error { all = append(all, one); return nil })
	return all, err
}

// workspace begins a workspace.
func (x *export) workspace(ctx context.Context, w *replay.Writer, id uuid.UUID) error {
	var (
		locked *unit.Date
		day    *time.Time
		metal  string
		from   time.Time
		to     time.Time
		seal   replay.Seal
		seals  []replay.Seal
		args   = pgx.NamedArgs{"workspace": id, "known": x.args["known"]}
	)
	err := x.rows(ctx, `
		select (select locked_through from books.books_lock where workspace_id = @workspace), coalesce((
			select metal from books.books_metal where workspace_id = @workspace and from_position <= @known order by from_position desc limit 1
		), 'silver')`, args, []any{&day, &metal}, func() error {
		if day != nil {
			locked = new(unit.DateOf(*day))
		}
		return nil
	})
	if err == nil {
		err = x.rows(ctx, `
			select coalesce(from_date, '1900-01-01'), through, position, digest from periods.period
			where workspace_id = @workspace and position <= @known and (reopened_position is null or reopened_position > @known)
			order by position`, args, []any{&from, &to, &seal.Position, &seal.Digest}, func() error {
			seal.From, seal.Through = unit.DateOf(from), unit.DateOf(to)
			seals = append(seals, seal)
			return nil
		})
	}
	if err != nil {
		return err
	}
	return w.Workspace(id, locked, metal, seals)
}

// account writes an account and its rows by date and id.
func (x *export) account(ctx context.Context, w *replay.Writer, a opened) error {
	if err := w.Account(a.ledger, a.id, a.at, a.at); err != nil {
		return err
	}
	var (
		r       = replay.Row{Account: a.id}
		in, out []byte
		date    time.Time
		metal   string
	)
	err := x.rows(ctx, `
		select v.row_id, v.date, (v.in_cash * 100)::bigint, (v.in_fine * 1000)::bigint, (v.out_cash * 100)::bigint, (v.out_fine * 1000)::bigint,
			v.void, coalesce(v.reverses, 0), coalesce(v.reversed_by, 0), coalesce(v.paired_with, 0), coalesce(v.metal, ''), v.from_position,
			case when v.in_entries <> '[]' then sha256(convert_to(v.in_entries, 'UTF8')) end,
			case when v.out_entries <> '[]' then sha256(convert_to(v.out_entries, 'UTF8')) end,
			case when v.reversed_by is null or not exists (select from books.row_version x where x.row_id = v.reversed_by and not x.deleted
				and x.from_position <= @known and x.to_position > @known and x.date <= @day::date) then (v.loss * 1000)::bigint else 0 end
		from books.row_version v
		where v.account_id = @account and not v.deleted and v.from_position <= @known and v.to_position > @known and v.date <= @day::date
		order by v.date, v.row_id`,
		pgx.NamedArgs{"account": a.id, "known": x.args["known"], "day": x.args["day"]},
		[]any{&r.ID, &date, &r.In.Cash, &r.In.Fine, &r.Out.Cash, &r.Out.Fine, &r.Void, &r.Reverses, &r.ReversedBy, &r.Paired,
			&metal, &r.Position, &in, &out, &r.Loss},
		func() error {
			r.Date, r.InDigest, r.OutDigest = unit.DateOf(date), [32]byte{}, [32]byte{}
			copy(r.InDigest[:], in)
			copy(r.OutDigest[:], out)
			return w.Row(&r, cmp.Or(metal, a.metal), r.Loss)
		})
	if err != nil {
		return fmt.Errorf("account %d: %w", a.id, err)
	}
	return w.Closing(a.net, a.rows)
}

// orders writes the orders and takadas of a workspace as they are now.
func (x *export) orders(ctx context.Context, w *replay.Writer, id uuid.UUID) error {
	var (
		o    replay.Order
		t    replay.Takada
		date time.Time
		args = pgx.NamedArgs{"workspace": id}
	)
	err := x.rows(ctx, `select id, client_id, date, weight_mg, delivered_mg, takadas from orders.client_order
		where workspace_id = @workspace and not deleted order by id`, args,
		[]any{&o.ID, &o.Client, &date, &o.Weight, &o.Delivered, &o.Takadas}, func() error {
			o.Date = unit.DateOf(date)
			return w.Order(o)
		})
	if err != nil {
		return err
	}
	return x.rows(ctx, `
		select t.id, t.order_id, (t.state::jsonb ->> 'date')::date,
			(select sum((i ->> 'weight')::numeric * 1000)::bigint from jsonb_array_elements(t.state::jsonb -> 'items') i),
			array(select distinct k from unnest(t.karigars) k order by k)
		from orders.takada t where t.workspace_id = @workspace and not t.deleted order by t.id`, args,
		[]any{&t.ID, &t.Order, &date, &t.Weight, &t.Karigars}, func() error {
			t.Date = unit.DateOf(date)
			return w.Takada(t)
		})
}
