package webhooks_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/commands/inbox"
	"bahi/commands/messagingcmd"
	"bahi/http/webhooks"
)

// unmatchedService is a message service that no receipt matches.
type unmatchedService struct {
	webhooks.MessageService
	webhooks.ChannelSecrets

	told []messagingcmd.DeliveryReceipt
	err  error
}

func (*unmatchedService) ChannelOf(_ context.Context, _, identity string) (int64, bool, error) {
	return 3, identity == "PN1", nil
}

func (n *unmatchedService) Receipts(_ context.Context, all []messagingcmd.DeliveryReceipt) ([]messagingcmd.ReceiptResult, error) {
	n.told = all
	return make([]messagingcmd.ReceiptResult, len(all)), n.err
}

func TestAReceiptWaitsForItsMessage(t *testing.T) {
	t.Parallel()
	now := time.Now()
	talk := &unmatchedService{}
	k := webhooks.Conversations{MessageService: talk, Now: func() time.Time { return now }}
	handle := webhooks.Handlers(k.Endpoints())["receive-social"]
	call := inbox.Call{ReceivedAt: now.Add(-14 * time.Minute), ContentType: "application/json",
		Body: []byte(`{"entry":[{"changes":[{"value":{"metadata":{"phone_number_id":"PN1"},
		"statuses":[{"id":"w1","gs_id":"ee","status":"failed","errors":[{"code":"131026","title":"no","error_data":{"details":"gone"}}]},` +
			`{"id":"w2","status":"sent"}]}}]}]}`)}
	_, err := handle(t.Context(), call)
	require.ErrorIs(t, err, messagingcmd.ErrUnmatched, "it is tried again")
	require.Len(t, talk.told, 2, "and the others are not kept waiting")
	require.Equal(t, []any{131026, "no", "gone", []string{"w1", "ee"}},
		[]any{talk.told[0].Code, talk.told[0].Title, talk.told[0].Details, talk.told[0].IDs})

	call.ReceivedAt = now.Add(-15 * time.Minute)
	out, err := handle(t.Context(), call)
	require.NoError(t, err)
	require.Empty(t, out.Effect)

	talk.err = errors.New("the store is away")
	_, err = handle(t.Context(), call)
	require.ErrorIs(t, err, talk.err)
}
