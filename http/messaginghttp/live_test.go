package messaginghttp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/readmodels/messagingview"
)

func TestAFollowerGetsWhatIsAfterTheLastMessageAsNewOrChanged(t *testing.T) {
	t.Parallel()
	row := func(began, at event.Position) encodedMessage {
		return encodedMessage{Message: messagingview.Message{Began: began, Position: at}, asNew: []byte("n"), asChanged: []byte("c")}
	}
	rows := []encodedMessage{row(3, 5), row(6, 6), row(2, 8)}
	for seen, want := range map[event.Position]string{0: "nnn", 4: "cnc", 5: "nc", 6: "c", 8: ""} {
		p := partOf(rows, seen)
		require.Equal(t, want, string(p.encoded()), "seen up to %d", seen)
		require.Equal(t, "all", string(part{rows: p.rows, seen: seen, text: []byte("all")}.encoded()), "what was encoded once for all")
	}
}
