package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/commands"
	accessflows "bahi/commands/access"
	ledgerflows "bahi/commands/ledger"
	"bahi/domain/access/picture"
	"bahi/domain/actor"
	"bahi/domain/ledger/bank"
	"bahi/domain/unit"
	"bahi/eventstore/vault"
	"bahi/internal/pgcluster"
	"bahi/migrations"
	"bahi/projections"
	accesstables "bahi/projections/access"
	audittables "bahi/projections/audit"
	ledgertables "bahi/projections/ledger"
	"bahi/providers/blob"
	"bahi/reactors"
	"bahi/readmodels"
	accessviews "bahi/readmodels/access"
	auditviews "bahi/readmodels/audit"
	ledgerviews "bahi/readmodels/ledger"
)

// allProjections are those that this program keeps up to date.
func allProjections() []*projections.Projection {
	return []*projections.Projection{ledgertables.Books, accesstables.APIKeys, accesstables.Users, accesstables.Workspaces, audittables.Tree}
}

// system is the parts of Bahi, put together. What runs in the background is started by who needs it.
type system struct {
	settings settings
	log      *slog.Logger
	cluster  *pgcluster.Cluster // nil: DATABASE_URL
	pool     *pgxpool.Pool
	store    eventLog
	vault    *vault.Vault
	runner   *projections.Runner
	signer   *audittables.Signer
	tree     *auditviews.Tree
	proofs   *auditviews.Proofs
	copies   []*blob.Store // of checkpoints
	commands *commands.Handler
	books    *ledgerflows.Books
	ledger   *ledgerviews.Views
	market   *accessviews.Views
	accounts *accessflows.Accounts
	ring     *accessflows.TokenRing
	mails    *mails
	blobs    *blob.Store
	studio   *picture.Studio
	provider *identityProvider // nil: none
	queue    *reactors.Jobs
	reacting *reactors.Runner
	feed     *forwarding // nil: none, or not served
	home     uuid.UUID   // the workspace of who has no other
}

// open is openBooks, and adds accounts and what leaves the system.
func (s settings) open(ctx context.Context, serving bool) (*system, error) {
	sys, err := s.openBooks(ctx, serving)
	if err != nil {
		return nil, err
	}
	if err := sys.joinOutside(ctx); err != nil {
		sys.close()
		return nil, err
	}
	return sys, nil
}

