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
