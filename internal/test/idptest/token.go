package idptest

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"maps"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

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
