package webhooks_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/http/webhooks"
	"bahi/providers/billing"
	"bahi/providers/partner"
)

func TestAPartnerSignsByStandardWebhooksOrTheBodyAlone(t *testing.T) {
	t.Parallel()
	const body = `{"type":"partner.updated","data":{"id":7}}`
	at := time.Unix(1_760_000_000, 0)
	whsec, err := partner.Parse("whsec_cGFydG5lci1zZWNyZXQtMzItYnl0ZXMtZm9yLXRlc3RzISE=")
	require.NoError(t, err)
	prove := func(p webhooks.Partner, headers ...string) error {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		p.Now = func() time.Time { return at }
		_, err := p.Endpoint().Verify(r, netip.Addr{}, []byte(body))
		return err
	}
	standard := webhooks.Partner{Secrets: []partner.Secret{whsec}}
	vector := []string{"webhook-id", "msg_1", "webhook-timestamp", "1760000000", "webhook-signature",
		"v1,goc7u6MVF6mi1ui0C6i0FkWU5eVAMW/rzONSPI9yjlA="}
	require.NoError(t, prove(standard, vector...))
	require.Equal(t, partner.IDHeader, standard.Endpoint().KeyHeader)

	alone := webhooks.Partner{Header: "X-Partner-Signature", Secret: "any text"}
	require.Empty(t, alone.Endpoint().KeyHeader, "nobody has signed an id")
	right := billing.Sign("any text", body)
	require.NoError(t, prove(alone, "X-Partner-Signature", right))
	require.NoError(t, prove(alone, "X-Partner-Signature", "sha256="+right))
	for _, wrong := range [][]string{nil, vector, {"X-Partner-Signature", billing.Sign("another", body)}, {"X-Partner-Signature", "sha256="},
		{"X-Other", right}} {
		require.ErrorIs(t, prove(alone, wrong...), webhooks.ErrUnverified)
	}
	require.ErrorIs(t, prove(standard, "X-Partner-Signature", right), webhooks.ErrUnverified)
}
