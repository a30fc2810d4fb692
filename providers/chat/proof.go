package chat

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // G505: form_v1's signature is an HMAC with it
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Proof configures how calls prove that the aggregator made them. Every configured proof must be valid.
type Proof struct {
	Token      string         // in ?token= or the header X-Gateway-Token; empty: none
	HMACSecret string         // signs the raw body; empty: none
	HMACHeader string         // header with the signature sha256=<hex>; empty: X-Hub-Signature-256
	Addresses  []netip.Prefix // addresses of the aggregator; none: any
	PublicURL  string         // base of the URL that form_v1 signs, without a path
}

// DefaultHMACHeader is the header of the signature.
const DefaultHMACHeader = "X-Hub-Signature-256"

// Configured reports whether any proof is configured.
func (p Proof) Configured() bool {
	return p.Token != "" || p.HMACSecret != "" || len(p.Addresses) > 0
}

// Check reports whether the call has every configured proof. It compares in constant time. No call has a proof if none is configured.
func (p Proof) Check(r *http.Request, from netip.Addr, body []byte) bool {
	ok := p.Configured()
	if p.Token != "" {
		given := r.Header.Get("X-Gateway-Token")
		if given == "" {
			given = r.URL.Query().Get("token")
		}
		ok = Equal(given, p.Token) && ok
	}
	if p.HMACSecret != "" {
		ok = p.signed(r, body) && ok
	}
	if len(p.Addresses) > 0 {
		ok = slices.ContainsFunc(p.Addresses, func(a netip.Prefix) bool { return a.Contains(from) }) && ok
	}
	return ok
}

func (p Proof) signed(r *http.Request, body []byte) bool {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && kind == formType {
		return Equal(r.Header.Get("X-Gateway-Signature"), SignForm(p.HMACSecret, p.PublicURL+r.URL.RequestURI(), body))
	}
	return Equal(r.Header.Get(cmp.Or(p.HMACHeader, DefaultHMACHeader)), Sign(p.HMACSecret, body))
}

// Sign returns the signature of a body: sha256=<hex of the HMAC-SHA256>.
func Sign(secret string, body []byte) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write(body)
	return "sha256=" + hex.EncodeToString(h.Sum(nil))
}

// SignForm returns form_v1's signature: base64 of the HMAC-SHA1 of the URL followed by each parameter's name and value, ordered by name.
// For an invalid form it returns "", which matches no call's signature.
func SignForm(secret, address string, body []byte) string {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return ""
	}
	var signed strings.Builder
	signed.WriteString(address)
	for _, name := range slices.Sorted(maps.Keys(form)) {
		for _, value := range form[name] {
			signed.WriteString(name)
			signed.WriteString(value)
		}
	}
	h := hmac.New(sha1.New, []byte(secret))
	h.Write([]byte(signed.String()))
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// Equal compares in constant time. An empty secret equals no text.
func Equal(given, want string) bool {
	g, w := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(g[:], w[:]) == 1 && want != ""
}
