package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	pgxuuid "github.com/vgarvardt/pgx-google-uuid/v5"

	"bahi/commands"
	"bahi/commands/accesscmd"
	"bahi/commands/inbox"
	"bahi/commands/ledgercmd"
	"bahi/commands/messagingcmd"
	"bahi/domain/access/picture"
	"bahi/domain/actor"
	"bahi/domain/unit"
	"bahi/eventstore/postgres"
	"bahi/eventstore/vault"
	"bahi/http/api"
	"bahi/http/messaginghttp"
	"bahi/http/webhooks"
	"bahi/internal/ocrtools"
	"bahi/internal/pgcluster"
	"bahi/migrations"
	"bahi/projections"
	"bahi/projections/accessproj"
	"bahi/projections/auditproj"
	"bahi/projections/ledgerproj"
	"bahi/projections/marketplaceproj"
	"bahi/projections/messagingproj"
	"bahi/providers/blob"
	"bahi/providers/llm"
	"bahi/providers/mail"
	"bahi/reactors"
	"bahi/reactors/accessreact"
	"bahi/reactors/feedreact"
	"bahi/reactors/ledgerreact"
	"bahi/reactors/marketplacereact"
	"bahi/reactors/messagingreact"
	"bahi/readmodels"
	"bahi/readmodels/auditview"
)

// AllProjections returns the projections of this program.
func AllProjections() []*projections.Projection {
	return []*projections.Projection{
		ledgerproj.Books, ledgerproj.Orders, ledgerproj.OrderDrafts, ledgerproj.Khatas, ledgerproj.Confirmations, ledgerproj.Periods,
		accessproj.APIKeys, accessproj.Users,
		accessproj.Workspaces, accessproj.PendingErasures, accessproj.Plans,
		marketplaceproj.Companies, marketplaceproj.Products, marketplaceproj.Contacts, marketplaceproj.Enquiries,
		messagingproj.Channels, messagingproj.Contacts, messagingproj.Messages, messagingproj.Templates,
		messagingproj.Bots, messagingproj.BotAnswers, messagingproj.Campaigns, auditproj.Tree,
	}
}

// System has the parts of Bahi, wired. Its users start the background work that they need.
type System struct {
	Views
	auditing
	accounting
	trading
	messaging
	incoming
	following
	storage

	Settings Settings
	outside  clients
	Zone     *time.Location // time zone in the settings
	Log      *slog.Logger
	Commands *commands.Handler
	Model    *llm.Client // nil: none
	Home     uuid.UUID   // the workspace of callers without another one
}

// storage has the log, its keys, the database and the files.
type storage struct {
	cluster   *pgcluster.Cluster // nil: DATABASE_URL
	Pool      *pgxpool.Pool
	snapshots *readmodels.Pool
	Store     *postgres.Store
	reads     LogReads
	Vault     *vault.Vault
	Blobs     *blob.Store
}

// following has the subscribers of the log: projections, reactors, their jobs and the feed.
type following struct {
	Runner   *projections.Runner
	backlog  *projections.Backlog
	Reacting *reactors.Runner
	queue    *reactors.Jobs
	feed     *feedreact.Feed // nil: none, or not served
}

// auditing has the proofs of the log.
type auditing struct {
	Signer *auditproj.Signer
	Tree   *auditview.Tree
	Proofs *auditview.Proofs
	copies []*blob.Store // stores for copies of checkpoints
}

// accounting has the accounts of users.
type accounting struct {
	Accounts *accesscmd.Accounts
	ring     *accesscmd.TokenRing
	Mailer   accessreact.Mailer
	studio   *picture.Studio
	guesses  *api.AuthFailures

	keptMails *mail.Folder // nil: mails are sent, and not stored
	flowKey   []byte       // seals the cookies of sign-ins by the identity provider
}

// trading has the ledgers and the marketplace.
type trading struct {
	Books      *ledgercmd.Books
	Khatas     *ledgercmd.Khatas
	Confirming *ledgercmd.Confirmations
	Tools      *ocrtools.Locator
	confirming *ledgerreact.Replies
	notices    *marketplacereact.Notices
}

