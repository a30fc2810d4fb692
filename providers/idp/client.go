// Package idp signs people in through an OpenID Connect provider: the authorization code flow with state, nonce and PKCE
// (OpenID Connect Core 1.0, 3.1; RFC 9700, 2.1).
//
// [Client.Begin] says where the browser goes and what must be kept until it is back, [Client.Finish] takes what it brought and says
// who signed in. Who that is to us, and whether an address that nobody verified counts, is for the caller to say.
//
// The provider is asked for its endpoints by the first who signs in, not at the start: one that is down must not keep Bahi down. What it
// said is kept until the process ends; its keys are fetched again whenever a token names one that is not known.
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

// Config says which provider, and who we are to it. The explicit endpoints are for one without a discovery document: the first three together
// or none.
type Config struct {
	Issuer       string `env:"IDP_ISSUER" name:"idp-issuer" placeholder:"URL" help:"OpenID Connect provider that people sign in through. Without it, they have passwords only."`
	ClientID     string `env:"IDP_CLIENT_ID" name:"idp-client-id" placeholder:"ID" help:"Bahi's id at the identity provider."`
	ClientSecret string `env:"IDP_CLIENT_SECRET" name:"idp-client-secret" placeholder:"SECRET" help:"Bahi's secret at the identity provider."`
	AuthURL      string `env:"IDP_AUTH_URL" name:"idp-auth-url" placeholder:"URL" help:"The identity provider's authorization endpoint. Without it, the provider's discovery document has all endpoints."`
	TokenURL     string `env:"IDP_TOKEN_URL" name:"idp-token-url" placeholder:"URL" help:"The identity provider's token endpoint, with IDP_AUTH_URL."`
	JWKSURL      string `env:"IDP_JWKS_URL" name:"idp-jwks-url" placeholder:"URL" help:"Where the identity provider's public keys are, with IDP_AUTH_URL."`
	UserinfoURL  string `env:"IDP_USERINFO_URL" name:"idp-userinfo-url" placeholder:"URL" help:"The identity provider's userinfo endpoint, with IDP_AUTH_URL. Asked only when a token has no email."`

	RedirectURL string           `kong:"-"` // our callback, as it is registered with the provider
	Timeout     time.Duration    `kong:"-"` // of each call to the provider; 10 s if zero
	Now         func() time.Time `kong:"-"` // says when a flow or a token expires
}

// Configured tells whether somebody began to name a provider. Without one there is nothing for [New] to make.
func (c Config) Configured() bool { return c.Issuer != "" || c.ClientID != "" || c.ClientSecret != "" }

// algorithms are those that may sign an ID token, whatever a provider says of itself or a token of itself: never none, never a
// shared secret (RFC 8725, 3.1).
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA,
}

// Client signs people in through one provider. It may be used by many goroutines.
type Client struct {
	config Config
	http   *http.Client
	found  atomic.Pointer[endpoints]
}

// endpoints is all that has to be known of a provider before it can be used.
type endpoints struct {
	provider *oidc.Provider
	oauth    oauth2.Config
	keys     oidc.KeySet
}

// New makes a client, and calls nobody. Its error names the setting that is missing or wrong.
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
		// A redirect could carry our secret elsewhere, and none of these endpoints has a reason for one.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if explicit {
		c.found.Store(c.use(oidc.ProviderConfig{
			IssuerURL: config.Issuer, AuthURL: config.AuthURL, TokenURL: config.TokenURL, JWKSURL: config.JWKSURL, UserInfoURL: config.UserinfoURL,
		}, oauth2.AuthStyleInHeader))
	}
	return c, nil
}

// checkURL wants https, so that neither the secret nor a key can be read or changed on the way. What stays on this machine may do without.
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
	c.found.CompareAndSwap(nil, e) // Of two who asked at once the first one's is kept, with the keys that it fetches.
	return c.found.Load(), nil
}

// discover reads the provider's own description of itself (OpenID Connect Discovery 1.0).
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
	// Basic is what a provider takes that says nothing. The library's own way of finding out would send the code twice.
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

// as makes an error one of ours, unless it says already what it is.
func as(ours, err error) error {
	if errors.Is(err, ours) {
		return err
	}
	return fmt.Errorf("%w: %w", ours, err)
}
