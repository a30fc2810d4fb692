// Package unique lets at most one record have a value.
//
// A value has a stream of its own, the claim, which names the record that may have it; the record's stream says
// whether it has. Nothing is appended to both at once, so each step bears a crash before the next:
//
//   - A new record gets the id that the claim names. Where a claim's record never came to be, the next request
//     begins it, under the same id: of many that begin it, one appends the first event.
//   - A record that changes its value is loaded before the claim, and changes only if its stream has not moved since.
//   - Who takes over a claim that came to nothing appends a fence to the other record first, so that a change which is under way there is
//     decided again, after the claim was taken.
//   - A value that is given up is released at the revision that its claim had before the record changed.
package unique

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"bahi/commands"
	"bahi/domain/claims"
	"bahi/domain/event"
	"bahi/domain/fault"
)

// maxTries is how often a claim is tried again because its stream or the record's moved.
const maxTries = 16

// errElsewhere refuses a request whose key was accepted for another id than the claim's.
var errElsewhere = fault.New(fault.Conflict, "The request began another record")

// Key returns the name of a value's claim, none for an empty value. The parts are what must be equal: a workspace, if each has values of its own,
// and the value.
func Key(ctx context.Context, h *commands.Handler, v claims.Value, parts ...[]byte) (string, error) {
	if len(parts[len(parts)-1]) == 0 {
		return "", nil
	}
	return h.Hash(ctx, v.Category(), parts...)
}

// Claim gives a value to a record and returns the revision of the claim. Where another record's claim has it, yield is asked: it
// refuses, or sees to it that the other record neither has the value nor gets it by that claim.
func Claim(
	ctx context.Context, h *commands.Handler, req commands.Request, v claims.Value, key, holder string,
	yield func(held commands.Loaded[claims.State]) error,
) (int64, error) {
	for range maxTries {
		held, err := commands.Load(ctx, h.Fresh(), v.Kind, key)
		if err != nil {
			return 0, err
		}
		if other := held.State.Holder; other != "" && other != holder {
			if err := yield(held); err != nil {
				return 0, err
			}
		}
		claimed, err := take(ctx, h, req, v, key, holder, held)
		if !errors.Is(err, commands.ErrStale) {
			return claimed, err
		}
	}
	return 0, commands.ErrBusy
}

// take claims a value at the revision at which its claim was looked at.
func take(
	ctx context.Context, h *commands.Handler, req commands.Request, v claims.Value, key, holder string, held commands.Loaded[claims.State],
) (int64, error) {
	out, err := commands.Handle(ctx, h, at(req, held), v.Kind, key, claims.Claim{Value: v, Holder: holder, Now: h.Now()})
	return out.Revision, err
}

// Release gives up a record's claim, if it is still the one that was looked at.
func Release(ctx context.Context, h *commands.Handler, req commands.Request, v claims.Value, key, holder string, held commands.Loaded[claims.State]) error {
	_, err := commands.Handle(ctx, h, at(req, held), v.Kind, key, claims.Release{Value: v, Holder: holder})
	if errors.Is(err, commands.ErrStale) {
		return nil
	}
	return err
}

// at returns the request for a follow-up at the revision of a stream that was looked at.
func at[S any](req commands.Request, l commands.Loaded[S]) commands.Request {
	req = req.FollowUp()
	req.IfMatch = &l.Revision
	return req
}

// Field is a field of records each value of which one record has at most. The record's kind has the event [claims.Fenced].
type Field[S any] struct {
	Records *event.Kind[S]
	Claims  claims.Value
	Key     func(S) string // name of the claim of the value that a record has; empty: it has none
	Name    string         // of the field in requests
	Taken   string         // what a request is told whose value another record has

	// Begun begins the stream of a record that exists in another stream only. If no stream has the record, Begun prevents that one
	// gets it. Nil: each record begins its own stream.
	Begun func(ctx context.Context, h *commands.Handler, req commands.Request, id string) error

	Everywhere bool // one record of the deployment has a value, not one of each workspace: its claim belongs to no workspace
}

// claiming returns the request for the claims.
func (f Field[S]) claiming(req commands.Request) commands.Request {
	if f.Everywhere {
		return req.In(uuid.Nil)
	}
	return req
}

