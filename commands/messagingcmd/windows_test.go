package messagingcmd

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/domain/messaging/network"
)

// talkTable has the times of contacts' last messages, and counts its readers.
type talkTable struct {
	messageIndex

	last  time.Time
	err   error
	times int
}

func (a *talkTable) Heard(context.Context, uuid.UUID, int64, int64) (time.Time, error) {
	a.times++
	return a.last, a.err
}

func TestAWindowIsLookedUpOnceUntilItCloses(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	table := &talkTable{last: now.Add(-23 * time.Hour)}
	f := &Messages{Channels: &Channels{Commands: commands.New(nil, nil, func() time.Time { return now })}, Known: table,
		Windows: &ReplyWindows{}}
	open := func(contact int64, want error, times int) {
		t.Helper()
		require.Equal(t, want, f.open(t.Context(), uuid.Nil, 3, contact))
		require.Equal(t, times, table.times)
	}
	open(9, nil, 1)
	open(9, nil, 1)
	open(8, nil, 2)
	open(0, errClosed, 2)
	now = now.Add(time.Hour)
	open(9, errClosed, 3)
	open(9, errClosed, 4)
	table.last = now
	open(9, nil, 5)
	open(9, nil, 5)
	require.Equal(t, "reply_window_closed", errClosed.Code)
	require.ErrorIs(t, errClosed, (&network.Failure{Reason: network.WindowClosed}).Fault())

	table.err = errors.New("the tables are away")
	open(7, table.err, 6)
	f.Windows = nil
	table.err = nil
	open(9, nil, 7)
	open(9, nil, 8)
	many := &ReplyWindows{}
	for i := range int64(maxWindows + 1) {
		many.keep(1, i, now)
	}
	require.Len(t, many.closes, 1)
}
