package apptest

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	endian "encoding/binary"
	"encoding/hex"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"io/fs"
	"log/slog"
	"mime/multipart"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/domain/access/user"
	"bahi/internal/app"
	"bahi/internal/pgcluster"
	"bahi/internal/test/apitest"
	"bahi/internal/test/pgtest"
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
	renewed := apitest.Read[Tokens](l.Anonymous().POST("/api/v1/auth/refresh", map[string]string{"refresh_token": in.Refresh}).Status(200))
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

	// Asha invites the person at the former and present addresses. The person invites Asha.
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

// Erased requests a user's deletion, and waits for the erasure.
func (o *Server) Erased(p Person) {
	o.T.Helper()
	p.POST(Me+"/delete-request", nil).Status(200)
	id := uuid.MustParse(p.User.ID)
	require.Eventually(o.T, func() bool {
		l, err := commands.Load(o.T.Context(), o.Sys.Commands.Fresh(), user.Kind, id.String())
		require.NoError(o.T, err)
		return l.State.Erased
	}, time.Minute, 20*time.Millisecond)
}

// StartErasing serves a system that erases users without a grace.
func StartErasing(t *testing.T, adapt ...func(*app.System)) *Server {
	t.Helper()
	s := Settings(t, Database(t))
	s.Outside.Grace = new(time.Millisecond)
	return StartAs(t, s, adapt...)
}

// prefixSize is the length of the looked-up prefix of a trace, in bytes.
const prefixSize = 4

// traces are the byte strings that identify a person, by their first bytes.
type traces struct {
	t     *testing.T
	begin [1 << 16]bool // the first two bytes of any
	from  map[[prefixSize]byte][]sign
}

type sign struct {
	bytes string
	of    string // the text and its form
}

func NewTraces(t *testing.T) *traces { return &traces{t: t, from: map[[prefixSize]byte][]sign{}} }

// add adds a byte string to look for.
func (x *traces) add(of, bytes string) {
	x.t.Helper()
	require.GreaterOrEqual(x.t, len(bytes), prefixSize, of)
	x.begin[endian.LittleEndian.Uint16([]byte(bytes))] = true
	prefix := [prefixSize]byte([]byte(bytes))
	x.from[prefix] = append(x.from[prefix], sign{bytes, of})
}

// Know adds texts in every form in which a program could have stored them.
func (x *traces) Know(texts ...string) {
	x.t.Helper()
	for _, text := range texts {
		x.add(text, text)
		for _, cased := range slices.Compact([]string{text, strings.ToLower(text), strings.ToUpper(text)}) {
			x.add(text+" in another case", cased)
			x.add(text+" in UTF-16", InUTF16(endian.LittleEndian, cased))
			x.add(text+" in UTF-16", InUTF16(endian.BigEndian, cased))
			x.add(text+" in hex", hex.EncodeToString([]byte(cased)))
			x.add(text+" escaped", url.QueryEscape(cased))
			for shift := range 3 { // a text may begin at any bit of the base64 around it
				inside := base64.RawStdEncoding.EncodeToString([]byte("\x00\x00\x00"[:shift] + cased))
				x.add(text+" in base64", inside[(shift*8+5)/6:len(inside)-1])
			}
			of256, of1, of5 := sha256.Sum256([]byte(cased)), sha1.Sum([]byte(cased)), md5.Sum([]byte(cased))
			for name, sum := range map[string][]byte{"SHA-256": of256[:], "SHA-1": of1[:], "MD5": of5[:]} {
				x.add(name+" of "+text, string(sum))
				x.add(name+" of "+text+" in hex", hex.EncodeToString(sum))
				x.add(name+" of "+text+" in hex", strings.ToUpper(hex.EncodeToString(sum)))
				x.add(name+" of "+text+" in base64", base64.RawStdEncoding.EncodeToString(sum))
				x.add(name+" of "+text+" in base64", base64.RawURLEncoding.EncodeToString(sum))
			}
		}
	}
}

func InUTF16(order endian.AppendByteOrder, text string) string {
	var b []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, unit)
	}
	return string(b)
}

// In returns the traces found in data, each once.
func (x *traces) In(where string, data []byte) (found []string) {
	for i := range max(0, len(data)-prefixSize+1) {
		if !x.begin[endian.LittleEndian.Uint16(data[i:])] {
			continue
		}
		for _, known := range x.from[[prefixSize]byte(data[i:])] {
			if len(data)-i >= len(known.bytes) && string(data[i:i+len(known.bytes)]) == known.bytes {
				found = append(found, where+": "+known.of)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// InFiles searches every file of a folder, and its name. It ignores files that disappear meanwhile.
func (x *traces) InFiles(folder string) (found []string) {
	x.t.Helper()
	files, bytes := 0, 0
	require.NoError(x.t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			if os.IsNotExist(err) {
				return nil
			}
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		files, bytes = files+1, bytes+len(data)
		found = append(found, x.In(strings.TrimPrefix(path, folder), append([]byte(path+"\n"), data...))...)
		return nil
	}))
	x.t.Logf("%d files, %d MB, %d traces", files, bytes>>20, len(found))
	return found
}

// InDatabase searches every table of every schema, including Postgres's own and the log.
func (x *traces) InDatabase(url string) (found []string) {
	x.t.Helper()
	conn, err := pgx.Connect(x.t.Context(), url)
	require.NoError(x.t, err)
	defer conn.Close(x.t.Context())
	tables := pgtest.Values[string](x.t, conn, `
		select format('%I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind in ('r', 'm')`)
	require.Contains(x.t, tables, "log.event")
	for _, table := range tables {
		all := pgtest.Values[string](x.t, conn, `select row::text from `+table+` row`)
		found = append(found, x.In(table, []byte(strings.Join(all, "\n")))...)
	}
	return found
}
