package idptest

import (
	"net/http"
	"strings"
)

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

// Trouble is how an endpoint fails.
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
	left int // how often; negative is for ever
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
