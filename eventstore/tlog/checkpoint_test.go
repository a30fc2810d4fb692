package tlog

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	cosignature "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"
)

func TestSignedCheckpointRoundTrips(t *testing.T) {
	t.Parallel()
	events := logOf(300)
	for _, n := range []int{0, 1, 256, 300} {
		c := checkpointOf(events, n)
		signed := sign(t, c, keyOf(t, 1))
		got, by, err := keysOf(t, keyOf(t, 1)).Open(signed)
		require.NoError(t, err)
		require.Equal(t, c, got)
		require.Len(t, by, 1)
		require.Equal(t, Signature{Name: Origin(store), ID: strings.Split(keyOf(t, 1).Public(), "+")[1]}, by[0])
		got, err = ParseCheckpoint(signed)
		require.NoError(t, err)
		require.Equal(t, c, got)
	}
	require.Equal(t, "bahi/0195e8a0-7c1e-7000-8000-0000000000aa\n300\n"+checkpointOf(events, 300).Root.String()+
		"\ntime 2026-11-21T18:05:00.123456Z\nposition 300\n", checkpointOf(events, 300).Text())
}

func TestRotationSignsWithBothKeys(t *testing.T) {
	t.Parallel()
	older, newer, third := keyOf(t, 1), keyOf(t, 2), keyOf(t, 3)
	signed := sign(t, checkpointOf(logOf(5), 5), older, newer)
	for _, k := range []Key{older, newer} {
		_, by, err := keysOf(t, k).Open(signed)
		require.NoError(t, err)
		require.Len(t, by, 1)
	}
	_, by, err := keysOf(t, third, newer, older).Open(signed)
	require.NoError(t, err)
	require.Len(t, by, 2)
	_, _, err = keysOf(t, third).Open(signed)
	require.ErrorIs(t, err, ErrNotSigned)
}

func TestChangedCheckpointIsRefused(t *testing.T) {
	t.Parallel()
	key := keyOf(t, 1)
	signed := string(sign(t, checkpointOf(logOf(300), 300), key))
	for _, change := range [][2]string{{"\n300\n", "\n299\n"}, {"position 300", "position 299"}, {"18:05:00", "18:06:00"},
		{"bahi/0195", "bahi/0196"}} {
		changed := strings.Replace(signed, change[0], change[1], 1)
		require.NotEqual(t, signed, changed)
		_, _, err := keysOf(t, key).Open([]byte(changed))
		require.Error(t, err)
		require.NotErrorIs(t, err, ErrNotSigned)
	}
}

func TestKeyOfAnotherLogDoesNotSign(t *testing.T) {
	t.Parallel()
	c := checkpointOf(logOf(3), 3)
	_, err := c.Sign()
	require.EqualError(t, err, "sign the checkpoint: there is no key")
	c.Origin = "bahi/other"
	_, err = c.Sign(keyOf(t, 1))
	require.ErrorContains(t, err, "it is of bahi/other, and the key is of bahi/0195")
	// A key that is trusted for this log signs a checkpoint of another.
	signed, err := note.Sign(&note.Note{Text: c.Text()}, keyOf(t, 1))
	require.NoError(t, err)
	_, _, err = keysOf(t, keyOf(t, 1)).Open(signed)
	require.ErrorIs(t, err, ErrNotSigned)
}

func TestWitnessAddsItsSignature(t *testing.T) {
	t.Parallel()
	key, other := keyOf(t, 1), keyOf(t, 2)
	private, public, err := note.GenerateKey(rand.Reader, "witness.example/w1")
	require.NoError(t, err)
	public, err = cosignature.VKeyToCosignatureV1(public)
	require.NoError(t, err)
	witness, err := cosignature.NewSignerForCosignatureV1(private)
	require.NoError(t, err)
	signed := sign(t, checkpointOf(logOf(300), 300), key)
	cosigned, err := note.Sign(&note.Note{Text: checkpointOf(logOf(300), 300).Text()}, witness)
	require.NoError(t, err)
	_, line, _ := strings.Cut(string(cosigned), "\n\n")

	keys, err := ParseKeys(key.Public() + "\n" + public)
	require.NoError(t, err)
	both, err := keys.AddSignatures(signed, []byte(line))
	require.NoError(t, err)
	_, by, err := keys.Open(both)
	require.NoError(t, err)
	require.Len(t, by, 2)
	require.True(t, by[1].Witness)
	require.WithinDuration(t, time.Now(), by[1].At, time.Minute)
	again, err := keys.AddSignatures(both, []byte(line))
	require.NoError(t, err)
	require.Equal(t, both, again)

	_, newer, _ := strings.Cut(string(sign(t, checkpointOf(logOf(300), 300), other)), "\n\n")
	among, err := keys.AddSignatures(signed, []byte(newer+line+newer))
	require.NoError(t, err, "the witness also signs with a newer key")
	require.Equal(t, string(both), string(among))

	_, _, err = keys.Open(cosigned)
	require.ErrorIs(t, err, ErrNotSigned, "a witness does not replace the log's signature")
	_, err = keysOf(t, key).AddSignatures(signed, []byte(line))
	require.EqualError(t, err, "add signatures: none of them is by a known key", "an unknown witness")
	_, err = keysOf(t, key).AddSignatures(signed, []byte("position 7\n"))
	require.ErrorContains(t, err, "these are not signature lines")
	_, wrong, _ := strings.Cut(string(sign(t, checkpointOf(logOf(300), 299), other)), "\n\n")
	_, err = keysOf(t, other).AddSignatures(signed, []byte(wrong))
	require.Error(t, err, "a signature of another text")
	_, wrong, _ = strings.Cut(string(sign(t, checkpointOf(logOf(300), 299), key)), "\n\n")
	_, err = keys.AddSignatures(signed, []byte(line+wrong))
	require.Error(t, err, "an invalid signature among valid ones")
}

