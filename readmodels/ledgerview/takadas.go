package ledgerview

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/ledger/takada"
	"bahi/readmodels"
)

// ClientTakada is a takada of a client's order.
type ClientTakada struct {
	ID int64 `json:"id,omitzero" required:"true" doc:"ID; absent in a dry run for a new record"`
	takada.Takada

	Revision *int64 `json:"revision,omitempty" doc:"Revision for If-Match"`
}

// SchemaName implements http/api's Named.
func (ClientTakada) SchemaName() string { return "LedgerTakada" }

// TakadaFilter selects takadas. Absent fields select all.
type TakadaFilter struct {
	Order  int64 `query:"client_order_id" minimum:"1" doc:"Only takadas of this order"`
	Client int64 `query:"client_id" minimum:"1" doc:"Only takadas of this client"`
}

// takadasSQL also selects the deleted karigars of a takada. Responses omit them.
const takadasSQL = `
	select t.id, t.state, t.revision,
		array(select a.id from orders.account a where a.id = any(t.karigars) and a.deleted_position is not null) as gone
	from orders.takada t`

func toTakada(row pgx.CollectableRow) (t ClientTakada, err error) {
	var (
		id, revision int64
		state        string
		gone         []int64
		s            takada.State
	)
	if err := row.Scan(&id, &state, &revision, &gone); err != nil {
		return t, err
	}
	err = json.Unmarshal([]byte(state), &s)
	shown := s.Without(func(karigar int64) bool { return slices.Contains(gone, karigar) })
	return ClientTakada{ID: id, Takada: shown, Revision: &revision}, err
}

// Takada reads a takada of a workspace, or returns [takada.ErrNotFound].
func (v *Views) Takada(ctx context.Context, at *readmodels.At, workspace uuid.UUID, id int64) (ClientTakada, error) {
	return readmodels.Row(ctx, v.Reader.From(at, "orders"), takada.ErrNotFound, toTakada,
		takadasSQL+` where t.workspace_id = $1 and not t.deleted and t.id = $2`, workspace, id)
}

// EachTakada calls take for each takada of a page, by id, and returns the number of takadas on all pages. A page of size
// 0 has all takadas.
func (v *Views) EachTakada(ctx context.Context, at *readmodels.At, workspace uuid.UUID, page readmodels.Page, f TakadaFilter,
	take func(ClientTakada) error) (total int64, err error) {
	l := readmodels.List[ClientTakada]{
		As: toTakada, SQL: takadasSQL + ` where t.workspace_id = @workspace and not t.deleted`, Order: `id`,
		Args: pgx.NamedArgs{"workspace": workspace, "order": f.Order, "client": f.Client},
	}
	if f == (TakadaFilter{}) {
		l.Count = readmodels.Tally(`orders.takada`, `t`, `t.workspace_id = @workspace`)
	}
	if f.Order != 0 {
		l.SQL += ` and t.order_id = @order`
	}
	if f.Client != 0 {
		l.SQL += ` and t.order_id in (
			select o.id from orders.client_order o where o.workspace_id = @workspace and o.client_id = @client and not o.deleted)`
	}
	return l.Each(ctx, v.Reader.From(at, "orders"), page, take)
}

// TakadaHistory returns all versions of a takada, oldest first, even of a deleted one, or [takada.ErrNotFound]. It has the karigars as
// recorded, deleted ones too.
func (v *Views) TakadaHistory(ctx context.Context, at *readmodels.At, workspace uuid.UUID, id int64) ([]RecordVersion[ClientTakada],
	error) {
	r := recorded{workspace, takada.Kind.Category(), id, takada.ErrNotFound}
	return history(ctx, at, v, r, func(t takada.Takada, revision *int64) ClientTakada {
		return ClientTakada{ID: id, Takada: t, Revision: revision}
	})
}
