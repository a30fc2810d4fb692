package accesscmd_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/accesscmd"
	"bahi/domain/access/apikey"
	"bahi/domain/access/user"
	"bahi/domain/access/workspace"
	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/eventstore"
	"bahi/eventstore/postgres"
	"bahi/eventstore/vault"
	"bahi/internal/test/pgtest"
	"bahi/migrations"
)

var (
	home     = uuid.MustParse("11111111-1111-4111-8111-111111111111")
	operator = actor.Actor{Type: "system", ID: "shell", Workspace: home, Permissions: actor.Permissions{Operator: true}}
	reader   = actor.Permissions{Ledger: actor.Read}
)

// nodes starts processes on one database.
func nodes(t *testing.T, count int) []*accesscmd.KeyRing {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), pgtest.Template(t, "migrated", migrations.Up))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	log := slog.New(slog.DiscardHandler)
	v, err := vault.Open(t.Context(), pool, make([]byte, 32), log)
	require.NoError(t, err)
	all := make([]*accesscmd.KeyRing, count)
	for i := range all {
		store, err := postgres.Open(t.Context(), pool, log)
		require.NoError(t, err)
		t.Cleanup(store.Close)
		h := commands.New(store, v, time.Now)
		all[i] = &accesscmd.KeyRing{Commands: h, Admin: "root", Home: home, Now: time.Now}
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- h.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			require.NoError(t, <-stopped)
		})
	}
	return all
}

func as(t *testing.T, key string) commands.Request {
	t.Helper()
	return commands.Request{Actor: operator, Workspace: home, Operation: "create-api-key", Key: key}
}

func create(workspace uuid.UUID, expires *time.Time) apikey.Create {
	return apikey.Create{Workspace: workspace, Name: "till", Permissions: reader, ExpiresAt: expires, Now: time.Now()}
}

func TestKeyHasItsPermissionsOnEveryNode(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	key, out, err := accesscmd.CreateAPIKey(t.Context(), all[0].Commands, as(t, ""), create(home, nil))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(key, accesscmd.KeyPrefix))
	for _, ring := range all {
		by, err := ring.Authenticate(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, actor.Actor{Type: "api_key", ID: out.ID, Workspace: home, Permissions: reader}, by)
	}
}

func TestMalformedKeysOpenNothing(t *testing.T) {
	t.Parallel()
	ring := nodes(t, 1)[0]
	key, out, err := accesscmd.CreateAPIKey(t.Context(), ring.Commands, as(t, ""), create(home, nil))
	require.NoError(t, err)
	id, secret, ok := strings.Cut(strings.TrimPrefix(key, accesscmd.KeyPrefix), "_")
	require.True(t, ok)
	other := uuid.New()
	for _, wrong := range []string{
		"", "_", "bahi_", "bahi__", "rot", "root ", id, secret,
		accesscmd.KeyPrefix + id, accesscmd.KeyPrefix + id + "_", accesscmd.KeyPrefix + id + "_" + secret[1:],
		accesscmd.KeyPrefix + id + "_" + strings.ToUpper(secret), accesscmd.KeyPrefix + id + "_!" + secret,
		accesscmd.KeyPrefix + id[2:] + "_" + secret, accesscmd.KeyPrefix + "zz" + id[2:] + "_" + secret,
		accesscmd.KeyPrefix + hex.EncodeToString(other[:]) + "_" + secret, accesscmd.KeyPrefix + out.ID + "_" + secret,
		key + key, strings.Repeat("a", 1<<16), "bahi_\x00_\x00",
	} {
		_, err := ring.Authenticate(t.Context(), wrong)
		require.ErrorIs(t, err, accesscmd.ErrUnknownKey, wrong)
	}
	ring.Admin = ""
	_, err = ring.Authenticate(t.Context(), "")
	require.ErrorIs(t, err, accesscmd.ErrUnknownKey, "an unset operator's key is not an empty key")
}

func TestOperatorsKeyHasAllPermissions(t *testing.T) {
	t.Parallel()
	by, err := nodes(t, 1)[0].Authenticate(t.Context(), "root")
	require.NoError(t, err)
	require.Equal(t, actor.Actor{Type: "api_key", ID: "admin", Workspace: home, Permissions: actor.Permissions{Operator: true}}, by)
}

