package credentials

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
)

// The lifetimes of tokens and sessions (SPEC, authentication; CONTRACT.md G2 and 8.6). The lifetime of an access token is a default. The
// lifetime of a refresh token begins when it is issued, the lifetime of a session at the sign-in: refreshing does not extend it.
const (
	accessLifetime  = time.Hour
	RefreshLifetime = 7 * 24 * time.Hour
	SessionLifetime = 30 * 24 * time.Hour
)

// tokenType is the typ claim: the purpose of the token.
type tokenType string

const (
	access  tokenType = "access"
	refresh tokenType = "refresh"
)

// claims are the claims of a token, by the names of RFC 7519, section 4.1, and OpenID Connect's sid.
type claims struct {
	Issuer   string           `json:"iss"`
	User     uuid.UUID        `json:"sub"`
	Session  uuid.UUID        `json:"sid"`
	ID       uuid.UUID        `json:"jti"`
	IssuedAt *jwt.NumericDate `json:"iat"`
	Expires  *jwt.NumericDate `json:"exp"`
	Type     tokenType        `json:"typ"`
}

// These methods implement jwt.Claims.

func (c claims) GetExpirationTime() (*jwt.NumericDate, error) { return c.Expires, nil }
func (c claims) GetIssuedAt() (*jwt.NumericDate, error)       { return c.IssuedAt, nil }
func (c claims) GetNotBefore() (*jwt.NumericDate, error)      { return nil, nil }
func (c claims) GetIssuer() (string, error)                   { return c.Issuer, nil }
func (c claims) GetSubject() (string, error)                  { return c.User.String(), nil }
func (c claims) GetAudience() (jwt.ClaimStrings, error)       { return nil, nil }

// signer signs and verifies tokens.
type signer struct {
	keys   *Keys
	issuer string
	parser *jwt.Parser
}

func newSigner(keys *Keys, issuer string, now func() time.Time) signer {
	// There is no leeway, because the operator synchronises the nodes' clocks. Only exp is compared with the clock. iat is not, because a
	// node with a lagging clock must accept a token that another node has just issued.
	return signer{keys, issuer, jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithIssuer(issuer),
		jwt.WithExpirationRequired(), jwt.WithStrictDecoding(), jwt.WithTimeFunc(now),
	)}
}

func (s signer) sign(key signingKey, c claims) (string, error) {
	c.Issuer = s.issuer
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, c)
	token.Header["kid"] = key.kid.String()
	text, err := token.SignedString(key.secret)
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	return text, nil
}

// errBadToken reports a token of another issuer or type, or an expired one.
var errBadToken = errors.New("the token is not valid")

// verify returns the token's claims, or errBadToken. After any other error, the token may be valid.
func (s signer) verify(ctx context.Context, text string, wanted tokenType) (claims, error) {
	var (
		c       claims
		trouble error
	)
	_, err := s.parser.ParseWithClaims(text, &c, func(token *jwt.Token) (any, error) {
		kid, ok := token.Header["kid"].(string)
		if !ok {
			return nil, errNoKey
		}
		id, err := uuid.Parse(kid)
		if err != nil {
			return nil, errNoKey
		}
		key, err := s.keys.verifying(ctx, id)
		if err != nil && !errors.Is(err, errNoKey) {
			trouble = err
		}
		return key.secret, err
	})
	switch {
	case trouble != nil:
		return claims{}, trouble
	case err != nil || c.Type != wanted:
		return claims{}, errBadToken
	}
	return c, nil
}
