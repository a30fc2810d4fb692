package credentials_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/commands/accesscmd/credentials"
	"bahi/domain/fault"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
)

var asha = credentials.Person{Email: "a.rao@example.org", Names: []string{"Asha", "Rao"}}

func TestWeakPasswordsAreRefused(t *testing.T) {
	t.Parallel()
	n, _ := single(t)
	for message, passwords := range map[string][]string{
		"at least 8 characters are needed":   {"", "k7#mQ2z", "ｋ７＃ｍＱ２ｚ", "नमस्ते"},
		"at most 128 characters are allowed": {strings.Repeat("k7#mQ2zp", 16) + "x", strings.Repeat("é", 129)},
		"must not contain your name or email address": {
			"my.asha.12", "ASHA-2026!", "a.rao@2026", "xxA.RAOxx", "ａｓｈａ-2026",
		},
		"must not be one character repeated": {"zzzzzzzz", "ZzZzZzZz", "ओओओओओओओओ", "        "},
		"must not be a plain sequence": {
			"abcdefgh", "HGFEDCBA", "12345678", "98765432", "78901234", "21098765", "qwertyui", "POIUYTREW", "asdfghjkl", "zxcvbnmzxcvbnm",
			"uiopasdfgh", "कखगघङचछज", "１２３４５６７８", strings.Repeat("1234567890", 12),
		},
		"must not be one of the most common passwords": {"password", "PassWord1", "iloveyou", "Trustno1", "ｐａｓｓｗｏｒｄ"},
	} {
		for _, password := range passwords {
			require.Equal(t, fault.Fields(fault.Field{Field: "new_password", Message: message}),
				n.Passwords.Check("new_password", password, asha), "%q", password)
		}
	}
}

func TestStrongPasswordsAreAccepted(t *testing.T) {
	t.Parallel()
	n, _ := single(t)
	for _, password := range []string{
		"k7#mQ2zp", "seven brass hooks", "सात पीतल हुक", "abcdefgi", "1234568z", "qwertyuo1", "aaaaaaab", strings.Repeat("k7#mQ2zp", 16),
		"  k7#mQ  ",
		"grao9rao!", // a name of three letters occurs by chance
	} {
		require.NoError(t, n.Passwords.Check("password", password, asha), "%q", password)
	}
	whole := credentials.Person{Email: "9@example.org", Names: []string{"", " ", "Li"}}
	require.NoError(t, n.Passwords.Check("password", "Li9 k7#mQ2zp", whole))
	require.Error(t, n.Passwords.Check("password", "Venkatraman", credentials.Person{Email: "venkatraman@example.org"}))
	require.Error(t, n.Passwords.Check("password", "xx98250 12345", credentials.Person{Email: "98250@example.org"}),
		"digits count as a part too")
}

func TestMinimumIsASetting(t *testing.T) {
	t.Parallel()
	s := quick()
	s.MinPassword = 15
	n := open(t, database(t), newClock(), s)
	require.EqualError(t, n.Passwords.Check("password", "14 characters!", asha),
		"Validation error; password: at least 15 characters are needed")
	require.NoError(t, n.Passwords.Check("password", "15 characters!!", asha))
}

func TestEveryCommonPasswordIsRefusedInAnyCase(t *testing.T) {
	t.Parallel()
	n, _ := single(t)
	list := worktest.File(t, "common_passwords.txt")
	seen := 0
	for line := range strings.Lines(string(list)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		seen++
		word := strings.TrimSuffix(line, "\n")
		require.Equal(t, word, strings.ToLower(credentials.Normalise(word)))
		require.Error(t, n.Passwords.Check("password", word, credentials.Person{}), "%q", word)
		require.Error(t, n.Passwords.Check("password", strings.ToUpper(word), credentials.Person{}), "%q", word)
	}
	require.Greater(t, seen, 10_000)
}

