package apikey_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/access/apikey"
	"bahi/domain/actor"
	"bahi/domain/fault"
	"bahi/internal/test/eventtest"
)

func TestAKeyTellsWhoMadeIt(t *testing.T) {
	t.Parallel()
	home, asha := uuid.New(), uuid.New()
	by := actor.Actor{Type: "user", ID: asha.String(), Permissions: actor.Permissions{Ledger: actor.Write}}
	create := apikey.Create{By: by, User: asha, Workspace: home, SecretHash: []byte("hash"), Name: " till ",
		Permissions: actor.Permissions{Ledger: actor.Read}}
	created := apikey.Created{
		By: "user:" + asha.String(), User: asha, Name: "till", Workspace: home, SecretHash: []byte("hash"),
		Permissions: actor.Permissions{Ledger: actor.Read},
	}
	none := eventtest.Given(t, apikey.Kind)
	none.Case("its creator").When(create).Then(created)
	more := create
	more.Permissions.Operator = true
	none.Case("no more than its creator has").When(more).
		ThenFails(fault.New(fault.Forbidden, "A key cannot have more permissions than its creator"))
	none.And(created).Case("it is revoked").When(apikey.Revoke{}).Then(apikey.Revoked{})
	none.And(created, apikey.Revoked{}).Case("once").When(apikey.Revoke{}).ThenFails(apikey.ErrNotFound)
	require.Equal(t, asha, none.And(created).State().User)
	require.Equal(t, uuid.Nil, none.And(created).State().ParentKey)
	for by, maker := range map[string]uuid.UUID{
		"api_key:" + home.String(): home, "api_key:admin": uuid.Nil, "api_key:": uuid.Nil, home.String(): uuid.Nil, "system:shell": uuid.Nil,
	} {
		require.Equal(t, maker, none.And(apikey.Created{By: by, SecretHash: []byte("hash")}).State().ParentKey, by)
	}
}

func TestAKeysNameIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, apikey.Kind)
	for name, message := range map[string]string{
		" ": "1 to 100 characters", "till\a": "control characters are not allowed", "till\u202e1": "control characters are not allowed",
		"\u2067till": "control characters are not allowed", "\ufeff": "control characters are not allowed",
		"\u200c": "must have a visible character",
	} {
		none.Case(message).When(apikey.Create{Name: name, Permissions: actor.Permissions{Ledger: actor.Read}}).
			ThenFails(fault.Fields(fault.Field{Field: "name", Message: message}))
	}
}

func TestAKeyDoesNotOutlastTheOneThatMakesIt(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 4, 1, 9, 0, 0, 0, time.UTC)
	ends, before, after := now.Add(2*time.Hour), now.Add(time.Hour), now.Add(3*time.Hour)
	by := actor.Actor{Type: "api_key", ID: uuid.NewString(), Permissions: actor.Permissions{Ledger: actor.Write}}
	made := func(own, of *time.Time) apikey.Create {
		return apikey.Create{By: by, Name: "till", Now: now, SecretHash: []byte("hash"), Permissions: by.Permissions, ExpiresAt: own,
			Ends: of, Makers: 1}
	}
	until := func(at *time.Time) apikey.Created {
		return apikey.Created{By: by.String(), Name: "till", SecretHash: []byte("hash"), Permissions: by.Permissions, ExpiresAt: at}
	}
	none := eventtest.Given(t, apikey.Kind)
	none.Case("it expires with it").When(made(nil, &ends)).Then(until(&ends))
	none.Case("or before").When(made(&before, &ends)).Then(until(&before))
	none.Case("or at the same time").When(made(&ends, &ends)).Then(until(&ends))
	none.Case("not after it").When(made(&after, &ends)).
		ThenFails(fault.Fields(fault.Field{Field: "expires_at", Message: "must not be after the expiry of the creating key"}))
	wrong := made(new(now), &ends)
	wrong.Name, wrong.Permissions = " ", actor.Permissions{}
	none.Case("all faults are listed").When(wrong).ThenFails(fault.Fields(fault.Field{Field: "name", Message: "1 to 100 characters"},
		fault.Field{Field: "permissions", Message: "at least one is needed"}, fault.Field{Field: "expires_at", Message: "must be in the future"}))
	none.Case("one without expiry creates such").When(made(nil, nil)).Then(until(nil))
	none.Case("or another").When(made(&after, nil)).Then(until(&after))
	most := made(nil, nil)
	most.Makers = apikey.MaxMakers
	none.Case("a long line").When(most).Then(until(nil))
	most.Makers++
	none.Case("the chain is limited").When(most).ThenFails(fault.New(fault.Conflict, "Too many keys, each created with the previous one"))
}

func TestAKeyAllowsWhatItHasAndItsMakerHas(t *testing.T) {
	t.Parallel()
	levels := rapid.SampledFrom([]actor.Level{"", actor.None, actor.Read, actor.Write})
	permissions := rapid.Custom(func(t *rapid.T) actor.Permissions {
		return actor.Permissions{
			Ledger: levels.Draw(t, "ledger"), Messaging: levels.Draw(t, "messaging"), Marketplace: levels.Draw(t, "marketplace"),
			Audit: levels.Draw(t, "audit"), Operator: rapid.Bool().Draw(t, "operator"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		has, limit := permissions.Draw(t, "has"), permissions.Draw(t, "limit")
		allows := apikey.State{Permissions: has}.Within(limit)
		require.True(t, allows.Within(has))
		require.True(t, allows.Within(limit))
		require.Equal(t, has.Operator && limit.Operator, allows.Operator)
		for _, area := range []actor.Area{actor.Ledger, actor.Messaging, actor.Marketplace, actor.Audit} {
			for _, level := range []actor.Level{actor.Read, actor.Write} {
				require.Equal(t, has.Level(area).Allows(level) && limit.Level(area).Allows(level), allows.Level(area).Allows(level))
			}
		}
	})
}
