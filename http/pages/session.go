package pages

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
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"bahi/commands/accesscmd/credentials"
	"bahi/domain/fault"
	"bahi/http/api"
)

const (
	sessionCookie  = "bahi_session"
	themeCookie    = "bahi_theme"
	languageCookie = "bahi_language"

	sessionLifetime = 12 * time.Hour // without a visit
	sessionEnds     = 30 * 24 * time.Hour
	lookLifetime    = 365 * 24 * time.Hour

	limitGroup = "auth" // of sign-ins
)

// Sessions stores the sessions. A cookie without a stored session is invalid, so a sign-out ends all copies of the cookie.
type Sessions interface {
	// Begin starts a session of an API key.
	Begin(ctx context.Context, session uuid.UUID, ends time.Time) error
	// Alive reports whether a session was started and has not ended.
	Alive(ctx context.Context, session uuid.UUID) (bool, error)
	// Revoke ends a session, on all nodes within seconds.
	Revoke(ctx context.Context, session uuid.UUID) error
	// Access returns an access token of a user's session.
	Access(ctx context.Context, of credentials.Bearer) (string, error)
}

// session is the content of the cookie: before the sign-in, only the token of its forms.
type session struct {
	Token string    `json:"token"` // of forms
	ID    uuid.UUID `json:"id"`    // of the session on the server; uuid.Nil before the sign-in
	User  uuid.UUID `json:"user,omitzero"`
	Key   string    `json:"key,omitempty"` // an API key, in place of a user
	In    uuid.UUID `json:"in,omitzero"`   // the workspace that was chosen; before the sign-in, of the session that ended
	Ends  time.Time `json:"ends"`
	Last  time.Time `json:"last"` // end of all renewals

	Away time.Time `json:"away,omitzero"`  // time of the redirect to the identity provider
	Next string    `json:"next,omitempty"` // page to open after the sign-in: of the provider, or of an invitation
}

// sealed is the associated data of the cookie, so no other ciphertext of the key opens as a cookie.
const sealed = "bahi session 2"

