package chat

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/network"
)

// Renew requests a new access token with the account's refresh token (RFC 6749, section 6). Its error is a [*network.Failure]. It does not
// retry: a refresh token may be valid only once.
func (n *Networks) Renew(ctx context.Context, a network.Account) (network.Renewed, error) {
	via, a := n.of(a)
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {a.RefreshToken}, "client_id": {a.ClientID}}
	c := call{method: http.MethodPost, header: http.Header{"Content-Type": {formType}},
		secrets: []string{a.RefreshToken, a.ClientSecret}}
	_, sandboxed := via.(*Sandbox)
	switch {
	case a.RefreshToken == "" || sandboxed:
		return network.Renewed{}, &network.Failure{Reason: network.Unconfigured}
	case a.Type == channel.Twitter:
		c.url = a.BaseURL + "/2/oauth2/token"
		if a.ClientSecret != "" {
			request := http.Request{Header: c.header}
			request.SetBasicAuth(url.QueryEscape(a.ClientID), url.QueryEscape(a.ClientSecret))
		}
	default:
		c.url = n.settings.GmailTokenURL
		if a.ClientSecret != "" {
			form.Set("client_secret", a.ClientSecret)
		}
	}
	c.body = []byte(form.Encode())
	var given struct {
		AccessToken  string `json:"access_token"`
		RefreshToken string `json:"refresh_token"`
	}
	failed := n.wire.ask(ctx, c, &given, oauthFailure)
	if failed == nil && given.AccessToken == "" {
		failed = &network.Failure{Reason: network.Unknown}
	}
	if failed != nil {
		return network.Renewed{}, failed
	}
	return network.Renewed(given), nil
}

// oauthFailure reads {"error","error_description"}: the token has expired, or the client's credentials are wrong.
func oauthFailure(a answer) *network.Failure {
	var said struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(a.body, &said) != nil || said.Error == "" || a.status >= http.StatusInternalServerError ||
		a.status == http.StatusTooManyRequests {
		return nil //nolint:nilerr // an unreadable response has no reason
	}
	return a.failed(network.Credentials, a.status, said.Error, said.Description)
}
