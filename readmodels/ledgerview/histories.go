package ledgerview

import (
	"context"
	"encoding/json"
	"reflect"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/readmodels"
)

// RecordVersion is one step of the history of an order or a takada.
type RecordVersion[T any] struct {
	Position event.Position `json:"position" doc:"Position in the log"`
	At       time.Time      `json:"at" doc:"Time of the change"`
	Actor    string         `json:"actor" doc:"Actor, such as user:<id> or api_key:<id>"`
	Reason   string         `json:"reason,omitempty" doc:"Reason of the change; empty: none given"`
	Change   string         `json:"change" enum:"added,edited,deleted" doc:"Kind of the change"`
	Before   *T             `json:"before" doc:"Record before the change; null: created"`
	After    *T             `json:"after" doc:"Record after the change; null: deleted"`
}

// SchemaName implements http/api's Named.
func (RecordVersion[T]) SchemaName() string {
	return "Ledger" + reflect.TypeFor[T]().Name() + "Version"
}

// RecordChange returns the name of the change from one version of an order or a takada to the next.
func RecordChange(before, after bool) string {
	switch {
	case !after:
		return "deleted"
	case !before:
		return "added"
	default:
		return "edited"
	}
}

// recorded identifies a record with a history.
type recorded struct {
	workspace uuid.UUID
	kind      string // category of its stream
	id        int64
	missing   error // error for an unknown record
}

// history returns all versions of a record, or r.missing if the record is unknown. show converts a stored state.
func history[S, T any](ctx context.Context, at *readmodels.At, v *Views, r recorded, show func(S, *int64) T) ([]RecordVersion[T], error) {
	var before *T
	versions, err := readmodels.Rows(ctx, v.Reader.From(at, "orders"), func(row pgx.CollectableRow) (o RecordVersion[T], err error) {
		var (
			position int64
			text     *string
			revision *int64
		)
		if err := row.Scan(&position, &o.At, &o.Actor, &o.Reason, &text, &revision); err != nil {
			return o, err
		}
		if text != nil {
			var s S
			err = json.Unmarshal([]byte(*text), &s)
			o.After = new(show(s, revision))
		}
		o.Position, o.At, o.Before, o.Change = event.Position(position), o.At.UTC(), before, RecordChange(before != nil, o.After != nil)
		before = o.After
		return o, err
	}, `
		select r.position, r.recorded_at, r.actor, coalesce(r.reason, ''), r.state, r.revision
		from orders.record_version r where r.workspace_id = $1 and r.kind = $2 and r.id = $3 order by r.position`, r.workspace, r.kind, r.id)
	if err == nil && len(versions) == 0 {
		err = r.missing
	}
	return versions, err
}
