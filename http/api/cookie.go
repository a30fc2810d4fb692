package api

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"
)

// Cookies reads the cookie of a browser that has signed in.
type Cookies interface {
	// Bearer returns the bearer token that the request's cookie stands for, and the workspace that its user has chosen: uuid.Nil
	// for their own. Without a valid cookie the token is empty. An error means that the answer is not known now.
	Bearer(r *http.Request) (bearer string, workspace uuid.UUID, err error)
}

// AcceptCookies lets browsers read by their cookie: operations accept it for GET and HEAD, in requests without Authorization. A
// browser that asks for a page without a session is sent to the sign-in page.
func (a *API) AcceptCookies(cookies Cookies, signIn string) { a.cookies, a.signIn = cookies, signIn }

// sandbox keeps what a user has uploaded from acting for the user whose browser shows it. Browsers refuse to show a PDF in a sandbox.
const sandbox = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'self'; sandbox"

// byCookie identifies the caller by the cookie. It reports false if the request has none that is valid.
func (c *call) byCookie() (known bool, err error) {
	bearer, workspace, err := c.api.cookies.Bearer(c.r.WithContext(c.ctx))
	if err != nil || bearer == "" {
		return false, err
	}
	if err := c.identify(bearer); err != nil {
		return false, err
	}
	c.cookie = true
	if workspace == uuid.Nil || c.r.Header["Bahi-Workspace"] != nil {
		return true, nil
	}
	return true, c.enterWorkspace(workspace)
}

// readsByCookie reports whether a cookie may identify the caller.
func (c *call) readsByCookie() bool {
	return c.api.cookies != nil && !c.op.write() && c.r.Header["Authorization"] == nil
}

// leadsToSignIn redirects a browser that asks for a page and has no session.
func (c *call) leadsToSignIn(refusal error) bool {
	if !errors.Is(refusal, ErrNotAuthenticated) || !c.readsByCookie() || c.outer != nil ||
		!strings.HasPrefix(c.r.Header.Get("Accept"), "text/html") {
		return false
	}
	http.Redirect(c, c.r, c.api.signIn+"?next="+url.QueryEscape(c.r.URL.RequestURI()), http.StatusSeeOther)
	return true
}