// messaging has channels, their messages, and their readers and writers.
type messaging struct {
	channels  *messagingcmd.Channels
	Messages  *messagingcmd.Messages
	visitors  *messagingcmd.Visitors
	live      *messaginghttp.MessageBroadcaster
	bots      bots
	Templates *messagingcmd.Templates
	Campaigns *messagingreact.Dispatcher
}

// incoming has the webhooks of providers.
type incoming struct {
	Inbox  *inbox.Inbox
	hooks  []webhooks.Endpoint
	tokens []string // webhook ports with a token of an earlier start
}

// Open is OpenBooks with accounts and other systems.
func (s Settings) Open(ctx context.Context, serving bool) (*System, error) {
	outside, err := s.Outside.open(ctx, s.Logger(serving))
	if err != nil {
		outside.close()
		return nil, err
	}
	sys, err := s.OpenBooks(ctx, serving)
	if err != nil {
		outside.close()
		return nil, err
	}
	sys.outside = outside
	err = sys.joinOutside(ctx)
	if err == nil && serving {
		err = sys.Reacting.Place(ctx, AllReactors()...)
	}
	if err != nil {
		sys.Close()
		return nil, err
	}
	return sys, nil
}

// OpenBooks starts the database and wires the log and its tables, which suffices for many commands. serving: this process keeps the
// embedded Postgres running; other commands only join it.
func (s Settings) OpenBooks(ctx context.Context, serving bool) (sys *System, err error) {
	if !serving && !s.MayBegin {
		if err := s.HasRun(); err != nil {
			return nil, err
		}
	}
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	sys = &System{Settings: s, Log: s.Logger(serving)}
	if sys.Zone, err = s.Zone(); err != nil {
		return nil, err
	}
	sys.guesses = api.NewGuesses(s.Outside.Limits, time.Now)
	defer func() {
		if err != nil {
			sys.Close()
		}
	}()
	url := s.DatabaseURL
	if url == "" {
		start := pgcluster.Attach
		if serving {
			start = pgcluster.Start
		}
		if sys.cluster, err = start(ctx, pgcluster.Options{Dir: s.Data, Log: sys.Log}); err != nil {
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
	// The views have many statements, and none benefits from a plan for its values.
	config.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	// Plans are made when the tables may be empty, and every view looks rows up by their keys.
	config.ConnConfig.RuntimeParams["enable_seqscan"] = "off"
	// Plans that prefer lookups have costs above which Postgres compiles them, which takes longer than running them.
	config.ConnConfig.RuntimeParams["jit"] = "off"
	config.ConnConfig.RuntimeParams["application_name"] = "bahi"
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		pgxuuid.Register(conn.TypeMap()) // otherwise UUIDs travel as texts
		return nil
	}
	if sys.Pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return sys, err
	}
	config.MaxConns = s.Connections / 2
	if sys.snapshots, err = readmodels.OpenPool(ctx, config); err != nil {
		return sys, err
	}
	if sys.Vault, err = s.OpenVault(ctx, sys.Pool, sys.Log); err != nil {
		return sys, err
	}
	if sys.Store, err = sys.openLog(ctx); err != nil {
		return sys, err
	}
	sys.reads = NewLogReads(sys.Store)
	sys.Home = uuid.NewSHA1(sys.Store.ID(), []byte("workspace"))
	sys.Runner = projections.NewRunner(sys.Store, sys.Pool, sys.Log)
	if serving {
		if err := sys.setUnlogged(ctx); err != nil {
			return sys, err
		}
	}
	sys.backlog = &projections.Backlog{Store: sys.Store, Statuses: sys.Runner.Statuses, Now: time.Now}
	sys.Runner.Reveal, sys.Runner.Program, sys.Runner.Now, sys.Runner.Silent = sys.Vault.OpenPersonal, Version, time.Now, s.TakeOver
	sys.Views = NewViews(sys.reader(versions()))
	if err := sys.joinAudit(ctx, serving); err != nil {
		return sys, err
	}
	sys.Commands = commands.New(sys.written(), sys.Vault, time.Now)
	sys.Books = &ledgercmd.Books{
		Commands: sys.Commands, Reads: sys.Ledger, Log: sys.Log,
		Today: func() unit.Date { return unit.DateOf(time.Now().In(sys.Zone)) },
	}
	return sys, nil
}