func TestARevokedKeyIsRefusedOnEveryNode(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	key, out, err := accesscmd.CreateAPIKey(t.Context(), all[0].Commands, as(t, ""), create(home, nil))
	require.NoError(t, err)
	for _, ring := range all {
		_, err := ring.Authenticate(t.Context(), key)
		require.NoError(t, err)
	}
	id := uuid.MustParse(out.ID)
	foreign := commands.Request{Workspace: uuid.New()}
	_, err = accesscmd.RevokeAPIKey(t.Context(), all[0].Commands, foreign, id)
	require.ErrorIs(t, err, apikey.ErrNotFound, "another workspace cannot revoke it")
	_, err = accesscmd.RevokeAPIKey(t.Context(), all[1].Commands, as(t, ""), id)
	require.NoError(t, err)
	for _, ring := range all {
		require.Eventually(t, func() bool {
			_, err := ring.Authenticate(t.Context(), key)
			return errors.Is(err, accesscmd.ErrUnknownKey)
		}, time.Minute, time.Millisecond)
	}
	_, err = accesscmd.RevokeAPIKey(t.Context(), all[0].Commands, as(t, ""), id)
	require.ErrorIs(t, err, apikey.ErrNotFound)
}

func TestAKeyEndsWithItsTime(t *testing.T) {
	t.Parallel()
	ring := nodes(t, 1)[0]
	expires := time.Now().Add(time.Hour)
	key, _, err := accesscmd.CreateAPIKey(t.Context(), ring.Commands, as(t, ""), create(home, &expires))
	require.NoError(t, err)
	ring.Now = func() time.Time { return expires.Add(-time.Nanosecond) }
	_, err = ring.Authenticate(t.Context(), key)
	require.NoError(t, err)
	ring.Now = func() time.Time { return expires }
	_, err = ring.Authenticate(t.Context(), key)
	require.ErrorIs(t, err, accesscmd.ErrUnknownKey)
}

// does handles commands on an aggregate, in a workspace.
func does[S any](t *testing.T, ring *accesscmd.KeyRing, kind *event.Kind[S], id, in uuid.UUID, all ...event.Command[S]) {
	t.Helper()
	req := commands.Request{Actor: operator, Workspace: in}
	for _, c := range all {
		_, err := commands.Handle(t.Context(), ring.Commands, req, kind, id.String(), c)
		require.NoError(t, err)
	}
}

// settler makes a user with a workspace of their own.
func settler(t *testing.T, ring *accesscmd.KeyRing) (id, workspaceID uuid.UUID) {
	t.Helper()
	id, workspaceID = uuid.New(), uuid.New()
	does(t, ring, workspace.Kind, workspaceID, workspaceID, workspace.Create{Owner: id})
	does(t, ring, user.Kind, id, workspaceID, user.Register{Provider: user.ByEmail, Workspace: workspaceID, Verified: true})
	return id, workspaceID
}

// joins adds a user to a workspace.
func joins(t *testing.T, ring *accesscmd.KeyRing, in, id uuid.UUID, p actor.Permissions) {
	t.Helper()
	invitation, now := uuid.New(), time.Now()
	does(t, ring, workspace.Kind, in, in,
		workspace.Invite{By: operator, Invitation: invitation, Permissions: p, Now: now, ExpiresAt: now.Add(time.Hour)},
		workspace.Join{Invitation: invitation, Inviter: operator, User: id, Now: now})
}

// by creates a key in a workspace as an actor, with these permissions.
func by(t *testing.T, ring *accesscmd.KeyRing, who actor.Actor, in uuid.UUID, p actor.Permissions) string {
	t.Helper()
	who.Permissions = p
	c := create(in, nil)
	c.Permissions = p
	key, _, err := accesscmd.CreateAPIKey(t.Context(), ring.Commands, commands.Request{Actor: who, Workspace: in}, c)
	require.NoError(t, err)
	return key
}

// opens waits until a node gives the key these permissions; the zero Permissions: none.
func opens(t *testing.T, ring *accesscmd.KeyRing, key string, wanted actor.Permissions) {
	t.Helper()
	require.Eventually(t, func() bool {
		who, err := ring.Authenticate(t.Context(), key)
		if errors.Is(err, accesscmd.ErrUnknownKey) {
			return wanted == actor.Permissions{}
		}
		return err == nil && who.Permissions == wanted
	}, time.Minute, time.Millisecond)
}

