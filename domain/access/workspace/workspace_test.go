package workspace_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/access/workspace"
	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/internal/test/eventtest"
)

var (
	asha, ravi, mina = uuid.MustParse("aaaaaaaa-0000-4000-8000-000000000001"), uuid.MustParse("bbbbbbbb-0000-4000-8000-000000000002"),
		uuid.MustParse("cccccccc-0000-4000-8000-000000000003")
	invitation = uuid.MustParse("dddddddd-0000-4000-8000-000000000004")
	ends       = time.Date(2025, 6, 8, 12, 0, 0, 0, time.UTC)
	week       = 7 * 24 * time.Hour
	address    = event.NewPersonal("invitee-1", "ravi@example.org")

	clerk   = actor.Permissions{Ledger: actor.Write, Marketplace: actor.Read}
	partner = actor.Permissions{Marketplace: actor.Write, Ledger: actor.Read}

	owner    = user(asha, workspace.Owner)
	lesser   = user(ravi, partner)
	operator = actor.Actor{Type: "user", ID: uuid.NewString(), Permissions: actor.Permissions{Operator: true}}
	key      = actor.Actor{Type: "api_key", ID: uuid.NewString(), Permissions: workspace.Owner}
	unfit    = fault.Fields(fault.Field{Field: "permissions",
		Message: "at least one area is required, and a workspace cannot grant operator"})
)

// user is a signed-in user with the permissions that a node knew then.
func user(id uuid.UUID, p actor.Permissions) actor.Actor {
	return actor.Actor{Type: "user", ID: id.String(), Permissions: p}
}

// invited is an invitation by Asha, some days before it ends.
func invited(id uuid.UUID, p actor.Permissions) workspace.Invited {
	return workspace.Invited{
		Invitation: id, By: owner.String(), Email: address, EmailKey: "k", Permissions: p, InvitedAt: ends.Add(-week), ExpiresAt: ends,
	}
}

func TestMake(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, workspace.Kind)
	none.Case("it begins with its owner").When(workspace.Create{Owner: asha}).Then(workspace.Created{Owner: asha})
	made := none.And(workspace.Created{Owner: asha})
	require.Equal(t, map[uuid.UUID]actor.Permissions{asha: workspace.Owner}, made.State().Members)
	made.Case("once").When(workspace.Create{Owner: ravi}).ThenNothing()
}

func TestInvite(t *testing.T) {
	t.Parallel()
	ist := time.FixedZone("IST", 19800)
	invite := func(by actor.Actor, p actor.Permissions) workspace.Invite {
		return workspace.Invite{
			By: by, Invitation: invitation, Email: address, EmailKey: "k", Permissions: p, Now: ends.Add(-week).In(ist), ExpiresAt: ends.In(ist),
		}
	}
	by := func(by actor.Actor, p actor.Permissions) workspace.Invited {
		e := invited(invitation, p)
		e.By = by.String()
		return e
	}
	none := eventtest.Given(t, workspace.Kind)
	made := none.And(workspace.Created{Owner: asha})
	two := made.And(workspace.Joined{Invitation: invitation, User: ravi, Permissions: partner})
	made.Case("less than the caller's permissions").When(invite(owner, clerk)).Then(by(owner, clerk))
	made.Case("all of the caller's permissions").When(invite(owner, workspace.Owner)).Then(by(owner, workspace.Owner))
	two.Case("no more than the caller's permissions").When(invite(lesser, clerk)).ThenFails(workspace.ErrTooMuch)
	made.Case("an operator gives all").When(invite(operator, workspace.Owner)).Then(by(operator, workspace.Owner))
	made.Case("a key gives what it has").When(invite(key, clerk)).Then(by(key, clerk))
	made.Case("but no operator").When(invite(operator, actor.Permissions{Operator: true, Ledger: actor.Read})).ThenFails(unfit)
	made.Case("nothing at all").When(invite(owner, actor.Permissions{})).ThenFails(unfit)
	made.Case("an explicit nothing").When(invite(owner, actor.Permissions{Ledger: actor.None, Audit: actor.None})).ThenFails(unfit)
	first := uuid.New()
	asked := made.And(invited(first, partner))
	asked.Case("the same address again ends the first one").When(invite(owner, clerk)).
		Then(workspace.Withdrawn{Invitation: first}, by(owner, clerk))
	none.Case("into a missing workspace").When(invite(operator, clerk)).ThenFails(workspace.ErrNotFound)
}

