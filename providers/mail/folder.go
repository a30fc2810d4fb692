package mail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	netmail "net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	gomail "github.com/wneessen/go-mail"
)

// ErrNotKept reports that a folder has no mail of that name.
var ErrNotKept = errors.New("no such mail")

const (
	nameTime  = "20060102T150405.000Z-" // so that names sort by time
	extension = ".eml"
	unwritten = ".tmp"
	// longestLine is the limit of a line without its end, in octets (RFC 5322, section 2.1.1).
	longestLine = 998
)

// Folder stores mail as files: the embedded default. Goroutines may share it; processes must not share its folder.
type Folder struct {
	path string
	from netmail.Address
	now  func() time.Time

	writing sync.Mutex
	sent    map[string]string // names of the mails by ID; nil: the folder was not read yet
}

// Kept is the head of a mail in a folder.
type Kept struct {
	Name    string // name of the file
	SentAt  time.Time
	To      netmail.Address
	Subject string
}

// OpenFolder opens the mail folder at path. It creates a missing folder with mode 0700.
func OpenFolder(path string, from netmail.Address, now func() time.Time) (*Folder, error) {
	if err := checkAddress(from); err != nil {
		return nil, fmt.Errorf("sender: %w", err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("create the mail folder: %w", err)
	}
	if err := os.Chmod(path, 0o700); err != nil { //nolint:gosec // G302: a folder has to be entered
		return nil, fmt.Errorf("close the mail folder to others: %w", err)
	}
	return &Folder{path: path, from: from, now: now}, nil
}

// Send writes the message to <time>-<id>.eml, readable by its owner alone, and returns when the whole file is on disk. Sending the same
// message again replaces its file. Send fails with [Permanent] for a message that no server would accept.
func (f *Folder) Send(ctx context.Context, m Message) error {
	if err := m.check(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	f.writing.Lock()
	defer f.writing.Unlock()
	at := f.now().UTC()
	name := at.Format(nameTime) + m.ID + extension
	if f.sent == nil {
		names, err := f.names()
		if err != nil {
			return err
		}
		f.sent = make(map[string]string, len(names))
		for _, n := range names {
			f.sent[idOf(n)] = n
		}
	}
	if before, again := f.sent[m.ID]; again {
		name = before
	}
	var text bytes.Buffer
	if _, err := m.compose(f.from, at, m.readableEncoding()).WriteTo(&text); err != nil {
		return fmt.Errorf("compose mail %s: %w", m.ID, err)
	}
	if err := f.write(name, text.Bytes()); err != nil {
		return fmt.Errorf("write mail %s: %w", m.ID, err)
	}
	f.sent[m.ID] = name
	return nil
}

// idOf returns the ID of the mail in the named file.
func idOf(name string) string { return strings.TrimSuffix(name[len(nameTime):], extension) }

// readableEncoding returns an encoding that leaves the text readable: an operator copies links from the file in a shell.
func (m Message) readableEncoding() gomail.Encoding {
	for line := range strings.SplitSeq(lf(m.Text), "\n") {
		if len(line) > longestLine || strings.Contains(line, "\x00") {
			return gomail.EncodingQP
		}
	}
	return gomail.NoEncoding
}

func (f *Folder) write(name string, text []byte) error {
	file, err := os.CreateTemp(f.path, "*"+unwritten) // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) //nolint:errcheck // after the rename it has another name
	_, err = file.Write(text)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), filepath.Join(f.path, name)); err != nil {
		return err
	}
	return f.sync()
}

