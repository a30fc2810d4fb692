package user_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/access/claim"
	"bahi/domain/access/user"
	"bahi/domain/event"
	"bahi/internal/test/eventtest"
)

var (
	id   = uuid.MustParse("aaaaaaaa-0000-4000-8000-000000000001")
	home = uuid.MustParse("11111111-1111-4111-8111-111111111111")
	due  = time.Date(2025, 6, 15, 12, 0, 0, 0, time.UTC)
)

func hers(text string) event.Personal { return event.NewPersonal(user.Subject(id), text) }

var registered = user.Registered{
	Provider: user.ByEmail, Workspace: home, Email: hers("asha@example.org"), EmailKey: "k1", FirstName: hers("Asha"), LastName: hers("Rao"),
}

func TestTheSubjectIsTheStream(t *testing.T) {
	t.Parallel()
	require.Equal(t, "user-aaaaaaaa-0000-4000-8000-000000000001", user.Subject(id))
}

func TestRegister(t *testing.T) {
	t.Parallel()
	register := user.Register{
		Provider: user.ByEmail, Workspace: home, Email: registered.Email, EmailKey: "k1",
		FirstName: registered.FirstName, LastName: registered.LastName,
	}
	nobody := eventtest.Given(t, user.Kind)
	nobody.Case("somebody registers").When(register).Then(registered)
	verified := register
	verified.Provider, verified.Verified, verified.LastName = user.ByProvider, true, event.Personal{}
	nobody.Case("a provider's account has only the provider's names, and a verified address").When(verified).Then(user.Registered{
		Provider: user.ByProvider, Workspace: home, Email: registered.Email, EmailKey: "k1", FirstName: registered.FirstName, Verified: true,
	})
	eventtest.Given(t, user.Kind, registered).Case("once").When(register).ThenNothing()
}

func TestLoseEmail(t *testing.T) {
	t.Parallel()
	lose := user.LoseEmailClaim{EmailKey: "k1"}
	eventtest.Given(t, user.Kind).Case("no user has it").When(lose).ThenNothing()
	given := eventtest.Given(t, user.Kind, registered)
	given.Case("a current address is not lost").When(lose).ThenFails(claim.ErrTaken)
	given.Case("another address is not lost").When(user.LoseEmailClaim{EmailKey: "k2"}).ThenNothing()
	given.And(user.EmailChanged{EmailKey: "k2", EmailBefore: "k1"}).Case("nor is a former one").When(lose).ThenNothing()
	lapsed := user.LoseEmailClaim{EmailKey: "k1", Lapsed: true}
	moved := given.And(user.EmailVerified{EmailKey: "k1"}, user.EmailChanged{EmailKey: "k2", EmailBefore: "k1"},
		user.EmailChanged{EmailKey: "k1", EmailBefore: "k2"})
	moved.Case("an address that was not verified in time").When(lapsed).Then(user.EmailClaimLost{EmailKey: "k1"})
	require.Empty(t, moved.And(user.EmailClaimLost{EmailKey: "k1"}).State().EmailKey)
	ending := given.And(user.DeletionRequested{DeleteAfter: due}, user.ErasureBegun{})
	ending.Case("a user being erased gets nothing").When(lose).ThenNothing()
	ending.And(user.Erased{}).Case("nor does an erased one").When(lose).ThenNothing()
}

func TestVerifyEmail(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, user.Kind, registered)
	require.False(t, given.State().Proven)
	given.Case("the address is theirs").When(user.VerifyEmail{EmailKey: "k1"}).Then(user.EmailVerified{EmailKey: "k1"})
	given.Case("a token for another address verifies nothing").When(user.VerifyEmail{EmailKey: "k2"}).ThenNothing()
	given.And(user.EmailVerified{EmailKey: "k2"}).Case("whatever the order of events").
		When(user.VerifyEmail{EmailKey: "k1"}).Then(user.EmailVerified{EmailKey: "k1"})

	verified := given.And(user.EmailVerified{EmailKey: "k1"})
	require.True(t, verified.State().Verified)
	verified.Case("once").When(user.VerifyEmail{EmailKey: "k1"}).ThenNothing()
	moved := verified.And(user.EmailChanged{Email: hers("rao@example.org"), EmailKey: "k2", EmailBefore: "k1"})
	require.False(t, moved.State().Verified)
	require.True(t, moved.State().Proven, "the former one was verified")
	moved.Case("the former one is not current").When(user.VerifyEmail{EmailKey: "k1"}).ThenNothing()
	moved.Case("the new one is current").When(user.VerifyEmail{EmailKey: "k2"}).Then(user.EmailVerified{EmailKey: "k2"})
}

