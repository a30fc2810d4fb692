package api

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"bahi/domain/fault"
)

// File is an uploaded file. An operation with a field of this type in its input accepts a form (multipart/form-data, RFC 7578) with one
// file in the field "file", and no JSON. [Op.MaxBody] limits the file.
//
//   - A body that is no such form is 415, an unreadable or incomplete form 400.
//   - No file, two, or a text in its place: 422 of the field "file". An empty file is 422 too, unless [Op.EmptyFile] is set.
//   - With [Op.AnyField] a file in another field counts too.
//   - Other fields are its Texts, or with [Op.StrictBody] refused with 422.
//   - A larger file is 413, with the allowed size in the response; so are other parts, names and headers
//     included, of more than 64 KB together.
//   - A client that sends too slowly ([Pace]) gets 408.
//
// Two forms are the same request if their parts have the same names, types and contents. The boundary may differ.
type File struct {
	Name string // the client's name, without folders; at most 255 characters
	Type string // the client's media type, "" without one: unreliable
	Size int64  // in bytes, at least 1

	Texts map[string]string // the form's other fields

	content *os.File
}

// Open returns a new reader of the content. It is valid until the handler returns.
func (f File) Open() *io.SectionReader { return io.NewSectionReader(f.content, 0, f.Size) }

// Pace is the minimum rate of an upload: for each second after Grace, the client must have sent Rate bytes. So a large file may take long,
// and a silent client is disconnected.
type Pace struct {
	Rate  int64         // bytes a second; 0: 64 KB
	Grace time.Duration // 0: 20 seconds
}

const (
	formType    = "multipart/form-data"
	fileField   = "file"
	maxFileName = 255 // characters

	// maxBeside is the maximum size of all other parts of a form together.
	maxBeside = 64 << 10

	// answerTime is the timeout for sending a complete response.
	answerTime = 30 * time.Second
)

var errForm = fault.New(fault.Malformed, "The form cannot be read, or breaks off")

// Text is a field of a form besides the file.
type Text struct {
	Name, Doc         string
	Integer, Required bool
}

func (o *operation) fileTooLarge() error {
	return fault.Newf(fault.TooLarge, "The file is too large: at most %s", InWords(o.MaxBody))
}

// InWords returns a number of bytes in words.
func InWords(bytes int64) string {
	switch {
	case bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MB", bytes>>20)
	case bytes%(1<<10) == 0:
		return fmt.Sprintf("%d KB", bytes>>10)
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// receive reads the form. The file goes to disk, so slow and large ones use no memory.
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
	// multipart treats a body that ends after any boundary as a complete form. So this body ends with a special error, and only the last
	// boundary gives io.EOF.
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
		return fault.Wrong(fileField, "is required")
	case c.file.Size == 0 && c.op.EmptyFile != nil:
		return c.op.EmptyFile
	case c.file.Size == 0:
		return fault.Wrong(fileField, "must not be empty")
	}
	return nil
}

// cutOff is the end of an interrupted form. The reader of a complete form never reaches it.
type cutOff struct{}

func (cutOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// boundaryOf returns the boundary between the parts (RFC 2046, 5.1.1).
func boundaryOf(h http.Header) (string, error) {
	kind, parameters, err := mime.ParseMediaType(h.Get("Content-Type"))
	encoding := h.Get("Content-Encoding")
	if kind != formType || encoding != "" && !strings.EqualFold(encoding, "identity") {
		p := ProblemOf(http.StatusUnsupportedMediaType)
		p.Detail = "The body must be " + formType
		return "", p
	}
	if err != nil || parameters["boundary"] == "" {
		return "", errForm
	}
	return parameters["boundary"], nil
}

// take reads one part, and adds it to the request's fingerprint.
func (c *call) take(part *multipart.Part, body *formBody) error {
	name, fileName := part.FormName(), part.FileName()
	sum := sha256.New()
	switch {
	case name == "":
		return errForm
	case name == fileField, c.op.AnyField && fileName != "":
		if err := c.takeFile(part, body, sum); err != nil {
			return err
		}
	case c.op.StrictBody:
		return fault.Wrong(shortened(name), unknownField)
	default:
		var text strings.Builder
		if _, err := io.Copy(io.MultiWriter(sum, &text), part); err != nil {
			return body.because()
		}
		if c.file.Texts == nil {
			c.file.Texts = map[string]string{}
		}
		c.file.Texts[name] = text.String()
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
		return fault.Wrong(fileField, "must be given once")
	case name == "":
		return fault.Wrong(fileField, "expected a file")
	case !sane(name) || utf8.RuneCountInString(name) > maxFileName || strings.ContainsFunc(name, unicode.IsControl):
		return fault.Wrong(fileField, "expected a name of at most 255 characters, without control characters")
	}
	kind, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type")) // "" if it is invalid
	content, err := c.api.temporary()
	c.file.content = content // release closes it
	if err != nil {
		return fmt.Errorf("keep an upload: %w", err)
	}
	body.budget += c.op.MaxBody + 1
	size, err := io.Copy(io.MultiWriter(sum, content), io.LimitReader(part, c.op.MaxBody+1))
	body.budget -= c.op.MaxBody + 1 - size // other parts cannot use the rest of the file's limit
	if kept, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("keep an upload: %w", kept)
	}
	switch {
	case err != nil:
		return body.because()
	case size > c.op.MaxBody:
		return c.op.fileTooLarge()
	}
	c.file.Name, c.file.Type, c.file.Size = name, kind, size
	return nil
}

// formBody is the body of a form with its byte budget and its pace.
type formBody struct {
	from    io.Reader
	control *http.ResponseController
	pace    Pace
	began   time.Time
	brought int64
	budget  int64
	err     error // reason for an early end
	answer  time.Duration
}

func (c *call) newFormBody() *formBody {
	return &formBody{
		from: c.r.Body, control: http.NewResponseController(c.ResponseWriter), pace: c.api.config.Uploads,
		began: time.Now(), budget: maxBeside, answer: c.timeout() + answerTime,
	}
}

func (b *formBody) Read(p []byte) (int, error) {
	if b.budget <= 0 {
		b.err = errBodyLarge
		return 0, b.err
	}
	// The server's own deadlines are for bodies of at most 1 MB. Errors are ignored, because a test's ResponseWriter has no deadlines.
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

// because returns the error of an interrupted form.
func (b *formBody) because() error {
	if b.err != nil {
		return b.err
	}
	return errForm
}

// done starts the timeouts of the handler and the response after the upload.
func (b *formBody) done() {
	until := time.Now().Add(b.answer)
	_ = b.control.SetReadDeadline(until) // an expired deadline would cancel the handler's context
	_ = b.control.SetWriteDeadline(until)
}

// release closes the call's files, which have no names.
func (c *call) release() {
	if c.file.content != nil {
		_ = c.file.content.Close() // it is not read again
	}
	c.discard()
}

// discard closes the file of the buffered response.
func (c *call) discard() {
	if s := c.answering; s != nil {
		if s.file != nil {
			_ = s.file.Close()
		}
		c.api.files.Release(s.size)
		c.answering = nil
	}
}
