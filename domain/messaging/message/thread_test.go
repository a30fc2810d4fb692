package message_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/messaging/message"
	"bahi/internal/test/eventtest"
)

func TestAContactsMailsStayInAThreadUnderItsSubject(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, message.ThreadKind)
	none.Case("a network without threads").When(message.Join{Subject: "Sales"}).ThenNothing()
	none.Case("the first mail begins one").When(message.Join{Thread: "t1", Subject: "Sales"}).Then(message.Threaded{Thread: "t1",
		Subject: "Sales"})
	begun := none.And(message.Threaded{Thread: "t1", Subject: "Sales"})
	begun.Case("the next ones join it").When(message.Join{Thread: "t1", Subject: "Sales"}).ThenNothing()
	begun.Case("another subject begins another").When(message.Join{Thread: "t2", Subject: "Shop"}).Then(message.Threaded{Thread: "t2",
		Subject: "Shop"})
	s := message.Threaded{Thread: "t1", Subject: "Sales"}.Evolve(message.Thread{})
	require.Equal(t, []string{"t1", ""}, []string{s.Under("Sales"), s.Under("Shop")})
	require.Equal(t, "messagethread-3.9", message.ThreadKind.Stream(message.ThreadID(3, 9)))
}
