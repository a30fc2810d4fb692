// Package idp signs people in through an OpenID Connect provider: the authorization code flow with state, nonce and PKCE (OpenID Connect
// Core 1.0, 3.1; RFC 9700, 2.1).
//
// [Client.Begin] returns the provider's address, and the flow, which the caller stores until the browser returns. [Client.Finish] takes the
// browser's query and returns the identity. The caller maps it to a user, and decides about unverified addresses.
//
// The first sign-in reads the provider's endpoints, so that Bahi starts even if the provider is down. The endpoints are kept until the
// process ends. The keys are fetched again when a token names an unknown one.
package idp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Config names the provider and our client. The explicit endpoints are for a provider without a discovery document: give the first three
// together or none.
type Config struct {
	Issuer       string `env:"IDP_ISSUER" name:"idp-issuer" placeholder:"URL" example:"https://accounts.example.org" help:"OpenID Connect provider that users sign in through. Without it, users have only passwords."`
	ClientID     string `env:"IDP_CLIENT_ID" name:"idp-client-id" placeholder:"ID" help:"Client id at the identity provider."`
	ClientSecret string `env:"IDP_CLIENT_SECRET" name:"idp-client-secret" placeholder:"SECRET" help:"Client secret at the identity provider."`
	AuthURL      string `env:"IDP_AUTH_URL" name:"idp-auth-url" placeholder:"URL" help:"The identity provider's authorization endpoint. Without it, all endpoints are from the provider's discovery document."`
	TokenURL     string `env:"IDP_TOKEN_URL" name:"idp-token-url" placeholder:"URL" help:"The identity provider's token endpoint, with IDP_AUTH_URL."`
	JWKSURL      string `env:"IDP_JWKS_URL" name:"idp-jwks-url" placeholder:"URL" help:"The identity provider's public keys, with IDP_AUTH_URL."`
	UserinfoURL  string `env:"IDP_USERINFO_URL" name:"idp-userinfo-url" placeholder:"URL" help:"The identity provider's userinfo endpoint, with IDP_AUTH_URL. Used only for tokens without an email."`

	RedirectURL string           `kong:"-"` // our callback, as registered with the provider
	Timeout     time.Duration    `kong:"-"` // timeout of each call to the provider; 0: 10 s
	Now         func() time.Time `kong:"-"` // the clock for the expiry of flows and tokens
}

// Configured reports whether any field names a provider. If not, do not call [New].
func (c Config) Configured() bool { return c.Issuer != "" || c.ClientID != "" || c.ClientSecret != "" }

// algorithms lists the accepted signatures of ID tokens, whatever a provider or a token declares: never none, never a shared secret (RFC
// 8725, 3.1).
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA,
}

// Client signs people in through one provider. Goroutines may share it.
type Client struct {
	config Config
	http   *http.Client
	found  atomic.Pointer[endpoints]
}

// endpoints holds the provider's addresses and keys.
type endpoints struct {
	provider *oidc.Provider
	oauth    oauth2.Config
	keys     oidc.KeySet
}

// New returns a client. It does not connect. Its error names the missing or wrong setting.
func New(config Config) (*Client, error) {
	type setting struct{ name, value string }
	required := []setting{{"IDP_ISSUER", config.Issuer}, {"IDP_CLIENT_ID", config.ClientID}, {"IDP_CLIENT_SECRET", config.ClientSecret}}
	urls := []setting{{"IDP_ISSUER", config.Issuer}}
	explicit := config.AuthURL != "" || config.TokenURL != "" || config.JWKSURL != "" || config.UserinfoURL != ""
	if explicit {
		three := []setting{{"IDP_AUTH_URL", config.AuthURL}, {"IDP_TOKEN_URL", config.TokenURL}, {"IDP_JWKS_URL", config.JWKSURL}}
		required, urls = append(required, three...), append(urls, three...)
	}
	if config.UserinfoURL != "" {
		urls = append(urls, setting{"IDP_USERINFO_URL", config.UserinfoURL})
	}
	for _, s := range required {
		if s.value == "" {
			return nil, fmt.Errorf("%s is missing", s.name)
		}
	}
	for _, s := range urls {
		if err := checkURL(s.value); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	config.Timeout = cmp.Or(config.Timeout, callTimeout)
	c := &Client{config: config, http: &http.Client{
		Transport: calls{next: http.DefaultTransport, timeout: config.Timeout},
		// A redirect could carry our secret elsewhere; no endpoint needs one.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if explicit {
		c.found.Store(c.use(oidc.ProviderConfig{
			IssuerURL: config.Issuer, AuthURL: config.AuthURL, TokenURL: config.TokenURL, JWKSURL: config.JWKSURL, UserInfoURL: config.UserinfoURL,
		}, oauth2.AuthStyleInHeader))
	}
	return c, nil
}

// checkURL requires https, which protects the secret and the keys in transit. Loopback addresses may use http.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return err
	case u.Host == "" || u.Fragment != "":
		return fmt.Errorf("%q is not the URL of a provider", text)
	case u.Scheme == "https":
		return nil
	case u.Scheme == "http" && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()):
		return nil
	}
	return fmt.Errorf("%q is not https", text)
}

func (c *Client) endpoints(ctx context.Context) (*endpoints, error) {
	if e := c.found.Load(); e != nil {
		return e, nil
	}
	e, err := c.discover(ctx)
	if err != nil {
		return nil, fmt.Errorf("discover %s: %w", c.config.Issuer, err)
	}
	c.found.CompareAndSwap(nil, e) // Of two concurrent discoveries the first is kept, with its keys.
	return c.found.Load(), nil
}

// discover reads the provider's discovery document (OpenID Connect Discovery 1.0).
func (c *Client) discover(ctx context.Context) (*endpoints, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, c.http), c.config.Issuer)
	if err != nil {
		return nil, as(ErrUnavailable, err)
	}
	var document struct {
		oidc.ProviderConfig

		AuthMethods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := provider.Claims(&document); err != nil {
		return nil, as(ErrUnavailable, err)
	}
	urls := []string{document.AuthURL, document.TokenURL, document.JWKSURL}
	if document.UserInfoURL != "" {
		urls = append(urls, document.UserInfoURL)
	}
	for _, u := range urls {
		if err := checkURL(u); err != nil {
			return nil, as(ErrUnavailable, err)
		}
	}
	// Basic is the default if the provider names no method. The library's own probe would send the code twice.
	style := oauth2.AuthStyleInHeader
	if len(document.AuthMethods) > 0 && !slices.Contains(document.AuthMethods, "client_secret_basic") {
		style = oauth2.AuthStyleInParams
	}
	return c.use(document.ProviderConfig, style), nil
}

func (c *Client) use(p oidc.ProviderConfig, style oauth2.AuthStyle) *endpoints {
	ctx := oidc.ClientContext(context.Background(), c.http)
	provider := p.NewProvider(ctx)
	endpoint := provider.Endpoint()
	endpoint.AuthStyle = style
	return &endpoints{
		provider: provider,
		keys:     oidc.NewRemoteKeySet(ctx, p.JWKSURL),
		oauth: oauth2.Config{
			ClientID: c.config.ClientID, ClientSecret: c.config.ClientSecret, Endpoint: endpoint,
			RedirectURL: c.config.RedirectURL, Scopes: []string{oidc.ScopeOpenID, oidc.ScopeEmail, oidc.ScopeProfile},
		},
	}
}

// as wraps err in ours, unless err already is of that kind.
func as(ours, err error) error {
	if errors.Is(err, ours) {
		return err
	}
	return fmt.Errorf("%w: %w", ours, err)
}
