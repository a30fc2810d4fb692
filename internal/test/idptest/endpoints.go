package idptest

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

func (p *Provider) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+string(Discovery), p.orTrouble(Discovery, p.discovery))
	mux.Handle("GET "+string(Authorize), p.orTrouble(Authorize, p.authorize))
	mux.Handle("POST "+string(Token), p.orTrouble(Token, p.token))
	mux.Handle("GET "+string(JWKS), p.orTrouble(JWKS, p.jwks))
	mux.Handle("GET "+string(Userinfo), p.orTrouble(Userinfo, p.userinfo))
	return mux
}

func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	issuer, tokenURL, methods := p.Issuer(), p.URL(Token), []string{"client_secret_basic", "client_secret_post"}
	if p.does(WrongDiscoveredIssuer) {
		issuer = "https://elsewhere.example"
	}
	if p.does(PlainTokenEndpoint) {
		tokenURL = "http://idp.example/token"
	}
	if p.does(SecretInBodyOnly) {
		methods = methods[1:]
	}
	answer(w, http.StatusOK, map[string]any{
		"issuer":                                issuer,
		"authorization_endpoint":                p.URL(Authorize),
		"token_endpoint":                        tokenURL,
		"jwks_uri":                              p.URL(JWKS),
		"userinfo_endpoint":                     p.URL(Userinfo),
		"response_types_supported":              []string{"code"},
		"subject_types_supported":               []string{"public"},
		"id_token_signing_alg_values_supported": []string{"none", "HS256", "RS256", "PS256", "ES256", "EdDSA"},
		"code_challenge_methods_supported":      []string{"S256"},
		"token_endpoint_auth_methods_supported": methods,
	})
}

// authorize grants at once: the person is signed in and consents.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	redirect, err := url.Parse(q.Get("redirect_uri"))
	challenge, encoding := base64.RawURLEncoding.DecodeString(q.Get("code_challenge"))
	scopes := strings.Fields(q.Get("scope"))
	switch {
	case err != nil || !redirect.IsAbs() || q.Get("client_id") != p.ClientID:
		http.Error(w, "unknown client, or nowhere to go back to", http.StatusBadRequest)
		return
	case q.Get("response_type") != "code" || q.Get("state") == "" || q.Get("nonce") == "" ||
		!slices.Contains(scopes, "openid") || !slices.Contains(scopes, "email") || !slices.Contains(scopes, "profile") ||
		q.Get("code_challenge_method") != "S256" || encoding != nil || len(challenge) != sha256.Size:
		http.Error(w, "not an authorization request with PKCE, state and nonce", http.StatusBadRequest)
		return
	}
	back := redirect.Query()
	back.Set("state", q.Get("state"))
	if p.does(WrongState) {
		back.Set("state", rand.Text())
	}
	back.Set("iss", p.Issuer())
	if p.does(WrongResponseIssuer) {
		back.Set("iss", "https://elsewhere.example")
	}
	if p.does(ConsentDenied) {
		back.Set("error", "access_denied")
	} else {
		code := rand.Text()
		back.Set("code", code)
		p.mu.Lock()
		p.codes[code] = &grant{user: p.user, redirectURI: q.Get("redirect_uri"), nonce: q.Get("nonce"), challenge: q.Get("code_challenge")}
		p.mu.Unlock()
	}
	redirect.RawQuery = back.Encode()
	http.Redirect(w, r, redirect.String(), http.StatusFound)
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	if !p.isClient(r) {
		answer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	}
	if r.PostFormValue("grant_type") != "authorization_code" {
		answer(w, http.StatusBadRequest, map[string]any{"error": "unsupported_grant_type"})
		return
	}
	g := p.redeem(r.PostFormValue("code"))
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if g == nil || g.redirectURI != r.PostFormValue("redirect_uri") || g.challenge != base64.RawURLEncoding.EncodeToString(sum[:]) {
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	access := rand.Text()
	p.mu.Lock()
	p.access[access] = g
	p.mu.Unlock()
	out := map[string]any{"token_type": "Bearer", "expires_in": 300}
	if !p.does(NoAccessToken) {
		out["access_token"] = access
	}
	if !p.does(NoIDToken) {
		out["id_token"] = p.idToken(g, access)
	}
	answer(w, http.StatusOK, out)
}

