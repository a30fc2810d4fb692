package demo

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"bahi/commands"
	"bahi/commands/accesscmd"
	"bahi/domain/access/apikey"
	"bahi/domain/access/user"
	"bahi/domain/actor"
	"bahi/domain/unit"
	"bahi/http/api"
	"bahi/internal/app"
)

// Plan says what is written. The same plan gives the same records, apart from ids and times.
type Plan struct {
	Events   int // about as many
	Seed     uint64
	Until    unit.Date // the last day of the year
	Email    string    // of the user to whom the workspace belongs
	Password string
}

const daysOfYear = 365

// Filled is what a plan became.
type Filled struct {
	Workspace uuid.UUID
	Key       string // an operator's, with everything of the workspace
}

// ledgerCount is how many accounts a ledger has.
type ledgerCount struct {
	ledger string
	count  int
}

// parties returns how many accounts each ledger has, and how many rows each of them.
func (p Plan) parties() (counts []ledgerCount, each int) {
	const ofSmall, grows = 5000, 0.55 // a shop with more rows has more accounts, and longer ones
	scale := max(1, math.Pow(float64(p.Events)/ofSmall, grows))
	all := 0
	for _, c := range []ledgerCount{{"bank", 3}, {"bullion", 3}, {"client", 12}, {"karigar", 6}, {"polisher", 3}} {
		c.count = int(float64(c.count) * scale)
		all += c.count
		counts = append(counts, c)
	}
	return counts, max(2, p.Events*rowsOfThousand/1000/all)
}

// Of a thousand events, so many are rows, and so many records of each kind are made: with what follows from them they are the others.
const (
	rowsOfThousand = 700
	orders         = 10
	takadas        = 6
	products       = 10
	enquiries      = 6
	contacts       = 8
	messages       = 16
)

// few is how many records of a kind there are of which nobody has thousands.
const few = 40

func (p Plan) of(thousandth int) int { return max(3, p.Events*thousandth/1000) }

// filler carries out a plan.
type filler struct {
	client

	sys       *app.System
	plan      Plan
	workspace uuid.UUID
	first     unit.Date
	parties   []*party
	companies []uuid.UUID
	contacts  []int64
	channel   int64 // of people
	asked     int64 // channel of the bot
	list      int64 // of contacts
	progress  func(done, total int64)
	jobs      []job
	done      int
}

// job writes records, each of which counts.
type job struct {
	records int
	run     func(context.Context) error
}

// atOnce is how many records are written at once, so that they share transactions of the log and of the tables.
const atOnce = 256

// later adds a job to those that do carries out.
func (f *filler) later(records int, run func(context.Context) error) {
	f.jobs = append(f.jobs, job{records, run})
}

// do carries out the jobs, in no order.
func (f *filler) do(ctx context.Context) error {
	doing, within := errgroup.WithContext(ctx)
	doing.SetLimit(atOnce)
	for _, j := range f.jobs {
		doing.Go(func() error { return j.run(within) })
		f.done += j.records
		f.progress(int64(f.done), int64(f.records()))
	}
	f.jobs = nil
	return doing.Wait()
}

// records returns how many are written in all.
func (f *filler) records() int {
	counts, each := f.plan.parties()
	all := 0
	for _, c := range counts {
		all += c.count * (each + 1)
	}
	return all + f.plan.of(orders) + f.plan.of(takadas) + f.plan.of(products) + f.plan.of(enquiries) + f.plan.of(contacts) +
		f.plan.of(messages)
}

// random returns the chance of the nth record of a kind: it depends on no other record, so that they can be written at once.
func (f *filler) random(kind string, n int) *rand.Rand {
	h := fnv.New32a()
	_, _ = h.Write([]byte(kind))                                               // never fails
	return rand.New(rand.NewPCG(f.plan.Seed, uint64(h.Sum32())<<32|uint64(n))) //nolint:gosec // the same records in each run
}

// Find returns the workspace that was filled for a user, with another key.
func Find(ctx context.Context, sys *app.System, email string) (Filled, error) {
	key, err := sys.Accounts.EmailKey(ctx, email)
	if err != nil {
		return Filled{}, err
	}
	_, s, err := sys.Accounts.HolderOf(ctx, key)
	if err == nil && s.Workspace == uuid.Nil {
		err = fmt.Errorf("no demo was filled for %s", email)
	}
	if err != nil {
		return Filled{}, err
	}
	return keyOf(ctx, sys, s.Workspace)
}

// keyOf makes a key of a workspace.
func keyOf(ctx context.Context, sys *app.System, workspace uuid.UUID) (filled Filled, err error) {
	filled.Workspace = workspace
	filled.Key, _, err = accesscmd.CreateAPIKey(ctx, sys.Commands, sys.ByOperator(workspace), apikey.Create{
		Name: "demo", Workspace: workspace, Now: sys.Commands.Now(),
		// the console is for operators
		Permissions: actor.Permissions{Ledger: actor.Write, Messaging: actor.Write, Marketplace: actor.Write, Audit: actor.Read, Operator: true},
	})
	if err != nil {
		err = fmt.Errorf("make the key: %w", err)
	}
	return filled, err
}

// Fill makes a user and fills their workspace by the operations that clients have. Progress is told how many records are written.
func Fill(ctx context.Context, sys *app.System, p Plan, progress func(done, total int64)) (Filled, error) {
	made, err := sys.Accounts.RegisterVerified(ctx, sys.ByOperator(uuid.Nil),
		accesscmd.Registration{Email: p.Email, Password: p.Password, FirstName: "Asha", LastName: "Soni"})
	if err != nil {
		return Filled{}, fmt.Errorf("make the user %s: %w", p.Email, err)
	}
	known, err := commands.Load(ctx, sys.Commands.Fresh(), user.Kind, made.ID.String())
	if err != nil {
		return Filled{}, err
	}
	filled, err := keyOf(ctx, sys, known.State.Workspace)
	if err != nil {
		return filled, err
	}
	operations, err := sys.Api("", api.Limiting{}, nil, nil)
	if err != nil {
		return filled, err
	}
	f := &filler{
		client: client{handler: operations, key: filled.Key}, sys: sys, plan: p, workspace: filled.Workspace, first: p.Until - (daysOfYear - 1),
		progress: progress,
	}
	for _, step := range []func(context.Context) error{
		f.openBooks, f.orders, f.drafts, f.openShops, f.catalog, f.enquiries, f.people, f.bot, f.conversations, f.campaign, f.writeBooks, f.closeYear,
	} {
		if err := step(ctx); err != nil {
			return filled, err
		}
	}
	return filled, nil
}