func TestWhatAMemberMayIsWhatTheLogSays(t *testing.T) {
	t.Parallel()
	late := user(ravi, workspace.Owner) // as known to a node that had not read the newest event
	all := func(h *eventtest.History[workspace.State], refused error) {
		h.Case("invite").When(workspace.Invite{By: late, Permissions: clerk, Now: ends.Add(-week), ExpiresAt: ends}).ThenFails(refused)
		h.Case("withdraw").When(workspace.Withdraw{By: late, Invitation: invitation}).ThenFails(refused)
		h.Case("change").When(workspace.Change{By: late, User: ravi, To: workspace.Owner}).ThenFails(refused)
		h.Case("remove").When(workspace.Remove{By: late, User: mina}).ThenFails(refused)
	}
	three := eventtest.Given(t, workspace.Kind, workspace.Created{Owner: asha}, invited(invitation, clerk),
		workspace.Joined{Invitation: uuid.New(), User: ravi, Permissions: workspace.Owner},
		workspace.Joined{Invitation: uuid.New(), User: mina, Permissions: clerk})
	all(three.And(workspace.Changed{User: ravi, From: workspace.Owner, To: clerk}), workspace.ErrNotPermitted)
	all(three.And(workspace.Removed{User: ravi}), workspace.ErrNotFound)
	three.And(workspace.Changed{User: ravi, From: workspace.Owner, To: partner}).Case("no more than by now").
		When(workspace.Change{By: late, User: mina, To: workspace.Owner}).ThenFails(workspace.ErrTooMuch)
}

func TestInvitationsAreNotWithoutEnd(t *testing.T) {
	t.Parallel()
	made := eventtest.Given(t, workspace.Kind, workspace.Created{Owner: asha})
	many := make([]event.Event[workspace.State], workspace.MaxInvitations)
	for i := range many {
		many[i] = invited(uuid.New(), clerk)
	}
	another := workspace.Invite{By: owner, Invitation: invitation, Email: address, EmailKey: "other", Permissions: clerk,
		Now: ends.Add(-time.Nanosecond), ExpiresAt: ends.Add(week)}
	full := made.And(many...)
	full.Case("no more than so many are open").When(another).ThenFails(workspace.ErrInvitations)
	first, ok := many[0].(workspace.Invited)
	require.True(t, ok)
	then := invited(invitation, clerk)
	then.EmailKey, then.InvitedAt, then.ExpiresAt = another.EmailKey, another.Now, another.ExpiresAt
	full.And(workspace.Withdrawn{Invitation: first.Invitation}).Case("one that is withdrawn makes room").When(another).Then(then)
	full.And(workspace.Joined{Invitation: first.Invitation, User: ravi,
		Permissions: clerk}).Case("so does an accepted one").When(another).Then(then)
	another.Now = ends
	then.InvitedAt = ends
	full.Case("and those that expired").When(another).Then(then)
	require.Len(t, full.State().Invitations, workspace.MaxInvitations)
	require.Len(t, full.And(then).State().Invitations, 1, "the next one drops them")
}

func TestWithdraw(t *testing.T) {
	t.Parallel()
	withdraw := workspace.Withdraw{By: owner, Invitation: invitation}
	asked := eventtest.Given(t, workspace.Kind, workspace.Created{Owner: asha}, invited(invitation, clerk))
	asked.Case("one's own").When(withdraw).Then(workspace.Withdrawn{Invitation: invitation})
	asked.Case("by an operator").When(workspace.Withdraw{By: operator,
		Invitation: invitation}).Then(workspace.Withdrawn{Invitation: invitation})
	asked.And(workspace.Joined{Invitation: uuid.New(), User: ravi, Permissions: partner}).Case("another member's").
		When(workspace.Withdraw{By: lesser, Invitation: invitation}).Then(workspace.Withdrawn{Invitation: invitation})
	asked.Case("not a missing one").When(workspace.Withdraw{By: owner, Invitation: uuid.New()}).ThenFails(workspace.ErrNotOpen)
	gone := asked.And(workspace.Withdrawn{Invitation: invitation})
	gone.Case("once").When(withdraw).ThenFails(workspace.ErrNotOpen)
	gone.Case("and nobody joins").When(workspace.Join{Invitation: invitation, Inviter: owner, User: ravi,
		Now: ends.Add(-week)}).ThenFails(workspace.ErrNoInvitation)
}

