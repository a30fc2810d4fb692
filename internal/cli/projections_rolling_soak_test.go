//go:build soak

package cli_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/readmodels/opsview"
)

// newEvents builds a future version of the program: renaming an account also writes an event of a new type, which the books ignore without
// a new version.
func newEvents(t *testing.T) string {
	t.Helper()
	return overlaid(t, map[string][]string{
		"../../domain/ledger/book/ledger.go": {
			"kindOf(n.account, n.accounts[:], accountTypes[:], nil)",
			`kindOf(n.account, append(n.accounts[:], s.Title+"AccountPraised"), append(accountTypes[:], typeOf[AccountPraised]), nil)`,
		},
		"../../domain/ledger/book/account.go": {
			"type AccountTypeChanged struct {", "type AccountPraised struct{}\n\nfunc (AccountPraised) Evolve(a Account) Account { return a " +
				"}\n\ntype AccountTypeChanged struct {",
			"events = append(events, AccountRenamed{From: a.Name, To: name})",
			"events = append(events, AccountRenamed{From: a.Name, To: name}, AccountPraised{})",
		},
	})
}

const praised = "BankAccountPraised"

// deploy is a database that an old and a newer program serve.
type deploy struct {
	*testing.T

	newer, database string
}

// serve starts a program and waits until it is ready.
func (d deploy) serve(newer bool) *apptest.Process {
	d.Helper()
	cmd := apptest.Program(d, d.TempDir(), "serve")
	// nobody folds here: without it, each answer would wait for its full time
	cmd.Env = append(cmd.Env, "DATABASE_URL="+d.database, "BAHI_READ_WAIT=200ms")
	if newer {
		cmd.Program = d.newer
	}
	p := apptest.Serve(d, cmd)
	p.Ready()
	return p
}

func (d deploy) books(p *apptest.Process) (books opsview.Projection) {
	d.Helper()
	p.Client().GET("/ops/projections/books").Status(200).JSON(&books)
	return books
}

// writes makes a process write the event and a row after it. It returns the row's position.
func (d deploy) writes(p *apptest.Process, account int64) (position string) {
	d.Helper()
	p.Client().PUT(fmt.Sprintf("/bank/%d", account), map[string]string{"name": "SBI"}).Status(200)
	return p.Client().POST(apptest.Ledger(account), apptest.Deposit("2025-03-02", "10")).Status(201).Header("Bahi-Position")
}

// read waits until a process has all rows up to a position, in the first generation.
func (d deploy) read(p *apptest.Process, account int64, position string) {
	d.Helper()
	reader := p.Client().With("Bahi-Min-Position", position)
	require.Eventually(d, func() bool {
		return reader.GET(apptest.Ledger(account)).Response.StatusCode == http.StatusOK
	}, time.Minute, 20*time.Millisecond)
	require.Equal(d, "03-01 100, 03-02 110", apptest.Balances(reader, apptest.Ledger(account)))
	require.Equal(d, 1, d.books(p).Generation, "no rebuild has run")
}

// isParked waits until a process reports that its books stopped before the event.
func (d deploy) isParked(p *apptest.Process) {
	d.Helper()
	require.Eventually(d, func() bool {
		text := p.Client().GET("/readyz").Text
		return strings.Contains(text, `"parked"`) && strings.Contains(text, praised)
	}, time.Minute, 20*time.Millisecond)
	var parked []opsview.Parked
	p.Client().GET("/ops/parked").Status(200).JSON(&parked)
	require.Len(d, parked, 1)
	require.Equal(d, "books "+praised, parked[0].Name+" "+parked[0].Type)
	require.Equal(d, parked[0].Position-1, d.books(p).Position, "the books skip nothing")
}

func (d deploy) healthy() {
	d.Helper()
	doctor := apptest.Command(d, d.TempDir(), "doctor")
	doctor.Env = append(doctor.Env, "DATABASE_URL="+d.database)
	doctor.Program = d.newer
	apptest.Healthy(d.T, doctor)
}

// An old and a newer program share the tables of one version, and the newer one writes an event that the old one does not know.
func TestOldProgramSkipsNoEventOfANewerOne(t *testing.T) {
	t.Parallel()
	newer := newEvents(t)
	t.Run("the old one folds, and the newer one takes over from it", func(t *testing.T) {
		t.Parallel()
		d := deploy{t, newer, apptest.Database(t)}
		old := d.serve(false)
		account := apptest.Open(old.Client(), "HDFC")
		apptest.Post(old.Client(), account, apptest.Deposit("2025-03-01", "100"))
		require.Contains(t, old.Client().GET("/metrics").Status(200).Text, `bahi_projection_working{projection="books"} 1`)
		next := d.serve(true)
		position := d.writes(next, account)
		old.Until(func(said, _ string) bool { return strings.Contains(said, praised) })
		d.read(next, account, position)
		d.read(old, account, position)
		old.Stop()
		d.read(next, account, position)
		d.healthy()
		next.Stop()
	})
	t.Run("the newer one is gone, and the old one stops until it comes back", func(t *testing.T) {
		t.Parallel()
		d := deploy{t, newer, apptest.Database(t)}
		next := d.serve(true)
		account := apptest.Open(next.Client(), "HDFC")
		apptest.Post(next.Client(), account, apptest.Deposit("2025-03-01", "100"))
		old := d.serve(false)
		next.Client().POST("/ops/projections/books/pause", nil).Status(200)
		position := d.writes(next, account)
		next.Stop()
		old.Client().POST("/ops/projections/books/resume", nil).Status(200)
		d.isParked(old)
		require.NotEmpty(t, old.Client().GET(apptest.Ledger(account)).Status(200).Header("Warning"), "reads are marked stale")

		next = d.serve(true)
		d.read(next, account, position)
		d.read(old, account, position)
		require.Eventually(t, func() bool {
			return !strings.Contains(apptest.Readiness(t, old.Client()).Text, `"parked"`)
		}, time.Minute, 20*time.Millisecond)
		old.Stop()
		d.healthy()
		next.Stop()
	})
}
