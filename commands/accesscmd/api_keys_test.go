package accesscmd_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/accesscmd"
	"bahi/domain/access/apikey"
	"bahi/domain/access/user"
	"bahi/domain/access/workspace"
	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/fault"
)

var (
	home     = uuid.MustParse("11111111-1111-4111-8111-111111111111")
	operator = actor.Actor{Type: "system", ID: "shell", Workspace: home, Permissions: actor.Permissions{Operator: true}}
	reader   = actor.Permissions{Ledger: actor.Read}
)

// rings returns a fixture's key rings.
func rings(t *testing.T, count int) (tn *fixture, all []*accesscmd.KeyRing) {
	t.Helper()
	tn = newFixture(t, count).follow()
	for _, n := range tn.nodes {
		all = append(all, &accesscmd.KeyRing{Commands: n.Commands, Admin: "root", Home: home, Now: tn.Now})
	}
	return tn, all
}

func create(tn *fixture, workspace uuid.UUID, expires *time.Time) apikey.Create {
	return apikey.Create{Workspace: workspace, Name: "till", Permissions: reader, ExpiresAt: expires, Now: tn.Now()}
}

// deploys creates a key of the deployment, and returns its id too.
func deploys(t *testing.T, tn *fixture, ring *accesscmd.KeyRing, expires *time.Time) (key, id string) {
	t.Helper()
	key, out, err := accesscmd.CreateAPIKey(t.Context(), ring.Commands, commands.Request{Actor: operator, Workspace: home},
		create(tn, home, expires))
	require.NoError(t, err)
	return key, out.ID
}

// forged writes a key of a maker to the log without the checks of a creation.
func forged(t *testing.T, tn *fixture, ring *accesscmd.KeyRing, maker actor.Actor) string {
	t.Helper()
	hash, id, c := sha256.Sum256([]byte("s")), uuid.New(), create(tn, home, nil)
	c.By, c.SecretHash = maker, hash[:]
	does(t, ring, apikey.Kind, id, home, c)
	return accesscmd.KeyPrefix + hex.EncodeToString(id[:]) + "_" + base64.RawURLEncoding.EncodeToString([]byte("s"))
}

func TestMalformedKeysOpenNothing(t *testing.T) {
	t.Parallel()
	tn, all := rings(t, 1)
	ring := all[0]
	key, made := deploys(t, tn, ring, nil)
	id, secret, ok := strings.Cut(strings.TrimPrefix(key, accesscmd.KeyPrefix), "_")
	require.True(t, ok)
	other := uuid.New()
	for _, wrong := range []string{
		"", "_", "bahi_", "bahi__", "rot", "root ", id, secret,
		accesscmd.KeyPrefix + id, accesscmd.KeyPrefix + id + "_", accesscmd.KeyPrefix + id + "_" + secret[1:],
		accesscmd.KeyPrefix + id + "_" + strings.ToUpper(secret), accesscmd.KeyPrefix + id + "_!" + secret,
		accesscmd.KeyPrefix + id[2:] + "_" + secret, accesscmd.KeyPrefix + "zz" + id[2:] + "_" + secret,
		accesscmd.KeyPrefix + hex.EncodeToString(other[:]) + "_" + secret, accesscmd.KeyPrefix + made + "_" + secret,
		key + key, strings.Repeat("a", 1<<16), "bahi_\x00_\x00",
	} {
		_, err := ring.Authenticate(t.Context(), wrong)
		require.ErrorIs(t, err, accesscmd.ErrUnknownKey, wrong)
	}
	ring.Admin = ""
	_, err := ring.Authenticate(t.Context(), "")
	require.ErrorIs(t, err, accesscmd.ErrUnknownKey, "an unset operator's key is not an empty key")
}

// does runs commands on an aggregate, in a workspace.
func does[S any](t *testing.T, ring *accesscmd.KeyRing, kind *event.Kind[S], id, in uuid.UUID, all ...event.Command[S]) {
	t.Helper()
	req := commands.Request{Actor: operator, Workspace: in}
	for _, c := range all {
		_, err := commands.Handle(t.Context(), ring.Commands, req, kind, id.String(), c)
		require.NoError(t, err)
	}
}

// joins adds a user to a workspace.
func joins(t *testing.T, ring *accesscmd.KeyRing, in, id uuid.UUID, p actor.Permissions) {
	t.Helper()
	invitation, now := uuid.New(), ring.Now()
	does(t, ring, workspace.Kind, in, in,
		workspace.Invite{By: operator, Invitation: invitation, Permissions: p, Now: now, ExpiresAt: now.Add(time.Hour)},
		workspace.Join{Invitation: invitation, Inviter: operator, User: id, Now: now})
}

// by creates a key in a workspace as an actor, with these permissions.
func by(t *testing.T, tn *fixture, ring *accesscmd.KeyRing, who actor.Actor, in uuid.UUID, p actor.Permissions) string {
	t.Helper()
	who.Permissions = p
	c := create(tn, in, nil)
	c.Permissions = p
	key, _, err := accesscmd.CreateAPIKey(t.Context(), ring.Commands, commands.Request{Actor: who, Workspace: in}, c)
	require.NoError(t, err)
	return key
}

