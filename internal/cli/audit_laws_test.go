package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/access/claim"
	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/internal/test/apptest"
)

// Proofs show that events are unchanged, not that they keep the rules.
func TestAnArchiveWhoseEventsBreakARuleIsNamed(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	apptest.Open(o.Clerk(apptest.Home), "HDFC")
	verify := func() (string, int) {
		o.Signed()
		dir := t.TempDir()
		key := filepath.Join(dir, "bahi.keys")
		require.NoError(t, os.WriteFile(key, []byte(o.Operator().GET("/audit/key?format=text").Status(200).Text), 0o600))
		dir = filepath.Join(dir, "archive")
		apptest.Done(t, o.Database, "audit", "export", dir)
		out, wrong, status := apptest.Attached(t, o, "audit", "verify", dir, "--key", key)
		require.Contains(t, out, "VERIFIED. ", wrong)
		return out, status
	}
	out, status := verify()
	require.Zero(t, status, out)
	require.Contains(t, out, "\nlaws: the log keeps the rules between records up to position ")

	released, err := claim.Email.Encode(uuid.New(), claim.Released{User: uuid.New()}, event.Meta{Actor: "system:shell"})
	require.NoError(t, err)
	done, err := o.Sys.Store.Append(t.Context(), eventstore.To(claim.Email.Stream("k"), eventstore.NoStream, released))
	require.NoError(t, err)
	out, status = verify()
	require.Equal(t, 3, status, out)
	require.Contains(t, out, fmt.Sprintf("laws: position %d, emailclaim-k: a claim is released by its holder\n", done.Position))
	out, _, status = apptest.Attached(t, o, "doctor")
	require.Equal(t, 1, status)
	require.Contains(t, out, "laws: broken 1 times up to position ")
}
