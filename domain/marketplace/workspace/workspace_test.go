package workspace_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/event/eventtest"
	"bahi/domain/fault"
	"bahi/domain/marketplace/workspace"
)

var (
	asha, ravi, mina = uuid.MustParse("aaaaaaaa-0000-4000-8000-000000000001"), uuid.MustParse("bbbbbbbb-0000-4000-8000-000000000002"), uuid.MustParse("cccccccc-0000-4000-8000-000000000003")
	invitation       = uuid.MustParse("dddddddd-0000-4000-8000-000000000004")
	ends             = time.Date(2025, 6, 8, 12, 0, 0, 0, time.UTC)
	address          = event.NewPersonal("invitee-1", "ravi@example.org")

	clerk    = actor.Permissions{Ledger: actor.Write, Marketplace: actor.Read}
	partner  = actor.Permissions{Marketplace: actor.Write, Ledger: actor.Read}
	owner    = actor.Actor{Permissions: workspace.Owner}
	operator = actor.Actor{Permissions: actor.Permissions{Operator: true}}
	lesser   = actor.Actor{Permissions: partner}
	unfit    = fault.Fields(fault.Field{Field: "permissions", Message: "at least one area is needed, and operator is not a workspace's to give"})
)

func TestMake(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, workspace.Kind)
	none.Case("it begins with who has it").When(workspace.Make{Owner: asha}).Then(workspace.Made{Owner: asha})
	made := none.And(workspace.Made{Owner: asha})
	require.Equal(t, map[uuid.UUID]actor.Permissions{asha: workspace.Owner}, made.State().Members)
	made.Case("once").When(workspace.Make{Owner: ravi}).ThenNothing()
}

func TestInvite(t *testing.T) {
	t.Parallel()
	invite := func(by actor.Actor, p actor.Permissions) workspace.Invite {
		return workspace.Invite{By: by, Invitation: invitation, Email: address, Permissions: p, ExpiresAt: ends.In(time.FixedZone("IST", 19800))}
	}
	invited := func(p actor.Permissions) workspace.Invited {
		return workspace.Invited{Invitation: invitation, Email: address, Permissions: p, ExpiresAt: ends}
	}
	made := eventtest.Given(t, workspace.Kind, workspace.Made{Owner: asha})
	made.Case("less than one has").When(invite(owner, clerk)).Then(invited(clerk))
	made.Case("all that one has").When(invite(owner, workspace.Owner)).Then(invited(workspace.Owner))
	made.Case("no more than one has").When(invite(lesser, clerk)).ThenFails(workspace.ErrTooMuch)
	made.Case("an operator gives all").When(invite(operator, workspace.Owner)).Then(invited(workspace.Owner))
	made.Case("but no operator").When(invite(operator, actor.Permissions{Operator: true, Ledger: actor.Read})).ThenFails(unfit)
	made.Case("nothing at all").When(invite(owner, actor.Permissions{})).ThenFails(unfit)
	made.Case("nothing in so many words").When(invite(owner, actor.Permissions{Ledger: actor.None, Audit: actor.None})).ThenFails(unfit)
	eventtest.Given(t, workspace.Kind).Case("into what is not there").When(invite(operator, clerk)).ThenFails(workspace.ErrNotFound)
}

func TestJoin(t *testing.T) {
	t.Parallel()
	join := workspace.Join{Invitation: invitation, User: ravi, Now: ends.Add(-time.Nanosecond)}
	invited := eventtest.Given(t, workspace.Kind, workspace.Made{Owner: asha},
		workspace.Invited{Invitation: invitation, Email: address, Permissions: clerk, ExpiresAt: ends})
	invited.Case("with what was offered").When(join).Then(workspace.Joined{Invitation: invitation, User: ravi, Permissions: clerk})
	invited.Case("by no other invitation").When(workspace.Join{Invitation: uuid.New(), User: ravi, Now: join.Now}).ThenFails(workspace.ErrNoInvitation)
	invited.Case("not too late").When(workspace.Join{Invitation: invitation, User: ravi, Now: ends}).ThenFails(workspace.ErrNoInvitation)
	invited.Case("not who belongs already").When(workspace.Join{Invitation: invitation, User: asha, Now: join.Now}).ThenFails(workspace.ErrMember)

	joined := invited.And(workspace.Joined{Invitation: invitation, User: ravi, Permissions: clerk})
	require.Equal(t, map[uuid.UUID]actor.Permissions{asha: workspace.Owner, ravi: clerk}, joined.State().Members)
	joined.Case("an invitation is for one").When(workspace.Join{Invitation: invitation, User: mina, Now: join.Now}).ThenFails(workspace.ErrNoInvitation)
	joined.And(workspace.Removed{User: ravi}).Case("and for once").When(join).ThenFails(workspace.ErrNoInvitation)
	eventtest.Given(t, workspace.Kind).Case("nobody joins what is not there").When(join).ThenFails(workspace.ErrNoInvitation)
}

