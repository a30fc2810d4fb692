package accessreact

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/accesscmd"
	"bahi/commands/accesscmd/credentials"
	"bahi/domain/access/user"
	"bahi/domain/access/workspace"
	"bahi/domain/actor"
	"bahi/domain/patch"
	"bahi/eventstore"
	"bahi/eventstore/postgres"
	"bahi/eventstore/vault"
	"bahi/internal/test/logtest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
	"bahi/projections"
	"bahi/projections/accessproj"
	"bahi/providers/mail"
	"bahi/readmodels"
	"bahi/readmodels/accessview"
)

const secret = "seven brass hooks"

var errOnce = errors.New("injected fault")

// fixture is a system that mails and erases.
type fixture struct {
	t        *testing.T
	pool     *pgxpool.Pool
	log      *postgres.Store
	accounts *accesscmd.Accounts
	views    *accessview.Views
	mails    *Mails
	box      *box
	eraser   *Eraser
	remains  *remains
	faults   *faults

	*worktest.Clock
}

// faults makes one step that changes something fail, counted from 1.
type faults struct {
	mu   sync.Mutex
	fail int // 0: none
	seen []string
}

func (f *faults) at(step string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, step)
	if len(f.seen) == f.fail {
		return errOnce
	}
	return nil
}

// arm makes the nth later step fail.
func (f *faults) arm(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail, f.seen = n, nil
}

type failingLog struct {
	eventstore.Store

	faults *faults
}

func (f failingLog) Append(ctx context.Context, t eventstore.Transaction) (eventstore.Appended, error) {
	if len(t.Writes) > 0 {
		if err := f.faults.at("append to " + t.Writes[0].Stream); err != nil {
			return eventstore.Appended{}, err
		}
	}
	return f.Store.Append(ctx, t)
}

type failingVault struct {
	*vault.Vault

	faults *faults
}

func (v failingVault) Erase(ctx context.Context, subject string) error {
	if err := v.faults.at("destroy " + subject); err != nil {
		return err
	}
	return v.Vault.Erase(ctx, subject)
}

// remains has the mails and pictures of these tests.
type remains struct {
	box      *box
	faults   *faults
	mu       sync.Mutex
	pictures map[string]bool
}

func (r *remains) ScrubMail(_ context.Context, marks ...string) error {
	if err := r.faults.at("scrub mails"); err != nil {
		return err
	}
	r.box.mu.Lock()
	defer r.box.mu.Unlock()
	r.box.kept = slices.DeleteFunc(r.box.kept, func(m kept) bool {
		return slices.ContainsFunc(marks, func(mark string) bool { return m.to == mark || strings.Contains(m.id, mark) })
	})
	return nil
}

// DeletePictures deletes all pictures: one person at a time has some.
func (r *remains) DeletePictures(context.Context, string) error {
	if err := r.faults.at("delete pictures"); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.pictures)
	return nil
}

func (r *remains) Scrub(context.Context) ([]string, error) {
	return nil, r.faults.at("scrub tables")
}

// box collects mails.
type box struct {
	mu     sync.Mutex
	kept   []kept
	refuse error
}

type kept struct{ id, to, subject, text string }

var errRefused = &mail.Permanent{Reason: errors.New("no such mailbox")}

func (b *box) Send(_ context.Context, m mail.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse != nil {
		return b.refuse
	}
	b.kept = append(b.kept, kept{m.ID, m.To.Address, m.Subject, m.Text})
	return nil
}

// take returns the mails since the last call.
func (b *box) take() []kept {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.kept
	b.kept = nil
	return all
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	r := &fixture{t: t, Clock: worktest.NewClock(time.Date(2026, 4, 1, 9, 0, 0, 0, time.UTC)), box: &box{}, faults: &faults{}}
	r.pool, r.log = logtest.Open(t)
	log := slog.New(slog.DiscardHandler)
	v, err := vault.Open(t.Context(), r.pool, make([]byte, 32), log)
	require.NoError(t, err)
	settings := credentials.Defaults("https://bahi.example")
	settings.Hash, settings.Hashes = credentials.HashCost{MemoryKiB: 64, Passes: 1, Threads: 1}, 4
	c, err := credentials.Open(r.pool, v, settings, r.Now)
	require.NoError(t, err)
	handler := commands.New(failingLog{r.log, r.faults}, v, r.Now)
	r.accounts = &accesscmd.Accounts{Commands: handler, Credentials: c, Vault: v, Now: r.Now, Grace: 24 * time.Hour}
	runner := projections.NewRunner(r.log, r.pool, log)
	runner.Reveal = v.OpenPersonal
	worktest.Background(t, func(ctx context.Context) error {
		return runner.Run(ctx, accessproj.Users, accessproj.Workspaces, accessproj.PendingErasures)
	})
	r.views = &accessview.Views{Reader: readmodels.NewReader(logtest.Snapshots(t, r.pool),
		map[string]int{"users": accessproj.Users.Version, "workspaces": accessproj.Workspaces.Version,
			"endings": accessproj.PendingErasures.Version}, runner.Follow)}
	r.views.Reader.Wait = 20 * time.Second
	require.Eventually(t, func() bool {
		_, users := r.views.Users(t.Context(), nil)
		_, members := r.views.Members(t.Context(), nil, uuid.Nil)
		_, ended := r.views.Ended(t.Context(), nil, r.Now())
		return users == nil && members == nil && ended == nil
	}, time.Minute, 10*time.Millisecond, "the tables must be built")
	r.mails = &Mails{
		Accounts: r.accounts, Commands: handler, Store: r.log, Mailer: r.box, Frontend: "https://app.example",
		Admin: "admin@bahi.example", Zone: time.FixedZone("IST", 19800),
	}
	r.remains = &remains{box: r.box, faults: r.faults, pictures: map[string]bool{}}
	r.eraser = &Eraser{
		Accounts: r.accounts, Commands: handler, Store: r.log, Views: r.views, Vault: failingVault{v, r.faults}, Remains: r.remains,
		Now: r.Now, Log: log,
	}
	return r
}

