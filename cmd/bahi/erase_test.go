package main_test

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

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/internal/pgcluster"
	"bahi/internal/pgtest"
)

// marker is in the picture that is uploaded, as a camera leaves its owner's name in it.
const marker = "taken by Zéphyrine's camera, No. 4711-0815"

// photograph is a picture with the marker in an EXIF segment and in a comment, as a form.
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
	photo := bytes.Join([][]byte{plain.Bytes()[:2], segment(0xe1, "Exif\x00\x00"+marker), segment(0xfe, marker), plain.Bytes()[2:]}, nil)
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	part, err := w.CreateFormFile("file", "Zephyrine-Quillfeather.jpg")
	require.NoError(t, err)
	_, err = part.Write(photo)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return w.FormDataContentType(), body.Bytes()
}

// cluster does something with the private cluster of a data folder, beside who serves it.
func cluster(t *testing.T, data string, do func(url string)) {
	t.Helper()
	c, err := pgcluster.Attach(t.Context(), pgcluster.Options{Dir: data, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Stop(context.WithoutCancel(t.Context()))) }()
	do(c.URL())
}

// storedPicture is a part of the only picture in a data folder.
func storedPicture(t *testing.T, data string) (part string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(filepath.Join(data, "blobs"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != "" { // beside it is what type it is of
			return err
		}
		content, err := os.ReadFile(path)
		part = string(content[len(content)/2:][:64])
		return err
	}))
	require.NotEmpty(t, part)
	return part
}

// addresses are Zéphyrine's, in turn.
var addresses = [3]string{"zephyrine.quillfeather@example.org", "zq1987.contact@example.net", "madame.quillfeather-o@example.com"}

// life is what a person did, and what there is to be known of them.
type life struct {
	*office

	known     *traces
	asha      person // whom they know
	account   int64  // of theirs, with a row
	workspace string // theirs
	id        string
	person    person
	undo      string // token that would give them their former address back
}

// live lets Zéphyrine have an account at a serving process and do all that leaves something behind.
func live(t *testing.T, p *process, data string) *life {
	t.Helper()
	l := &life{office: visited(p, data), known: newTraces(t)}
	l.asha = l.office.person("asha@example.org")
	l.known.know(addresses[:]...)

	// They register, with a try that fails, verify the address, and sign in.
	const password = "sixteen quills of Zanzibar"
	me := map[string]string{"email": addresses[0], "password": password, "first_name": "Zéphyrine", "last_name": "Quillfeather"}
	l.stranger().POST("/api/v1/auth/register", map[string]string{"email": addresses[0], "password": "Quillfeather", "first_name": "Zéphyrine", "last_name": "Quillfeather"}).Status(422)
	l.stranger().POST("/api/v1/auth/register", me).Status(201)
	l.stranger().POST("/api/v1/auth/register", me).Status(409)
	l.known.know("Zéphyrine", "Quillfeather", password)
	_, token := link(t, l.mailed(addresses[0], verifySubject, 1))
	l.known.know(token)
	l.stranger().POST("/api/v1/auth/login", map[string]string{"email": addresses[0], "password": "wrong"}).Status(401)
	l.stranger().POST("/api/v1/auth/verify-email", map[string]string{"token": token}).Status(200)
	in := l.signIn(addresses[0], password)
	l.known.know(in.Access, in.Refresh)
	var renewed tokens
	l.stranger().POST("/api/v1/auth/refresh", map[string]string{"refresh_token": in.Refresh}).Status(200).JSON(&renewed)
	l.known.know(renewed.Access, renewed.Refresh)
	l.person = person{Client: l.bearer(renewed.Access), signedIn: in}
	l.id, l.workspace = in.User.ID, l.person.me().WorkspaceID

	// A picture, and another one in its place.
	contentType, form := photograph(t)
	for range 2 {
		l.person.With("Content-Type", contentType).POST("/api/v1/users/me/profile-picture", form).Status(200)
		l.known.add("the stored picture", storedPicture(t, data))
	}
	l.known.know(marker)

	// Other names, numbers and addresses, twice.
	for i, other := range [][3]string{{"Wilhelmina", "Ostrogorsky", "+919812340987"}, {"Xanthippe", "Brandywine", "+919765401234"}} {
		email := addresses[i+1]
		l.person.PUT("/api/v1/users/me", map[string]string{"email": email, "first_name": other[0], "last_name": other[1], "phone": other[2]}).Status(200)
		l.known.know(other[0], other[1], strings.TrimPrefix(other[2], "+91"))
		_, l.undo = link(t, l.mailed(addresses[i], "Your email address at Bahi was changed", 1))
		_, token := link(t, l.mailed(email, verifySubject, 1))
		l.known.know(token, l.undo)
		l.stranger().POST("/api/v1/auth/verify-email", map[string]string{"token": token}).Status(200)
	}
	l.stranger().POST("/api/v1/auth/password-reset/request", map[string]string{"email": addresses[2]}).Status(200)
	_, token = link(t, l.mailed(addresses[2], resetSubject, 1))
	l.known.know(token)

	// They are invited where they were known before and where they are now, and invite.
	for i, email := range addresses[1:] {
		l.asha.POST("/api/v1/workspaces/"+l.asha.workspace+"/invitations", fmt.Sprintf(`{"email":%q,"permissions":{"ledger":"read"}}`, email)).Status(201)
		_, token := link(t, l.mailed(email, inviteSubject, 1))
		l.known.know(token)
		if i == 1 {
			l.person.POST("/api/v1/invitations/accept", map[string]string{"token": token}).Status(200)
		}
	}
	l.person.POST("/api/v1/workspaces/"+l.workspace+"/invitations", `{"email":"asha@example.org","permissions":{"ledger":"read","marketplace":"read"}}`).Status(201)
	_, token = link(t, l.mailed("asha@example.org", inviteSubject, 1))
	l.asha.POST("/api/v1/invitations/accept", map[string]string{"token": token}).Status(200)

	l.account = open(l.person.Client, "HDFC")
	post(l.person.Client, l.account, deposit("2025-03-01", "12.5"))
	return l
}

