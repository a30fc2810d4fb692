package tlog

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"

	"bahi/domain/event"
)

const (
	statementTag   = "bahi statement 1\n"
	maxStatement   = 256 << 20 // unpacked; a small untrusted file may unpack to much more
	maxStatedAbout = 1 << 20
)

// Statement is an account's statement with the proof that no event of the account is missing. The figures are not signed: they follow from
// the events.
type Statement struct {
	Account   int64  `json:"account"`
	Workspace string `json:"workspace"`
	Stated
	Entry      StatementEntry `json:"entry"`  // entry of the account
	Common     StatementEntry `json:"common"` // entry of the workspace's common events
	Checkpoint string         `json:"checkpoint"`
	Events     []event.Stored `json:"-"` // events of the account's entry, then of the common one
}

// Stated are the days and balances of a statement.
type Stated struct {
	From    string  `json:"from,omitempty"` // first day, as 2025-04-01; "": from the first row
	To      string  `json:"to,omitempty"`   // last day; "": to the last row
	Opening Figures `json:"opening"`
	Closing Figures `json:"closing"`
}

// Figures are balances as decimal numbers.
type Figures struct {
	Cash string `json:"cash"`
	Fine string `json:"fine"`
}

// StatementEntry is an entry of the map with its path.
type StatementEntry struct {
	Size uint64 `json:"size"`          // number of events; 0: the map has no such entry
	Root Hash   `json:"root,omitzero"` // root of their leaves
	MapPath
}

// Verify returns nil if the map of the root has the entry of this name, or has none for the size 0.
func (e StatementEntry) Verify(name string, root Hash) error {
	if e.Size == 0 {
		return e.MapPath.Verify(MapKey(name), nil, root)
	}
	value := mapValue(e.Size, e.Root)
	return e.MapPath.Verify(MapKey(name), &value, root)
}

// WriteStatement writes the file of a statement.
func WriteStatement(w io.Writer, s Statement) error {
	about, err := json.Marshal(s)
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(z, 1<<16)
	_, _ = fmt.Fprintf(buffered, "%s%s\n", statementTag, about)
	var leaf []byte
	for _, e := range s.Events {
		leaf = appendLeaf(leaf[:0], e)
		_, _ = buffered.Write(binary.BigEndian.AppendUint32(nil, uint32(len(leaf))))
		_, _ = buffered.Write(leaf)
	}
	return errors.Join(buffered.Flush(), z.Close()) // the flush returns the first error
}

// IsStatement reports whether a file with this beginning may be a statement.
func IsStatement(beginning []byte) bool { return bytes.HasPrefix(beginning, []byte{0x1f, 0x8b, 8}) }

// ReadStatement reads the file of a statement without verifying it.
func ReadStatement(file []byte) (s Statement, err error) {
	z, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		return s, fmt.Errorf("read the statement: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(z, maxStatement+1))
	switch {
	case err != nil:
		return s, fmt.Errorf("read the statement: %w", err)
	case len(text) > maxStatement:
		return s, fmt.Errorf("read the statement: it has more than %d bytes", maxStatement)
	}
	rest, ok := bytes.CutPrefix(text, []byte(statementTag))
	about, rest, whole := bytes.Cut(rest, []byte("\n"))
	if !ok || !whole || len(about) > maxStatedAbout {
		return s, errors.New("read the statement: it does not begin with bahi statement 1")
	}
	strict := json.NewDecoder(bytes.NewReader(about))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&s); err != nil {
		return s, fmt.Errorf("read the statement: %w", err)
	}
	for len(rest) > 0 {
		if len(rest) < 4 || uint64(binary.BigEndian.Uint32(rest)) > uint64(len(rest)-4) {
			return s, errors.New("read the statement: it was cut off")
		}
		n := int(binary.BigEndian.Uint32(rest))
		e, err := parseLeaf(rest[4 : 4+n])
		if err != nil {
			return s, fmt.Errorf("read the statement, event %d: %w", len(s.Events)+1, err)
		}
		s.Events, rest = append(s.Events, e), rest[4+n:]
	}
	return s, nil
}

// StatementCode has the figures of a statement on paper, and the position of the log to which they belong.
type StatementCode struct {
	Checkpoint Hash           // hash of the text of the newest checkpoint then, see [CheckpointHash]
	Account    Hash           // the account's key in the map
	Position   event.Position // the figures include all events up to here
	Stated
}

// statementCode begins the code, after the address of the page that verifies it.
const statementCode = "#s1"

// CheckpointHash returns the hash of a checkpoint's text, without its signatures: a witness may add some.
func CheckpointHash(signed []byte) Hash {
	text, _, _ := bytes.Cut(signed, []byte("\n\n"))
	return sha256.Sum256(append(slices.Clip(text), '\n'))
}

func (c StatementCode) String() string {
	return strings.Join([]string{
		statementCode, base64.RawURLEncoding.EncodeToString(c.Checkpoint[:]), base64.RawURLEncoding.EncodeToString(c.Account[:]),
		strconv.FormatUint(uint64(c.Position), 10), c.From, c.To, c.Opening.Cash, c.Opening.Fine, c.Closing.Cash, c.Closing.Fine,
	}, "/")
}

// ParseStatementCode reads a code, which may follow an address.
func ParseStatementCode(text string) (c StatementCode, err error) {
	_, text, _ = strings.Cut(strings.TrimSpace(text), statementCode+"/")
	parts := strings.Split(text, "/")
	if len(parts) != 9 {
		return c, errors.New("this is not the code of a statement: scan it again")
	}
	for i, into := range []*Hash{&c.Checkpoint, &c.Account} {
		raw, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || len(raw) != HashSize {
			return c, errors.New("the code of the statement is damaged: scan it again")
		}
		*into = Hash(raw)
	}
	position, err := strconv.ParseUint(parts[2], 10, 63)
	c.Position, c.From, c.To = event.Position(position), parts[3], parts[4]
	c.Opening, c.Closing = Figures{parts[5], parts[6]}, Figures{parts[7], parts[8]}
	return c, err
}
