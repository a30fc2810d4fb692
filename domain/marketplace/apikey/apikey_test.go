package apikey_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/actor"
	"bahi/domain/event/eventtest"
	"bahi/domain/marketplace/apikey"
)

func TestAKeyTellsWhoMadeIt(t *testing.T) {
	t.Parallel()
	home, asha := uuid.New(), uuid.New()
	by := actor.Actor{Type: "user", ID: asha.String(), Permissions: actor.Permissions{Ledger: actor.Write}}
	create := apikey.Create{By: by, User: asha, Workspace: home, SecretHash: []byte("hash"), Name: " till ", Permissions: actor.Permissions{Ledger: actor.Read}}
	created := apikey.Created{
		By: "user:" + asha.String(), User: asha, Name: "till", Workspace: home, SecretHash: []byte("hash"), Permissions: actor.Permissions{Ledger: actor.Read},
	}
	none := eventtest.Given(t, apikey.Kind)
	none.Case("who made it").When(create).Then(created)
	require.Equal(t, asha, none.And(created).State().User)
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