// members are those of a workspace, as Asha reads them.
func (l *life) members(workspace string) string {
	return l.asha.With("Bahi-Workspace", workspace).GET("/api/v1/workspaces/" + workspace + "/members").Status(200).Text
}

// books is what Asha reads of the books that were theirs.
func (l *life) books() string {
	return balances(l.asha.With("Bahi-Workspace", l.workspace), ledger(l.account))
}

// doctor and rebuild are an operator's at a data folder.
func doctor(t *testing.T, data string) {
	t.Helper()
	out, wrong, status := execute(t, command(t, data, "doctor"))
	require.Equal(t, 0, status, out+wrong)
}

func rebuild(t *testing.T, data string) {
	t.Helper()
	_, wrong, status := execute(t, command(t, data, "projections", "rebuild"))
	require.Equal(t, 0, status, wrong)
}

func TestWhoIsErasedLeavesNoTrace(t *testing.T) {
	t.Parallel()
	data := pgtest.Dir(t)
	endCluster(t, data)
	serving := func() *process {
		cmd := command(t, data, "serve")
		cmd.Env = append(cmd.Env, "BAHI_DELETION_GRACE=1s", "BAHI_ADMIN_EMAIL=office@example.org", "BAHI_LOG_LEVEL=DEBUG",
			"BAHI_LIMIT_AUTH=1000/1m", "BAHI_LIMIT_USERS_PICTURE=1000/1m")
		p := serve(t, cmd)
		p.ready()
		return p
	}
	p := serving()
	l := live(t, p, data)
	require.Equal(t, "03-01 12.5", l.books())
	require.Contains(t, l.members(l.asha.workspace), "Brandywine")
	// The tables were folded anew, which leaves those from before, and the planner's knowledge of both has
	// values of theirs.
	doctor(t, data)
	rebuild(t, data)
	cluster(t, data, func(url string) {
		conn, err := pgx.Connect(t.Context(), url)
		require.NoError(t, err)
		defer conn.Close(t.Context())
		_, err = conn.Exec(t.Context(), `analyze`)
		require.NoError(t, err)
		kept := strings.Join(append(l.known.inFiles(data), l.known.inDatabase(url)...), "\n")
		for _, text := range append(addresses[:], "Zéphyrine", "Quillfeather", "Brandywine", "9765401234", "the stored picture") {
			require.Contains(t, kept, ": "+text+"\n", "the search finds what there is")
		}
		require.Contains(t, kept, "pg_catalog.pg_statistic: "+addresses[2])
		require.NotContains(t, kept, marker, "a camera's words are not kept at all")
	})

	// Somebody who reads for long sees the tables as they were before.
	cluster(t, data, func(url string) {
		reader, err := pgx.Connect(t.Context(), url)
		require.NoError(t, err)
		defer reader.Close(t.Context())
		_, err = reader.Exec(t.Context(), `begin isolation level repeatable read; select count(*) from pg_class`)
		require.NoError(t, err)
		l.person.POST("/api/v1/users/me/delete-request", nil).Status(200)
		p.until(func(said, _ string) bool {
			return strings.Contains(said, `msg="an erasure waits for older transactions to end"`)
		})
		_, err = reader.Exec(t.Context(), `rollback`)
		require.NoError(t, err)
		p.until(func(said, _ string) bool {
			return strings.Contains(said, `msg="a user was erased" user=`+l.id) && strings.Contains(said, `msg="Postgres has forgotten who was erased"`)
		})

		require.Empty(t, l.known.inDatabase(url))
		require.Empty(t, l.known.inFiles(data))
	})
	require.Empty(t, l.known.in("the server's log", []byte(p.text())))
	require.Contains(t, l.mailed("office@example.org", "An account is to be deleted", 1), l.id)
	l.person.GET("/api/v1/users/me").Status(401)
	members := l.members(l.workspace)
	require.NotContains(t, members, l.id)
	require.NotContains(t, l.members(l.asha.workspace), l.id)
	require.Equal(t, "03-01 12.5", l.books(), "the books stay")

	l.stranger().POST("/api/v1/auth/email-change/undo", map[string]string{"token": l.undo}).Problem(400, "Invalid or expired undo token")

	doctor(t, data)
	rebuild(t, data)
	require.Equal(t, members, l.members(l.workspace))
	require.Equal(t, "03-01 12.5", l.books())
	doctor(t, data)
	p.stop()
	require.Empty(t, l.known.inFiles(data), "nor when it has ended")

	again := visited(serving(), data)
	require.Equal(t, addresses[2], again.person(addresses[2]).me().Email, "the address is free")
	again.bearer(again.signIn("asha@example.org", goodPassword).Access).POST("/api/v1/workspaces/"+l.asha.workspace+"/invitations",
		fmt.Sprintf(`{"email":%q,"permissions":{"ledger":"read"}}`, addresses[2])).Status(201)
	again.mailed(addresses[2], inviteSubject, 1)
}
