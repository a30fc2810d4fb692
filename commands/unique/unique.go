// Package unique lets at most one record have a value.
//
// Each value has a stream, its claim, which names the record that has the value. A record that gets or gives up a value is
// written in one transaction with the claim.
package unique

import (
	"context"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/claims"
	"bahi/domain/event"
	"bahi/domain/fault"
)

// Key returns the name of a value's claim, none for an empty value. The parts are what must be equal: a workspace, if each has values of
// its own, and the value.
func Key(ctx context.Context, h *commands.Handler, v claims.Value, parts ...[]byte) (string, error) {
	if len(parts[len(parts)-1]) == 0 {
		return "", nil
	}
	return h.Hash(ctx, v.Category(), parts...)
}

// Field is a field of records each value of which one record has at most.
type Field[S any] struct {
	Records *event.Kind[S]
	Claims  claims.Value
	Key     func(S) string       // name of the claim of the value that a record has; empty: it has none
	Has     func(S, string) bool // whether a record has the value of a claim; nil: Key says it
	Name    string               // of the field in requests
	Taken   string               // error message for a value that another record has

	// Load returns a record of a kind some of which have no stream of their own. Nil: all have one.
	Load func(ctx context.Context, from commands.Source, id string) (S, error)

	Global bool // one record of the deployment has a value, not one of each workspace: its claim belongs to no workspace
}

// Create begins a record that has the value of the key. It is [commands.CreateWithID] otherwise.
func (f Field[S]) Create(
	ctx context.Context, h *commands.Handler, req commands.Request, key string, newID func(context.Context) (string, error),
	cmd func(id string) event.Command[S],
) (commands.Outcome[S], error) {
	return commands.Do(ctx, h, req, f.Records, func(ctx context.Context, tx *commands.Tx) error {
		_, err := f.DecideNew(ctx, tx, key, newID, cmd)
		return err
	})
}

// DecideNew begins a record that has the value of the key, none if the key is empty, and returns its id. It is [commands.DecideNew]
// otherwise. It refuses a value that another record has, by a conflict that has the other's id.
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

// Free refuses a value that another record has.
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

// Handle carries out a command after which the record has the value of the key. It is [commands.Handle] otherwise.
func (f Field[S]) Handle(
	ctx context.Context, h *commands.Handler, req commands.Request, id string, key *string, cmd event.Command[S],
) (commands.Outcome[S], error) {
	return commands.Do(ctx, h, req, f.Records, func(ctx context.Context, tx *commands.Tx) error {
		return f.Decide(ctx, tx, id, key, cmd)
	})
}

// Decide decides a command after which the record has the value of the key; nil: the one that it has; empty: none. It refuses a value that
// another record has, by a conflict that has the other's id.
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

// Guess adds the claim of a value that probably no record has to a transaction. See [commands.Unseen].
func (f Field[S]) Guess(tx *commands.Tx, key string) { commands.Unseen(f.in(tx), f.Claims.Kind, key) }

// Prepare reads who has a value, for a decision that will look at many.
func (f Field[S]) Prepare(ctx context.Context, h *commands.Handler, key string) error {
	if key == "" {
		return nil
	}
	_, err := commands.Load(ctx, h.Fresh(), f.Claims.Kind, key)
	return err
}