func TestChangeProfile(t *testing.T) {
	t.Parallel()
	type change = user.ChangeProfile
	given := eventtest.Given(t, user.Kind, registered)
	given.Case("nothing").When(change{}).ThenNothing()
	given.Case("a name").When(change{FirstName: new(hers("Usha"))}).Then(user.ProfileChanged{FirstName: hers("Usha")})
	given.Case("all").When(change{FirstName: new(hers("Usha")), LastName: new(hers("Rai")), Phone: new(hers("+919812345678"))}).
		Then(user.ProfileChanged{FirstName: hers("Usha"), LastName: hers("Rai"), Phone: hers("+919812345678")})
	given.Case("there is no number to remove").When(change{Phone: &event.Personal{}}).ThenNothing()
	given.Case("no number, and a name").When(change{LastName: new(hers("Rai")), Phone: &event.Personal{}}).
		Then(user.ProfileChanged{LastName: hers("Rai"), NoPhone: true})

	reached := given.And(user.ProfileChanged{Phone: hers("+919812345678")})
	reached.Case("a number is taken away").When(change{Phone: &event.Personal{}}).Then(user.ProfileChanged{NoPhone: true})
	require.True(t, reached.And(user.ProfileChanged{NoPhone: true}).State().Phone.IsZero())
	require.False(t, reached.And(user.ProfileChanged{FirstName: hers("Usha")}).State().Phone.IsZero(), "an absent field is unchanged")
	require.Equal(t, reached.State().LastName, reached.And(user.ProfileChanged{FirstName: hers("Usha")}).State().LastName)
}

func TestChangeEmail(t *testing.T) {
	t.Parallel()
	change := user.ChangeEmail{Email: hers("rao@example.org"), EmailKey: "k2"}
	changed := user.EmailChanged{Email: change.Email, EmailKey: "k2", Before: registered.Email, EmailBefore: "k1"}
	given := eventtest.Given(t, user.Kind, registered)
	given.Case("the event has the recipient of the notice").When(change).Then(changed)
	given.Case("the same").When(user.ChangeEmail{Email: registered.Email, EmailKey: "k1"}).ThenNothing()
	given.And(changed).Case("once").When(change).ThenNothing()
}

func TestEdit(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, user.Kind, registered)
	address := user.ChangeEmail{Email: hers("rao@example.org"), EmailKey: "k2"}
	name := user.ChangeProfile{FirstName: new(hers("Usha"))}
	moved := user.EmailChanged{Email: address.Email, EmailKey: "k2", Before: registered.Email, EmailBefore: "k1"}
	given.Case("nothing").When(user.Edit{}).ThenNothing()
	given.Case("a name").When(user.Edit{Profile: name}).Then(user.ProfileChanged{FirstName: hers("Usha")})
	given.Case("both at once").When(user.Edit{Profile: name, Email: &address}).Then(moved, user.ProfileChanged{FirstName: hers("Usha")})
	eventtest.Given(t, user.Kind).Case("of nobody").When(user.Edit{}).ThenFails(user.ErrNotFound)
}