func (r *fixture) register(email string) uuid.UUID {
	r.t.Helper()
	made, err := r.accounts.Register(r.t.Context(), commands.Request{},
		accesscmd.Registration{Email: email, Password: secret, FirstName: "Ashapriya", LastName: "Raokumar"})
	require.NoError(r.t, err)
	return made.ID
}

func (r *fixture) settle(email string) uuid.UUID {
	r.t.Helper()
	made, err := r.accounts.RegisterVerified(r.t.Context(), commands.Request{},
		accesscmd.Registration{Email: email, Password: secret, FirstName: "Ashapriya", LastName: "Raokumar"})
	require.NoError(r.t, err)
	return made.ID
}

func (r *fixture) move(id uuid.UUID, email string) {
	r.t.Helper()
	_, err := r.accounts.Change(r.t.Context(), commands.Request{}, id, accesscmd.Profile{Email: patch.Set(email)})
	require.NoError(r.t, err)
}

// leave requests the deletion of an account.
func (r *fixture) leave(id uuid.UUID) {
	r.t.Helper()
	_, err := r.accounts.RequestDeletion(r.t.Context(), commands.Request{}, id)
	require.NoError(r.t, err)
}

func (r *fixture) state(id uuid.UUID) user.State {
	r.t.Helper()
	l, err := commands.Load(r.t.Context(), r.accounts.Commands.Fresh(), user.Kind, id.String())
	require.NoError(r.t, err)
	return l.State
}

func (r *fixture) members(in uuid.UUID) map[uuid.UUID]actor.Permissions {
	r.t.Helper()
	l, err := commands.Load(r.t.Context(), r.accounts.Commands.Fresh(), workspace.Kind, in.String())
	require.NoError(r.t, err)
	return l.State.Members
}

func (r *fixture) key(email string) string {
	r.t.Helper()
	key, err := r.accounts.EmailKey(r.t.Context(), email)
	require.NoError(r.t, err)
	return key
}

func (r *fixture) holder(email string) uuid.UUID {
	r.t.Helper()
	id, _, err := r.accounts.HolderOf(r.t.Context(), r.key(email))
	require.NoError(r.t, err)
	return id
}

// revision returns the revision of the user's newest event of a type.
func (r *fixture) revision(id uuid.UUID, eventType string) (newest int64) {
	r.t.Helper()
	newest = -1
	for e, err := range r.log.ReadStream(r.t.Context(), user.Kind.Stream(id.String()), 0, eventstore.Forwards) {
		require.NoError(r.t, err)
		if e.Type == eventType {
			newest = e.Revision
		}
	}
	require.GreaterOrEqual(r.t, newest, int64(0), eventType)
	return newest
}

// by returns a request of a user in their own workspace.
func (r *fixture) by(id uuid.UUID) commands.Request {
	home := r.state(id).Workspace
	return commands.Request{
		Actor: actor.Actor{Type: "user", ID: id.String(), Workspace: home, Permissions: workspace.Owner}, Workspace: home,
	}
}

// invite returns a new invitation to the user's own workspace.
func (r *fixture) invite(by uuid.UUID, email string) uuid.UUID {
	r.t.Helper()
	id, _, err := r.accounts.Invite(r.t.Context(), r.by(by), r.state(by).Workspace, email, workspace.Owner)
	require.NoError(r.t, err)
	return id
}

// token returns the token in the last mail's link.
func token(t *testing.T, mails []kept, path string) string {
	t.Helper()
	require.NotEmpty(t, mails)
	_, rest, ok := strings.Cut(mails[len(mails)-1].text, "https://app.example"+path+"?token=")
	require.True(t, ok, "%+v", mails)
	text, _, _ := strings.Cut(rest, "\n")
	return text
}

// dump returns every row of every table except the log's as text.
func (r *fixture) dump() string {
	r.t.Helper()
	names := pgtest.Values[string](r.t, r.pool, `
		select format('%I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind = 'r' and n.nspname not in ('pg_catalog', 'information_schema')`)
	var all strings.Builder
	for _, name := range names {
		lines := pgtest.Values[string](r.t, r.pool, `select x::text from `+name+` x`)
		all.WriteString(strings.Join(lines, "\n"))
	}
	return all.String()
}
