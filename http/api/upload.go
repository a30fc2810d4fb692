package api

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"bahi/domain/fault"
)

// File is an uploaded file. An operation whose input has a field of this type takes a form
// (multipart/form-data, RFC 7578) with one file, in its field "file", and no JSON. [Op.MaxBody] is what
// the file may have.
//
//   - A body that is no such form is 415, a form that cannot be read or breaks off 400.
//   - No file, two, or a text in its place: 422 of the field "file". An empty one too, unless [Op.EmptyFile] says otherwise.
//   - Other fields are passed over, or with [Op.StrictBody] refused with 422.
//   - A larger file is 413, which says how large it may be; so are parts beside it, names and headers
//     included, that have more than 64 KB together.
//   - Whoever sends too slowly ([Pace]) is answered 408.
//
// Two forms are the same request when their parts are: names, types and contents, not the boundary
// between them.
type File struct {
	Name string // as the client calls it, without folders; at most 255 characters
	Type string // the media type that the client says it is of, empty for none: not to be relied on
	Size int64  // in bytes, at least 1

	content *os.File
}

// Open returns the content, from its beginning at each call. It is there until the handler returns.
func (f File) Open() *io.SectionReader { return io.NewSectionReader(f.content, 0, f.Size) }

// Pace is how slowly an upload may come: for each second more than Grace it must have brought Rate
// bytes. So a large file may take long, and who sends nothing is not waited for.
type Pace struct {
	Rate  int64         // bytes a second; 0: 64 KB
	Grace time.Duration // 0: 20 seconds
}

const (
	defaultRate  = 64 << 10
	defaultGrace = 20 * time.Second

	formType    = "multipart/form-data"
	fileField   = "file"
	maxFileName = 255 // characters

	// maxBeside is what a form may have beside its file.
	maxBeside = 64 << 10

	// answerTime is how long an answer may take on its way, once it is made.
	answerTime = 30 * time.Second
)

var errForm = fault.New(fault.Malformed, "The form cannot be read, or breaks off")

var fileType = reflect.TypeFor[File]()

// form finds the file in the input's type.
func (o *operation) form(in reflect.Type) {
	for f := range in.Fields() {
		if f.Type != fileType {
			continue
		}
		_, body := in.FieldByName("Body")
		_, raw := in.FieldByName("RawBody")
		if body || raw || o.file != nil || !o.write() {
			panic("operation " + o.ID + ": a form has one file, and no other body")
		}
		o.file = f.Index
	}
}

// documentForm is what the document says of the body.
func (o *operation) documentForm() *huma.RequestBody {
	return &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{formType: {Schema: &huma.Schema{
		Type: huma.TypeObject, Required: []string{fileField}, AdditionalProperties: !o.StrictBody,
		Properties: map[string]*huma.Schema{
			fileField: {Type: huma.TypeString, Format: "binary", Description: "At most " + inWords(o.MaxBody)},
		},
	}}}}
}

func (o *operation) fileTooLarge() error {
	return fault.Newf(fault.TooLarge, "The file is too large: at most %s", inWords(o.MaxBody))
}

func inWords(bytes int64) string {
	switch {
	case bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MB", bytes>>20)
	case bytes%(1<<10) == 0:
		return fmt.Sprintf("%d KB", bytes>>10)
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// receive takes the form in. The file goes to a disk, so that slow and large ones hold no memory.
func (c *call) receive() error {
	boundary, err := boundaryOf(c.r.Header)
	if err != nil {
		return err
	}
	if c.r.ContentLength > c.op.MaxBody+maxBeside {
		return c.op.fileTooLarge()
	}
	body := c.newFormBody()
	defer body.done()
	// To the package's reader a body that ends behind a boundary looks like a form that is complete. So the
	// body has another end for it, and io.EOF is only what comes of the last boundary.
	form := multipart.NewReader(io.MultiReader(body, strings.NewReader("\r\n"), cutOff{}), boundary)
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return body.because()
		}
		if err := c.take(part, body); err != nil {
			return err
		}
	}
	switch {
	case c.file.content == nil:
		return invalidFile("is required")
	case c.file.Size == 0 && c.op.EmptyFile != nil:
		return c.op.EmptyFile
	case c.file.Size == 0:
		return invalidFile("must not be empty")
	}
	return nil
}

// cutOff is where a form must not come to.
type cutOff struct{}