// opens checks which permissions a node returns for the key; the zero Permissions: none.
func opens(t *testing.T, tn *fixture, ring *accesscmd.KeyRing, key string, wanted actor.Permissions) {
	t.Helper()
	tn.hear()
	who, err := ring.Authenticate(t.Context(), key)
	if (wanted == actor.Permissions{}) {
		require.ErrorIs(t, err, accesscmd.ErrUnknownKey)
		return
	}
	require.NoError(t, err)
	require.Equal(t, wanted, who.Permissions)
}

func TestAKeyAllowsNoMoreThanItsMakerMay(t *testing.T) {
	t.Parallel()
	tn, all := rings(t, 2)
	ring, other := all[0], all[1]
	asha, ravi := tn.nodes[0].settle(t, "asha@example.org"), tn.nodes[0].settle(t, "ravi@example.org")
	workspaceID := tn.nodes[0].state(t, asha).Workspace
	joins(t, ring, workspaceID, ravi, workspace.Owner)
	bearer := func(id uuid.UUID) actor.Actor { return actor.Actor{Type: "user", ID: id.String()} }
	has := actor.Permissions{Ledger: actor.Write, Marketplace: actor.Write}
	key, asOwner := by(t, tn, ring, bearer(ravi), workspaceID, has), by(t, tn, ring, bearer(asha), workspaceID, has)
	who, err := other.Authenticate(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, has, who.Permissions)
	require.Equal(t, workspaceID, who.Workspace)
	ofKey := by(t, tn, ring, who, workspaceID, actor.Permissions{Ledger: actor.Write}) // created by the key
	given := by(t, tn, ring, operator, workspaceID, has)                               // created by the deployment

	does(t, ring, workspace.Kind, workspaceID, workspaceID, workspace.Change{
		By: operator, User: ravi, To: actor.Permissions{Ledger: actor.Read, Messaging: actor.None, Marketplace: actor.None, Audit: actor.Read},
	})
	opens(t, tn, other, key, actor.Permissions{Ledger: actor.Read})
	opens(t, tn, other, ofKey, actor.Permissions{Ledger: actor.Read})
	does(t, ring, workspace.Kind, workspaceID, workspaceID, workspace.Remove{By: operator, User: ravi})
	opens(t, tn, other, key, actor.Permissions{})
	opens(t, tn, other, ofKey, actor.Permissions{})
	joins(t, ring, workspaceID, ravi, workspace.Owner)
	opens(t, tn, other, key, has)
	opens(t, tn, other, asOwner, has)

	// Without members, only an operator reaches the books.
	master := by(t, tn, ring, operator, workspaceID, actor.Permissions{Operator: true})
	opens(t, tn, other, given, has)
	for _, id := range []uuid.UUID{asha, ravi} {
		does(t, ring, workspace.Kind, workspaceID, workspaceID, workspace.Remove{User: id, Erased: true})
	}
	for _, k := range []string{key, ofKey, asOwner, given} {
		opens(t, tn, other, k, actor.Permissions{})
	}
	opens(t, tn, other, master, actor.Permissions{Operator: true})
}

// makes creates a key with another key, and returns its id too.
func makes(t *testing.T, tn *fixture, ring *accesscmd.KeyRing, key string) (made, id string) {
	t.Helper()
	tn.hear()
	who, err := ring.Authenticate(t.Context(), key)
	require.NoError(t, err)
	req := commands.Request{Actor: who, Workspace: who.Workspace}
	c := create(tn, who.Workspace, nil)
	c.Permissions = who.Permissions
	made, out, err := accesscmd.CreateAPIKey(t.Context(), ring.Commands, req, c)
	require.NoError(t, err)
	return made, out.ID
}

func TestMadeKeysEndWithTheirMaker(t *testing.T) {
	t.Parallel()
	tn, all := rings(t, 2)
	ring, other := all[0], all[1]
	asha := tn.nodes[0].settle(t, "asha@example.org")
	workspaceID := tn.nodes[0].state(t, asha).Workspace
	for who, of := range map[string]actor.Actor{"a user's": {Type: "user", ID: asha.String()}, "the deployment's": operator} {
		t.Run(who, func(t *testing.T) {
			has := actor.Permissions{Ledger: actor.Write, Marketplace: actor.Write}
			first := by(t, tn, ring, of, workspaceID, has)
			bearer, err := ring.Authenticate(t.Context(), first)
			require.NoError(t, err)
			second, id := makes(t, tn, ring, first)
			third, _ := makes(t, tn, other, second)
			beside, _ := makes(t, tn, ring, first)
			opens(t, tn, other, third, has)
			does(t, ring, apikey.Kind, uuid.MustParse(id), workspaceID, apikey.Revoke{})
			for _, k := range []string{second, third} {
				opens(t, tn, ring, k, actor.Permissions{})
				opens(t, tn, other, k, actor.Permissions{})
			}
			opens(t, tn, other, first, has)
			opens(t, tn, other, beside, has)

			// A request authenticated before the revocation fails after it.
			does(t, ring, apikey.Kind, uuid.MustParse(bearer.ID), workspaceID, apikey.Revoke{})
			late := by(t, tn, other, bearer, workspaceID, has)
			for _, k := range []string{first, beside, late} {
				opens(t, tn, other, k, actor.Permissions{})
			}
		})
	}
}

