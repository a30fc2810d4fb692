package pages

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
)

const (
	callback = "/auth/callback" // the API redirects the browser here after the provider

	awayLifetime = 10 * time.Minute
)

// toProvider redirects the browser to the provider. The link has the session's form token, so no other site can begin a sign-in.
func (v *visit) toProvider() page {
	if !v.Provider {
		return v.deny(errNoPage)
	}
	if !v.session.holds(v.r.URL.Query().Get("token")) {
		return v.deny(errOldForm)
	}
	s := v.session
	s.Away, s.Next = v.Now(), within(v.r.URL.Query().Get("next"))
	return v.keeping(s, v.address("sign-in-by-provider", request{}).Path)
}

// fromProvider begins the session of a browser that returns from the provider. The query has a token or an error, or a script posts the
// token from the fragment.
func (v *visit) fromProvider() page {
	token, code := v.r.FormValue("access_token"), v.r.FormValue("error")
	shown := signingIn{Next: within(v.session.Next)}
	switch {
	case code == "access_denied":
		shown.Wrong = "The provider did not let you in."
	case token == "" && code == "" && v.r.Method == http.MethodGet:
		return page{template: "callback", title: "Sign in"}
	case token != "" && v.Now().Sub(v.session.Away) < awayLifetime:
		v.enter(token)
	}
	if v.who.Session == uuid.Nil {
		if shown.Wrong == "" {
			shown.Wrong = "The sign-in through the provider failed. Try again."
		}
		return v.showSignIn(shown, http.StatusUnauthorized)
	}
	user, err := uuid.Parse(v.who.ID)
	if err != nil {
		return v.deny(fmt.Errorf("the user of a sign-in through the provider: %w", err))
	}
	return v.keeping(session{Token: rand.Text(), ID: v.who.Session, User: user, Last: v.Now().Add(sessionEnds)}, shown.Next)
}
