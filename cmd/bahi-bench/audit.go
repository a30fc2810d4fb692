package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/eventstore"
	proofs "bahi/eventstore/audit"
	"bahi/internal/app"
	"bahi/internal/bench"
	"bahi/internal/cli/screen"
	"bahi/projections"
	audittables "bahi/projections/audit"
)

const (
	provedLeaves  = 10_000_000
	quickLeaves   = 10      // multiple of the log's events
	hashedAtMost  = 200_000 // events whose leaves are kept in memory for hashing alone
	proofsARound  = 1000
	leavesAtOnce  = 1 << 16 // a multiple of a tile's hashes, so that tiles are written whole
	caughtUpAfter = time.Minute
)

// audits measures the costs of the audit tree, of proofs and of verification.
func (b *benchmark) audits(ctx context.Context) error {
	for _, of := range []struct {
		name string
		run  func(context.Context) error
	}{{"verify", b.verifying}, {"proof", b.proving}, {"tree", func(ctx context.Context) error { return b.onServer(ctx, "tree", b.growing) }}} {
		if b.wanted(of.name) {
			if err := of.run(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// verifying measures the verification of a log by its last checkpoint. The limit is the slower of reading the log and hashing its
// leaves on one processor.
func (b *benchmark) verifying(ctx context.Context) error {
	sys, err := b.onDatabase(ctx, "verify")
	if err != nil {
		return err
	}
	defer sys.Close()
	m, err := newLogMaker(ctx, sys, b.Rows)
	if err != nil {
		return err
	}
	b.sayf("making a log of %d events", b.Rows)
	bar := screen.NewBar(os.Stderr, "making a log", "events")
	err = errors.Join(m.mixed(ctx, 1, b.Rows, bar.Show, bank.Ledger), m.end())
	bar.End()
	if err != nil {
		return err
	}
	var (
		tree   proofs.Tree
		hasher proofs.Hasher
		leaves [][]byte
	)
	for e, err := range sys.Store.ReadAll(ctx, 0, eventstore.Forwards) {
		if err != nil {
			return err
		}
		if tree.Append(hasher.Leaf(e)); len(leaves) < hashedAtMost {
			leaves = append(leaves, proofs.AppendLeaf(nil, e))
		}
	}
	kept := []proofs.Kept{{Checkpoint: proofs.Checkpoint{Origin: proofs.Origin(sys.Store.ID()), Size: tree.Size(), Root: tree.Root()}}}
	timed := func(events int, do func() error) (bench.Sample, error) {
		began := time.Now()
		err := do()
		return bench.Sample{Rate: float64(events) / time.Since(began).Seconds()}, err
	}
	size := int(tree.Size())
	reading := func() (bench.Sample, error) {
		return timed(size, func() error {
			for _, err := range sys.Store.ReadAll(ctx, 0, eventstore.Forwards) {
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	hashing := func() (bench.Sample, error) {
		return timed(len(leaves), func() error {
			for _, leaf := range leaves {
				sha256.Sum256(leaf)
			}
			return nil
		})
	}
	verify := func() (bench.Sample, error) {
		return timed(size, func() error {
			r, err := proofs.Verify(ctx, sys.Store.ReadAll(ctx, 0, eventstore.Forwards), proofs.Evidence{Kept: kept})
			if err == nil && (r.Finding != nil || r.Proven != tree.Size()) {
				err = errors.New(strings.Join(r.Sentences(), " "))
			}
			return err
		})
	}
	limit, found, err := b.interleave(ctx, "verifying the log", reading, hashing, verify)
	if err != nil {
		return err
	}
	title, against := "reading the log", limit.By(bench.Rate)
	if hashed := found[0].By(bench.Rate); bench.Median(hashed) < bench.Median(against) {
		title, against = "SHA-256 of its leaves", hashed
	}
	b.conclude(bench.Figure{Name: "verify", Title: "verifying the log against a checkpoint", Unit: "events/s", Goal: bench.AtLeast(0.7)},
		found[1].By(bench.Rate), title, against)
	b.conclude(bench.Figure{Name: "verify_sha256", Title: "SHA-256 of its leaves, one processor", Unit: "events/s"}, found[0].By(bench.Rate), "", nil)
	return nil
}

// proving measures inclusion proofs from the tables of a tree with made-up leaves.
func (b *benchmark) proving(ctx context.Context) error {
	sys, err := b.onDatabase(ctx, "proofs")
	if err != nil {
		return err
	}
	defer sys.Close()
	if err := sys.Build(audittables.Tree).Run(ctx); err != nil {
		return err
	}
	leaves := uint64(provedLeaves)
	if b.Quick {
		leaves = uint64(quickLeaves * b.Rows)
	}
	root, err := b.plant(ctx, sys, leaves)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(seed, 4)) //nolint:gosec // the same leaves in each run
	prove := func() (bench.Sample, error) {
		took := make([]time.Duration, proofsARound)
		began := time.Now()
		for i := range took {
			index, at := random.Uint64N(leaves), time.Now()
			hashes, err := proofs.Inclusion(ctx, sys.Tree, index, leaves)
			took[i] = time.Since(at)
			if err == nil {
				err = proofs.VerifyInclusion(madeUp(index), index, leaves, hashes, root)
			}
			if err != nil {
				return bench.Sample{}, err
			}
		}
		return bench.SampleOf(took, time.Since(began)), nil
	}
	proved, _, err := b.interleave(ctx, "proving", prove)
	if err != nil {
		return err
	}
	b.conclude(bench.Figure{Name: "proof_p99", Title: fmt.Sprintf("proof of one of %d events: p99", leaves), Unit: "ms", Goal: bench.AtMost(5)}, proved.By(bench.P99), "", nil)
	return nil
}

// madeUp returns a leaf hash that belongs to no event.
func madeUp(index uint64) (h proofs.Hash) {
	for i := range 8 {
		h[i] = byte((index + 1) >> (8 * i))
	}
	return h
}

// plant fills the tables of the tree with made-up leaves and returns its root.
func (b *benchmark) plant(ctx context.Context, sys *app.System, leaves uint64) (root proofs.Hash, err error) {
	var generation int
	err = sys.Pool.QueryRow(ctx, `select generation from projection.generation where live and name = $1`, audittables.Tree.Name).Scan(&generation)
	if err != nil {
		return root, err
	}
	b.sayf("making a tree of %d leaves", leaves)
	bar := screen.NewBar(os.Stderr, "making a tree", "leaves")
	defer bar.End()
	var (
		tree  proofs.Tree
		table = pgx.Identifier{projections.SchemaName(audittables.Tree.Name, generation), "tile"}
		upper = map[proofs.TileID][]byte{} // tiles that grow over several chunks
		store = func(rows [][]any) error {
			_, err := sys.Pool.CopyFrom(ctx, table, []string{"level", "index", "hashes"}, pgx.CopyFromRows(rows))
			return err
		}
	)
	for tree.Size() < leaves {
		chunk := make([]proofs.Hash, min(leavesAtOnce, leaves-tree.Size()))
		for i := range chunk {
			chunk[i] = madeUp(tree.Size() + uint64(i))
		}
		var rows [][]any
		for _, p := range tree.Grow(chunk) {
			if p.Tile.Level == 0 {
				rows = append(rows, []any{int64(0), int64(p.Tile.Index), p.Hashes})
			} else {
				upper[p.Tile] = append(upper[p.Tile], p.Hashes...)
			}
		}
		if err := store(rows); err != nil {
			return root, err
		}
		bar.Show(int64(tree.Size()), int64(leaves))
	}
	var rows [][]any
	for id, hashes := range upper {
		rows = append(rows, []any{int64(id.Level), int64(id.Index), hashes})
	}
	return tree.Root(), store(rows)
}

// growing measures posts with the tree following and without it.
func (b *benchmark) growing(ctx context.Context, s *server, accounts []int64) error {
	load := bench.Load{Address: s.address, Clients: postClients, For: b.Round, Requests: s.postings(accounts)}
	following := func(follows bool) func() (bench.Sample, error) {
		return func() (bench.Sample, error) {
			if err := s.follow(ctx, audittables.Tree.Name, follows); err != nil {
				return bench.Sample{}, err
			}
			return load.Run(ctx)
		}
	}
	if _, err := following(true)(); err != nil { // warm up: a server that has just started is slower
		return err
	}
	without, with, err := b.interleave(ctx, "POST of rows, with the tree and without", following(false), following(true))
	if err != nil {
		return err
	}
	if err := s.follow(ctx, audittables.Tree.Name, true); err != nil { // otherwise the server waits for it when it stops
		return err
	}
	b.conclude(bench.Figure{Name: "post_with_tree", Title: "POST of a row, 64 clients, with the audit tree kept", Unit: "/s", Goal: bench.AtLeast(0.95)},
		with[0].By(bench.Rate), "without it", without.By(bench.Rate))
	return nil
}

// follow starts or stops a projection and waits until all running projections are at the end of the log.
func (s *server) follow(ctx context.Context, projection string, follows bool) error {
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // the connection is discarded
	var paused bool
	if err := conn.QueryRow(ctx, `select paused from projection.generation where live and name = $1`, projection).Scan(&paused); err != nil {
		return err
	}
	if paused == follows {
		word := map[bool]string{true: "resume", false: "pause"}[follows]
		a, err := s.do(ctx, bench.Request("POST", "/ops/projections/"+projection+"/"+word, operatorKey, "{}"))
		if err == nil && a.Status != 200 {
			err = fmt.Errorf("%s failed with status %d: %s", word, a.Status, a.Body)
		}
		if err != nil {
			return err
		}
	}
	return allCaughtUp(ctx, conn)
}

// allCaughtUp waits until each projection has the whole log.
func allCaughtUp(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, caughtUpAfter)
	defer cancel()
	for {
		var behind event.Position
		err := conn.QueryRow(ctx, `select log.head() - min(position) from projection.generation where live and not paused`).Scan(&behind)
		if err != nil || behind == 0 {
			return err
		}
		time.Sleep(lookEvery)
	}
}