func TestAKeyAllowsNoMoreThanItsMakerMay(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	ring, other := all[0], all[1]
	asha, office := settler(t, ring)
	ravi, _ := settler(t, ring)
	joins(t, ring, office, ravi, workspace.Owner)
	bearer := func(id uuid.UUID) actor.Actor { return actor.Actor{Type: "user", ID: id.String()} }
	has := actor.Permissions{Ledger: actor.Write, Marketplace: actor.Write}
	key, asOwner := by(t, ring, bearer(ravi), office, has), by(t, ring, bearer(asha), office, has)
	who, err := other.Authenticate(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, has, who.Permissions)
	ofKey := by(t, ring, who, office, actor.Permissions{Ledger: actor.Write}) // created by the key
	given := by(t, ring, operator, office, has)                               // created by the deployment

	does(t, ring, workspace.Kind, office, office, workspace.Change{
		By: operator, User: ravi, To: actor.Permissions{Ledger: actor.Read, Messaging: actor.None, Marketplace: actor.None, Audit: actor.Read},
	})
	opens(t, other, key, actor.Permissions{Ledger: actor.Read})
	opens(t, other, ofKey, actor.Permissions{Ledger: actor.Read})
	does(t, ring, workspace.Kind, office, office, workspace.Remove{By: operator, User: ravi})
	opens(t, other, key, actor.Permissions{})
	opens(t, other, ofKey, actor.Permissions{})
	joins(t, ring, office, ravi, workspace.Owner)
	opens(t, other, key, has)
	opens(t, other, asOwner, has)

	// Without members, only an operator reaches the books.
	master := by(t, ring, operator, office, actor.Permissions{Operator: true})
	opens(t, other, given, has)
	for _, id := range []uuid.UUID{asha, ravi} {
		does(t, ring, workspace.Kind, office, office, workspace.Remove{User: id, Erased: true})
	}
	for _, k := range []string{key, ofKey, asOwner, given} {
		opens(t, other, k, actor.Permissions{})
	}
	opens(t, other, master, actor.Permissions{Operator: true})
}

// makes creates a key with another key, and returns its id too.
func makes(t *testing.T, ring *accesscmd.KeyRing, key string) (made, id string) {
	t.Helper()
	var who actor.Actor
	require.Eventually(t, func() (known bool) {
		var err error
		who, err = ring.Authenticate(t.Context(), key)
		return err == nil
	}, time.Minute, time.Millisecond)
	req := commands.Request{Actor: who, Workspace: who.Workspace}
	c := create(who.Workspace, nil)
	c.Permissions = who.Permissions
	made, out, err := accesscmd.CreateAPIKey(t.Context(), ring.Commands, req, c)
	require.NoError(t, err)
	return made, out.ID
}

func TestMadeKeysEndWithTheirMaker(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	ring, other := all[0], all[1]
	asha, office := settler(t, ring)
	for who, of := range map[string]actor.Actor{"a user's": {Type: "user", ID: asha.String()}, "the deployment's": operator} {
		t.Run(who, func(t *testing.T) {
			has := actor.Permissions{Ledger: actor.Write, Marketplace: actor.Write}
			first := by(t, ring, of, office, has)
			bearer, err := ring.Authenticate(t.Context(), first)
			require.NoError(t, err)
			second, id := makes(t, ring, first)
			third, _ := makes(t, other, second)
			beside, _ := makes(t, ring, first)
			opens(t, other, third, has)
			does(t, ring, apikey.Kind, uuid.MustParse(id), office, apikey.Revoke{})
			for _, k := range []string{second, third} {
				opens(t, ring, k, actor.Permissions{})
				opens(t, other, k, actor.Permissions{})
			}
			opens(t, other, first, has)
			opens(t, other, beside, has)

			// A request authenticated before the revocation fails after it.
			does(t, ring, apikey.Kind, uuid.MustParse(bearer.ID), office, apikey.Revoke{})
			late := by(t, other, bearer, office, has)
			for _, k := range []string{first, beside, late} {
				opens(t, other, k, actor.Permissions{})
			}
		})
	}
}

func TestMadeKeyDoesNotOutlastItsMaker(t *testing.T) {
	t.Parallel()
	ring := nodes(t, 1)[0]
	expires := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	first, _, err := accesscmd.CreateAPIKey(t.Context(), ring.Commands, as(t, ""), create(home, &expires))
	require.NoError(t, err)
	second, _ := makes(t, ring, first)
	third, id := makes(t, ring, second)
	l, err := commands.Load(t.Context(), ring.Commands.Fresh(), apikey.Kind, id)
	require.NoError(t, err)
	require.Equal(t, expires, *l.State.ExpiresAt)
	ring.Now = func() time.Time { return expires }
	opens(t, ring, third, actor.Permissions{})

	// This holds even if an older log gives the key a later expiry.
	ring.Now = time.Now
	maker, _, err := accesscmd.CreateAPIKey(t.Context(), ring.Commands, as(t, ""), create(home, &expires))
	require.NoError(t, err)
	who, err := ring.Authenticate(t.Context(), maker)
	require.NoError(t, err)
	secret, _ := makes(t, ring, maker)
	hash := sha256.Sum256([]byte("s"))
	c := create(home, nil)
	c.By, c.SecretHash = who, hash[:]
	old := uuid.New()
	does(t, ring, apikey.Kind, old, home, c)
	text := accesscmd.KeyPrefix + hex.EncodeToString(old[:]) + "_" + base64.RawURLEncoding.EncodeToString([]byte("s"))
	opens(t, ring, text, reader)
	opens(t, ring, secret, reader)
	ring.Now = func() time.Time { return expires }
	opens(t, ring, text, actor.Permissions{})
}

