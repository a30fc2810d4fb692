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

// Plan describes the records. The same plan gives the same records, apart from ids and times.
type Plan struct {
	Events   int // approximate number
	Seed     uint64
	Until    unit.Date // the last day of the year
	Email    string    // address of the workspace's owner
	Password string
}

const daysOfYear = 365

// Filled is the result of [Fill].
type Filled struct {
	Workspace uuid.UUID
	Key       string // an operator's, for the workspace
}

// ledgerCount is the number of accounts of a ledger.
type ledgerCount struct {
	ledger string
	count  int
}

// parties returns the number of accounts of each ledger, and the number of rows of each account.
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

// Numbers of rows and of records of each kind per thousand events. The other events follow from the records.
const (
	rowsOfThousand = 700
	orders         = 10
	takadas        = 6
	products       = 10
	enquiries      = 6
	contacts       = 8
	messages       = 16
)

// few is the maximum number of records of kinds that stay small in every workshop.
const few = 40

func (p Plan) of(thousandth int) int { return max(3, p.Events*thousandth/1000) }

// filler executes a plan.
type filler struct {
	client

	sys       *app.System
	plan      Plan
	workspace uuid.UUID
	first     unit.Date
	parties   []*party
	companies []uuid.UUID
	contacts  []int64
	channel   int64 // channel for people
	asked     int64 // channel of the bot
	list      int64 // list of contacts
	progress  func(done, total int64)
	jobs      []job
	done      int
}

// job writes a number of records, which the progress counts.
type job struct {
	records int
	run     func(context.Context) error
}

// maxConcurrent is the number of concurrent jobs. Concurrent writes share transactions of the log and of the tables.
const maxConcurrent = 256

// later adds a job, for do.
func (f *filler) later(records int, run func(context.Context) error) {
	f.jobs = append(f.jobs, job{records, run})
}

// do runs the jobs concurrently.
func (f *filler) do(ctx context.Context) error {
	doing, within := errgroup.WithContext(ctx)
	doing.SetLimit(maxConcurrent)
	for _, j := range f.jobs {
		doing.Go(func() error { return j.run(within) })
		f.done += j.records
		f.progress(int64(f.done), int64(f.records()))
	}
	f.jobs = nil
	return doing.Wait()
}

// records returns the total number of records.
func (f *filler) records() int {
	counts, each := f.plan.parties()
	all := 0
	for _, c := range counts {
		all += c.count * (each + 1)
	}
	return all + f.plan.of(orders) + f.plan.of(takadas) + f.plan.of(products) + f.plan.of(enquiries) + f.plan.of(contacts) +
		f.plan.of(messages)
}

// random returns the random source of the nth record of a kind. It depends on no other record, so that records can be written concurrently.
func (f *filler) random(kind string, n int) *rand.Rand {
	h := fnv.New32a()
	_, _ = h.Write([]byte(kind))                                               // never fails
	return rand.New(rand.NewPCG(f.plan.Seed, uint64(h.Sum32())<<32|uint64(n))) //nolint:gosec // the same records in each run
}

// keyOf creates a key of a workspace.
func keyOf(ctx context.Context, sys *app.System, workspace uuid.UUID) (filled Filled, err error) {
	filled.Workspace = workspace
	filled.Key, _, err = accesscmd.CreateAPIKey(ctx, sys.Commands, sys.ByOperator(workspace), apikey.Create{
		Name: "demo", Workspace: workspace, Now: sys.Commands.Now(),
		// the console is for operators
		Permissions: actor.Permissions{Ledger: actor.Write, Messaging: actor.Write, Marketplace: actor.Write, Audit: actor.Read, Operator: true},
	})
	if err != nil {
		err = fmt.Errorf("create the key: %w", err)
	}
	return filled, err
}

// Fill creates a user and fills the user's workspace through the operations of the interface. It calls progress with the number of records.
func Fill(ctx context.Context, sys *app.System, p Plan, progress func(done, total int64)) (Filled, error) {
	made, err := sys.Accounts.RegisterVerified(ctx, sys.ByOperator(uuid.Nil),
		accesscmd.Registration{Email: p.Email, Password: p.Password, FirstName: "Asha", LastName: "Soni"})
	if err != nil {
		return Filled{}, fmt.Errorf("create the user %s: %w", p.Email, err)
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
		f.openBooks, f.orders, f.drafts, f.openShops, f.catalog, f.enquiries, f.people, f.bot, f.conversations, f.campaign, f.writeBooks,
		f.closeYear, f.confirm,
	} {
		if err := step(ctx); err != nil {
			return filled, err
		}
	}
	return filled, nil
}
