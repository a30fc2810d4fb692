package app_test

import (
	"cmp"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	"bahi/eventstore"
	"bahi/eventstore/postgres"
	"bahi/internal/app"
	"bahi/internal/test/logtest"
	"bahi/internal/test/pgtest"
	"bahi/migrations"
	"bahi/projections"
	"bahi/readmodels"
	"bahi/readmodels/ledgerview"
)

// spanning are the views that return rows of all workspaces, with the reason.
var spanning = map[string]string{
	"ledger.DraftReplies":       "it is for operators, who see the outbox of all",
	"ledger.KhatasBefore":       "it is for a sweep of the system",
	"access.Users":              "it is for operators, who see all",
	"access.AllWorkspaces":      "it is for operators, who may enter all",
	"access.DueForErasure":      "it is for a sweep of the system",
	"access.Ended":              "it is for a sweep of the system",
	"access.InvitationsTo":      "it is for the system's erasure of a person",
	"messaging.ContactsReached": "it is for an operator's erasure of a person",

	"marketplace.ContactsReached": "it is for an operator's erasure of a person",
	"marketplace.Buyers":          "it is for an operator's erasure of a person",
	"marketplace.CompaniesMailed": "it is for an operator's erasure of a person",
	"marketplace.OldestCompany":   "the caller passes the workspaces of the user's own account",
	"marketplace.Notices":         "it is for operators, who see the outbox of all",
	"ledger.SubmittedRows":        "its argument is an upload, which has its workspace",
	"ledger.HasSender":            "it is for an operator's erasure of a person",

	"messaging.DueCampaigns":  "it is for the system, which starts planned campaigns",
	"messaging.ChannelKeyed":  "it is for a visitor, who has the key of a page's widget",
	"messaging.OfAccount":     "it is for the system, which records the statuses of an account's templates",
	"messaging.Signing":       "it is for the system, which looks for the secret that has signed a call",
	"messaging.AnyChat":       "it is for the system, which answers a check of the deployment's webhook",
	"messaging.WithAppSecret": "it is for the system, which looks for the secret that has signed a call without a channel",
	"messaging.Unconfirmed":   "it is for the system, which holds calls for channels without a sender",
	"messaging.Hooked":        "it is for the system, which registers webhooks with networks",

	"marketplace.Companies":     "the directory is public",
	"marketplace.FindCompanies": "the directory is public",
	"marketplace.Company":       "the directory is public",
	"marketplace.Claimant":      "the owner of a domain is public",
	"marketplace.Catalog":       "the feed is public",
	"marketplace.EachOffer":     "the feed is public",
	"marketplace.ProductsBySKU": "it is for the import, which has checked the caller's company",
	"marketplace.Products":      "the catalog is public, except for inactive products: a test of http checks that",
}

// personal are the views of one person, whichever workspace they act in, with the column that identifies the person.
var personal = map[string]string{
	"access.User":         "id",
	"access.WorkspacesOf": "user_id",
	"access.Memberships":  "user_id",
}

// ofCompany are the views that take a company's id.
var ofCompany = map[string]bool{"marketplace.Catalog": true, "marketplace.EachOffer": true, "marketplace.ProductsBySKU": true}

// asker is the workspace that every view is called for.
var asker = uuid.MustParse("aaaaaaaa-1111-4111-8111-111111111111")

// allViews returns the views of every area.
func allViews(r *readmodels.Reader) map[string]any {
	all := map[string]any{}
	for area, views := range reflect.ValueOf(app.NewViews(r)).Fields() {
		all[strings.ToLower(area.Name)] = views.Interface()
	}
	return all
}

// recorder records the statements of a pool.
type recorder struct {
	mu   sync.Mutex
	sent []sent
}

type sent struct {
	sql  string
	args []any
}

func (r *recorder) note(sql string, args []any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = append(r.sent, sent{sql, args})
}

func (r *recorder) take() []sent {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.sent
	r.sent = nil
	return all
}