func TestChange(t *testing.T) {
	t.Parallel()
	type change = workspace.Change
	alone := eventtest.Given(t, workspace.Kind, workspace.Made{Owner: asha})
	alone.Case("the last who may write goes on doing so").When(change{By: owner, User: asha, To: clerk}).ThenFails(workspace.ErrLastMember)
	alone.Case("and may lose the rest").When(change{By: owner, User: asha, To: actor.Permissions{Marketplace: actor.Write}}).
		Then(workspace.Changed{User: asha, From: workspace.Owner, To: actor.Permissions{Marketplace: actor.Write}})
	alone.Case("who does not belong").When(change{By: owner, User: ravi, To: clerk}).ThenFails(workspace.ErrNoMember)

	two := alone.And(workspace.Joined{Invitation: invitation, User: ravi, Permissions: partner})
	two.Case("with another who may write").When(change{By: owner, User: asha, To: clerk}).
		Then(workspace.Changed{User: asha, From: workspace.Owner, To: clerk})
	two.Case("more than before").When(change{By: owner, User: ravi, To: workspace.Owner}).
		Then(workspace.Changed{User: ravi, From: partner, To: workspace.Owner})
	two.Case("no more than the caller has").When(change{By: lesser, User: ravi, To: workspace.Owner}).ThenFails(workspace.ErrTooMuch)
	two.Case("nor of who has more").When(change{By: lesser, User: asha, To: partner}).ThenFails(workspace.ErrAbove)
	two.Case("the same").When(change{By: owner, User: ravi, To: partner}).ThenNothing()
	two.Case("the same in other words").
		When(change{By: owner, User: ravi, To: actor.Permissions{Marketplace: actor.Write, Ledger: actor.Read, Audit: actor.None}}).ThenNothing()
	two.Case("no operator").When(change{By: operator, User: ravi, To: actor.Permissions{Operator: true}}).ThenFails(unfit)
	two.Case("nothing is what who is removed has").When(change{By: owner, User: ravi}).ThenFails(unfit)
}

func TestRemove(t *testing.T) {
	t.Parallel()
	type remove = workspace.Remove
	alone := eventtest.Given(t, workspace.Kind, workspace.Made{Owner: asha})
	alone.Case("the last who may write stays").When(remove{By: owner, User: asha}).ThenFails(workspace.ErrLastMember)
	alone.Case("even for an operator").When(remove{By: operator, User: asha}).ThenFails(workspace.ErrLastMember)
	alone.Case("unless the person is gone").When(remove{User: asha, Erased: true}).Then(workspace.Removed{User: asha, Erased: true})
	alone.Case("who does not belong").When(remove{By: owner, User: ravi}).ThenFails(workspace.ErrNoMember)
	alone.Case("who is gone and does not belong").When(remove{User: ravi, Erased: true}).ThenNothing()

	two := alone.And(workspace.Joined{Invitation: invitation, User: ravi, Permissions: partner})
	two.Case("one of two who may write").When(remove{By: owner, User: asha}).Then(workspace.Removed{User: asha})
	two.Case("not by who has less").When(remove{By: lesser, User: asha}).ThenFails(workspace.ErrAbove)
	two.Case("but oneself").When(remove{By: lesser, User: ravi}).Then(workspace.Removed{User: ravi})
	readers := alone.And(workspace.Joined{Invitation: invitation, User: ravi, Permissions: clerk})
	readers.Case("who may not write").When(remove{By: owner, User: ravi}).Then(workspace.Removed{User: ravi})
	readers.Case("a reader's presence does not count").When(remove{By: owner, User: asha}).ThenFails(workspace.ErrLastMember)
	empty := alone.And(workspace.Removed{User: asha, Erased: true})
	require.Empty(t, empty.State().Members)
	require.True(t, empty.State().Made)
}