func TestHostileCheckpointsAreRefused(t *testing.T) {
	t.Parallel()
	root := checkpointOf(logOf(3), 3).Root.String()
	for _, text := range []string{
		"", "\n", "bahi/x\n", "bahi/x\n3\n", "\n3\n" + root + "\n", "bahi/x\n03\n" + root + "\n", "bahi/x\n+3\n" + root + "\n",
		"bahi/x\n-3\n" + root + "\n",
		"bahi/x\n18446744073709551616\n" + root + "\n", "bahi/x\n3\n" + root[:40] + "\n", "bahi/x\n3\n" + root + "AAAA\n",
		"bahi/x\n3\n" + root + "\n\nposition 3\n",
		"bahi/x\n3\n" + root + "\nposition 03\n", "bahi/x\n3\n" + root + "\nposition 3\nposition 3\n", "bahi/x\n3\n" + root + "\nposition -1\n",
		"bahi/x\n3\n" + root + "\nposition 9223372036854775808\n",
		"bahi/x\n3\n" + root + "\ntime 2026-11-21T18:05:00Z\n", "bahi/x\n3\n" + root + "\ntime 2026-13-21T18:05:00.123456Z\n",
		"bahi/x\n3\n" + root + "\ntime \n",
	} {
		_, err := parseText(text)
		require.Error(t, err, "%q", text)
	}
	c, err := parseText("bahi/x\n3\n" + root + "\nweather fine\nposition 3\n")
	require.NoError(t, err, "unknown extension lines are skipped")
	require.EqualValues(t, 3, c.Position)
}

func TestKeysAreReadStrictly(t *testing.T) {
	t.Parallel()
	key := keyOf(t, 1).Public()
	parts := strings.SplitN(key, "+", 3)
	for _, text := range []string{
		"x", "a+b+c", parts[0] + "+00000000+" + parts[2], key[:len(key)-8], key + "AAAA", "other+" + parts[1] + "+" + parts[2],
		parts[0] + "+" + parts[1] + "+", parts[0] + "+" + parts[1] + "+/w==",
	} {
		_, err := ParseKeys("\n" + text)
		require.ErrorContains(t, err, "read the public keys: line 2", "%q", text)
	}
	secret, _, err := note.GenerateKey(seeded(1), Origin(store))
	require.NoError(t, err)
	for _, text := range []string{"", "x", key, "PRIVATE+KEY+a b+00000000+AAAA", secret[:len(secret)-4],
		strings.Replace(secret, "PRIVATE", "public", 1)} {
		_, err := ParseKey(text)
		require.ErrorContains(t, err, "it is not an Ed25519 key")
		if text != "" {
			require.NotContains(t, err.Error(), strings.Split(text, "+")[len(strings.Split(text, "+"))-1]+"+")
		}
	}
}

func FuzzCheckpoint(f *testing.F) {
	f.Add(string(sign(f, checkpointOf(logOf(3), 3), keyOf(f, 1))))
	f.Add("bahi/x\n3\nqqqq\n\n— x AAAA\n")
	keys := keysOf(f, keyOf(f, 1))
	f.Fuzz(func(t *testing.T, text string) {
		c, _, err := keys.Open([]byte(text))
		if err != nil {
			return
		}
		require.True(t, strings.HasPrefix(text, c.Origin+"\n"))
	})
}