// setUnlogged makes the tables of projections unlogged or logged, as the setting says. A replica would have none of them.
func (s *System) setUnlogged(ctx context.Context) error {
	var replicas, folded int
	if err := s.Pool.QueryRow(ctx, `select (select count(*) from pg_stat_replication), (select count(*) from projection.generation)`).
		Scan(&replicas, &folded); err != nil {
		return fmt.Errorf("count replicas: %w", err)
	}
	unlogged := s.Settings.Unlogged && replicas == 0
	if s.Settings.Unlogged && replicas > 0 {
		s.Log.Warn("Postgres has replicas; BAHI_UNLOGGED_TABLES is ignored", "replicas", replicas)
	}
	changed, err := projections.SetUnlogged(ctx, s.Pool, unlogged)
	if err != nil {
		return err
	}
	if changed {
		s.Log.Info("tables of projections rewritten", "unlogged", unlogged)
	}
	head, err := s.Store.Head(ctx)
	if err == nil && unlogged && folded == 0 && head > 0 {
		s.Log.Warn("the unlogged tables are empty; folding the log again", "events", head)
	}
	return err
}

// versions returns the versions of this program's projections.
func versions() map[string]int {
	all := map[string]int{}
	for _, p := range AllProjections() {
		all[p.Name] = p.Version
	}
	return all
}

// reader returns a reader of the projections of these versions, with the settings' waiting times.
func (s *System) reader(versions map[string]int) *readmodels.Reader {
	r := readmodels.NewReader(s.snapshots, versions, s.Runner.Follow)
	r.Wait = s.Settings.ReadWait
	return r
}

// StopTimeout limits the stop of the embedded Postgres. It fits into the ten seconds of a shutdown.
const StopTimeout = 7 * time.Second

func (s *System) Close() {
	if s.queue != nil {
		s.queue.Close()
	}
	s.outside.close()
	if s.Blobs != nil && s.outside.bucket == nil {
		_ = s.Blobs.Close() // nothing depends on it any more
	}
	for _, c := range s.copies {
		_ = c.Close()
	}
	if s.Store != nil {
		s.Store.Close()
	}
	if s.Pool != nil {
		s.Pool.Close()
	}
	if s.snapshots != nil {
		s.snapshots.Close()
	}
	stop(s.cluster, s.Log)
}

// stop stops an embedded Postgres, unless it is nil.
func stop(c *pgcluster.Cluster, log *slog.Logger) {
	if c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), StopTimeout)
	defer cancel()
	if err := c.Stop(ctx); err != nil {
		log.Error("embedded Postgres did not stop cleanly", "error", err)
	}
}

// ByOperator returns the request of a command from the shell.
func (s *System) ByOperator(workspace uuid.UUID) commands.Request {
	return commands.Request{
		Actor:     actor.Actor{Type: "system", ID: "shell", Workspace: workspace, Permissions: actor.Permissions{Operator: true}},
		Workspace: workspace,
	}
}

// Build returns the build of a projection on this system.
func (s *System) Build(p *projections.Projection) projections.Build {
	return projections.Build{
		Store: s.Store, Config: s.Pool.Config().ConnConfig.Copy(), Projection: p, Reveal: s.Vault.OpenPersonal, Log: s.Log, Program: Version,
		Now: time.Now,
	}
}

// ProjectionsNamed returns the projections with these names, or all if no names are given.
func ProjectionsNamed(names []string) ([]*projections.Projection, error) {
	if len(names) == 0 {
		return AllProjections(), nil
	}
	found := make([]*projections.Projection, len(names))
	for i, name := range names {
		p, known := ProjectionNamed(name)
		if !known {
			return nil, fmt.Errorf("there is no projection %q", name)
		}
		found[i] = p
	}
	return found, nil
}

func ProjectionNamed(name string) (*projections.Projection, bool) {
	for _, p := range AllProjections() {
		if p.Name == name {
			return p, true
		}
	}
	return nil, false
}

var ErrDifferent = errors.New("the tables differ from the log")
