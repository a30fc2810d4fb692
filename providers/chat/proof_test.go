package chat_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/providers/chat"
)

// Vectors of CONTRACT.md, section 3.1.7.
func TestSignaturesAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"object":"chat_account","entry":[]}`: "1adbe9bd3ddd435cdfe1246c8a06103d80a8bad3d78fac726cc532c08103e705",
		`{"text":"सोना 10g"}`:                  "25fc80a155b4b745d1b9cf1bafb9858230607fdc9da5b532272fe785c2936693",
	} {
		require.Equal(t, "sha256="+want, chat.Sign("app-secret-for-tests", []byte(body)))
	}
}

// The vector is from the public documentation of this signature's form, with its example key.
func TestFormSignatureCoversURLAndSortedParameters(t *testing.T) {
	t.Parallel()
	const body = "CallSid=CA1234567890ABCDE&Caller=%2B14158675310&Digits=1234&From=%2B14158675310&To=%2B18005551212"
	const address = "https://example.com/myapp.php?foo=1&bar=2"
	const want = "L/OH5YylLD5NRKLltdqwSvS0BnU="
	require.Equal(t, want, chat.SignForm("12345", address, []byte(body)))
	require.NotEqual(t, want, chat.SignForm("12345", address+"x", []byte(body)))
	require.NotEqual(t, want, chat.SignForm("12345", address, []byte(body+"0")))
	require.Empty(t, chat.SignForm("12345", address, []byte("%zz")))
}

func TestEveryConfiguredProofMustBeRight(t *testing.T) {
	t.Parallel()
	const (
		token, secret = "a token", "a secret"
		base          = "https://bahi.example.org"
	)
	body := []byte(`{"type":"message","payload":{}}`)
	home := netip.MustParseAddr("203.0.113.7")
	all := chat.Proof{Token: token, HMACSecret: secret, Addresses: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")},
		PublicURL: base}
	call := func(change ...string) *http.Request {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hook", nil)
		r.Header.Set("Content-Type", jsonType)
		r.Header.Set("X-Gateway-Token", token)
		r.Header.Set("X-Hub-Signature-256", chat.Sign(secret, body))
		for i := 0; i < len(change); i += 2 {
			r.Header.Set(change[i], change[i+1])
		}
		return r
	}
	require.True(t, all.Check(call(), home, body))
	require.True(t, chat.Proof{Token: token}.Check(httptest.NewRequestWithContext(t.Context(), http.MethodPost,
		"/hook?token=a+token", nil), home, body))
	for what, ok := range map[string]bool{
		"no token":                  all.Check(call("X-Gateway-Token", ""), home, body),
		"another token":             all.Check(call("X-Gateway-Token", token+"x"), home, body),
		"no signature":              all.Check(call("X-Hub-Signature-256", ""), home, body),
		"another body's":            all.Check(call("X-Hub-Signature-256", chat.Sign(secret, []byte("{}"))), home, body),
		"signature without scheme":  all.Check(call("X-Hub-Signature-256", chat.Sign(secret, body)[7:]), home, body),
		"changed body":              all.Check(call(), home, append([]byte(" "), body...)),
		"another address":           all.Check(call(), netip.MustParseAddr("198.51.100.1"), body),
		"no address":                all.Check(call(), netip.Addr{}, body),
		"nothing configured":        chat.Proof{}.Check(call(), home, body),
		"a form with a JSON's sign": all.Check(call("Content-Type", formType), home, body),
	} {
		require.False(t, ok, what)
	}

	form := []byte("MessageSid=SM1&From=%2B919812345678&Body=payal")
	signed := call("Content-Type", formType+"; charset=utf-8", "X-Gateway-Signature", chat.SignForm(secret, base+"/hook", form))
	require.True(t, all.Check(signed, home, form))
	require.False(t, all.Check(signed, home, append(form, "&a=b"...)))
	own := chat.Proof{HMACSecret: secret, HMACHeader: "X-Own"}
	require.True(t, own.Check(call("X-Own", chat.Sign(secret, body)), home, body))
	require.False(t, own.Check(call(), home, body))
}
