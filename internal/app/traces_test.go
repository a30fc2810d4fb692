package app_test

import (
	"crypto/sha256"
	"encoding/base64"
	endian "encoding/binary"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

func TestTracesAreFoundInTheirForms(t *testing.T) {
	t.Parallel()
	x := apptest.NewTraces(t)
	x.Know("Zéphyrine@Example.org")
	for _, text := range []string{
		"<Zéphyrine@Example.org>", "zéphyrine@example.org", "ZÉPHYRINE@EXAMPLE.ORG", "?q=z%C3%A9phyrine%40example.org&",
		apptest.InUTF16(endian.LittleEndian, "to zéphyrine@example.org"), apptest.InUTF16(endian.BigEndian, "ZÉPHYRINE@EXAMPLE.ORG"),
		base64.StdEncoding.EncodeToString([]byte("mailto:zéphyrine@example.org")),
		base64.URLEncoding.EncodeToString([]byte("x:Zéphyrine@Example.org,")),
		`\x` + hex.EncodeToString([]byte("zéphyrine@example.org")),
		hex.EncodeToString(hashOf("zéphyrine@example.org")), string(hashOf("zéphyrine@example.org")),
	} {
		require.NotEmpty(t, x.In("", []byte("before "+text+" behind")), "%q", text)
	}
	require.Empty(t, x.In("", []byte("Zephyrine at example.org")))
}

func hashOf(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}
