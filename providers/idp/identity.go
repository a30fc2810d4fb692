package idp

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/url"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Identity is a signed-in person, as the provider describes them. Issuer and Subject together identify the person permanently. An address
// may later belong to another person. All other fields may be empty.
type Identity struct {
	Issuer        string
	Subject       string // at most 255 bytes
	Email         string
	EmailVerified bool // the provider has verified that the address is this person's
	GivenName     string
	FamilyName    string
}

const maxSubject = 255 // OpenID Connect Core 1.0, section 2

// claims has the claims that we use (section 5.1 there).
type claims struct {
	Email           string `json:"email"`
	EmailVerified   yes    `json:"email_verified"`
	GivenName       string `json:"given_name"`
	FamilyName      string `json:"family_name"`
	AuthorizedParty string `json:"azp"`
}

// yes is true for true and for "true", which some providers write.
type yes bool

func (y *yes) UnmarshalJSON(text []byte) error {
	*y = string(text) == `true` || string(text) == `"true"`
	return nil
}

// Finish takes the query of the returning browser and the flow that the same browser began, and returns the identity. A flow can be
// finished once: the provider accepts a code once. It returns the errors of this package.
func (c *Client) Finish(ctx context.Context, flow Flow, query url.Values) (Identity, error) {
	code, err := c.codeOf(flow, query)
	if err != nil {
		return Identity{}, err
	}
	e, err := c.endpoints(ctx)
	if err != nil {
		return Identity{}, err
	}
	ctx = oidc.ClientContext(ctx, c.http)
	token, err := e.oauth.Exchange(ctx, code, oauth2.VerifierOption(flow.Verifier))
	if err != nil {
		return Identity{}, fmt.Errorf("exchange the code: %w", ofExchange(err))
	}
	proof, said, err := c.verify(ctx, e, token, flow.Nonce)
	if err != nil {
		return Identity{}, fmt.Errorf("verify the ID token: %w", err)
	}
	if said.Email == "" && e.provider.UserInfoEndpoint() != "" {
		if err := said.complete(ctx, e, token, proof.Subject); err != nil {
			return Identity{}, fmt.Errorf("fetch userinfo: %w", err)
		}
	}
	return Identity{
		Issuer:  c.config.Issuer, // The token's issuer may lack the scheme: the library allows one provider that.
		Subject: proof.Subject, Email: said.Email, EmailVerified: said.Email != "" && bool(said.EmailVerified),
		GivenName: said.GivenName, FamilyName: said.FamilyName,
	}, nil
}

// codeOf returns the code in the query, after it has checked that the query belongs to this flow. It checks state first: without it,
// nothing in the query is from the provider.
func (c *Client) codeOf(flow Flow, query url.Values) (string, error) {
	for _, name := range []string{"state", "code", "error", "iss"} {
		if len(query[name]) > 1 { // RFC 6749, 3.1
			return "", fmt.Errorf("%w: %s occurs more than once", ErrInvalidRequest, name)
		}
	}
	if flow.State == "" || subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(flow.State)) != 1 {
		return "", fmt.Errorf("%w: it has another state", ErrInvalidRequest)
	}
	if query.Has("iss") && query.Get("iss") != c.config.Issuer { // RFC 9207
		return "", fmt.Errorf("%w: it comes from another issuer", ErrInvalidRequest)
	}
	if query.Has("error") {
		return "", refused(query.Get("error"))
	}
	if query.Get("code") == "" {
		return "", fmt.Errorf("%w: it has no code", ErrInvalidRequest)
	}
	return query.Get("code"), nil
}

// ofExchange returns the error of a failed exchange, without the provider's response, which may quote our request.
func ofExchange(err error) error {
	if no, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return fmt.Errorf("%w: %q, status %d", refused(no.ErrorCode), no.ErrorCode, no.Response.StatusCode)
	}
	if errors.Is(err, ErrUnavailable) {
		return err
	}
	return as(ErrInvalidToken, err)
}

// verify checks the ID token by section 3.1.3.7 of OpenID Connect Core 1.0.
func (c *Client) verify(ctx context.Context, e *endpoints, token *oauth2.Token, nonce string) (proof *oidc.IDToken, said claims,
	err error) {
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return nil, said, fmt.Errorf("%w: there is none", ErrInvalidToken)
	}
	keys := &attentive{KeySet: e.keys}
	proof, err = oidc.NewVerifier(c.config.Issuer, keys, &oidc.Config{
		ClientID: c.config.ClientID, SupportedSigningAlgs: algorithms, Now: c.config.Now,
	}).Verify(ctx, raw)
	switch {
	case keys.err == nil:
	case errors.Is(keys.err, ErrUnavailable) || ctx.Err() != nil:
		return nil, said, as(ErrUnavailable, keys.err)
	default: // Its text may hold the whole response to the request for keys.
		return nil, said, fmt.Errorf("%w: %.200s", ErrInvalidToken, keys.err.Error())
	}
	if err == nil {
		err = proof.Claims(&said)
	}
	if err != nil {
		return nil, said, as(ErrInvalidToken, err)
	}
	switch {
	case nonce == "" || subtle.ConstantTimeCompare([]byte(proof.Nonce), []byte(nonce)) != 1:
		return nil, said, fmt.Errorf("%w: it has another nonce", ErrInvalidToken)
	case proof.Subject == "" || len(proof.Subject) > maxSubject:
		return nil, said, fmt.Errorf("%w: its subject has %d bytes", ErrInvalidToken, len(proof.Subject))
	case said.AuthorizedParty != "" && said.AuthorizedParty != c.config.ClientID, said.AuthorizedParty == "" && len(proof.Audience) > 1:
		return nil, said, fmt.Errorf("%w: it is for another client", ErrInvalidToken)
	case proof.AccessTokenHash != "" && proof.VerifyAccessToken(token.AccessToken) != nil:
		return nil, said, fmt.Errorf("%w: it belongs to another access token", ErrInvalidToken)
	}
	return proof, said, nil
}

// attentive stores the error of fetching the keys, because the verifier turns it into a text.
type attentive struct {
	oidc.KeySet

	err error
}

func (a *attentive) VerifySignature(ctx context.Context, jwt string) (payload []byte, err error) {
	payload, a.err = a.KeySet.VerifySignature(ctx, jwt)
	return payload, a.err
}

// complete requests from the userinfo endpoint (section 5.3 there) the claims that the ID token lacks. The subjects must be equal, because
// nothing else connects the two responses.
func (said *claims) complete(ctx context.Context, e *endpoints, token *oauth2.Token, subject string) error {
	info, err := e.provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
	switch {
	case errors.Is(err, ErrUnavailable):
		return err
	case err != nil:
		return as(ErrInvalidToken, err)
	case info.Subject != subject:
		return fmt.Errorf("%w: it is about another subject", ErrInvalidToken)
	}
	said.EmailVerified = false // the claim was not about this address
	if err := info.Claims(said); err != nil {
		return as(ErrInvalidToken, err)
	}
	return nil
}