// isClient checks the client's id and secret (RFC 6749, 2.3.1): form-encoded in the header, or in the body.
func (p *Provider) isClient(r *http.Request) bool {
	user, password, inHeader := r.BasicAuth()
	id, err := url.QueryUnescape(user)
	secret, err2 := url.QueryUnescape(password)
	if !inHeader {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	return err == nil && err2 == nil && id == p.ClientID && subtle.ConstantTimeCompare([]byte(secret), []byte(p.ClientSecret)) == 1 &&
		(!inHeader || !p.does(SecretInBodyOnly))
}

// redeem takes a code, once.
func (p *Provider) redeem(code string) *grant {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.codes[code]
	if g == nil || g.spent {
		return nil
	}
	g.spent = true
	return g
}

func (p *Provider) jwks(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	answer(w, http.StatusOK, p.keys)
}

func (p *Provider) userinfo(w http.ResponseWriter, r *http.Request) {
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	p.mu.Lock()
	g := p.access[bearer]
	p.mu.Unlock()
	if g == nil {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	said := p.profile(g.user)
	if p.does(WrongUserinfoSubject) {
		said["sub"] = "somebody else"
	}
	if p.does(VerifiedInTokenOnly) {
		delete(said, "email_verified")
	}
	answer(w, http.StatusOK, said)
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(must(json.Marshal(body))) // The client may be gone.
}

// Fault is a deviation of the provider from the standard or from common practice.
type Fault string

// The faults. A faulty ID token is signed with the provider's key, unless the fault is its signature.
const (
	ConsentDenied         Fault = "the person refuses"
	WrongState            Fault = "another state comes back"
	WrongResponseIssuer   Fault = "the response names another issuer" // the parameter iss of RFC 9207
	NoAccessToken         Fault = "no access token"
	NoIDToken             Fault = "no ID token"
	WrongNonce            Fault = "another nonce"
	NoNonce               Fault = "no nonce"
	WrongAudience         Fault = "another audience"
	SharedAudience        Fault = "two audiences, no authorized party"
	WrongAuthorizedParty  Fault = "another authorized party"
	WrongIssuer           Fault = "another issuer"
	WrongAccessTokenHash  Fault = "hash of another access token"
	Expired               Fault = "expired a minute ago"
	NoExpiry              Fault = "no expiry"
	NoSubject             Fault = "no subject"
	EndlessSubject        Fault = "a subject of 256 bytes"
	EmailIsNumber         Fault = "an email that is not a text"
	Unsigned              Fault = "alg none"
	SignedByPublicKey     Fault = "HMAC with the public key"
	SignedByUnknownKey    Fault = "a key that is not published"
	BadSignature          Fault = "claims changed after signing"
	VerifiedAsText        Fault = `email_verified as "true" or "false"`
	NoVerified            Fault = "email_verified left out"
	VerifiedAsNumber      Fault = "email_verified as 1"
	EmailInUserinfoOnly   Fault = "the ID token has only sub, email_verified and names"
	VerifiedInTokenOnly   Fault = "userinfo leaves email_verified out"
	WrongUserinfoSubject  Fault = "userinfo about another subject"
	WrongDiscoveredIssuer Fault = "discovery names another issuer"
	PlainTokenEndpoint    Fault = "discovery names a token endpoint without TLS"
	SecretInBodyOnly      Fault = "the client's secret is accepted in the body only"
)

// Misbehave sets the provider's faults; without arguments it behaves again.
func (p *Provider) Misbehave(faults ...Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = map[Fault]bool{}
	for _, f := range faults {
		p.faults[f] = true
	}
}

func (p *Provider) does(f Fault) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faults[f]
}

// Endpoint is the path of an endpoint.
type Endpoint string

// The endpoints.
const (
	Discovery Endpoint = "/.well-known/openid-configuration"
	Authorize Endpoint = "/authorize"
	Token     Endpoint = "/token"
	JWKS      Endpoint = "/jwks"
	Userinfo  Endpoint = "/userinfo"
)

// Trouble is a failure of an endpoint.
type Trouble string

// The troubles.
const (
	Fails     Trouble = "answers 500"
	Refuses   Trouble = "responds 403 without a body"
	Throttles Trouble = "answers 429"
	Redirects Trouble = "responds 307 to itself"
	HangsUp   Trouble = "closes the connection"
	Hangs     Trouble = "responds only after the client has gone"
	Floods    Trouble = "responds with too many bytes"
	Babbles   Trouble = "responds 200 with invalid JSON"
)

type trouble struct {
	kind Trouble
	left int // remaining failures; negative: unlimited
}

// Break makes an endpoint fail until [Provider.Mend].
func (p *Provider) Break(e Endpoint, how Trouble) { p.breakFor(e, how, -1) }

// BreakOnce makes an endpoint fail at its next request.
func (p *Provider) BreakOnce(e Endpoint, how Trouble) { p.breakFor(e, how, 1) }

// Mend repairs an endpoint.
func (p *Provider) Mend(e Endpoint) { p.breakFor(e, "", 0) }

func (p *Provider) breakFor(e Endpoint, how Trouble, times int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trouble[e] = trouble{how, times}
}

// Asked returns the number of requests to an endpoint.
func (p *Provider) Asked(e Endpoint) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[e]
}

// visit counts a request and returns its trouble, if any.
func (p *Provider) visit(e Endpoint) Trouble {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[e]++
	now := p.trouble[e]
	if now.left == 0 {
		return ""
	}
	if now.left > 0 {
		now.left--
		p.trouble[e] = now
	}
	return now.kind
}

// orTrouble serves an endpoint, or fails as the test has set.
func (p *Provider) orTrouble(e Endpoint, serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch p.visit(e) {
		case Fails:
			http.Error(w, "out of order", http.StatusInternalServerError)
		case Refuses:
			w.WriteHeader(http.StatusForbidden)
		case Throttles:
			w.WriteHeader(http.StatusTooManyRequests)
		case Redirects:
			http.Redirect(w, r, p.URL(e), http.StatusTemporaryRedirect)
		case HangsUp:
			panic(http.ErrAbortHandler)
		case Hangs:
			_ = r.ParseForm() // A server notices that the client is gone only when it has read the body.
			<-r.Context().Done()
		case Floods:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"keys":[],"x":"` + strings.Repeat("x", 2<<20) + `"}`)) // The client may hang up before.
		case Babbles:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte("namaste")) // as above
		default:
			serve(w, r)
		}
	}
}