func TestRestoreEmail(t *testing.T) {
	t.Parallel()
	changed := func(from, to string) user.EmailChanged {
		return user.EmailChanged{Email: hers(to), EmailKey: to, Before: hers(from), EmailBefore: from}
	}
	restore := user.RestoreEmail{Change: 0, Email: registered.Email, EmailKey: "k1"}
	restored := user.EmailRestored{Change: 0, Email: registered.Email, EmailKey: "k1"}
	gone := user.PasswordChanged{Removed: true}
	given := eventtest.Given(t, user.Kind, registered)
	given.Case("nothing changed").When(restore).ThenFails(user.ErrUndone)
	given.And(changed("k1", "k2")).Case("an address that was never theirs is not theirs again").When(restore).ThenFails(user.ErrUndone)

	verified := given.And(user.EmailVerified{EmailKey: "k1"}, user.IdentityLinked{IdentityKey: "i1"})
	moved := verified.And(changed("k1", "k2"))
	moved.Case("the address, and no password").When(restore).Then(restored, gone)
	moved.Case("not another address").When(user.RestoreEmail{Email: hers("k3"), EmailKey: "k3"}).ThenFails(user.ErrUndone)
	moved.And(user.EmailClaimLost{EmailKey: "k2"}).Case("the address after it may be gone").When(restore).Then(restored, gone)
	moved.And(user.DeletionRequested{DeleteAfter: due},
		user.ErasureBegun{}).Case("an erased user stays erased").When(restore).ThenFails(user.ErrNotFound)

	// The attacker went on: linked an identity, and changed the address again.
	on := moved.And(user.EmailVerified{EmailKey: "k2"}, user.IdentityLinked{IdentityKey: "i2"}, changed("k2", "k3"))
	on.Case("whatever the number of later changes").When(restore).Then(restored, gone)
	back := on.And(restored, gone)
	require.Equal(t, []string{"i1"}, back.State().Identities)
	require.True(t, back.State().Verified)
	require.Equal(t, "k1", back.State().EmailKey)
	back.Case("once").When(restore).ThenFails(user.ErrUndone)
	back.Case("later changes are undone too").When(user.RestoreEmail{Change: 1, Email: hers("k2"),
		EmailKey: "k2"}).ThenFails(user.ErrUndone)

	first := on.And(user.EmailRestored{Change: 1, Email: hers("k2"), EmailKey: "k2"})
	require.Equal(t, []string{"i1", "i2"}, first.State().Identities)
	first.Case("earlier ones are not").When(restore).Then(restored, gone)

	again := back.And(changed("k1", "k4"))
	again.Case("another change's number is refused").When(restore).ThenFails(user.ErrUndone)
	again.Case("each change has its own number").When(user.RestoreEmail{Change: 2, Email: registered.Email, EmailKey: "k1"}).
		Then(user.EmailRestored{Change: 2, Email: registered.Email, EmailKey: "k1"}, gone)

	eventtest.Given(t, user.Kind, user.Registered{Provider: user.ByProvider, Workspace: home, EmailKey: "k1", Verified: true},
		changed("k1", "k2")).
		Case("an account of a provider has no password").When(restore).Then(restored)
}

func TestAnAddressIsLostForWhoRegainsItUnlessItIsVerified(t *testing.T) {
	t.Parallel()
	regained := user.LoseEmailClaim{EmailKey: "k1", Lapsed: true, Regained: true}
	given := eventtest.Given(t, user.Kind, registered)
	given.Case("other users only proved it").When(user.LoseEmailClaim{EmailKey: "k1", Lapsed: true}).ThenFails(claim.ErrTaken)
	given.Case("a former owner has it back").When(regained).Then(user.EmailClaimLost{EmailKey: "k1"})
	given.And(user.EmailVerified{EmailKey: "k1"}).Case("another user has it now").When(regained).ThenFails(claim.ErrTaken)
}

func TestPasswordsPicturesAndIdentities(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, user.Kind, registered)
	given.Case("the event has no password").When(user.ChangePassword{}).Then(user.PasswordChanged{})
	given.Case("a reset one").When(user.ChangePassword{Forgotten: true}).Then(user.PasswordChanged{Forgotten: true})
	providers := eventtest.Given(t, user.Kind, user.Registered{Provider: user.ByProvider, Workspace: home, EmailKey: "k1", Verified: true})
	require.True(t, providers.State().Proven)
	providers.Case("an account of a provider has none").When(user.ChangePassword{Forgotten: true}).ThenFails(user.ErrNoPassword)
	providers.Case("and cannot get one").When(user.ChangePassword{Removed: true}).Then(user.PasswordChanged{Removed: true})

	given.Case("a picture").When(user.ChangePicture{Key: "p1"}).Then(user.PictureChanged{Key: "p1"})
	given.Case("there is no picture to remove").When(user.ChangePicture{}).ThenNothing()
	pictured := given.And(user.PictureChanged{Key: "p1"})
	pictured.Case("the same picture").When(user.ChangePicture{Key: "p1"}).ThenNothing()
	pictured.Case("a picture is removed").When(user.ChangePicture{}).Then(user.PictureChanged{})

	given.Case("an identity").When(user.LinkIdentity{IdentityKey: "i1"}).Then(user.IdentityLinked{IdentityKey: "i1"})
	linked := given.And(user.IdentityLinked{IdentityKey: "i1"})
	linked.Case("once").When(user.LinkIdentity{IdentityKey: "i1"}).ThenNothing()
	linked.Case("and another").When(user.LinkIdentity{IdentityKey: "i2"}).Then(user.IdentityLinked{IdentityKey: "i2"})
	require.Equal(t, []string{"i1", "i2"}, linked.And(user.IdentityLinked{IdentityKey: "i2"}).State().Identities)

	given.Case("an operator").When(user.Grant{Operator: true}).Then(user.Granted{Operator: true})
	given.Case("none as before").When(user.Grant{}).ThenNothing()
	given.And(user.Granted{Operator: true}).Case("no longer an operator").When(user.Grant{}).Then(user.Granted{})
}