func TestMadeKeyDoesNotOutlastItsMaker(t *testing.T) {
	t.Parallel()
	tn, all := rings(t, 1)
	ring, expires := all[0], tn.Now().Add(time.Hour)
	first, maker := deploys(t, tn, ring, &expires)
	second, _ := makes(t, tn, ring, first)
	third, id := makes(t, tn, ring, second)
	l, err := commands.Load(t.Context(), ring.Commands.Fresh(), apikey.Kind, id)
	require.NoError(t, err)
	require.Equal(t, expires, *l.State.ExpiresAt)
	// This holds even if an older log gives the key a later expiry.
	old := forged(t, tn, ring, actor.Actor{Type: "api_key", ID: maker, Permissions: reader})
	tn.Pass(time.Hour - time.Nanosecond)
	for _, key := range []string{first, third, old} {
		opens(t, tn, ring, key, reader)
	}
	tn.Pass(time.Nanosecond)
	for _, key := range []string{first, third, old} {
		_, err := ring.Authenticate(t.Context(), key)
		require.ErrorIs(t, err, accesscmd.ErrUnknownKey)
	}
}

func TestChainOfKeysIsBounded(t *testing.T) {
	t.Parallel()
	tn, all := rings(t, 1)
	key, _ := deploys(t, tn, all[0], nil)
	for range apikey.MaxMakers {
		key, _ = makes(t, tn, all[0], key)
	}
	last, err := all[0].Authenticate(t.Context(), key)
	require.NoError(t, err)
	req := commands.Request{Actor: last, Workspace: home}
	_, _, err = accesscmd.CreateAPIKey(t.Context(), all[0].Commands, req, create(tn, home, nil))
	require.Equal(t, fault.New(fault.Conflict, "Too many keys, each created with the previous one"), err)
	_, err = all[0].Authenticate(t.Context(), forged(t, tn, all[0], last))
	require.ErrorIs(t, err, accesscmd.ErrUnknownKey, "a key that entered the log in another way opens nothing")
}

func TestOperatorsKeyEndsWithTheOperatorsRights(t *testing.T) {
	t.Parallel()
	tn, all := rings(t, 2)
	ring, other := all[0], all[1]
	asha, ravi := tn.nodes[0].settle(t, "asha@example.org"), tn.nodes[0].settle(t, "ravi@example.org")
	workspaceID, abroad := tn.nodes[0].state(t, asha).Workspace, tn.nodes[0].state(t, ravi).Workspace
	does(t, ring, user.Kind, asha, workspaceID, user.Grant{Operator: true})
	bearer := actor.Actor{Type: "user", ID: asha.String()}
	root := actor.Permissions{Operator: true}
	key, there := by(t, tn, ring, bearer, workspaceID, root), by(t, tn, ring, bearer, abroad, reader)
	opens(t, tn, other, key, root)
	opens(t, tn, other, there, reader)
	does(t, ring, user.Kind, asha, workspaceID, user.Grant{})
	opens(t, tn, other, key, workspace.Owner) // her permissions in her own workspace
	opens(t, tn, other, there, actor.Permissions{})
	now := tn.Now()
	does(t, ring, user.Kind, asha, workspaceID, user.RequestDeletion{DeleteAfter: now}, user.BeginErasure{Now: now})
	opens(t, tn, other, key, actor.Permissions{})
}

// Of several responses to one request, one shows a key, and that key is valid.
func TestKeyIsShownOnceAndOpens(t *testing.T) {
	t.Parallel()
	tn, all := rings(t, 3)
	for _, idempotency := range []string{"a", "b", "c", "d", "e"} {
		req := commands.Request{Actor: operator, Workspace: home, Operation: "create-api-key", Key: idempotency}
		var keys, ids [3]string
		var done sync.WaitGroup
		for i, ring := range all {
			done.Go(func() {
				key, out, err := accesscmd.CreateAPIKey(t.Context(), ring.Commands, req, create(tn, home, nil))
				if err != nil {
					t.Error(err)
				}
				keys[i], ids[i] = key, out.ID
			})
		}
		done.Wait()
		require.Equal(t, []string{ids[0], ids[0]}, ids[1:])
		shown := strings.Join(keys[:], "")
		who, err := all[0].Authenticate(t.Context(), shown)
		require.NoError(t, err, "two keys together open nothing")
		require.Equal(t, actor.Actor{Type: "api_key", ID: ids[0], Workspace: home, Permissions: reader}, who)
	}
	dry := commands.Request{Actor: operator, Workspace: home, DryRun: true}
	key, _, err := accesscmd.CreateAPIKey(t.Context(), all[0].Commands, dry, create(tn, home, nil))
	require.NoError(t, err)
	require.Empty(t, key, "an invalid key is not shown")
}