func TestPasswordsAroundANameAreRefused(t *testing.T) {
	t.Parallel()
	n, _ := single(t)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[A-Za-z]{4,20}`).Draw(t, "name")
		around := rapid.StringMatching(`[!-~]{4,20}`)
		password := around.Draw(t, "before") + rapid.SampledFrom([]string{name, strings.ToUpper(name), strings.ToLower(name)}).Draw(t,
			"as") + around.Draw(t, "after")
		require.Error(t, n.Passwords.Check("password", password, credentials.Person{Names: []string{name}}))
		require.Error(t, n.Passwords.Check("password", password, credentials.Person{Email: name + "@example.org"}))
	})
}

func verify(t *testing.T, n node, user uuid.UUID, password string) (credentials.Proof, bool) {
	t.Helper()
	proof, ok, err := n.Passwords.Verify(t.Context(), user, password)
	require.NoError(t, err)
	return proof, ok
}

func storedHash(t *testing.T, n node, user uuid.UUID) string {
	t.Helper()
	return pgtest.Value[string](t, n.pool, `select hash from account.password where user_id = $1`, user)
}

func TestPasswordVerifiesOnEveryNode(t *testing.T) {
	t.Parallel()
	nodes, _ := several(t, database(t), quick())
	user := uuid.New()
	require.NoError(t, nodes[0].Passwords.Set(t.Context(), user, "caf\u00e9 am Markt"))
	for _, password := range []string{"caf\u00e9 am Markt", "cafe\u0301 am Markt", "ｃａｆé am Markt"} {
		_, ok := verify(t, nodes[1], user, password)
		require.True(t, ok, "%q", password)
	}
	for _, password := range []string{"", "cafe am Markt", "CAF\u00c9 am Markt", strings.Repeat("long", 10_000)} {
		_, ok := verify(t, nodes[1], user, password)
		require.False(t, ok, "%q", password)
	}
	require.NoError(t, nodes[1].Passwords.Set(t.Context(), user, secret))
	_, ok := verify(t, nodes[2], user, "caf\u00e9 am Markt")
	require.False(t, ok)
	require.NoError(t, nodes[2].Passwords.Remove(t.Context(), user))
	_, ok = verify(t, nodes[0], user, secret)
	require.False(t, ok)
}

func TestUnknownUserCostsTheSameHash(t *testing.T) {
	t.Parallel()
	n, _ := single(t)
	user := uuid.New()
	require.NoError(t, n.Passwords.Set(t.Context(), user, secret))
	var hashes []string
	credentials.WatchHashing(n.Passwords, func(_, hash string) { hashes = append(hashes, hash) })
	for _, attempt := range []struct {
		user     uuid.UUID
		password string
		ok       bool
	}{{user, secret, true}, {user, "wrong", false}, {uuid.New(), secret, false}, {uuid.Nil, secret, false}, {uuid.Nil, "", false}} {
		before := len(hashes)
		_, ok := verify(t, n, attempt.user, attempt.password)
		require.Equal(t, attempt.ok, ok)
		require.Len(t, hashes, before+1)
	}
	for _, hash := range hashes {
		// Algorithm, cost, and the lengths of salt and key determine the time, and nothing else does.
		require.True(t, strings.HasPrefix(hash, "$argon2id$v=19$m=64,t=1,p=1$"), hash)
		require.Len(t, hash, len(hashes[0]))
	}
}

func TestPasswordIsRehashedAtANewCost(t *testing.T) {
	t.Parallel()
	url, c := database(t), newClock()
	dearer := quick()
	dearer.Hash.Passes = 2
	was, is := open(t, url, c, quick()), open(t, url, c, dearer)
	user := uuid.New()
	require.NoError(t, was.Passwords.Set(t.Context(), user, secret))
	old := storedHash(t, was, user)
	before, ok := verify(t, was, user, secret)
	require.True(t, ok)
	_, ok = verify(t, is, user, "wrong")
	require.False(t, ok)
	require.Equal(t, old, storedHash(t, is, user))

	for _, err := range race(4, func(int) error {
		_, ok, err := is.Passwords.Verify(t.Context(), user, secret)
		if err == nil && !ok {
			return fmt.Errorf("the password was not known")
		}
		return err
	}) {
		require.NoError(t, err)
	}
	renewed := storedHash(t, is, user)
	require.Contains(t, renewed, "m=64,t=2,p=1")
	_, ok = verify(t, is, user, secret)
	require.True(t, ok)
	require.Equal(t, renewed, storedHash(t, is, user), "once")
	_, err := is.Sessions.SignIn(t.Context(), before)
	require.NoError(t, err, "the proof is of the unchanged password")
}

func TestHashingIsBoundedAndWaitingEndsWithTheRequest(t *testing.T) {
	t.Parallel()
	s := quick()
	s.Hashes = 2
	n := open(t, database(t), newClock(), s)
	var (
		running, most atomic.Int64
		hold          = make(chan struct{})
		held          = make(chan struct{}, 100)
		wait          sync.WaitGroup
	)
	credentials.WatchHashing(n.Passwords, func(string, string) {
		now := running.Add(1)
		for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
		}
		held <- struct{}{}
		<-hold
		running.Add(-1)
	})
	for range 8 {
		wait.Go(func() {
			_, _, err := n.Passwords.Verify(t.Context(), uuid.Nil, secret)
			if err != nil {
				t.Error(err)
			}
		})
	}
	<-held
	<-held
	ctx, cancel := context.WithCancel(t.Context())
	given := make(chan error)
	go func() { given <- n.Passwords.Set(ctx, uuid.New(), secret) }()
	cancel()
	require.ErrorIs(t, <-given, context.Canceled)
	close(hold)
	wait.Wait()
	require.EqualValues(t, 2, most.Load())
}

func TestCrowdedHashingRefusesAtOnce(t *testing.T) {
	t.Parallel()
	s := quick()
	s.Hashes = 1
	n := open(t, database(t), newClock(), s)
	var (
		hold    = make(chan struct{})
		crowded atomic.Int64
		wait    sync.WaitGroup
	)
	credentials.WatchHashing(n.Passwords, func(string, string) { <-hold })
	const callers = 100
	answered := make(chan struct{}, callers)
	for range callers {
		wait.Go(func() {
			_, _, err := n.Passwords.Verify(t.Context(), uuid.Nil, secret)
			if errors.Is(err, credentials.ErrCrowded) {
				crowded.Add(1)
				answered <- struct{}{}
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	for range callers - 33 { // one is running, and 32 wait
		<-answered
	}
	close(hold)
	wait.Wait()
	require.EqualValues(t, callers-33, crowded.Load())
	_, ok, err := n.Passwords.Verify(t.Context(), uuid.Nil, secret)
	require.NoError(t, err)
	require.False(t, ok)
}
