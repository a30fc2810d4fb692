package contactlist_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/fault"
	"bahi/domain/messaging/contactlist"
	"bahi/internal/test/eventtest"
)

func TestCreate(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, contactlist.Kind)
	created := contactlist.Created{Name: "Retailers"}
	given.Case("its name is trimmed").When(contactlist.Create{Name: " Retailers"}).Then(created)
	given.Case("it needs a name").When(contactlist.Create{Name: " "}).ThenFails(fault.Fields(fault.Field{Field: "name",
		Message: "1 to 100 characters"}))
	require.Equal(t, contactlist.State(created), given.And(created).State())
}
