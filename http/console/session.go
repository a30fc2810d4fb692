package console

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"bahi/domain/fault"
	"bahi/http/api"
)

const (
	sessionCookie = "bahi_console"
	themeCookie   = "bahi_theme"
	sessionLasts  = 12 * time.Hour
	themeLasts    = 365 * 24 * time.Hour

	// limitGroup shares the limit of sign-in tries with users, so that the console is not the easier target.
	limitGroup = "auth"
)

// sealed is the associated data of the cookie's ciphertext: nothing else sealed with the key opens as a cookie of the site.
func (c *Console) sealed() []byte { return []byte("bahi " + c.name + " session 1") }

// session is the content of the cookie: before the sign-in, only the token of its forms.
type session struct {
	Token string    `json:"token"` // of forms
	ID    uuid.UUID `json:"id"`    // of the session on the server; uuid.Nil before the sign-in
	Key   string    `json:"key,omitempty"`
	Of    uuid.UUID `json:"of,omitzero"` // the user, of the inbox
	In    uuid.UUID `json:"in,omitzero"` // the workspace that the user has chosen
	Ends  time.Time `json:"ends"`
}

// Sessions stores the sessions. A cookie alone opens nothing, so that signing out ends every copy of it.
type Sessions interface {
	// Begin starts a session that ends at a time at the latest.
	Begin(ctx context.Context, session uuid.UUID, ends time.Time) error
	// Alive reports whether the session was started and has not ended.
	Alive(ctx context.Context, session uuid.UUID) (bool, error)
	// Revoke ends the session, on all nodes within seconds.
	Revoke(ctx context.Context, session uuid.UUID) error
}

func newSeal(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("the key of the console's cookies: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func (s session) holds(token string) bool {
	return s.Token != "" && subtle.ConstantTimeCompare([]byte(s.Token), []byte(token)) == 1
}

// recall authenticates the visitor. An unknown or revoked key means nobody; an error means that this cannot be determined now.
func (v *visit) recall() error {
	cookie, err := v.r.Cookie(v.cookie)
	if err != nil {
		return nil //nolint:nilerr // without a cookie: not signed in
	}
	s, known := v.unseal(cookie.Value)
	if !known {
		return nil
	}
	if s.signedIn() {
		alive, err := v.Sessions.Alive(v.r.Context(), s.ID)
		if err != nil || !alive {
			return err
		}
	}
	v.session = s
	if !s.signedIn() {
		return nil
	}
	return v.enter(v, s)
}

func (s session) signedIn() bool { return s.ID != uuid.Nil }

// enterByKey signs in the owner of the session's key.
func (v *visit) enterByKey(s session) error { return v.enterOperator(s.Key) }

// enterOperator signs in the owner of a key who is an operator. It accepts no access tokens: they are for users, and end after minutes.
func (v *visit) enterOperator(key string) error {
	ctx, who, err := api.Authenticate(v.r.Context(), key)
	refused, isFault := errors.AsType[*fault.Error](err)
	switch {
	case isFault && refused.Kind == fault.Unauthorized:
		return nil
	case err != nil:
		return err
	case who.Permissions.Operator && who.Type == "api_key":
		v.who, v.r = who, v.r.WithContext(ctx)
	}
	return nil
}

// unseal opens a cookie, unless it has expired or is invalid.
func (c *Console) unseal(value string) (s session, known bool) {
	box, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil {
		return session{}, false
	}
	text, err := c.seal.Open(nil, nil, box, c.sealed())
	if err != nil || json.Unmarshal(text, &s) != nil || !c.Now().Before(s.Ends) {
		return session{}, false
	}
	return s, true
}

// begin gives the browser a new session, without a key before the sign-in.
func (v *visit) begin(key string) error {
	next := session{Token: rand.Text(), Key: key, Ends: v.Now().Add(sessionLasts)}
	if key != "" {
		next.ID = uuid.New()
		if err := v.Sessions.Begin(v.r.Context(), next.ID, next.Ends); err != nil {
			return err
		}
	}
	return v.keep(next)
}

// keep gives the browser a session.
func (v *visit) keep(next session) error {
	v.session = next
	text, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("encode a session: %w", err)
	}
	box := v.seal.Seal(nil, nil, text, v.sealed()) //nolint:gosec // G407: this AEAD takes no nonce, it makes one
	http.SetCookie(v.w, v.cookieOf(base64.RawURLEncoding.EncodeToString(box), int(sessionLasts.Seconds())))
	return nil
}

