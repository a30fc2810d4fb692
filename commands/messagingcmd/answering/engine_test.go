package answering_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/commands/messagingcmd/answering"
	"bahi/domain/messaging/bot"
)

func TestTheFixedLineIsInTheCustomersScript(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"hello": "Sorry", "नमस्ते": "माफ़ कीजिए", "કેમ છો": "માફ કરશો", "gold का भाव": "माफ़ कीजिए"} {
		require.Contains(t, answering.Fallback(bot.State{}, text), want)
	}
	require.Equal(t, "Later.", answering.Fallback(bot.State{Fallback: "Later."}, "नमस्ते"))
}
