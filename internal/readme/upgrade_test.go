package readme

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
)

// testdata has a log of the old program, a checkpoint and the key that it was signed with, and what that program returned at some
// positions.
// `go test -tags soak -run TestUpgradeOfALoneProcess ./internal/readme -args -update` lets the old program write it again.
func TestOldLogIsReadContinuedAndProven(t *testing.T) {
	t.Parallel()
	database, archive := pgtest.DB(t), filepath.Join(t.TempDir(), "archive")
	apptest.Done(t, database, "events", "import", oldBooks+"/books")
	o := apptest.StartOn(t, database)
	was := past{}
	readJSON(t, oldBooks+"/answers.json", &was)
	require.NotEmpty(t, was)
	apptest.Readiness(t, o.Operator())
	was.holds(t, o.Operator())
	require.Contains(t, apptest.Opened(t, database), "asha@example.com")
	account := apptest.Open(o.Operator(), "Of the new program")
	apptest.Post(o.Operator(), account, apptest.Deposit("2026-03-01", "12.5"))
	require.Equal(t, "03-01 12.5", apptest.Balances(o.Operator(), apptest.Ledger(account)))
	was.holds(t, o.Operator())
	o.Signed()
	apptest.Done(t, database, "audit", "export", archive)
	apptest.Done(t, database, "doctor")

	verifier := filepath.Join(t.TempDir(), "bahi-verify")
	text, err := exec.CommandContext(t.Context(), "go", "build", "-o", verifier, "bahi/cmd/bahi-verify").CombinedOutput()
	require.NoError(t, err, "%s", text)
	out, wrong, status := apptest.Execute(t, &apptest.Cmd{Program: verifier, Args: []string{
		"archive", archive, "--checkpoint", oldBooks + "/kept.checkpoint", "--key", oldBooks + "/bahi.keys"}})
	require.Zero(t, status, out+wrong)
	require.Contains(t, out, "\nVERIFIED. ")
}