func TestChainOfKeysIsBounded(t *testing.T) {
	t.Parallel()
	ring := nodes(t, 1)[0]
	key, _, err := accesscmd.CreateAPIKey(t.Context(), ring.Commands, as(t, ""), create(home, nil))
	require.NoError(t, err)
	for range apikey.MaxMakers {
		key, _ = makes(t, ring, key)
	}
	last, err := ring.Authenticate(t.Context(), key)
	require.NoError(t, err)
	req := commands.Request{Actor: last, Workspace: home}
	_, _, err = accesscmd.CreateAPIKey(t.Context(), ring.Commands, req, create(home, nil))
	require.Equal(t, fault.New(fault.Conflict, "Too many keys, each created with the previous one"), err)

	// A key that entered the log in another way opens nothing.
	hash := sha256.Sum256([]byte("s"))
	c := create(home, nil)
	c.By, c.SecretHash = last, hash[:]
	id := uuid.New()
	does(t, ring, apikey.Kind, id, home, c)
	_, err = ring.Authenticate(t.Context(),
		accesscmd.KeyPrefix+hex.EncodeToString(id[:])+"_"+base64.RawURLEncoding.EncodeToString([]byte("s")))
	require.ErrorIs(t, err, accesscmd.ErrUnknownKey)
}

func TestOperatorsKeyEndsWithTheOperatorsRights(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	ring, other := all[0], all[1]
	asha, office := settler(t, ring)
	_, abroad := settler(t, ring)
	does(t, ring, user.Kind, asha, office, user.Grant{Operator: true})
	bearer := actor.Actor{Type: "user", ID: asha.String()}
	root := actor.Permissions{Operator: true}
	key, there := by(t, ring, bearer, office, root), by(t, ring, bearer, abroad, reader)
	opens(t, other, key, root)
	opens(t, other, there, reader)
	does(t, ring, user.Kind, asha, office, user.Grant{})
	opens(t, other, key, workspace.Owner) // her permissions in her own workspace
	opens(t, other, there, actor.Permissions{})
	now := time.Now()
	does(t, ring, user.Kind, asha, office, user.RequestDeletion{DeleteAfter: now}, user.BeginErasure{Now: now})
	opens(t, other, key, actor.Permissions{})
}

// Of several responses to one request, at most one shows a key, and that key is valid.
func TestKeyIsShownOnceAndOpens(t *testing.T) {
	t.Parallel()
	all := nodes(t, 3)
	for _, idempotency := range []string{"a", "b", "c", "d", "e"} {
		var (
			mu    sync.Mutex
			shown []string
			ids   = map[string]bool{}
			done  sync.WaitGroup
		)
		for _, ring := range all {
			done.Go(func() {
				key, out, err := accesscmd.CreateAPIKey(t.Context(), ring.Commands, as(t, idempotency), create(home, nil))
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				ids[out.ID] = true
				if key != "" {
					shown = append(shown, key)
				}
			})
		}
		done.Wait()
		require.Len(t, ids, 1)
		require.Len(t, shown, 1)
		_, err := all[0].Authenticate(t.Context(), shown[0])
		require.NoError(t, err)
	}
}

func TestARefusedKeyIsNotShown(t *testing.T) {
	t.Parallel()
	ring := nodes(t, 1)[0]
	c := create(home, nil)
	c.Permissions.Operator = true
	lesser := commands.Request{Actor: actor.Actor{Type: "system", Permissions: reader}, Workspace: home}
	key, _, err := accesscmd.CreateAPIKey(t.Context(), ring.Commands, lesser, c)
	refused, _ := errors.AsType[*fault.Error](err)
	require.NotNil(t, refused)
	require.Equal(t, fault.Forbidden, refused.Kind)
	require.Empty(t, key)
	dry := commands.Request{Actor: operator, Workspace: home, DryRun: true}
	key, _, err = accesscmd.CreateAPIKey(t.Context(), ring.Commands, dry, create(home, nil))
	require.NoError(t, err)
	require.Empty(t, key, "an invalid key is not shown")
}

func TestKeyIsNotRefusedWhileTheLogIsAway(t *testing.T) {
	t.Parallel()
	ring := nodes(t, 1)[0]
	key, _, err := accesscmd.CreateAPIKey(t.Context(), ring.Commands, as(t, ""), create(home, nil))
	require.NoError(t, err)
	id := strings.ReplaceAll(uuid.NewString(), "-", "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = ring.Authenticate(ctx, accesscmd.KeyPrefix+id+key[len(accesscmd.KeyPrefix)+32:])
	require.Error(t, err)
	require.NotErrorIs(t, err, accesscmd.ErrUnknownKey)
	require.NotErrorIs(t, err, eventstore.ErrInDoubt)
}
