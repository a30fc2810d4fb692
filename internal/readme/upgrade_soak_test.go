//go:build soak

package readme

import (
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
)

var update = flag.Bool("update", false, "let the old program write its log and answers into testdata")

// upgrade is a shell with the old and the new program, and with clients of the running servers.
type upgrade struct {
	*shell

	dir     string
	at      map[string]string // actual address of a server, by its address on the page
	url     string            // URL of the server that gets the requests
	load    *apptest.Load
	looking *apptest.FreshnessCheckers
	past    past
}

// newUpgrade builds the programs. The old one is named bahi. Its projection of the books gets an older version, even if both commits have
// the same one.
func newUpgrade(t *testing.T, env ...string) *upgrade {
	t.Helper()
	dir, source := t.TempDir(), t.TempDir()
	build(t, dir)
	bin := filepath.Join(dir, "bin")
	require.NoError(t, os.Rename(filepath.Join(bin, "bahi"), filepath.Join(bin, "bahi-new")))
	for _, command := range [][]string{
		{"sh", "-c", "git archive " + oldCommit + " | tar x -C " + source},
		{"sed", "-i", `s/Define("books", [0-9]*,/Define("books", 1,/`, filepath.Join(source, "projections/ledgerproj/books.go")},
		{"go", "build", "-C", source, "-o", filepath.Join(bin, "bahi"), "./cmd/bahi"},
	} {
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
		cmd.Dir = "../.."
		text, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", command, text)
	}
	env = append(env, "PATH="+bin+":"+os.Getenv("PATH"), "BAHI_ADMIN_API_KEY="+apptest.OperatorKey, "BAHI_MASTER_KEY="+apptest.MasterKey)
	t.Cleanup(func() {
		for _, name := range []string{"old.log", "new.log"} {
			if text, err := os.ReadFile(filepath.Join(dir, name)); err == nil && t.Failed() {
				t.Logf("%s:\n%s", name, regexp.MustCompile(`(?m)^.*level=INFO msg=request.*\n`).ReplaceAllString(string(text), ""))
			}
		}
	})
	return &upgrade{shell: openShell(t, dir, env...), dir: dir, at: map[string]string{}, past: past{}}
}

var (
	starts = regexp.MustCompile(`^BAHI_ADDR=(localhost:[0-9]+) .* > (\S+) 2>&1 &`)
	waits  = regexp.MustCompile(`^until curl .* (localhost:[0-9]+)/readyz `)
)

// recipe returns the page's commands: first those with a Postgres of one's own, then those with a data folder.
func recipe(t *testing.T) (own, alone []step) {
	t.Helper()
	page := worktest.File(t, "../../docs/upgrade.md")
	before, after, found := strings.Cut(string(page), "\n## With a data folder\n")
	require.True(t, found)
	return steps(before), steps(after)
}

// follow runs commands of the page, which must succeed. A program gets another address than the page's, which may be in use. When the
// program is ready, requests go to it and to the previous server, and then to the program alone.
func (u *upgrade) follow(all ...step) {
	u.t.Helper()
	for _, s := range all {
		command := s.command
		start, ready := starts.FindStringSubmatch(command), waits.FindStringSubmatch(command)
		if start != nil {
			command = "rm -f " + start[2] + "; " + strings.Replace(command, start[1], "127.0.0.1:0", 1)
		}
		for page, served := range u.at {
			command = strings.ReplaceAll(command, page, served)
		}
		began := time.Now()
		said, status := u.run(command), u.run("echo $?")
		u.t.Logf("%7v  %s\n%s", time.Since(began).Round(100*time.Millisecond), s.command, said)
		require.Equal(u.t, "0\n", status)
		require.Regexp(u.t, pattern(s.shown), said)
		switch {
		case start != nil:
			u.at[start[1]] = addressIn(u.t, filepath.Join(u.dir, start[2]))
		case ready != nil:
			u.moveTo("http://" + u.at[ready[1]])
		}
	}
}

// addressIn waits until a program's log has its address.
func addressIn(t *testing.T, log string) (address string) {
	t.Helper()
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(log)
		if m := serving.FindSubmatch(text); err == nil && m != nil {
			address = string(m[1])
		}
		return address != ""
	}, time.Minute, 20*time.Millisecond)
	return address
}

// moveTo sends the requests to a server that is ready. Both programs must return the same for as long as both serve.
func (u *upgrade) moveTo(url string) {
	u.t.Helper()
	before := u.url
	u.url = url
	u.past.holds(u.t, u.client())
	if u.load == nil {
		return
	}
	if before != "" && !u.looking.MayBeAway.Load() {
		u.load.Move(before, url)
		u.looking.At(url, before)
		u.looking.After(u.t.Context(), 200)
	}
	u.load.Move(url)
	u.looking.At(url)
	u.looking.After(u.t.Context(), 100)
	u.past.remember(u.client(), u.load.Accounts[1:]...)
}

func (u *upgrade) client() *apitest.Client { return apitest.New(u.t, u.url, apptest.OperatorKey) }

// fill lets clients of the old program write until its log has so many events.
func (u *upgrade) fill(events int64) {
	u.load, u.looking = apptest.NewLoad(u.t, u.url, 13), apptest.NewWitnesses(u.t, 3, u.url)
	u.load.Clients = u.load.Clients[:4]
	for written := int64(0); written < events; {
		u.load.Fill(int(min(1000, events-written)))
		ctx, cancel := context.WithCancel(u.t.Context())
		go u.load.After(ctx, min(100, events/8), cancel)
		u.load.Run(ctx)
		written = positionOf(u.t, u.client().GET("/banks").Status(200))
		u.past.remember(u.client(), u.load.Accounts[1:]...)
	}
	require.Eventually(u.t, func() bool {
		a := u.client().GET("/audit/checkpoint")
		var newest apptest.AuditCheckpoint
		return a.Response.StatusCode == http.StatusOK && a.JSON(&newest) != nil && newest.Size >= uint64(events)
	}, time.Minute, 50*time.Millisecond, "the log is signed")
}

