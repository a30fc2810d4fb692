package apptest

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"io/fs"
	"log/slog"
	"mime/multipart"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/pgcluster"
)

// Marker is text in the uploaded picture, like the owner's name that a camera adds.
const Marker = "taken by Zéphyrine's camera, No. 4711-0815"

// photograph returns a form with a picture, which has the marker in an EXIF segment and in a comment.
func photograph(t *testing.T) (contentType string, form []byte) {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, 300, 200))
	for i := range m.Pix {
		m.Pix[i] = byte(i * i >> 7)
	}
	m.Set(1, 1, color.White)
	var plain bytes.Buffer
	require.NoError(t, jpeg.Encode(&plain, m, nil))
	segment := func(kind byte, content string) []byte {
		return append([]byte{0xff, kind, byte((len(content) + 2) >> 8), byte(len(content) + 2)}, content...)
	}
	photo := bytes.Join([][]byte{plain.Bytes()[:2], segment(0xe1, "Exif\x00\x00"+Marker), segment(0xfe, Marker), plain.Bytes()[2:]}, nil)
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	part, err := w.CreateFormFile("file", "Zephyrine-Quillfeather.jpg")
	require.NoError(t, err)
	_, err = part.Write(photo)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return w.FormDataContentType(), body.Bytes()
}

// Cluster calls do on the embedded Postgres of a data folder, beside a server.
func Cluster(t *testing.T, data string, do func(url string)) {
	t.Helper()
	c, err := pgcluster.Attach(t.Context(), pgcluster.Options{Dir: data, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Stop(context.WithoutCancel(t.Context()))) }()
	do(c.URL())
}

// storedPicture returns a part of the only picture in a data folder.
func storedPicture(t *testing.T, data string) (part string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(filepath.Join(data, "blobs"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != "" { // the file beside it has the picture's type
			return err
		}
		content, err := os.ReadFile(path)
		part = string(content[len(content)/2:][:64])
		return err
	}))
	require.NotEmpty(t, part)
	return part
}

// Addresses are Zéphyrine's email addresses, in their order.
var Addresses = [3]string{"zephyrine.quillfeather@example.org", "zq1987.contact@example.net", "madame.quillfeather-o@example.com"}

// life has the traces of a person: actions, and texts to search for.
type life struct {
	*Server

	Known     *traces
	Asha      Person // another user, whom they know
	account   int64  // their account, with a row
	Workspace string // their own
	Id        string
	Person    Person
	Undo      string // token that would restore their former address
}

// Live uses every operation that stores something, at a server, as Zéphyrine.
func Live(t *testing.T, p *Process, data string) *life {
	t.Helper()
	l := &life{Server: Visited(p, data), Known: NewTraces(t)}
	l.Asha = l.Server.Person("asha@example.org")
	l.Known.Know(Addresses[:]...)

	// They register, with a failed try, verify the address, and sign in.
	const password = "sixteen quills of Zanzibar"
	me := map[string]string{"email": Addresses[0], "password": password, "first_name": "Zéphyrine", "last_name": "Quillfeather"}
	l.Anonymous().POST("/api/v1/auth/register",
		map[string]string{"email": Addresses[0], "password": "Quillfeather", "first_name": "Zéphyrine", "last_name": "Quillfeather"}).Status(422)
	l.Anonymous().POST("/api/v1/auth/register", me).Status(201)
	l.Anonymous().POST("/api/v1/auth/register", me).Status(409)
	l.Known.Know("Zéphyrine", "Quillfeather", password)
	_, token := Link(t, l.Mailed(Addresses[0], VerifySubject, 1))
	l.Known.Know(token)
	l.Anonymous().POST("/api/v1/auth/login", map[string]string{"email": Addresses[0], "password": "wrong"}).Status(401)
	l.Anonymous().POST("/api/v1/auth/verify-email", map[string]string{"token": token}).Status(200)
	in := l.SignIn(Addresses[0], password)
	l.Known.Know(in.Access, in.Refresh)
	var renewed Tokens
	l.Anonymous().POST("/api/v1/auth/refresh", map[string]string{"refresh_token": in.Refresh}).Status(200).JSON(&renewed)
	l.Known.Know(renewed.Access, renewed.Refresh)
	l.Person = Person{Client: l.Bearer(renewed.Access), SignedIn: in}
	l.Id, l.Workspace = in.User.ID, l.Person.Me().WorkspaceID

	// They upload a picture, and replace it.
	contentType, form := photograph(t)
	for range 2 {
		l.Person.With("Content-Type", contentType).POST("/api/v1/users/me/profile-picture", form).Status(200)
		l.Known.add("the stored picture", storedPicture(t, data))
	}
	l.Known.Know(Marker)

	// They change names, numbers and addresses, twice.
	for i, other := range [][3]string{{"Wilhelmina", "Ostrogorsky", "+919812340987"}, {"Xanthippe", "Brandywine", "+919765401234"}} {
		email := Addresses[i+1]
		l.Person.PUT("/api/v1/users/me",
			map[string]string{"email": email, "first_name": other[0], "last_name": other[1], "phone": other[2]}).Status(200)
		l.Known.Know(other[0], other[1], strings.TrimPrefix(other[2], "+91"))
		_, l.Undo = Link(t, l.Mailed(Addresses[i], "Your email address at Bahi was changed", 1))
		_, token := Link(t, l.Mailed(email, VerifySubject, 1))
		l.Known.Know(token, l.Undo)
		l.Anonymous().POST("/api/v1/auth/verify-email", map[string]string{"token": token}).Status(200)
	}
	l.Anonymous().POST("/api/v1/auth/password-reset/request", map[string]string{"email": Addresses[2]}).Status(200)
	_, token = Link(t, l.Mailed(Addresses[2], ResetSubject, 1))
	l.Known.Know(token)

	// They are invited at their former and present addresses, and invite.
	for i, email := range Addresses[1:] {
		l.Asha.POST("/api/v1/workspaces/"+l.Asha.Workspace+"/invitations",
			fmt.Sprintf(`{"email":%q,"permissions":{"ledger":"read"}}`, email)).Status(201)
		_, token := Link(t, l.Mailed(email, InviteSubject, 1))
		l.Known.Know(token)
		if i == 1 {
			l.Person.POST("/api/v1/invitations/accept", map[string]string{"token": token}).Status(200)
		}
	}
	l.Person.POST("/api/v1/workspaces/"+l.Workspace+"/invitations",
		`{"email":"asha@example.org","permissions":{"ledger":"read","marketplace":"read"}}`).Status(201)
	_, token = Link(t, l.Mailed("asha@example.org", InviteSubject, 1))
	l.Asha.POST("/api/v1/invitations/accept", map[string]string{"token": token}).Status(200)

	l.account = Open(l.Person.Client, "HDFC")
	Post(l.Person.Client, l.account, Deposit("2025-03-01", "12.5"))
	return l
}

// Members returns the members of a workspace, as Asha reads them.
func (l *life) Members(workspace string) string {
	return l.Asha.With("Bahi-Workspace", workspace).GET("/api/v1/workspaces/" + workspace + "/members").Status(200).Text
}

// Books returns their former books, as Asha reads them.
func (l *life) Books() string {
	return Balances(l.Asha.With("Bahi-Workspace", l.Workspace), Ledger(l.account))
}
