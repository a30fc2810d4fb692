package app_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"bahi/domain/fault"
	"bahi/eventstore"
	"bahi/internal/app"
	"bahi/projections"
	"bahi/providers/blob"
)

func TestStateOfAProjectionAndItsCause(t *testing.T) {
	t.Parallel()
	full := (&pgconn.PgError{Severity: "ERROR", Code: "53100", Message: "could not extend file"}).Error()
	unknown := "event Karigars at position 7: " + projections.ErrUnknownType.Error()
	for _, c := range []struct {
		status       projections.Status
		paused       bool
		state, cause string
	}{
		{projections.Status{}, false, "building", ""},
		{projections.Status{Ready: true, Generation: 1}, false, "live", ""},
		{projections.Status{Ready: true, Generation: 1}, true, "paused", ""},
		{projections.Status{Ready: true, Generation: 1, Error: full}, false, "waiting", "the database's disk is full"},
		{projections.Status{Error: full}, false, "building", "the database's disk is full"},
		{projections.Status{Ready: true, Generation: 1, Error: unknown, Parked: true}, false, "parked", unknown},
		{
			projections.Status{Ready: true, Generation: 1, Error: "event BankRowAdded at position 7: cannot read asha@example.com", Parked: true},
			false,
			"parked", "event BankRowAdded at position 7 cannot be applied",
		},
		{projections.Status{Ready: true, Generation: 1, Error: "connect to db.internal"}, false, "waiting",
			"retrying; the log of the process has the cause"},
	} {
		require.Equal(t, c.state, app.StateOf(c.status, c.paused), "%+v", c.status)
		require.Equal(t, c.cause, app.CauseOf(c.status), "%+v", c.status)
	}
}

func TestAFullDiskIsNamed(t *testing.T) {
	t.Parallel()
	full := &pgconn.PgError{Code: "53100"}
	require.Equal(t, fault.Unavailable, app.Classify(fmt.Errorf("append: %w", full)).Kind)
	require.Contains(t, app.Classify(fmt.Errorf("%w: %w", eventstore.ErrUnavailable, full)).Error(), "disk is full")
	require.Equal(t, ": the database's disk is full", app.PublicCause(full))
}

func TestAStoreOfBlobsThatIsAwayIsUnavailable(t *testing.T) {
	t.Parallel()
	require.Equal(t, fault.Unavailable, app.Classify(fmt.Errorf("put blob a.png: %w", blob.ErrUnavailable)).Kind)
}