func (v *visit) cookieOf(value string, maxAge int) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // G124: it is secure wherever the system is reached by HTTPS
		Name: v.cookie, Value: value, Path: v.path, MaxAge: maxAge, HttpOnly: true, Secure: v.secure, SameSite: http.SameSiteStrictMode,
	}
}

// turnAway redirects to the sign-in page, and from there back to the page.
func (v *visit) turnAway() {
	to := v.path + "/sign-in"
	if v.r.Method == http.MethodGet && v.r.URL.Path != v.path+"/" && !strings.HasSuffix(v.r.URL.Path, "/live") {
		to += "?next=" + url.QueryEscape(v.r.URL.RequestURI())
	}
	if v.r.Header.Get("Hx-Request") != "" { // a redirect would put the page into a part of the other one
		v.w.Header().Set("Hx-Redirect", to)
		v.w.WriteHeader(http.StatusUnauthorized)
		return
	}
	http.Redirect(v.w, v.r, to, http.StatusSeeOther) //nolint:gosec // G710: to our own path; what the client sent is quoted in its query
}

// signingIn is the content of the sign-in page.
type signingIn struct {
	Next  string
	Wrong bool
}

func (c *Console) signInPage(v *visit) (page, error) {
	if v.who.Type != "" {
		return page{redirect: v.path + "/"}, nil
	}
	if v.session.Token == "" || v.session.signedIn() {
		if err := v.begin(""); err != nil {
			return page{}, err
		}
	}
	return page{template: "sign-in", title: "Sign in", body: signingIn{Next: v.within(v.r.URL.Query().Get("next"))}}, nil
}

// signInByKey gives the same response for every key that does not open the console.
func (v *visit) signInByKey() (string, error) {
	next, key := v.within(v.r.PostFormValue("next")), strings.TrimSpace(v.r.PostFormValue("key"))
	if err := v.enterOperator(key); err != nil {
		return "", err
	}
	if v.who.Type == "" {
		return "", cmp.Or(api.Count(v.r.Context(), limitGroup), error(wrongKey{next})) // a right key is never refused for wrong ones
	}
	return next, v.begin(key)
}

// wrongKey shows the form again.
type wrongKey struct{ next string }

func (wrongKey) Error() string { return "the key does not open the console" }

// signOut ends the session on the server and deletes the cookie.
func (v *visit) signOut() (string, error) {
	var err error
	switch {
	case v.session.Of != uuid.Nil && v.who.Type != "":
		_, err = v.inbox.Accounts.SignOut(v.r.Context(), v.request(), v.session.ID)
	case v.session.ID != uuid.Nil:
		err = v.Sessions.Revoke(v.r.Context(), v.session.ID)
	}
	if err != nil {
		return "", err
	}
	http.SetCookie(v.w, v.cookieOf("", -1))
	return v.path + "/sign-in", nil
}

// theme stores light or dark; for the browser's own preference it deletes the cookie.
func (v *visit) theme() (string, error) {
	cookie := &http.Cookie{ //nolint:gosec // G124: as above
		Name: themeCookie, Path: v.path, MaxAge: -1, HttpOnly: true, Secure: v.secure, SameSite: http.SameSiteStrictMode,
	}
	if wanted := v.r.PostFormValue("theme"); wanted == "light" || wanted == "dark" {
		cookie.Value, cookie.MaxAge = wanted, int(themeLasts.Seconds())
	}
	http.SetCookie(v.w, cookie)
	return v.within(v.r.PostFormValue("next")), nil
}

// within returns the requested page if it is one of the site's, otherwise the front page.
func (c *Console) within(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Opaque != "" || !strings.HasPrefix(u.Path, c.path+"/") || strings.Contains(next, `\`) {
		return c.path + "/"
	}
	return u.RequestURI()
}