// Create begins a record that has the value of the key, none if the key is empty. It is [commands.Begin] otherwise. It refuses a value that another
// record has, by a conflict that has the other's id.
func (f Field[S]) Create(
	ctx context.Context, h *commands.Handler, req commands.Request, key string, newID func(context.Context) (string, error), cmd func(id string) event.Command[S],
) (commands.Outcome[S], error) {
	if key == "" || req.IfMatch != nil {
		return commands.Begin(ctx, h, req, f.Records, newID, cmd)
	}
	none := commands.Outcome[S]{Revision: -1}
	if !f.Records.Has(claims.Fenced[S]{}) { // it is needed only where writers race
		return none, fmt.Errorf("kind %s wants event.Of[claims.Fenced[State]] among its events, for the claims of %s", f.Records.Category(), f.Name)
	}
	var (
		zero S
		mine string // an id that was allocated for the record
	)
	if _, err := cmd("").Decide(zero); err != nil {
		return none, err
	}
	for range maxTries {
		if out, done, err := commands.Earlier(ctx, h, req, f.Records); done || err != nil {
			return out, err
		}
		held, other, err := f.look(ctx, h, req, key)
		if err != nil {
			return none, err
		}
		id := held.State.Holder
		switch begun := id == "" || other.Revision >= 0; {
		case id != "" && f.Key(other.State) == key:
			return f.refuse(ctx, h, req, id)
		case req.DryRun:
			return commands.Begin(ctx, h, req, f.Records, newID, cmd)
		case begun:
			if mine == "" {
				if mine, err = newID(ctx); err != nil {
					return none, err
				}
			}
			id = mine
			if err := f.take(ctx, h, req, key, id, held, other); errors.Is(err, commands.ErrStale) {
				continue
			} else if err != nil {
				return none, err
			}
		}
		out, err := f.begin(ctx, h, req, id, cmd)
		if _, refused := errors.AsType[*fault.Error](err); !refused {
			return out, err
		}
		if now, loadErr := commands.Load(ctx, h.Fresh(), f.Records, id); loadErr != nil || now.Revision < 0 && !errors.Is(err, errElsewhere) {
			return out, errors.Join(err, loadErr) // not for somebody else's being faster
		}
	}
	return none, commands.ErrBusy
}

// New is a record that is to begin.
type New[S any] struct {
	ID, Key string // Key names the claim of its value; empty: it has none
	Command event.Command[S]
}

// claimers is how many claims are looked at at once.
const claimers = 16

// ClaimEach claims values for new records without reading their claims: it claims those that nobody has claimed before. It reports whether
// it claimed all. If not, call [Field.CreateEach] with the same records.
func (f Field[S]) ClaimEach(ctx context.Context, h *commands.Handler, req commands.Request, all []New[S]) (bool, error) {
	takes := make([]commands.One[claims.State], len(all))
	for i, n := range all {
		takes[i] = commands.Begins(n.Key, f.taking(h, n))
	}
	taken, err := commands.HandleEach(ctx, h, f.claiming(req.FollowUp()), f.Claims.Kind, takes)
	return !slices.ContainsFunc(taken, func(d commands.Done[claims.State]) bool { return !d.Changed }), err
}

// taking returns the command that claims the value of a record.
func (f Field[S]) taking(h *commands.Handler, n New[S]) event.Command[claims.State] {
	return claims.Claim{Value: f.Claims, Holder: n.ID, Now: h.Now()}
}

// CreateEach begins records together, in few appends. It leaves out those whose value is claimed for another id, and those that another
// request has begun
// meanwhile: for these, Changed is false, and [Field.Create] decides.
func (f Field[S]) CreateEach(ctx context.Context, h *commands.Handler, req commands.Request, all []New[S]) ([]commands.Done[S], error) {
	held := make([]commands.Loaded[claims.State], len(all))
	var looking errgroup.Group
	looking.SetLimit(claimers)
	for i, n := range all {
		if n.Key == "" {
			continue
		}
		looking.Go(func() (err error) {
			held[i], err = commands.Load(ctx, h.Fresh(), f.Claims.Kind, n.Key)
			return err
		})
	}
	done := make([]commands.Done[S], len(all))
	if err := looking.Wait(); err != nil {
		return done, err
	}
	var (
		takes       []commands.One[claims.State]
		begins      []commands.One[S]
		take, begin []int // places in all
	)
	for i, n := range all {
		switch held[i].State.Holder {
		case "":
			if n.Key != "" {
				takes, take = append(takes, commands.One[claims.State]{
					Loaded: held[i], ID: n.Key, Command: f.taking(h, n),
				}), append(take, i)
				continue
			}
		case n.ID:
		default:
			continue
		}
		begin = append(begin, i)
	}
	taken, err := commands.HandleEach(ctx, h, f.claiming(req.FollowUp()), f.Claims.Kind, takes)
	if err != nil {
		return done, err
	}
	for n, t := range taken {
		if t.Changed {
			begin = append(begin, take[n])
		}
	}
	for _, i := range begin {
		begins = append(begins, commands.Begins(all[i].ID, all[i].Command))
	}
	began, err := commands.HandleEach(ctx, h, req.FollowUp(), f.Records, begins)
	for n, b := range began {
		done[begin[n]] = b
	}
	return done, err
}

// begin begins the record of an id, if nothing has begun it.
func (f Field[S]) begin(ctx context.Context, h *commands.Handler, req commands.Request, id string, cmd func(id string) event.Command[S]) (commands.Outcome[S], error) {
	req.IfMatch = new(int64(-1))
	return commands.Begin(ctx, h, req, f.Records, func(context.Context) (string, error) { return id, nil }, func(began string) event.Command[S] {
		if began != id && began != "" {
			return refusal[S]{errElsewhere}
		}
		return cmd(began)
	})
}

// refusal is a command that is refused.
type refusal[S any] struct{ why error }

// Decide refuses.
func (c refusal[S]) Decide(S) ([]event.Event[S], error) { return nil, c.why }

