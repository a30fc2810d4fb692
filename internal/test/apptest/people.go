package apptest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"mime/multipart"
	"net/http"
	"net/mail"
	"net/textproto"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/messagingcmd"
	"bahi/domain/access/user"
	"bahi/domain/event"
	"bahi/domain/messaging/message"
	"bahi/eventstore"
	"bahi/internal/app"
	"bahi/internal/test/apitest"
)

// GoodPassword is a valid password.
const GoodPassword = "kundan and meena"

// Registration returns the body of a registration.
func Registration(email string) map[string]string {
	return map[string]string{"email": email, "password": GoodPassword, "first_name": "Asha", "last_name": "Soni"}
}

// Mailed waits for the nth mail to an address with that subject, counted from 1, and returns its text from the data folder, decoded.
func (o *Server) Mailed(to, subject string, nth int) (text string) {
	o.T.Helper()
	require.Eventually(o.T, func() bool {
		found := o.Mails(to, subject)
		if len(found) >= nth {
			text = found[nth-1]
		}
		return text != ""
	}, time.Minute, 5*time.Millisecond, "no mail %q to %s", subject, to)
	return text
}

// Mails returns the mails so far, oldest first.
func (o *Server) Mails(to, subject string) (texts []string) {
	o.T.Helper()
	files, err := filepath.Glob(filepath.Join(o.Sys.Settings.Data, "mail", "*.eml"))
	require.NoError(o.T, err)
	for _, file := range files {
		opened, err := os.Open(file)
		if os.IsNotExist(err) {
			continue // erased meanwhile
		}
		require.NoError(o.T, err)
		m, err := mail.ReadMessage(opened)
		require.NoError(o.T, err)
		body, err := io.ReadAll(m.Body)
		require.NoError(o.T, err)
		require.NoError(o.T, opened.Close())
		addressed, err := m.Header.AddressList("To")
		require.NoError(o.T, err)
		if addressed[0].Address == to && m.Header.Get("Subject") == subject {
			texts = append(texts, string(body))
		}
	}
	return texts
}

// WaitJobs waits until all jobs of a kind are done.
func (o *Server) WaitJobs(kind string) {
	o.T.Helper()
	require.Eventually(o.T, func() bool {
		done, all := o.Operator().GET("/ops/jobs?state=completed&kind="+kind), o.Operator().GET("/ops/jobs?kind="+kind)
		return done.Header("X-Total-Count") == all.Header("X-Total-Count")
	}, time.Minute, 5*time.Millisecond, kind)
}

var tokenInLink = regexp.MustCompile(`(https?://\S+)\?token=(\S+)`)

// Link returns the page and the token of the link in a mail.
func Link(t testing.TB, text string) (page, token string) {
	t.Helper()
	m := tokenInLink.FindStringSubmatch(text)
	require.NotNil(t, m, text)
	return m[1], m[2]
}

const (
	VerifySubject = "Confirm your email address for Bahi"
	ResetSubject  = "Set a new password for Bahi"
	InviteSubject = "You are invited to a workspace in Bahi"
)

// Tokens is the response to a refresh.
type Tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Type    string `json:"token_type"`
}

// SignedIn is the response to a sign-in.
type SignedIn struct {
	Tokens

	User struct {
		ID        string `json:"id"`
		Email     string `json:"email"`
		FirstName string `json:"first_name"`
	} `json:"user"`
}

// UserAnswer is a user's own account.
type UserAnswer struct {
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

// Person is a signed-in user.
type Person struct {
	*apitest.Client
	SignedIn

	Workspace string // their own
}

// SignIn creates a session.
func (o *Server) SignIn(email, password string) (in SignedIn) {
	o.T.Helper()
	o.Anonymous().POST("/api/v1/auth/login", map[string]string{"email": email, "password": password}).Status(200).JSON(&in)
	return in
}

// Person registers a user, reads the mail, and signs in.
func (o *Server) Person(email string) Person {
	o.T.Helper()
	o.Anonymous().POST("/api/v1/auth/register", Registration(email)).Status(201)
	_, token := Link(o.T, o.Mailed(email, VerifySubject, 1))
	o.Anonymous().POST("/api/v1/auth/verify-email", map[string]string{"token": token}).Status(200)
	in := o.SignIn(email, GoodPassword)
	p := Person{Client: apitest.New(o.T, o.URL, in.Access), SignedIn: in}
	p.Workspace = p.Me().WorkspaceID
	return p
}

// Me returns the account.
func (p Person) Me() (u UserAnswer) {
	p.GET("/api/v1/users/me").Status(200).JSON(&u)
	return u
}

// Bearer returns a client with a token.
func (o *Server) Bearer(token string) *apitest.Client { return apitest.New(o.T, o.URL, token) }

// Expired returns the token as if it had expired an hour ago.
func (o *Server) Expired(token string) string {
	o.T.Helper()
	claims := jwt.MapClaims{}
	parsed, _, err := jwt.NewParser().ParseUnverified(token, claims)
	require.NoError(o.T, err)
	kid, _ := parsed.Header["kid"].(string)
	key, err := o.Sys.Vault.Named(o.T.Context(), "jwt/"+kid, 32)
	require.NoError(o.T, err)
	claims["exp"] = time.Now().Add(-time.Hour).Unix()
	text, err := parsed.SignedString(key)
	require.NoError(o.T, err)
	return text
}

const Me = "/api/v1/users/me"

// Form returns a body with a file, and its Content-Type.
func Form(t testing.TB, kind string, content []byte, texts ...string) (body []byte, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(texts); i += 2 {
		require.NoError(t, w.WriteField(texts[i], texts[i+1]))
	}
	part, err := w.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {`form-data; name="file"; filename="asha.png"`}, "Content-Type": {kind},
	})
	require.NoError(t, err)
	_, err = part.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes(), w.FormDataContentType()
}