// under calls do while clients write and read, and then checks that no write is missing.
func (u *upgrade) under(do func()) {
	ctx, cancel := context.WithCancel(u.t.Context())
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() { u.load.Run(ctx) })
	all.Go(func() { u.looking.Run(ctx) })
	do()
	cancel()
	all.Wait()
	u.load.Verify()
	u.past.holds(u.t, u.client())
	u.t.Logf("%d writes were answered, %d reads, %d of them stale; %d positions are remembered", u.load.Answered.Load(),
		u.looking.Reads.Load(), u.looking.Stale.Load(), len(u.past))
}

func TestUpgradeFromTheOldProgramUnderLoad(t *testing.T) {
	t.Parallel()
	own, _ := recipe(t)
	require.Len(t, own, 12)
	keep, forward, back, check := own[:3], own[3:6], own[6:9], own[9:]
	u := newUpgrade(t, "DATABASE_URL="+pgtest.DB(t))
	u.follow(back[:2]...) // the old program serves
	u.fill(100_000)
	u.under(func() {
		u.follow(keep...)
		u.follow(forward...)
		u.follow(back...)
		u.follow(forward...)
	})
	require.Zero(t, u.load.Lost.Load(), "each request is answered")
	require.Zero(t, u.load.Away.Load(), "with a success")
	u.follow(check...)
}

func TestUpgradeOfALoneProcess(t *testing.T) {
	t.Parallel()
	own, alone := recipe(t)
	keep, back, check := own[:2], own[6:9], own[9:]
	data := pgtest.Dir(t)
	apptest.EndCluster(t, data)
	u := newUpgrade(t, "BAHI_DATA="+data)
	u.follow(back[:2]...)
	u.books()
	u.fill(300)
	if *update {
		u.export()
	}
	u.follow(keep...)
	u.looking.MayBeAway.Store(true) // a lone process
	u.under(func() {
		u.follow(alone...)                  // forward,
		u.follow(back[2], back[0], back[1]) // back,
		u.follow(alone...)                  // and forward again
		u.looking.MayBeAway.Store(false)
		u.follow(check...)
	})
	u.run("kill $NEW && wait $NEW")
}

// books writes records that the load lacks: users, keys, a lock, reversals, deletions.
func (u *upgrade) books() {
	c := u.client()
	account := apptest.Open(c, "Till")
	row := apptest.Post(c, account, apptest.Deposit("2025-03-01", "12.5"))
	c.PUT(apptest.Ledger(account), map[string]any{"id": row.ID, "date": "2025-03-02"}).Status(200)
	c.With("Bahi-Reason", "twice").POST(apptest.Ledger(account, "/row/", row.ID, "/reverse"), `{"date":"2025-03-03"}`).Status(201)
	c.PUT("/books/lock", `{"locked_through":"1985-12-31"}`).Status(200)
	gone := apptest.Open(c, "Closed")
	apptest.Post(c, gone, apptest.Deposit("2025-03-01", "1"))
	u.past.remember(c, account, gone)
	c.DELETE("/bank-account/" + strconv.FormatInt(gone, 10)).Status(204)
	u.past.remember(c, account)
	c.With("Authorization", "").POST("/api/v1/auth/register", apptest.Registration("asha@example.com")).Status(201)
	c.POST("/api/v1/api-keys", `{"name":"till","permissions":{"ledger":"write"}}`).Status(201)
}

// export lets the old program write its log and a checkpoint of it into testdata.
func (u *upgrade) export() {
	dir, err := filepath.Abs(oldBooks)
	require.NoError(u.t, err)
	require.NoError(u.t, os.RemoveAll(filepath.Join(dir, "books")))
	require.NoError(u.t, os.MkdirAll(dir, 0o750))
	u.run("bahi audit checkpoint > " + filepath.Join(dir, "kept.checkpoint"))
	u.run("bahi audit key > " + filepath.Join(dir, "bahi.keys"))
	u.run("bahi events export --with-keys " + filepath.Join(dir, "books"))
	text, err := json.MarshalIndent(u.past, "", " ")
	require.NoError(u.t, err)
	require.NoError(u.t, os.WriteFile(filepath.Join(dir, "answers.json"), append(text, '\n'), 0o600))
}

// remember stores the responses for the accounts and a page of their rows, as known at the present position.
func (p past) remember(c *apitest.Client, accounts ...int64) {
	at := c.GET("/banks").Status(200).Header("Bahi-Position")
	paths := []string{"/banks?known_at=" + at, "/banks?as_of=2025-06-30&known_at=" + at}
	for _, account := range accounts {
		paths = append(paths, apptest.Ledger(account, "?page_size=200&known_at="+at),
			apptest.Ledger(account, "?from=2025-04-01&to=2025-04-30&page_size=200&known_at="+at))
	}
	for _, path := range paths {
		p[path] = c.GET(path).Status(200).Text
	}
}

// positionOf returns the position of an answer.
func positionOf(t *testing.T, a *apitest.Answer) int64 {
	t.Helper()
	n, err := strconv.ParseInt(a.Header("Bahi-Position"), 10, 64)
	require.NoError(t, err)
	return n
}