// errDecides is the error of an unclaimed command that would change its record.
var errDecides = fault.New(fault.Conflict, "The record moved while its value was claimed")

// unclaimed is a command that may be refused but decides nothing, because nothing claimed its value.
type unclaimed[S any] struct{ event.Command[S] }

// Decide returns the command's refusal, or errDecides instead of events.
func (c unclaimed[S]) Decide(s S) ([]event.Event[S], error) {
	events, err := c.Command.Decide(s)
	if err == nil && len(events) > 0 {
		err = errDecides
	}
	return nil, err
}

// look loads a claim, and after it the record that it names.
func (f Field[S]) look(
	ctx context.Context, h *commands.Handler, req commands.Request, key string,
) (held commands.Loaded[claims.State], holder commands.Loaded[S], err error) {
	held, err = commands.Load(ctx, h.Fresh(), f.Claims.Kind, key)
	holder.Revision = -1
	if err != nil || held.State.Holder == "" {
		return held, holder, err
	}
	holder, err = commands.Load(ctx, h.Fresh(), f.Records, held.State.Holder)
	if err != nil || holder.Revision >= 0 || f.Begun == nil || req.DryRun {
		return held, holder, err
	}
	if err = f.Begun(ctx, h, req.FollowUp(), held.State.Holder); err == nil {
		holder, err = commands.Load(ctx, h.Fresh(), f.Records, held.State.Holder)
	}
	return held, holder, err
}

// refuse refuses a value that a record has, unless it is this very request that gave it the value.
func (f Field[S]) refuse(ctx context.Context, h *commands.Handler, req commands.Request, id string) (commands.Outcome[S], error) {
	if out, done, err := commands.Earlier(ctx, h, req, f.Records); done || err != nil {
		return out, err
	}
	return commands.Outcome[S]{Revision: -1}, fault.Taken(f.Name, f.Taken, id)
}

// take claims a value that no record has. It returns [commands.ErrStale] if the claim or its record moved since they were looked at.
func (f Field[S]) take(
	ctx context.Context, h *commands.Handler, req commands.Request, key, id string, held commands.Loaded[claims.State], holder commands.Loaded[S],
) error {
	if other := held.State.Holder; other != "" && other != id {
		fence := at(req, holder)
		if holder.Revision >= 0 {
			fence = fence.In(holder.Workspace)
		}
		if _, err := commands.Handle(ctx, h, fence, f.Records, other, claims.Fence[S]{}); err != nil {
			return err
		}
	}
	_, err := take(ctx, h, f.claiming(req), f.Claims, key, id, held)
	return err
}

// Handle carries out a command after which the record has the value of the key; nil: the one that it has; empty: none. It is [commands.Handle] otherwise. It
// refuses a value that another record has, by a conflict that has the other's id.
func (f Field[S]) Handle(
	ctx context.Context, h *commands.Handler, req commands.Request, id string, key *string, cmd event.Command[S],
) (commands.Outcome[S], error) {
	none := commands.Outcome[S]{ID: id, Revision: -1}
	if key == nil {
		return commands.Handle(ctx, h, req, f.Records, id, cmd)
	}
	for range maxTries {
		if out, done, err := commands.Earlier(ctx, h, req, f.Records); done || err != nil {
			return out, err
		}
		record, err := commands.Load(ctx, h.Fresh(), f.Records, id)
		if err != nil {
			return none, err
		}
		seen := req
		if req.IfMatch == nil {
			seen.IfMatch = &record.Revision
		}
		_, refused := cmd.Decide(record.State)
		if refused != nil || *seen.IfMatch != record.Revision || record.Workspace != req.Workspace {
			out, err := commands.Handle(ctx, h, req, f.Records, id, unclaimed[S]{cmd})
			switch {
			case !errors.Is(err, errDecides):
				return out, err
			case *seen.IfMatch != record.Revision:
				return none, commands.ErrStale
			}
			continue // the record moved meanwhile
		}
		before := f.Key(record.State)
		var given commands.Loaded[claims.State]
		if before != "" {
			if given, err = commands.Load(ctx, h.Fresh(), f.Claims.Kind, before); err != nil {
				return none, err
			}
		}
		if *key != "" && *key != before {
			held, other, err := f.look(ctx, h, req, *key)
			switch holder := held.State.Holder; {
			case err != nil:
				return none, err
			case holder != "" && holder != id && f.Key(other.State) == *key:
				return f.refuse(ctx, h, req, holder)
			case !req.DryRun:
				err = f.take(ctx, h, req, *key, id, held, other)
			}
			if errors.Is(err, commands.ErrStale) {
				continue
			} else if err != nil {
				return none, err
			}
		}
		out, err := commands.Handle(ctx, h, seen, f.Records, id, cmd)
		if errors.Is(err, commands.ErrStale) && req.IfMatch == nil {
			continue
		}
		if err == nil && before != "" && before != *key && !req.DryRun {
			// A claim that is not released is taken over by the next record that wants the value.
			_ = Release(ctx, h, f.claiming(req), f.Claims, before, id, given)
		}
		return out, err
	}
	return none, commands.ErrBusy
}