func TestJoin(t *testing.T) {
	t.Parallel()
	join := workspace.Join{Invitation: invitation, Inviter: user(asha, actor.Permissions{}), User: ravi, EmailKey: "k",
		Now: ends.Add(-time.Nanosecond)}
	with := func(change func(*workspace.Join)) workspace.Join {
		j := join
		change(&j)
		return j
	}
	asked := eventtest.Given(t, workspace.Kind, workspace.Created{Owner: asha}, invited(invitation, clerk))
	asked.Case("with what was offered").When(join).Then(workspace.Joined{Invitation: invitation, User: ravi, Permissions: clerk})
	asked.Case("by no other invitation").When(with(func(j *workspace.Join) { j.Invitation = uuid.New() })).ThenFails(workspace.ErrNoInvitation)
	asked.Case("not too late").When(with(func(j *workspace.Join) { j.Now = ends })).ThenFails(workspace.ErrNoInvitation)
	asked.Case("not a member").When(with(func(j *workspace.Join) { j.User = asha })).ThenFails(workspace.ErrMember)

	for _, key := range []string{"", "another"} {
		asked.Case("nor a user with another address, or without a verified one").
			When(with(func(j *workspace.Join) { j.EmailKey = key })).ThenFails(
			workspace.ErrAnothers)
	}

	joined := asked.And(workspace.Joined{Invitation: invitation, User: ravi, Permissions: clerk})
	require.Equal(t, map[uuid.UUID]actor.Permissions{asha: workspace.Owner, ravi: clerk}, joined.State().Members)
	joined.Case("an invitation is for one person").When(with(func(j *workspace.Join) { j.User = mina })).ThenFails(workspace.ErrNoInvitation)
	joined.And(workspace.Removed{User: ravi}).Case("and for once").When(join).ThenFails(workspace.ErrNoInvitation)
	eventtest.Given(t, workspace.Kind).Case("nobody joins a missing workspace").When(join).ThenFails(workspace.ErrNoInvitation)

	full := asked.State()
	for len(full.Members) < workspace.MaxMembers-1 {
		full.Members[uuid.New()] = clerk
	}
	events, err := join.Decide(full)
	require.NoError(t, err)
	require.Equal(t, []event.Event[workspace.State]{workspace.Joined{Invitation: invitation, User: ravi, Permissions: clerk}}, events)
	full.Members[uuid.New()] = clerk
	_, err = join.Decide(full)
	require.Equal(t, workspace.ErrMembers, err)
}

func TestAnInvitationStraysOnce(t *testing.T) {
	t.Parallel()
	stray := workspace.RecordMismatch{Invitation: invitation}
	asked := eventtest.Given(t, workspace.Kind, workspace.Created{Owner: asha}, invited(invitation, clerk))
	asked.Case("the first time").When(stray).Then(workspace.AddressMismatched{Invitation: invitation})
	asked.And(workspace.AddressMismatched{Invitation: invitation}).Case("the second").When(stray).ThenNothing()
	asked.And(workspace.Withdrawn{Invitation: invitation}).Case("when it is over").When(stray).ThenNothing()
	require.Empty(t, asked.And(workspace.Withdrawn{Invitation: invitation},
		workspace.AddressMismatched{Invitation: invitation}).State().Invitations)
}

