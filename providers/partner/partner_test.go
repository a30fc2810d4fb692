package partner_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/providers/partner"
)

func TestCallsOfAPartner(t *testing.T) {
	t.Parallel()
	secret, err := partner.Parse("whsec_cGFydG5lci1zZWNyZXQtMzItYnl0ZXMtZm9yLXRlc3RzISE=")
	require.NoError(t, err)
	const body, vector = `{"type":"partner.updated","data":{"id":7}}`, "v1,goc7u6MVF6mi1ui0C6i0FkWU5eVAMW/rzONSPI9yjlA="
	require.Equal(t, vector, secret.Sign("msg_1", "1760000000", []byte(body)))
	at := time.Unix(1760000000, 0)
	check := func(id, stamp, signature, body string, now time.Time) bool {
		h := http.Header{}
		h.Set("webhook-id", id)
		h.Set("webhook-timestamp", stamp)
		h.Set("webhook-signature", signature)
		return partner.Signed([]partner.Secret{[]byte("another"), secret}, h, []byte(body), now)
	}
	require.True(t, check("msg_1", "1760000000", "v1a,x "+vector, body, at.Add(5*time.Minute)))
	require.True(t, check("msg_1", "1760000000", vector+" v1,other", body, at.Add(-5*time.Minute)))
	for what, signed := range map[string]bool{
		"old":        check("msg_1", "1760000000", vector, body, at.Add(301*time.Second)),
		"early":      check("msg_1", "1760000000", vector, body, at.Add(-301*time.Second)),
		"another id": check("msg_2", "1760000000", vector, body, at), "no id": check("", "1760000000", vector, body, at),
		"no time":      check("msg_1", "x", vector, body, at),
		"another time": check("msg_1", "1760000001", vector, body, at), "another body": check("msg_1", "1760000000", vector, body+" ", at),
		"none":            check("msg_1", "1760000000", "", body, at),
		"another version": check("msg_1", "1760000000", "v1a"+vector[2:], body, at),
	} {
		require.False(t, signed, what)
	}
	for _, text := range []string{"", "whsec_", "cGFydG5lci1zZWNyZXQtMzItYnl0ZXMtZm9yLXRlc3RzISE=", "whsec_c2hvcnQ=", "whsec_!"} {
		_, err := partner.Parse(text)
		require.Error(t, err, text)
	}
}
