package audit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/audit"
	"bahi/domain/fault"
	"bahi/internal/test/eventtest"
)

var errReason = fault.Fields(fault.Field{Field: "reason", Message: "is required"})

func TestRotateKey(t *testing.T) {
	t.Parallel()
	toB := audit.RotateKey{From: "a", To: "b", Reason: "yearly"}
	toC := audit.RotateKey{From: "b", To: "c", Reason: "yearly"}
	first := eventtest.Given(t, audit.Kind)
	first.Case("the first key, which no event names, is replaced").When(toB).Then(audit.KeyRotated(toB))
	first.Case("not without a reason").When(audit.RotateKey{From: "a", To: "b"}).ThenFails(errReason)
	first.Case("not by itself").When(audit.RotateKey{From: "a", To: "a", Reason: "x"}).ThenFails(audit.ErrOldKey)
	second := first.And(audit.KeyRotated(toB))
	second.Case("again").When(toB).ThenNothing()
	second.Case("the next").When(toC).Then(audit.KeyRotated(toC))
	second.Case("from a key that was replaced").When(audit.RotateKey{From: "a", To: "c", Reason: "x"}).ThenFails(audit.ErrOtherKey)
	second.Case("to a former key").When(audit.RotateKey{From: "b", To: "a", Reason: "x"}).ThenFails(audit.ErrOldKey)
	require.Equal(t, audit.State{Key: "b", Former: []string{"a"}}, second.State())
}

func TestAcceptRestore(t *testing.T) {
	t.Parallel()
	accept := audit.AcceptRestore{
		Kept: audit.Tree{Size: 7, Root: []byte("root of 7")}, Newest: audit.Tree{Size: 9, Root: []byte("root of 9")},
		Abandoned: 2, LastNumber: 4, Reason: "the disk burnt, and the backup is of last night",
	}
	none := eventtest.Given(t, audit.Kind)
	none.Case("for a reason").When(accept).Then(audit.RestoreAccepted(accept))
	silent, idle := accept, accept
	silent.Reason, idle.Abandoned = "", 0
	none.Case("without one").When(silent).ThenFails(errReason)
	none.Case("nothing is missing").When(idle).
		ThenFails(fault.New(fault.Conflict, "The log has everything that was ever signed: there is nothing to accept"))
	once := none.And(audit.RestoreAccepted(accept))
	once.Case("again").When(accept).ThenNothing()
	again := accept
	again.LastNumber = 6
	once.Case("another one, later").When(again).Then(audit.RestoreAccepted(again))
}