func TestDeletion(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, user.Kind, registered)
	given.Case("the time is in UTC").When(user.RequestDeletion{DeleteAfter: due.In(time.FixedZone("IST", 19800))}).
		Then(user.DeletionRequested{DeleteAfter: due})
	given.Case("nothing to cancel").When(user.CancelDeletion{}).ThenNothing()
	given.Case("an erasure needs a request").When(user.BeginErasure{Now: due}).ThenNothing()
	given.Case("and a beginning").When(user.Erase{}).ThenNothing()

	asked := given.And(user.DeletionRequested{DeleteAfter: due})
	require.True(t, asked.State().Active())
	asked.Case("the first request counts").When(user.RequestDeletion{DeleteAfter: due.AddDate(0, 0, 1)}).ThenNothing()
	asked.Case("they stay").When(user.CancelDeletion{}).Then(user.DeletionCancelled{})
	asked.Case("not before the due time").When(user.BeginErasure{Now: due.Add(-time.Nanosecond)}).ThenNothing()
	asked.Case("when it is time").When(user.BeginErasure{Now: due}).Then(user.ErasureBegun{})
	asked.Case("it does not end before it begins").When(user.Erase{}).ThenNothing()
	kept := asked.And(user.DeletionCancelled{})
	kept.Case("a cancelled deletion does not erase").When(user.BeginErasure{Now: due}).ThenNothing()
	kept.Case("they may ask again").When(user.RequestDeletion{DeleteAfter: due}).Then(user.DeletionRequested{DeleteAfter: due})

	ending := asked.And(user.ErasureBegun{})
	ending.Case("it begins once").When(user.BeginErasure{Now: due}).ThenNothing()
	ending.Case("it ends").When(user.Erase{}).Then(user.Erased{})
	erased := ending.And(user.Erased{})
	erased.Case("once").When(user.Erase{}).ThenNothing()
	erased.Case("and does not begin again").When(user.BeginErasure{Now: due}).ThenNothing()
	require.Equal(t, user.State{Registered: true, Erased: true, Provider: user.ByEmail, Workspace: home}, erased.State())
}

// A missing, erased or ending user can do nothing.
func TestOnlyUsersDoSomething(t *testing.T) {
	t.Parallel()
	for who, history := range map[string]*eventtest.History[user.State]{
		"nobody":           eventtest.Given(t, user.Kind),
		"one being erased": eventtest.Given(t, user.Kind, registered, user.DeletionRequested{DeleteAfter: due}, user.ErasureBegun{}),
		"one who was erased": eventtest.Given(t, user.Kind, registered, user.DeletionRequested{DeleteAfter: due}, user.ErasureBegun{},
			user.Erased{}),
		"one of an older program": eventtest.Given(t, user.Kind, registered, user.DeletionRequested{DeleteAfter: due}, user.Erased{}),
	} {
		require.False(t, history.State().Active())
		for what, cmd := range map[string]event.Command[user.State]{
			"verify": user.VerifyEmail{EmailKey: "k1"}, "profile": user.ChangeProfile{FirstName: new(hers("U"))},
			"email": user.ChangeEmail{EmailKey: "k2"}, "password": user.ChangePassword{}, "no password": user.ChangePassword{Removed: true},
			"picture": user.ChangePicture{Key: "p"}, "link": user.LinkIdentity{IdentityKey: "i"}, "grant": user.Grant{Operator: true},
			"delete": user.RequestDeletion{DeleteAfter: due}, "keep": user.CancelDeletion{},
		} {
			history.Case(who + ": " + what).When(cmd).ThenFails(user.ErrNotFound)
		}
	}
	nobody := eventtest.Given(t, user.Kind)
	nobody.Case("a missing user cannot be erased").When(user.BeginErasure{Now: due}).ThenFails(user.ErrNotFound)
	nobody.Case("nor is erased").When(user.Erase{}).ThenFails(user.ErrNotFound)
}