func (r *recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	r.note(q.SQL, q.Args)
	return ctx
}
func (*recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (*recorder) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (r *recorder) TraceBatchQuery(_ context.Context, _ *pgx.Conn, q pgx.TraceBatchQueryData) {
	r.note(q.SQL, q.Args)
}
func (*recorder) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// reads reports whether a statement reads a projection's tables.
var reads = regexp.MustCompile(`\b[a-z_]+_g[0-9]+\.`)

// bounds matches the comparison of a row's workspace, or person, with a parameter.
var bounds = regexp.MustCompile(`\b([a-z_]+) = \$([0-9]+)\b`)

// complaint returns why a statement may return rows of others, "" if it may not.
func (s sent) complaint(column string) string {
	for _, m := range bounds.FindAllStringSubmatch(s.sql, -1) {
		if n, err := strconv.Atoi(m[2]); err == nil && m[1] == column && n <= len(s.args) &&
			(s.args[n-1] == asker || s.args[n-1] == pgtype.UUID{Bytes: asker, Valid: true}) {
			return ""
		}
	}
	return "it does not select by the caller's " + column + ": " + s.sql
}

// Every view's SQL compares the workspace. The test calls each view with all variants of its arguments and inspects its SQL.
func TestNoViewForgetsTheAskersWorkspace(t *testing.T) {
	t.Parallel()
	url := pgtest.Template(t, "migrated", migrations.Up)
	config, err := pgxpool.ParseConfig(url)
	require.NoError(t, err)
	said := &recorder{}
	config.ConnConfig.Tracer = said
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	log := slog.New(slog.DiscardHandler)
	store, err := postgres.Open(t.Context(), pool, log)
	require.NoError(t, err)
	t.Cleanup(store.Close)
	// Some rows exist, so that a view continues to its further queries.
	meta := event.Meta{Workspace: asker}
	account, err := bank.Ledger.Accounts.Encode(uuid.New(), book.AccountOpened{Name: "SBI"}, meta)
	require.NoError(t, err)
	row, err := bank.Ledger.Rows.Encode(uuid.New(), book.RowAdded{Account: 1, Date: 20000, In: book.SideOf([]bank.Entry{{Amount: 1}})}, meta)
	require.NoError(t, err)
	for _, done := range store.AppendEach(t.Context(), []eventstore.Transaction{
		eventstore.To("bank-1", eventstore.NoStream, account),
		eventstore.To("bankrow-1", eventstore.NoStream, row),
	}) {
		require.NoError(t, done.Err)
	}
	plain, err := pgx.ParseConfig(url)
	require.NoError(t, err)
	versions := map[string]int{}
	for _, p := range app.AllProjections() {
		versions[p.Name] = p.Version
		require.NoError(t, projections.Build{Store: store, Config: plain, Projection: p, Log: log}.Run(t.Context()))
	}
	reader := readmodels.NewReader(logtest.Snapshots(t, pool), versions, nil)
	reader.Wait = time.Millisecond
	views := allViews(reader)
	require.Equal(t, areas(t), slices.Sorted(func(yield func(string) bool) {
		for area := range views {
			if !yield(area) {
				return
			}
		}
	}), "every area's views are asked")

	asked := 0
	for area, v := range views {
		of := reflect.ValueOf(v)
		for i := range of.NumMethod() {
			method := of.Type().Method(i)
			name := area + "." + method.Name
			in := method.Type
			require.True(t, in.NumIn() > 1 && in.In(1) == reflect.TypeFor[context.Context](), "%s takes a context", name)
			takesAsker := false
			var choices [][]reflect.Value
			first := 2
			if in.In(2%in.NumIn()) == reflect.TypeFor[*readmodels.At]() {
				first = 3
			}
			for k := first; k < in.NumIn(); k++ {
				takesAsker = takesAsker || in.In(k) == reflect.TypeFor[uuid.UUID]() || in.In(k) == reflect.TypeFor[ledgerview.AccountKey]()
				choices = append(choices, values(t, name, in.In(k)))
			}
			_, spans := spanning[name]
			require.True(t, spans != takesAsker || spans && ofCompany[name], "%s takes the caller's workspace, or is listed with a reason", name)
			said.take()
			statements, call := 0, of.Method(i).Call
			if in.IsVariadic() {
				call = of.Method(i).CallSlice
			}
			for args := range product(choices) {
				given := []reflect.Value{reflect.ValueOf(t.Context()), reflect.ValueOf(&readmodels.At{Wait: time.Millisecond})}[:first-1]
				call(append(slices.Clip(given), args...))
				for _, s := range said.take() {
					if !reads.MatchString(s.sql) {
						continue
					}
					statements++
					if !spans {
						require.Empty(t, s.complaint(cmp.Or(personal[name], "workspace_id")), name)
					}
				}
			}
			require.Positive(t, statements, "%s reads something", name)
			asked += statements
		}
	}
	t.Logf("%d statements", asked)
	for name := range spanning {
		area, method, _ := strings.Cut(name, ".")
		_, there := reflect.TypeOf(views[area]).MethodByName(method)
		require.True(t, there, "%s is gone", name)
	}
}

// areas lists the folders of read models that have views.
func areas(t *testing.T) (found []string) {
	t.Helper()
	const root = "../../readmodels"
	require.NoError(t, fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path.Join(root, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name == "Views" {
				found = append(found, strings.TrimSuffix(path.Dir(name), "view"))
			}
			return true
		})
		return nil
	}))
	slices.Sort(found)
	return found
}

