package idp_test

import (
	"crypto/rand"
	"encoding/base64"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/internal/test/idptest"
	"bahi/providers/idp"
)

func newKey() []byte {
	key := make([]byte, 32)
	rand.Read(key)
	return key
}

func TestFlowLivesInACookieForTenMinutes(t *testing.T) {
	t.Parallel()
	p := idptest.New(t)
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	config := configOf(p)
	config.Now = func() time.Time { return now }
	key := newKey()
	flow, err := open(t, config).Begin(t.Context())
	require.NoError(t, err)
	sealed, err := flow.Seal(key)
	require.NoError(t, err)
	require.Less(t, len(sealed), 1000, "a cookie has 4096 bytes")
	require.Regexp(t, `^[A-Za-z0-9_-]+$`, sealed)

	kept, err := idp.OpenFlow(sealed, key, now.Add(10*time.Minute-time.Nanosecond))
	require.NoError(t, err)
	require.Equal(t, flow.State, kept.State)
	require.Equal(t, flow.Nonce, kept.Nonce)
	require.Equal(t, flow.Verifier, kept.Verifier)
	require.Empty(t, kept.URL)
	_, err = idp.OpenFlow(sealed, key, now.Add(10*time.Minute))
	requireFault(t, err, idp.ErrInvalidRequest, "invalid_request")

	config.Now = time.Now
	back := p.Consent(flow.URL).Query()
	who, err := open(t, config).Finish(t.Context(), kept, back)
	require.NoError(t, err, "another node may finish the flow")
	require.Equal(t, "asha", who.Subject)
}

func TestCookieIsOpaqueAndUnique(t *testing.T) {
	t.Parallel()
	key := newKey()
	flow := idp.Flow{State: "the-state", Nonce: "the-nonce", Verifier: "the-verifier", ExpiresAt: time.Now().Add(time.Minute)}
	one, err := flow.Seal(key)
	require.NoError(t, err)
	two, err := flow.Seal(key)
	require.NoError(t, err)
	require.NotEqual(t, one, two)
	text, err := base64.RawURLEncoding.DecodeString(one)
	require.NoError(t, err)
	require.NotContains(t, string(text), "the-")
}

func TestForgedCookieIsRefused(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "key")
		now := time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "now"), 0).UTC()
		flow := idp.Flow{
			State: rapid.String().Draw(t, "state"), Nonce: rapid.String().Draw(t, "nonce"), Verifier: rapid.String().Draw(t, "verifier"),
			ExpiresAt: now.Add(time.Minute),
		}
		sealed, err := flow.Seal(key)
		require.NoError(t, err)
		opened, err := idp.OpenFlow(sealed, key, now)
		require.NoError(t, err)
		require.Equal(t, flow, opened)

		at := rapid.IntRange(0, len(sealed)-1).Draw(t, "at")
		forged := sealed[:at] + rapid.StringMatching(`[A-Za-z0-9_-]{0,3}`).Draw(t, "instead") + sealed[at+1:]
		if forged != sealed {
			_, err = idp.OpenFlow(forged, key, now)
			require.ErrorIs(t, err, idp.ErrInvalidRequest)
		}
		_, err = idp.OpenFlow(rapid.String().Draw(t, "anything"), key, now)
		require.ErrorIs(t, err, idp.ErrInvalidRequest)
		_, err = idp.OpenFlow(sealed, newKey(), now)
		require.ErrorIs(t, err, idp.ErrInvalidRequest)
	})
}

func TestKeyOfAnotherLengthIsRefused(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 16, 31, 33} {
		_, err := idp.Flow{}.Seal(make([]byte, n))
		require.ErrorContains(t, err, "32 bytes")
		_, err = idp.OpenFlow("", make([]byte, n), time.Now())
		require.ErrorContains(t, err, "32 bytes")
		require.NotErrorIs(t, err, idp.ErrInvalidRequest)
	}
}