func (cutOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func invalidFile(message string) error {
	return fault.Fields(fault.Field{Field: fileField, Message: message})
}

// boundaryOf returns what is between the parts (RFC 2046, 5.1.1).
func boundaryOf(h http.Header) (string, error) {
	kind, parameters, err := mime.ParseMediaType(h.Get("Content-Type"))
	encoding := h.Get("Content-Encoding")
	if kind != formType || encoding != "" && !strings.EqualFold(encoding, "identity") {
		p := problemOf(http.StatusUnsupportedMediaType)
		p.Detail = "The body must be " + formType
		return "", p
	}
	if err != nil || parameters["boundary"] == "" {
		return "", errForm
	}
	return parameters["boundary"], nil
}

// take reads one part, and adds it to what makes the request the same.
func (c *call) take(part *multipart.Part, body *formBody) error {
	name, fileName := part.FormName(), part.FileName()
	sum := sha256.New()
	switch {
	case name == "":
		return errForm
	case name == fileField:
		if err := c.takeFile(part, body, sum); err != nil {
			return err
		}
	case c.op.StrictBody:
		return fault.Fields(fault.Field{Field: shortened(name), Message: "unknown field"})
	default:
		if _, err := io.Copy(sum, part); err != nil {
			return body.because()
		}
	}
	for _, text := range []string{name, fileName, part.Header.Get("Content-Type")} {
		c.print.part([]byte(text))
	}
	c.print.part(sum.Sum(nil))
	return nil
}

func (c *call) takeFile(part *multipart.Part, body *formBody, sum io.Writer) error {
	name := part.FileName()
	switch {
	case c.file.content != nil:
		return invalidFile("must be given once")
	case name == "":
		return invalidFile("expected a file")
	case !sane(name) || utf8.RuneCountInString(name) > maxFileName || strings.ContainsFunc(name, unicode.IsControl):
		return invalidFile("expected a name of at most 255 characters, without control characters")
	}
	kind, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type")) // empty when it is none
	content, err := c.api.temporary()
	c.file.content = content // discard closes it
	if err != nil {
		return fmt.Errorf("keep an upload: %w", err)
	}
	body.budget += c.op.MaxBody + 1
	kept := &writer{Writer: content}
	size, err := io.Copy(io.MultiWriter(sum, kept), io.LimitReader(part, c.op.MaxBody+1))
	body.budget -= c.op.MaxBody + 1 - size // what the file did not need is not for others
	switch {
	case kept.err != nil:
		return fmt.Errorf("keep an upload: %w", kept.err)
	case err != nil:
		return body.because()
	case size > c.op.MaxBody:
		return c.op.fileTooLarge()
	}
	c.file.Name, c.file.Type, c.file.Size = name, kind, size
	return nil
}

// writer knows whether it was the writing that failed.
type writer struct {
	io.Writer

	err error
}

func (w *writer) Write(p []byte) (n int, err error) {
	n, w.err = w.Writer.Write(p)
	return n, w.err
}

// formBody is a body on its way: it may have so many bytes, and must keep up its pace.
type formBody struct {
	from    io.Reader
	control *http.ResponseController
	pace    Pace
	began   time.Time
	brought int64
	budget  int64
	err     error // why it ended, if not at its end
	answer  time.Duration
}

func (c *call) newFormBody() *formBody {
	b := &formBody{
		from: c.r.Body, control: http.NewResponseController(c.ResponseWriter), pace: c.api.config.Uploads,
		began: time.Now(), budget: maxBeside, answer: c.api.config.Timeout + answerTime,
	}
	if b.pace.Rate <= 0 {
		b.pace.Rate = defaultRate
	}
	if b.pace.Grace <= 0 {
		b.pace.Grace = defaultGrace
	}
	return b
}

func (b *formBody) Read(p []byte) (int, error) {
	if b.budget <= 0 {
		b.err = errBodyLarge
		return 0, b.err
	}
	// The server's own deadlines are for bodies of at most 1 MB. A ResponseWriter that has none, in a
	// test, needs no other.
	earned := time.Duration(b.brought) * time.Second / time.Duration(b.pace.Rate)
	_ = b.control.SetReadDeadline(b.began.Add(b.pace.Grace + earned))
	n, err := b.from.Read(p[:min(int64(len(p)), b.budget)])
	b.brought += int64(n)
	b.budget -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = broken(err)
	}
	return n, err
}

// because returns why the form could not be read on.
func (b *formBody) because() error {
	if b.err != nil {
		return b.err
	}
	return errForm
}

// done gives the handler and its answer their own time, however long the upload took.
func (b *formBody) done() {
	until := time.Now().Add(b.answer)
	_ = b.control.SetReadDeadline(until) // its passing would cancel the handler's context
	_ = b.control.SetWriteDeadline(until)
}

// discard ends what is left of the file.
func (c *call) discard() {
	if c.file.content != nil {
		_ = c.file.content.Close() // it has no name, and nobody reads it again
		c.file = File{}
	}
}