func TestAnInvitationIsWorthWhatWhoSentItMayDo(t *testing.T) {
	t.Parallel()
	read := actor.Permissions{Ledger: actor.Read, Marketplace: actor.Write}
	join := func(inviter actor.Actor) workspace.Join {
		return workspace.Join{Invitation: invitation, Inviter: inviter, User: mina, EmailKey: "k", Now: ends.Add(-week)}
	}
	then := workspace.Joined{Invitation: invitation, User: mina, Permissions: read}
	by := func(by actor.Actor) *eventtest.History[workspace.State] {
		i := invited(invitation, read)
		i.By = by.String()
		return eventtest.Given(t, workspace.Kind, workspace.Created{Owner: asha},
			workspace.Joined{Invitation: uuid.New(), User: ravi, Permissions: workspace.Owner}, i)
	}
	changed := func(to actor.Permissions) *eventtest.History[workspace.State] {
		return by(lesser).And(workspace.Changed{User: ravi, From: workspace.Owner, To: to})
	}
	inviter := user(ravi, workspace.Owner)
	by(lesser).Case("while the sender may invite").When(join(inviter)).Then(then)
	changed(partner).Case("also after the sender lost other permissions").When(join(inviter)).Then(then)
	changed(actor.Permissions{Marketplace: actor.Write}).Case("not permissions that the sender has lost").When(join(inviter)).ThenFails(
		workspace.ErrNoInvitation)
	changed(clerk).Case("not of a sender who may no longer invite").When(join(inviter)).ThenFails(workspace.ErrNoInvitation)
	by(lesser).And(workspace.Removed{User: ravi}).Case("not of a removed sender").When(join(inviter)).ThenFails(workspace.ErrNoInvitation)
	by(operator).Case("an operator's").When(join(operator)).Then(then)
	by(operator).Case("not of a former operator").When(join(user(uuid.MustParse(operator.ID),
		actor.Permissions{}))).ThenFails(workspace.ErrNoInvitation)
	by(key).Case("a key's").When(join(key)).Then(then)
	by(key).Case("not of an invalid key").When(join(actor.Actor{Type: "api_key",
		ID: key.ID})).ThenFails(workspace.ErrNoInvitation)
}

func TestChange(t *testing.T) {
	t.Parallel()
	type change = workspace.Change
	only := func(p actor.Permissions) actor.Permissions { // the other areas are removed
		p.Ledger, p.Messaging = cmp.Or(p.Ledger, actor.None), cmp.Or(p.Messaging, actor.None)
		p.Marketplace, p.Audit = cmp.Or(p.Marketplace, actor.None), cmp.Or(p.Audit, actor.None)
		return p
	}
	alone := eventtest.Given(t, workspace.Kind, workspace.Created{Owner: asha})
	alone.Case("the last writer keeps write access").When(change{By: owner, User: asha,
		To: only(clerk)}).ThenFails(workspace.ErrLastMember)
	alone.Case("and may lose the other permissions").When(change{By: owner, User: asha,
		To: only(actor.Permissions{Marketplace: actor.Write})}).
		Then(workspace.Changed{User: asha, From: workspace.Owner, To: actor.Permissions{Marketplace: actor.Write}})
	alone.Case("not a member").When(change{By: owner, User: ravi, To: clerk}).ThenFails(workspace.ErrNoMember)

	two := alone.And(workspace.Joined{Invitation: invitation, User: ravi, Permissions: partner})
	two.Case("with another writer").When(change{By: owner, User: asha, To: only(clerk)}).
		Then(workspace.Changed{User: asha, From: workspace.Owner, To: clerk})
	two.Case("more than before").When(change{By: owner, User: ravi, To: workspace.Owner}).
		Then(workspace.Changed{User: ravi, From: partner, To: workspace.Owner})
	two.Case("no more than the caller has").When(change{By: lesser, User: ravi, To: workspace.Owner}).ThenFails(workspace.ErrTooMuch)
	two.Case("nor of a member with more").When(change{By: lesser, User: asha, To: only(partner)}).ThenFails(workspace.ErrAbove)
	equals := two.And(workspace.Changed{User: ravi, From: partner, To: workspace.Owner})
	equals.Case("nothing is taken from the owner").When(change{By: lesser, User: asha, To: only(partner)}).ThenFails(workspace.ErrOwner)
	equals.Case("by a key neither").When(change{By: key, User: asha, To: only(partner)}).ThenFails(workspace.ErrOwner)
	equals.Case("but by an operator").When(change{By: operator, User: asha, To: only(partner)}).
		Then(workspace.Changed{User: asha, From: workspace.Owner, To: partner})
	equals.And(workspace.Changed{User: asha, From: workspace.Owner, To: partner}).Case("and given back by anybody").
		When(change{By: lesser, User: asha, To: workspace.Owner}).Then(workspace.Changed{User: asha, From: partner, To: workspace.Owner})
	two.Case("the same").When(change{By: owner, User: ravi, To: partner}).ThenNothing()
	two.Case("the same permissions in another form").
		When(change{By: owner, User: ravi, To: actor.Permissions{Marketplace: actor.Write, Ledger: actor.Read, Audit: actor.None}}).ThenNothing()
	two.Case("one area, and the others stay").When(change{By: owner, User: ravi, To: actor.Permissions{Audit: actor.Read}}).
		Then(workspace.Changed{User: ravi, From: partner, To: partner.With(actor.Permissions{Audit: actor.Read})})
	two.Case("no operator").When(change{By: operator, User: ravi, To: actor.Permissions{Operator: true}}).ThenFails(unfit)
	two.Case("a member cannot be left without permissions").When(change{By: owner, User: ravi}).ThenFails(unfit)
}

