package ledgerhttp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

func TestTheLockIsSetReadMovedAndTakenAway(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	clerk := o.Clerk(o.Home)
	a := clerk.GET("/books/lock").Status(200).Body(`{"locked_through":null}`)
	require.Empty(t, a.Header("ETag"))
	a = clerk.PUT("/books/lock", `{"locked_through":"2025-03-31"}`).Status(200).Body(`{"locked_through":"2025-03-31"}`)
	require.Equal(t, `"0"`, a.Header("ETag"))
	require.Equal(t, `"0"`, clerk.GET("/books/lock").Status(200).Body(`{"locked_through":"2025-03-31"}`).Header("ETag"))
	foreign := o.Clerk(o.Abroad)
	apptest.Post(foreign, apptest.Open(foreign, "ICICI"), apptest.Deposit("2025-03-01", "1"))

	clerk.PUT("/books/lock", `{"locked_through":"2025-04-30"}`).Status(200)
	const why = "Moving the lock back requires a reason (header Bahi-Reason)"
	clerk.PUT("/books/lock", `{"locked_through":"2025-03-31"}`).Problem(422, why)
	clerk.With("Bahi-Reason", "a late bill").PUT("/books/lock", `{"locked_through":"2025-03-31"}`).Status(200)
	clerk.With("Bahi-Reason", "again").PUT("/books/lock", `{"locked_through":null}`).Status(200).Body(`{"locked_through":null}`)
	clerk.GET("/books/lock").Status(200).Body(`{"locked_through":null}`)
	clerk.PUT("/books/lock", `{}`).Problem(422, "Validation error", "locked_through", "is required")
}