// openBooks brings up the database and puts the log and its tables together, which is all that many a
// command needs. serving says that this process keeps the private cluster up; other commands only join it.
func (s settings) openBooks(ctx context.Context, serving bool) (sys *system, err error) {
	if !serving && !s.MayBegin {
		if err := s.hasRun(); err != nil {
			return nil, err
		}
	}
	zone, err := s.zone()
	if err != nil {
		return nil, err
	}
	sys = &system{settings: s, log: s.logger(serving)}
	defer func() {
		if err != nil {
			sys.close()
		}
	}()
	url := s.DatabaseURL
	if url == "" {
		start := pgcluster.Attach
		if serving {
			start = pgcluster.Start
		}
		if sys.cluster, err = start(ctx, pgcluster.Options{Dir: s.Data, Log: sys.log}); err != nil {
			return sys, err
		}
		url = sys.cluster.URL()
	}
	if err := migrations.Up(ctx, url); err != nil {
		return sys, err
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return sys, fmt.Errorf("DATABASE_URL: %w", err)
	}
	config.MaxConns = s.Connections
	// The views' statements are many and none is better off with a plan for its values.
	config.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	// They are made when the tables may be empty, and every view looks rows up by their keys.
	config.ConnConfig.RuntimeParams["enable_seqscan"] = "off"
	// Plans that look rows up at any price have the costs for which Postgres compiles them, which takes longer than they run.
	config.ConnConfig.RuntimeParams["jit"] = "off"
	config.ConnConfig.RuntimeParams["application_name"] = "bahi"
	if sys.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return sys, err
	}
	key, err := vault.LoadOrMakeMasterKey(s.Data, s.MasterKey)
	if err != nil {
		return sys, err
	}
	if sys.vault, err = vault.Open(ctx, sys.pool, key, sys.log); err != nil {
		return sys, err
	}
	if sys.store, err = sys.openLog(ctx); err != nil {
		return sys, err
	}
	if err := sys.joinAudit(ctx, serving); err != nil {
		return sys, err
	}
	// Named after the database's own log, which stays where it is when EVENTSTORE_URL takes the events elsewhere.
	var installation uuid.UUID
	if err := sys.pool.QueryRow(ctx, `select store_id from log.identity`).Scan(&installation); err != nil {
		return sys, fmt.Errorf("read the installation's name: %w", err)
	}
	sys.home = uuid.NewSHA1(installation, []byte("workspace"))
	sys.runner = projections.NewRunner(sys.store, sys.pool, sys.log)
	sys.runner.Reveal, sys.runner.Program, sys.runner.Now = sys.vault.Reveal, version, time.Now
	versions := map[string]int{}
	for _, p := range allProjections() {
		versions[p.Name] = p.Version
	}
	reader := sys.reader(versions)
	sys.ledger, sys.market = &ledgerviews.Views{Reader: reader}, &accessviews.Views{Reader: reader}
	sys.commands = commands.New(sys.store, sys.vault, time.Now)
	ledgerflows.Govern(sys.commands, bank.Ledger)
	sys.books = &ledgerflows.Books{
		Commands: sys.commands, Reads: sys.ledger, Log: sys.log,
		Today: func() unit.Date { return unit.DateOf(time.Now().In(zone)) },
	}
	return sys, nil
}

// reader reads the projections of these versions, and waits for them as the settings say.
func (s *system) reader(versions map[string]int) *readmodels.Reader {
	r := readmodels.NewReader(s.pool, versions, s.runner.Follow, s.settings.headElsewhere(s.store))
	r.Wait = s.settings.ReadWait
	return r
}

// stopWithin is how long the private cluster may take to stop; it fits the ten seconds of a shutdown.
const stopWithin = 7 * time.Second

func (s *system) close() {
	if s.queue != nil {
		s.queue.Close()
	}
	if s.blobs != nil {
		_ = s.blobs.Close() // nothing is left to lose
	}
	for _, c := range s.copies {
		_ = c.Close()
	}
	if s.store != nil {
		s.store.Close()
	}
	if s.pool != nil {
		s.pool.Close()
	}
	if s.cluster != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
		defer cancel()
		if err := s.cluster.Stop(ctx); err != nil {
			s.log.Error("the private cluster did not stop as it should", "error", err)
		}
	}
}

// byOperator returns what is known of a command from the shell.
func (s *system) byOperator(workspace uuid.UUID) commands.Request {
	return commands.Request{
		Actor:     actor.Actor{Type: "system", ID: "shell", Workspace: workspace, Permissions: actor.Permissions{Operator: true}},
		Workspace: workspace,
	}
}

// build is how a projection is built on this system.
func (s *system) build(p *projections.Projection) projections.Build {
	return projections.Build{
		Store: s.store, Config: s.pool.Config().ConnConfig.Copy(), Projection: p, Reveal: s.vault.Reveal, Log: s.log, Program: version, Now: time.Now,
	}
}

// named answers the projections of these names, all when there are none.
func named(names []string) ([]*projections.Projection, error) {
	if len(names) == 0 {
		return allProjections(), nil
	}
	found := make([]*projections.Projection, len(names))
	for i, name := range names {
		p, known := projectionNamed(name)
		if !known {
			return nil, fmt.Errorf("there is no projection %q", name)
		}
		found[i] = p
	}
	return found, nil
}

func projectionNamed(name string) (*projections.Projection, bool) {
	for _, p := range allProjections() {
		if p.Name == name {
			return p, true
		}
	}
	return nil, false
}

var errDifferent = errors.New("the tables are not what the log says")
