package main_test

import (
	"io"
	"maps"
	"net/mail"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"bahi/http/api/apitest"
)

// goodPassword is nobody's name, and on no list.
const goodPassword = "kundan and meena"

// registration is the body that makes an account.
func registration(email string) map[string]string {
	return map[string]string{"email": email, "password": goodPassword, "first_name": "Asha", "last_name": "Soni"}
}

// mailed waits for the nth mail to an address with that subject, counted from 1, and answers its text as
// a person would read it in the data folder.
func (o *office) mailed(to, subject string, nth int) (text string) {
	o.t.Helper()
	require.Eventually(o.t, func() bool {
		found := o.mails(to, subject)
		if len(found) >= nth {
			text = found[nth-1]
		}
		return text != ""
	}, time.Minute, 5*time.Millisecond, "no mail %q to %s", subject, to)
	return text
}

// mails are those that there are, oldest first.
func (o *office) mails(to, subject string) (texts []string) {
	o.t.Helper()
	files, err := filepath.Glob(filepath.Join(o.sys.Settings.Data, "mail", "*.eml"))
	require.NoError(o.t, err)
	for _, file := range files {
		opened, err := os.Open(file)
		if os.IsNotExist(err) {
			continue // somebody was erased meanwhile
		}
		require.NoError(o.t, err)
		m, err := mail.ReadMessage(opened)
		require.NoError(o.t, err)
		body, err := io.ReadAll(m.Body)
		require.NoError(o.t, err)
		require.NoError(o.t, opened.Close())
		addressed, err := m.Header.AddressList("To")
		require.NoError(o.t, err)
		if addressed[0].Address == to && m.Header.Get("Subject") == subject {
			texts = append(texts, string(body))
		}
	}
	return texts
}

// worked waits until all jobs of a kind are done.
func (o *office) worked(kind string) {
	o.t.Helper()
	require.Eventually(o.t, func() bool {
		done, all := o.operator().GET("/ops/jobs?state=completed&kind="+kind), o.operator().GET("/ops/jobs?kind="+kind)
		return done.Header("X-Total-Count") == all.Header("X-Total-Count")
	}, time.Minute, 5*time.Millisecond, kind)
}

// swept waits until what is swept at the start is: it is done once a moment later, and would take what a test lets expire.
func (o *office) swept() {
	o.t.Helper()
	for _, kind := range []string{"sweep_credentials", "sweep_erasures"} {
		require.Eventually(o.t, func() bool {
			return o.operator().GET("/ops/jobs?state=completed&kind="+kind).Header("X-Total-Count") != "0"
		}, time.Minute, 20*time.Millisecond, kind)
	}
}

var tokenInLink = regexp.MustCompile(`(https?://\S+)\?token=(\S+)`)

// link answers where a mail leads, and with which token.
func link(t testing.TB, text string) (page, token string) {
	t.Helper()
	m := tokenInLink.FindStringSubmatch(text)
	require.NotNil(t, m, text)
	return m[1], m[2]
}

const (
	verifySubject = "Confirm your email address for Bahi"
	resetSubject  = "Set a new password for Bahi"
	inviteSubject = "You are invited to a workspace in Bahi"
)

// tokens is the answer to a refresh.
type tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Type    string `json:"token_type"`
}

// signedIn is the answer to a sign-in.
type signedIn struct {
	tokens

	User struct {
		ID        string `json:"id"`
		Email     string `json:"email"`
		FirstName string `json:"first_name"`
	} `json:"user"`
}

// userAnswer is a user as they see themselves.
type userAnswer struct {
	ID            string         `json:"id"`
	Email         string         `json:"email"`
	FirstName     string         `json:"first_name"`
	LastName      *string        `json:"last_name"`
	Phone         *string        `json:"phone"`
	CompanyID     *string        `json:"company_id"`
	WorkspaceID   string         `json:"workspace_id"`
	AuthProvider  string         `json:"auth_provider"`
	EmailVerified bool           `json:"email_verified"`
	PhoneVerified bool           `json:"phone_verified"`
	IsActive      bool           `json:"is_active"`
	Permissions   map[string]any `json:"permissions"`
	Picture       *string        `json:"profile_picture_url"`
	CreatedAt     time.Time      `json:"created_at"`
	LastLoginAt   *time.Time     `json:"last_login_at"`
	DeleteAfter   *time.Time     `json:"delete_after"`
}

// person is somebody who is signed in.
type person struct {
	*apitest.Client
	signedIn

	workspace string // their own
}

// signIn begins a session.
func (o *office) signIn(email, password string) (in signedIn) {
	o.t.Helper()
	o.stranger().POST("/api/v1/auth/login", map[string]string{"email": email, "password": password}).Status(200).JSON(&in)
	return in
}

// person registers, reads the mail, and signs in.
func (o *office) person(email string) person {
	o.t.Helper()
	o.stranger().POST("/api/v1/auth/register", registration(email)).Status(201)
	_, token := link(o.t, o.mailed(email, verifySubject, 1))
	o.stranger().POST("/api/v1/auth/verify-email", map[string]string{"token": token}).Status(200)
	in := o.signIn(email, goodPassword)
	p := person{Client: apitest.New(o.t, o.url, in.Access), signedIn: in}
	p.workspace = p.me().WorkspaceID
	return p
}

// me reads the account.
func (p person) me() (u userAnswer) {
	p.GET("/api/v1/users/me").Status(200).JSON(&u)
	return u
}

// bearer asks with a token.
func (o *office) bearer(token string) *apitest.Client { return apitest.New(o.t, o.url, token) }

// forge makes a token like another, with the same key, but for what change does to its claims.
func (o *office) forge(token string, change func(jwt.MapClaims)) string {
	o.t.Helper()
	claims := jwt.MapClaims{}
	parsed, _, err := jwt.NewParser().ParseUnverified(token, claims)
	require.NoError(o.t, err)
	kid, _ := parsed.Header["kid"].(string)
	key, err := o.sys.Vault.Named(o.t.Context(), "jwt/"+kid, 32)
	require.NoError(o.t, err)
	change(claims)
	text, err := parsed.SignedString(key)
	require.NoError(o.t, err)
	return text
}

// expired is the token as it would be if an hour had passed since its end.
func (o *office) expired(token string) string {
	return o.forge(token, func(c jwt.MapClaims) { c["exp"] = time.Now().Add(-time.Hour).Unix() })
}

// fieldsOf are the names of an answer's fields.
func fieldsOf(t testing.TB, a *apitest.Answer) string {
	t.Helper()
	var body map[string]any
	a.JSON(&body)
	return strings.Join(slices.Sorted(maps.Keys(body)), " ")
}