func (f *Folder) sync() error {
	d, err := os.Open(f.path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// List returns at most limit mails, newest first, after the first skip, and the number of all mails. It fails if one file is not a
// mail.
func (f *Folder) List(ctx context.Context, skip, limit int) (kept []Kept, total int, err error) {
	names, err := f.names()
	if err != nil {
		return nil, 0, err
	}
	slices.Reverse(names)
	total = len(names)
	names = names[min(skip, total):]
	names = names[:min(limit, len(names))]
	kept = make([]Kept, 0, len(names))
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		head, _, err := f.read(name)
		if errors.Is(err, ErrNotKept) { // an erasure removed it
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		at, err := time.Parse(nameTime, name[:len(nameTime)])
		if err != nil {
			return nil, 0, fmt.Errorf("mail %s: %w", name, err)
		}
		kept = append(kept, Kept{Name: name, SentAt: at, To: head.To, Subject: head.Subject})
	}
	return kept, total, nil
}

// Read returns the mail in the named file, with line feeds for line ends. It fails with [ErrNotKept] if there is none.
func (f *Folder) Read(ctx context.Context, name string) (Message, error) {
	if err := ctx.Err(); err != nil {
		return Message{}, err
	}
	m, text, err := f.read(name)
	if err != nil {
		return Message{}, err
	}
	parsed, err := gomail.EMLToMsgFromReader(bytes.NewReader(text))
	if err != nil {
		return Message{}, fmt.Errorf("mail %s: %w", name, err)
	}
	for _, part := range parsed.GetParts() {
		content, err := part.GetContent()
		if err != nil {
			return Message{}, fmt.Errorf("mail %s: %w", name, err)
		}
		m.Text = lf(string(content))
	}
	return m, nil
}

// Scrub deletes every mail with one of the marks as a word between hyphens in its ID. It also deletes every half-written file, because the
// recipient is unknown. It continues after an error.
func (f *Folder) Scrub(ctx context.Context, marks ...string) error {
	f.writing.Lock() // no mail is added meanwhile
	defer f.writing.Unlock()
	f.sent = nil
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return fmt.Errorf("read the mail folder: %w", err)
	}
	var failures []error
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(failures, err)...)
		}
		name := entry.Name()
		switch {
		case isName(name):
			if !slices.ContainsFunc(strings.Split(idOf(name), "-"), func(word string) bool { return slices.Contains(marks, word) }) {
				continue
			}
		case !strings.HasSuffix(name, unwritten):
			continue
		}
		if err := os.Remove(filepath.Join(f.path, name)); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(append(failures, f.sync())...)
}

// names returns the names of the mails' files, oldest first.
func (f *Folder) names() ([]string, error) {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return nil, fmt.Errorf("read the mail folder: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if isName(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// isName reports whether name can be a mail's. Such a name cannot leave the folder.
func isName(name string) bool {
	if len(name) < len(nameTime) {
		return false
	}
	_, err := time.Parse(nameTime, name[:len(nameTime)])
	id, whole := strings.CutSuffix(name[len(nameTime):], extension)
	return err == nil && whole && idForm.MatchString(id)
}

// read returns the head of a mail, and its bytes.
func (f *Folder) read(name string) (Message, []byte, error) {
	if !isName(name) {
		return Message{}, nil, ErrNotKept
	}
	text, err := os.ReadFile(filepath.Join(f.path, name)) //nolint:gosec // G304: isName keeps it inside the folder
	if errors.Is(err, fs.ErrNotExist) {
		return Message{}, nil, ErrNotKept
	}
	if err != nil {
		return Message{}, nil, fmt.Errorf("mail %s: %w", name, err)
	}
	head, err := readHead(text)
	if err != nil { // the error quotes the mail
		return Message{}, nil, fmt.Errorf("mail %s has no head that can be read", name)
	}
	head.ID = strings.TrimSuffix(name[len(nameTime):], extension)
	return head, text, nil
}

func readHead(text []byte) (Message, error) {
	parsed, err := netmail.ReadMessage(bytes.NewReader(text))
	if err != nil {
		return Message{}, err
	}
	to, err := netmail.ParseAddress(parsed.Header.Get("To"))
	if err != nil {
		return Message{}, err
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(parsed.Header.Get("Subject"))
	return Message{To: *to, Subject: subject}, err
}