// Painted returns a PNG of one colour.
func Painted(t testing.TB, c color.Color, width, height int) []byte {
	t.Helper()
	img := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{c})
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, img))
	return b.Bytes()
}

// Upload sets a user's picture.
func Upload(t testing.TB, c *apitest.Client, kind string, content []byte) *apitest.Answer {
	t.Helper()
	body, contentType := Form(t, kind, content)
	return c.With("Content-Type", contentType).POST(Me+"/profile-picture", body)
}

// Path returns the part of a link after the server's address.
func (o *Server) Path(link string) string {
	o.T.Helper()
	path, ours := strings.CutPrefix(link, app.OwnAddress)
	require.True(o.T, ours, link)
	return path
}

// Visited returns a running server and its data folder as a Server.
func Visited(p *Process, data string) *Server {
	return &Server{T: p.t, URL: p.URL, Sys: &app.System{Settings: app.Settings{Data: data}}}
}

// Member is a user as the other members see them.
type Member struct {
	UserID      string         `json:"user_id"`
	Email       *string        `json:"email"`
	FirstName   *string        `json:"first_name"`
	LastName    *string        `json:"last_name"`
	Permissions map[string]any `json:"permissions"`
	JoinedAt    time.Time      `json:"joined_at"`
	Revision    int64          `json:"revision"`
}

// Invite is the body of an invitation.
func Invite(email, permissions string) map[string]any {
	return map[string]any{"email": email, "permissions": json.RawMessage(permissions)}
}

// Join invites a guest to a workspace and accepts for them.
func (p Person) Join(o *Server, guest Person, permissions string) {
	o.T.Helper()
	p.POST("/api/v1/workspaces/"+p.Workspace+"/invitations", Invite(guest.User.Email, permissions)).Status(201)
	_, token := Link(o.T, o.Mailed(guest.User.Email, InviteSubject, 1))
	guest.POST("/api/v1/invitations/accept", map[string]string{"token": token}).Status(200)
}

const Auth = "/api/v1/auth"

// Cookies returns the cookies that a response sets, by name.
func Cookies(r *http.Response) map[string]*http.Cookie {
	set := map[string]*http.Cookie{}
	for _, c := range r.Cookies() {
		set[c.Name] = c
	}
	return set
}

// Opened returns the personal values in a database's log that can still be opened.
func Opened(t *testing.T, url string) (texts []string) {
	t.Helper()
	sys, err := Settings(t, url).Open(t.Context(), false)
	require.NoError(t, err)
	defer sys.Close()
	for stored, err := range sys.Store.ReadAll(t.Context(), 0, eventstore.Forwards) {
		require.NoError(t, err)
		if !strings.HasPrefix(stored.Stream, user.Kind.Category()+"-") {
			continue
		}
		r, err := user.Kind.Decode(stored)
		require.NoError(t, err)
		var values []event.Personal
		switch e := r.Data.(type) {
		case user.Registered:
			values = []event.Personal{e.Email, e.FirstName, e.LastName}
		case user.EmailChanged:
			values = []event.Personal{e.Email, e.Before}
		case user.EmailRestored:
			values = []event.Personal{e.Email}
		case user.ProfileChanged:
			values = []event.Personal{e.FirstName, e.LastName, e.Phone}
		}
		for _, value := range values {
			if value.IsZero() {
				continue
			}
			text, err := sys.Vault.OpenValue(t.Context(), value.Sealed)
			if !errors.Is(err, event.ErrErased) {
				require.NoError(t, err)
				texts = append(texts, text)
			}
		}
	}
	return texts
}

// Receives stores a message from a network. It adds an id and a time if the message has none.
func (o *Server) Receives(m messagingcmd.InboundMessage) commands.Outcome[message.State] {
	o.T.Helper()
	m.ProviderID = cmp.Or(m.ProviderID, uuid.NewString())
	if m.SentAt.IsZero() {
		m.SentAt = time.Now()
	}
	out, err := o.Sys.Messages.Receive(o.T.Context(), m)
	require.NoError(o.T, err)
	return out
}