func newSeal(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("the key of the pages' cookies: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func (s session) holds(token string) bool {
	return s.Token != "" && subtle.ConstantTimeCompare([]byte(s.Token), []byte(token)) == 1
}

// unseal returns the session of a cookie, the zero session for one that is invalid or has expired.
func (p *Pages) unseal(r *http.Request) (s session) {
	box, err := base64.RawURLEncoding.DecodeString(cookieOf(r, sessionCookie))
	if err != nil {
		return session{}
	}
	text, err := p.seal.Open(nil, nil, box, []byte(sealed))
	if err != nil || json.Unmarshal(text, &s) != nil || !p.Now().Before(s.Ends) {
		return session{}
	}
	return s
}

// bearer returns the bearer token of a session, "" if it has ended.
func (p *Pages) bearer(ctx context.Context, s session) (string, error) {
	if s.ID == uuid.Nil {
		return "", nil
	}
	if alive, err := p.Sessions.Alive(ctx, s.ID); err != nil || !alive {
		return "", err
	}
	if s.Key != "" {
		return s.Key, nil
	}
	return p.Sessions.Access(ctx, credentials.Bearer{User: s.User, Session: s.ID})
}

// Bearer returns the token and the workspace of a browser's session. It is for [api.API.ServeBrowsers].
func (p *Pages) Bearer(r *http.Request) (string, uuid.UUID, error) {
	s := p.unseal(r)
	bearer, err := p.bearer(r.Context(), s)
	return bearer, s.In, err
}

// begin gives the browser a session for its forms, without a visitor.
func (v *visit) begin() { v.keep(v.newSession()) }

func (v *visit) newSession() session {
	return session{Token: rand.Text(), Last: v.Now().Add(sessionEnds)}
}

// recall identifies the visitor.
func (v *visit) recall() {
	v.session = v.unseal(v.r)
	if v.session.Token == "" {
		v.begin()
		return
	}
	bearer, err := v.bearer(v.r.Context(), v.session)
	if v.deny(err); err != nil || bearer == "" {
		return
	}
	v.enter(bearer)
	if v.who.Type != "" && v.session.Ends.Sub(v.Now()) < sessionLifetime/2 {
		v.keep(v.session)
	}
}

// enter identifies the visitor by a token, in the workspace that the session has chosen.
func (v *visit) enter(bearer string) {
	ctx, who, err := api.Authenticate(v.r.Context(), bearer)
	if refused, is := errors.AsType[*fault.Error](err); is && refused.Kind == fault.Unauthorized {
		return
	}
	if v.deny(err); err != nil {
		return
	}
	if v.session.In == who.Workspace {
		v.session.In = uuid.Nil
	}
	if v.session.In != uuid.Nil {
		if elsewhere, err := api.Enter(ctx, v.session.In); err == nil { // a removed member is in the own workspace again
			ctx = elsewhere
		}
	}
	v.r, v.who = v.r.WithContext(ctx), api.Request(ctx).Actor
}

// keep sends the browser the session's cookie.
func (v *visit) keep(s session) {
	s.Ends = v.Now().Add(sessionLifetime)
	if s.Ends.After(s.Last) {
		s.Ends = s.Last
	}
	v.session = s
	text, err := json.Marshal(s)
	v.deny(err)
	box := v.seal.Seal(nil, nil, text, []byte(sealed)) //nolint:gosec // G407: this AEAD generates its nonces
	v.setCookie(sessionCookie, base64.RawURLEncoding.EncodeToString(box), sessionLifetime)
}

// keeping sends the browser the session's cookie and redirects it, unless the visit has failed.
func (v *visit) keeping(s session, to string) page {
	if v.failed == nil {
		v.keep(s)
	}
	return page{redirect: to}
}

// setCookie sets a cookie. With Lax, links in mails open signed in. Forms have their own token.
func (v *visit) setCookie(name, value string, lasts time.Duration) {
	http.SetCookie(v.w, &http.Cookie{ //nolint:gosec // G124: it is Secure if the public URL is HTTPS
		Name: name, Value: value, Path: "/", MaxAge: int(lasts.Seconds()), HttpOnly: true, Secure: v.secure, SameSite: http.SameSiteLaxMode,
	})
}

func cookieOf(r *http.Request, name string) string {
	cookie, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// signInPath returns the address of the sign-in page, which then redirects back, after a form to its page.
func (v *visit) signInPath() string {
	next := v.r.URL.RequestURI()
	if v.r.Method != http.MethodGet {
		next = within(v.r.PostForm.Get("here"))
	}
	if next == Path+"/" {
		return Path + "/sign-in"
	}
	return Path + "/sign-in?next=" + url.QueryEscape(next)
}

// signingIn is the content of the sign-in page.
type signingIn struct {
	Next, Email, Wrong string
	Unverified         bool
	Provider           string // address at which a sign-in through the provider begins, "" without one
}

func (v *visit) signInPage() page {
	shown := signingIn{Next: within(cmp.Or(v.r.FormValue("next"), v.session.Next))}
	if v.who.Type != "" {
		return page{redirect: shown.Next}
	}
	if shown.Invited() && v.session.Next != shown.Next { // registration and the confirmation of the address come before it
		s := v.session
		s.Next = shown.Next
		v.keep(s)
	}
	return v.showSignIn(shown, 0)
}

// Invited reports whether the visitor signs in to accept an invitation.
func (s signingIn) Invited() bool { return strings.HasPrefix(s.Next, acceptPath+"?") }

func (v *visit) showSignIn(shown signingIn, status int) page {
	if v.Provider {
		shown.Provider = Path + "/sign-in/provider?" + url.Values{"next": {shown.Next}, "token": {v.session.Token}}.Encode()
	}
	return page{template: "sign-in", title: "Sign in", status: status, body: shown}
}

// signIn begins a session by an email and its password, or by an API key.
func (v *visit) signIn() page {
	shown := signingIn{Next: within(v.r.PostForm.Get("next")), Email: v.r.PostForm.Get("email")}
	s, refused := v.proven()
	switch {
	case refused == nil && s.ID != uuid.Nil:
		return v.keeping(s, shown.Next)
	case refused == nil, refused.Status == http.StatusUnauthorized, refused.Status == http.StatusUnprocessableEntity:
		shown.Wrong = "Wrong email or password."
		if v.r.PostForm.Get("key") != "" {
			shown.Wrong = "Wrong API key."
		}
	case refused.Status == http.StatusForbidden:
		shown.Unverified, shown.Wrong = true, refused.Detail
	default:
		return v.deny(refused)
	}
	return v.showSignIn(shown, http.StatusUnauthorized)
}

// proven returns a new session for the form's credentials, the zero session for a wrong key.
func (v *visit) proven() (s session, refused *problem) {
	s = session{Token: rand.Text(), Last: v.Now().Add(sessionEnds), In: v.session.In}
	if key := strings.TrimSpace(v.r.PostForm.Get("key")); key != "" {
		v.enter(key)
		switch {
		case v.failed != nil:
		case v.who.Type != "api_key": // an access token expires too soon
			v.deny(api.Count(v.r.Context(), limitGroup))
		default:
			s.ID, s.Key = uuid.New(), key
			v.deny(v.Sessions.Begin(v.r.Context(), s.ID, s.Last))
		}
		return s, nil //nolint:nilerr // the visit has the error
	}
	var in map[string]any
	body := map[string]any{"email": v.r.PostForm.Get("email"), "password": v.r.PostForm.Get("password")}
	if _, refused := v.ask("login", request{body: body}, &in); refused != nil || v.failed != nil {
		return s, refused
	}
	v.userSession(textOf(in["access_token"]), &s)
	return s, nil
}

// userSession adds the user of an access token to a session. It reports false for an invalid token.
func (v *visit) userSession(token string, s *session) bool {
	v.enter(token)
	if v.who.Session == uuid.Nil {
		return false
	}
	user, err := uuid.Parse(v.who.ID)
	v.deny(err)
	s.ID, s.User = v.who.Session, user
	return true
}

// signOut ends the session on the server.
func (v *visit) signOut() page {
	switch {
	case v.who.Type == "":
	case v.session.Key != "":
		v.deny(v.Sessions.Revoke(v.r.Context(), v.session.ID))
	default:
		v.read("logout", request{}, nil)
	}
	return v.keeping(session{Token: rand.Text(), Last: v.Now().Add(sessionEnds)}, Path+"/sign-in")
}

// look stores the theme and the language.
func (v *visit) look() page {
	if theme := v.r.PostForm.Get("theme"); slices.Contains([]string{"light", "dark", "auto"}, theme) {
		v.setCookie(themeCookie, theme, lookLifetime)
	}
	if chosen := language(v.r.PostForm.Get("language")); slices.Contains(languages, chosen) {
		v.setCookie(languageCookie, string(chosen), lookLifetime)
	}
	return page{redirect: within(v.r.PostForm.Get("here"))}
}

// choice is a value that a person can choose.
type choice struct {
	Value, Text string
	Chosen      bool
}

// Workspaces returns the workspaces that the visitor can choose: those of a user, and the one that an operator has entered.
func (v *visit) Workspaces() (found []choice) {
	add := func(id, name string) {
		found = append(found, choice{id, cmp.Or(name, id[:8]), id == v.who.Workspace.String()})
	}
	var all []map[string]any
	if v.session.User != uuid.Nil {
		v.ask("list-workspaces", request{}, &all)
	}
	for _, w := range all {
		if len(all) > 1 {
			add(textOf(w["id"]), textOf(w["name"]))
		}
	}
	isHere := func(c choice) bool { return c.Chosen }
	if v.session.In == uuid.Nil || !v.who.Permissions.Operator || slices.ContainsFunc(found, isHere) {
		return found
	}
	if found == nil {
		add(uuid.Nil.String(), v.lang.t("Your own workspace"))
	}
	all = nil
	entered, name := v.session.In.String(), ""
	v.ask("list-all-workspaces", request{query: url.Values{"q": {entered}}}, &all) // without it, its id is shown
	for _, w := range all {
		name = cmp.Or(textOf(w["name"]), name)
	}
	add(entered, name)
	return found
}

// enterWorkspace enters another workspace of the user, or one that the user has joined.
func (v *visit) enterWorkspace(id string, joined bool) page {
	s := v.session
	var err error
	if s.In, err = uuid.Parse(id); err != nil {
		return v.deny(fault.New(fault.Invalid, "Choose one of your workspaces"))
	}
	if !joined { // the visit is of before
		_, err = api.Enter(v.r.Context(), s.In)
		v.deny(err)
	}
	return v.keeping(s, Path+"/?done=workspace")
}

// Token returns the token of the visitor's forms.
func (v *visit) Token() string { return v.session.Token }

// IsHere reports whether the visitor is in a workspace.
func (v *visit) IsHere(workspace string) bool { return workspace == v.who.Workspace.String() }

// within returns the address if it is a page of this package, otherwise that of the first page.
func within(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Opaque != "" || strings.Contains(next, `\`) ||
		!strings.HasPrefix(u.Path, "/") || u.Path == "/" || strings.HasPrefix(u.Path, "//") || strings.HasPrefix(u.Path, Path+"/sign-") {
		return Path + "/"
	}
	return u.RequestURI()
}

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
	shown, s := signingIn{Next: within(v.session.Next)}, v.newSession()
	switch {
	case code == "access_denied":
		shown.Wrong = "The provider did not let you in."
	case token == "" && code == "" && v.r.Method == http.MethodGet:
		return page{template: "callback", title: "Sign in"}
	case token != "" && v.Now().Sub(v.session.Away) < awayLifetime && v.userSession(token, &s):
		return v.keeping(s, shown.Next)
	default:
		shown.Wrong = "The sign-in through the provider failed. Try again."
	}
	return v.showSignIn(shown, http.StatusUnauthorized)
}
