// Package idptest is a real OpenID Connect provider for tests, over HTTP on loopback. Its people consent at once, and it misbehaves on
// demand.
//
//	provider := idptest.New(t)
//	provider.NextUser(idptest.User{Subject: "ravi", Email: "ravi@example.com", EmailVerified: true})
//	back := provider.Consent(url) // where the browser is sent back to, with code and state
package idptest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

// User is a person with an account at the provider. An empty field omits its claim; EmailVerified is omitted with Email.
type User struct {
	Subject       string
	Email         string
	EmailVerified bool
	GivenName     string
	FamilyName    string
	Picture       string
}

// Provider is the provider. Its fields are for reading.
type Provider struct {
	ClientID     string
	ClientSecret string

	t      testing.TB
	server *httptest.Server

	mu      sync.Mutex
	user    User
	faults  map[Fault]bool
	trouble map[Endpoint]trouble
	asked   map[Endpoint]int
	signer  signingKey
	keys    jose.JSONWebKeySet // present and former signing keys
	codes   map[string]*grant
	access  map[string]*grant // by access token

	stranger signingKey // is never published
}

type signingKey struct {
	id  string
	alg string
	key crypto.Signer
}

// grant is one consent: the client's request, the person, and whether the code is still valid.
type grant struct {
	user        User
	redirectURI string
	nonce       string
	challenge   string
	spent       bool
}

// New starts a provider and stops it when the test ends. Asha is signed in. The provider signs with ES256.
func New(t testing.TB) *Provider {
	p := &Provider{
		ClientID: "bahi", ClientSecret: rand.Text(), t: t,
		user: User{Subject: "asha", Email: "asha@example.com", EmailVerified: true, GivenName: "Asha", FamilyName: "Rao",
			Picture: "https://example.com/asha.png"},
		asked: map[Endpoint]int{}, trouble: map[Endpoint]trouble{}, codes: map[string]*grant{}, access: map[string]*grant{},
	}
	p.Rotate("ES256")
	p.server = httptest.NewServer(p.routes())
	t.Cleanup(func() {
		p.server.CloseClientConnections() // Some may still wait for a slow response.
		p.server.Close()
	})
	return p
}

// Issuer is the provider's URL and name.
func (p *Provider) Issuer() string { return p.server.URL }

// URL returns the address of an endpoint.
func (p *Provider) URL(e Endpoint) string { return p.server.URL + string(e) }

// NextUser sets the person who consents from now on.
func (p *Provider) NextUser(u User) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.user = u
}

// Rotate creates a key of RS256, PS256, ES256 or EdDSA, publishes it beside the older ones and signs with it from now on.
func (p *Provider) Rotate(alg string) {
	p.t.Helper()
	key, stranger := newKey(p.t, alg), newKey(p.t, alg)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signer, p.stranger = key, stranger
	p.keys.Keys = append(p.keys.Keys, jose.JSONWebKey{Key: key.key.Public(), KeyID: key.id, Algorithm: alg, Use: "sig"})
}

func newKey(t testing.TB, alg string) signingKey {
	t.Helper()
	var key crypto.Signer
	var err error
	switch alg {
	case "RS256", "PS256":
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	case "ES256":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "EdDSA":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	default:
		t.Fatalf("no keys for %s", alg)
	}
	require.NoError(t, err)
	return signingKey{rand.Text(), alg, key}
}

// Consent acts as the browser of a signed-in person who consents. It follows the URL, and returns the address to which the provider
// redirects it.
func (p *Provider) Consent(consentURL string) *url.URL {
	p.t.Helper()
	browser := &http.Client{Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := browser.Get(consentURL)
	require.NoError(p.t, err)
	require.NoError(p.t, res.Body.Close())
	require.Equal(p.t, http.StatusFound, res.StatusCode, "the provider refused to ask for consent")
	back, err := res.Location()
	require.NoError(p.t, err)
	return back
}

// profile returns the claims about a user, in an ID token or as userinfo.
func (p *Provider) profile(u User) map[string]any {
	said := map[string]any{"sub": u.Subject}
	for name, value := range map[string]string{"email": u.Email, "given_name": u.GivenName, "family_name": u.FamilyName,
		"picture": u.Picture} {
		if value != "" {
			said[name] = value
		}
	}
	if u.Email == "" || p.does(NoVerified) {
		return said
	}
	switch {
	case p.does(VerifiedAsText) && u.EmailVerified:
		said["email_verified"] = "true"
	case p.does(VerifiedAsText):
		said["email_verified"] = "false"
	case p.does(VerifiedAsNumber):
		said["email_verified"] = 1
	default:
		said["email_verified"] = u.EmailVerified
	}
	return said
}

func (p *Provider) idToken(g *grant, access string) string {
	p.mu.Lock()
	signer := p.signer
	if p.faults[SignedByUnknownKey] {
		signer = p.stranger
	}
	p.mu.Unlock()
	now := time.Now()
	claims := jwt.MapClaims{
		"iss": p.Issuer(), "aud": p.ClientID, "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(), "nonce": g.nonce,
		"at_hash": atHash(signer.alg, access),
	}
	maps.Copy(claims, p.profile(g.user))
	for fault, change := range map[Fault]func(){
		WrongNonce:           func() { claims["nonce"] = "another" },
		NoNonce:              func() { delete(claims, "nonce") },
		WrongAudience:        func() { claims["aud"] = "another-client" },
		SharedAudience:       func() { claims["aud"] = []string{p.ClientID, "another-client"} },
		WrongAuthorizedParty: func() { claims["azp"] = "another-client" },
		WrongIssuer:          func() { claims["iss"] = "https://elsewhere.example" },
		WrongAccessTokenHash: func() { claims["at_hash"] = atHash(signer.alg, "another") },
		Expired:              func() { claims["exp"] = now.Add(-time.Minute).Unix() },
		NoExpiry:             func() { delete(claims, "exp") },
		NoSubject:            func() { delete(claims, "sub") },
		EndlessSubject:       func() { claims["sub"] = strings.Repeat("s", 256) },
		EmailIsNumber:        func() { claims["email"] = 7 },
		EmailInUserinfoOnly:  func() { delete(claims, "email") },
	} {
		if p.does(fault) {
			change()
		}
	}
	return p.sign(signer, claims)
}

func (p *Provider) sign(signer signingKey, claims jwt.MapClaims) string {
	method, key := jwt.GetSigningMethod(signer.alg), any(signer.key)
	switch {
	case p.does(Unsigned):
		method, key = jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType
	case p.does(SignedByPublicKey):
		der := must(x509.MarshalPKIXPublicKey(signer.key.Public()))
		method, key = jwt.SigningMethodHS256, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	}
	token := jwt.NewWithClaims(method, claims)
	token.Header["kid"] = signer.id
	text := must(token.SignedString(key))
	if p.does(BadSignature) {
		claims["email"] = "victim@example.com"
		text = must(token.SigningString()) + text[strings.LastIndex(text, "."):]
	}
	return text
}

// atHash is the left half of the access token's hash (OpenID Connect Core 1.0, 3.1.3.6).
func atHash(alg, access string) string {
	if alg == "EdDSA" {
		sum := sha512.Sum512([]byte(access))
		return base64.RawURLEncoding.EncodeToString(sum[:len(sum)/2])
	}
	sum := sha256.Sum256([]byte(access))
	return base64.RawURLEncoding.EncodeToString(sum[:len(sum)/2])
}

// must panics at an error that only a mistake in this package causes. The response then breaks off, because a handler must not fail a test.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