// values are arguments for views, as far as their SQL may depend on them.
func values(t *testing.T, view string, of reflect.Type) (all []reflect.Value) {
	t.Helper()
	is := func(values ...any) {
		for _, v := range values {
			all = append(all, reflect.ValueOf(v).Convert(of))
		}
	}
	switch of {
	case reflect.TypeFor[uuid.UUID]():
		is(asker)
		return all
	case reflect.TypeFor[unit.Date]():
		is(unit.Date(20000))
		return all
	case reflect.TypeFor[time.Time]():
		is(time.Unix(0, 0))
		return all
	case reflect.TypeFor[event.Position]():
		is(event.Position(0))
		return all
	case reflect.TypeFor[error]():
		return []reflect.Value{reflect.ValueOf(fs.ErrNotExist)}
	}
	switch of {
	case reflect.TypeFor[*book.Ledger]():
		is(bank.Ledger)
		return all
	case reflect.TypeFor[*time.Location]():
		is(time.UTC)
		return all
	}
	switch of.Kind() {
	case reflect.String:
		is("bank")
	case reflect.Int64, reflect.Int:
		is(1)
	case reflect.Bool:
		is(true, false)
	case reflect.Slice:
		all = append(all, reflect.Append(reflect.Zero(of), values(t, view, of.Elem())...))
	case reflect.Pointer:
		all = append(all, reflect.Zero(of))
		for _, v := range values(t, view, of.Elem()) {
			p := reflect.New(of.Elem())
			p.Elem().Set(v)
			all = append(all, p)
		}
	case reflect.Func: // receives the results
		all = append(all, reflect.MakeFunc(of, func([]reflect.Value) []reflect.Value { return []reflect.Value{reflect.Zero(of.Out(0))} }))
	case reflect.Struct:
		var fields [][]reflect.Value
		for field := range of.Fields() {
			fields = append(fields, values(t, view, field.Type))
		}
		for chosen := range product(fields) {
			v := reflect.New(of).Elem()
			for i, c := range chosen {
				v.Field(i).Set(c)
			}
			all = append(all, v)
		}
	default:
		require.Fail(t, "add an argument for this test", "%s takes a %s", view, of)
	}
	return all
}

// product yields every combination of one element from each.
func product(of [][]reflect.Value) func(func([]reflect.Value) bool) {
	return func(yield func([]reflect.Value) bool) {
		if len(of) == 0 {
			yield(nil)
			return
		}
		for rest := range product(of[1:]) {
			for _, v := range of[0] {
				if !yield(append([]reflect.Value{v}, rest...)) {
					return
				}
			}
		}
	}
}

func TestAForgottenWorkspaceIsFound(t *testing.T) {
	t.Parallel()
	for sql, args := range map[string][]any{
		`select * from books_g1.account`:                                            {asker},
		`select * from books_g1.account where id = $1`:                              {asker},
		`select * from books_g1.account where workspace_id = $1`:                    {uuid.Nil},
		`select * from books_g1.account where workspace_id = $2`:                    {asker},
		`select workspace_id, $1 from books_g1.account`:                             {asker},
		`select * from books_g1.account where workspace_id <> $1`:                   {asker},
		`select * from books_g1.account where workspace_id = $10`:                   {asker},
		`select * from books_g1.account where not_the_workspace_id = $1 and id = 1`: {asker},
	} {
		require.NotEmpty(t, sent{sql, args}.complaint("workspace_id"), fmt.Sprint(sql, args))
	}
	require.Empty(t, sent{`select * from books_g1.account a where a.id = $1 and a.workspace_id = $2`,
		[]any{1, asker}}.complaint("workspace_id"))
}
