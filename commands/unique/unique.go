// Package unique ensures that at most one record has a value.
//
// Each value has a stream, its claim, which names the record with the value. One transaction writes the claim and the record that gains or
// loses the value.
package unique

import (
	"context"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/claims"
	"bahi/domain/event"
	"bahi/domain/fault"
)

// Key returns the name of a value's claim, "" for an empty value. The parts identify the value: its workspace, if values are unique per
// workspace, and the value.
func Key(ctx context.Context, h *commands.Handler, v claims.Value, parts ...[]byte) (string, error) {
	if len(parts[len(parts)-1]) == 0 {
		return "", nil
	}
	return h.Hash(ctx, v.Category(), parts...)
}

// Field is a field with unique values.
type Field[S any] struct {
	Records *event.Kind[S]
	Claims  claims.Value
	Key     func(S) string       // name of the claim of a record's value; empty: it has none
	Has     func(S, string) bool // whether a record has the value of a claim; nil: Key decides
	Name    string               // name of the field in requests
	Taken   string               // error message for a value that another record has

	// Load returns a record. It is nil for a kind whose records all have their own streams.
	Load func(ctx context.Context, from commands.Source, id string) (S, error)

	Global bool // values are unique in the deployment, not per workspace: claims belong to no workspace
}

// Create is [commands.CreateWithID] for a record with the value of the key.
func (f Field[S]) Create(
	ctx context.Context, h *commands.Handler, req commands.Request, key string, newID func(context.Context) (string, error),
	cmd func(id string) event.Command[S],
) (commands.Outcome[S], error) {
	return commands.Do(ctx, h, req, f.Records, func(ctx context.Context, tx *commands.Tx) error {
		_, err := f.DecideNew(ctx, tx, key, newID, cmd)
		return err
	})
}

// DecideNew is [commands.DecideNew] for a record with the value of the key, or with no value if the key is empty. It returns the record's
// id. If another record has the value, it returns a conflict with the other's id.
func (f Field[S]) DecideNew(
	ctx context.Context, tx *commands.Tx, key string, newID func(context.Context) (string, error), cmd func(id string) event.Command[S],
) (id string, err error) {
	var zero S
	if _, err := cmd("").Decide(zero); err == nil {
		if err := f.Free(ctx, tx, key, ""); err != nil {
			return "", err
		}
	}
	_, err = commands.DecideNew(ctx, tx, f.Records, newID, func(made string) event.Command[S] {
		id = made
		return cmd(made)
	})
	if err != nil {
		return "", err
	}
	return id, f.Give(ctx, tx, key, id)
}

// in returns the transaction for the claims.
func (f Field[S]) in(tx *commands.Tx) *commands.Tx {
	if f.Global {
		return tx.In(uuid.Nil)
	}
	return tx
}

// Free returns a conflict if another record has the value.
func (f Field[S]) Free(ctx context.Context, tx *commands.Tx, key, id string) error {
	if key == "" {
		return nil
	}
	held, err := commands.Load(ctx, tx, f.Claims.Kind, key)
	other := held.State.Holder
	if err != nil || other == "" || other == id {
		return err
	}
	holder, err := f.load(ctx, tx, other)
	if err == nil && (f.Key(holder) == key || f.Has != nil && f.Has(holder, key)) {
		err = fault.Taken(f.Name, f.Taken, other)
	}
	return err
}

func (f Field[S]) load(ctx context.Context, tx *commands.Tx, id string) (S, error) {
	if f.Load != nil {
		return f.Load(ctx, tx, id)
	}
	l, err := commands.Load(ctx, tx, f.Records, id)
	return l.State, err
}

// Give gives a free value to a record in a transaction.
func (f Field[S]) Give(ctx context.Context, tx *commands.Tx, key, id string) error {
	if key == "" || tx.DryRun() {
		return nil
	}
	_, err := commands.Decide(ctx, f.in(tx), f.Claims.Kind, key, claims.Claim{Value: f.Claims, Holder: id, Now: tx.Now()})
	return err
}

// Handle is [commands.Handle] for a command after which the record has the value of the key.
func (f Field[S]) Handle(
	ctx context.Context, h *commands.Handler, req commands.Request, id string, key *string, cmd event.Command[S],
) (commands.Outcome[S], error) {
	return commands.Do(ctx, h, req, f.Records, func(ctx context.Context, tx *commands.Tx) error {
		return f.Decide(ctx, tx, id, key, cmd)
	})
}

// Decide decides a command after which the record has the value of the key; nil: the old value; empty: none. If another record has the
// value, it returns a conflict with the other's id.
func (f Field[S]) Decide(ctx context.Context, tx *commands.Tx, id string, key *string, cmd event.Command[S]) error {
	before, err := commands.Load(ctx, tx, f.Records, id)
	if err != nil {
		return err
	}
	after, err := commands.Decide(ctx, tx, f.Records, id, cmd)
	was := f.Key(before.State)
	if err != nil || key == nil || after.Revision == before.Revision || *key == was {
		return err
	}
	if err := f.Free(ctx, tx, *key, id); err != nil {
		return err
	}
	if err := f.Give(ctx, tx, *key, id); err != nil || was == "" {
		return err
	}
	_, err = commands.Decide(ctx, f.in(tx), f.Claims.Kind, was, claims.Release{Value: f.Claims, Holder: id})
	return err
}

// Guess adds a claim to a transaction without reading it, because its value is probably free. See [commands.Unseen].
func (f Field[S]) Guess(tx *commands.Tx, key string) { commands.Unseen(f.in(tx), f.Claims.Kind, key) }

// Prepare reads a value's claim into the cache, for a decision that needs many claims.
func (f Field[S]) Prepare(ctx context.Context, h *commands.Handler, key string) error {
	if key == "" {
		return nil
	}
	_, err := commands.Load(ctx, h.Fresh(), f.Claims.Kind, key)
	return err
}