func TestRemove(t *testing.T) {
	t.Parallel()
	type remove = workspace.Remove
	alone := eventtest.Given(t, workspace.Kind, workspace.Created{Owner: asha})
	alone.Case("the last writer stays").When(remove{By: owner, User: asha}).ThenFails(workspace.ErrLastMember)
	alone.Case("even for an operator").When(remove{By: operator, User: asha}).ThenFails(workspace.ErrLastMember)
	alone.Case("unless the person was erased").When(remove{User: asha, Erased: true}).Then(workspace.Removed{User: asha, Erased: true})
	alone.Case("not a member").When(remove{By: owner, User: ravi}).ThenFails(workspace.ErrNoMember)
	alone.Case("an erased person who is not a member").When(remove{User: ravi, Erased: true}).ThenNothing()

	two := alone.And(workspace.Joined{Invitation: invitation, User: ravi, Permissions: partner})
	two.Case("one of two writers").When(remove{By: owner, User: asha}).Then(workspace.Removed{User: asha})
	two.Case("not by a caller with less").When(remove{By: lesser, User: asha}).ThenFails(workspace.ErrAbove)
	equals := two.And(workspace.Changed{User: ravi, From: partner, To: workspace.Owner})
	equals.Case("nor the owner by an equal").When(remove{By: lesser, User: asha}).ThenFails(workspace.ErrOwner)
	equals.Case("nor by a key").When(remove{By: key, User: asha}).ThenFails(workspace.ErrOwner)
	equals.Case("but by an operator").When(remove{By: operator, User: asha}).Then(workspace.Removed{User: asha})
	equals.And(workspace.Removed{User: asha},
		workspace.Joined{User: asha, Permissions: clerk}).Case("an owner who left comes back as a member").
		When(remove{By: lesser, User: asha}).Then(workspace.Removed{User: asha})
	two.Case("but oneself").When(remove{By: lesser, User: ravi}).Then(workspace.Removed{User: ravi})
	readers := alone.And(workspace.Joined{Invitation: invitation, User: ravi, Permissions: clerk})
	readers.Case("without write access").When(remove{By: owner, User: ravi}).Then(workspace.Removed{User: ravi})
	readers.Case("a reader's presence does not count").When(remove{By: owner, User: asha}).ThenFails(workspace.ErrLastMember)
	empty := alone.And(workspace.Removed{User: asha, Erased: true})
	require.Empty(t, empty.State().Members)
	require.True(t, empty.State().Made)
}

func TestAMemberHasTheRevisionOfTheNewestEventAboutThem(t *testing.T) {
	t.Parallel()
	type revisions = map[uuid.UUID]int64
	invited := workspace.Invited{Invitation: invitation, Permissions: clerk}
	joined := workspace.Joined{Invitation: invitation, User: ravi, Permissions: clerk}
	given := eventtest.Given(t, workspace.Kind, workspace.Created{Owner: asha}, invited, workspace.Withdrawn{Invitation: invitation},
		invited, joined)
	require.Equal(t, revisions{asha: 0, ravi: 4}, given.State().Revisions)
	given = given.And(workspace.Changed{User: ravi, From: clerk, To: partner}, invited)
	require.Equal(t, revisions{asha: 0, ravi: 5}, given.State().Revisions)
	given = given.And(workspace.Removed{User: ravi})
	require.Equal(t, revisions{asha: 0}, given.State().Revisions)
	require.Equal(t, revisions{asha: 0, ravi: 8}, given.And(joined).State().Revisions, "a returning member has a new revision")
}
