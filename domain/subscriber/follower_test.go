package subscriber_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/fault"
	"bahi/domain/subscriber"
	"bahi/internal/test/eventtest"
)

func TestSkip(t *testing.T) {
	t.Parallel()
	skip := subscriber.Skip{Version: 2, Position: 7, EventID: uuid.New(), Type: "BankRowAdded", Reason: "written by a broken import"}
	none := eventtest.Given(t, subscriber.Kind)
	none.Case("with a reason").When(skip).Then(subscriber.Skipped(skip))
	silent := skip
	silent.Reason = ""
	none.Case("without one").When(silent).ThenFails(fault.Fields(fault.Field{Field: "reason", Message: "is required"}))
	once := none.And(subscriber.Skipped(skip))
	once.Case("once more").When(skip).ThenNothing()
	newer := skip
	newer.Version = 3
	once.Case("a new version tries it again").When(newer).Then(subscriber.Skipped(newer))
	require.True(t, once.State().Has(2, 7))
	require.False(t, once.State().Has(3, 7))
	require.False(t, once.State().Has(2, 8))
}
