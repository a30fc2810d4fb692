package audit

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	tlog "github.com/transparency-dev/formats/log"
	cosignature "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"

	"bahi/domain/event"
)

// moment is how a checkpoint says when it was made: UTC, to the microsecond, as the log counts time.
const moment = "2006-01-02T15:04:05.000000Z"

// The extension lines of our checkpoints.
const (
	timeLine     = "time "
	positionLine = "position "
)

// Checkpoint says what a log held when it had a certain size (C2SP tlog-checkpoint). Two further lines say when it was made, and where in the log the last of its
// events stands; checkpoints of others lack them.
type Checkpoint struct {
	Origin   string         `json:"origin"` // names the log, see [Origin]
	Size     uint64         `json:"size"`   // how many events
	Root     Hash           `json:"root"`   // of the tree over them
	At       time.Time      `json:"at"`     // when it was made; zero if it does not say
	Position event.Position `json:"position"`
}

// Text is what is signed.
func (c Checkpoint) Text() string {
	text := string(tlog.Checkpoint{Origin: c.Origin, Size: c.Size, Hash: c.Root[:]}.Marshal())
	if !c.At.IsZero() {
		text += timeLine + c.At.UTC().Format(moment) + "\n"
	}
	if c.Position > 0 {
		text += positionLine + strconv.FormatUint(uint64(c.Position), 10) + "\n"
	}
	return text
}

// Sign signs a checkpoint by each of the keys: one, or the old and the new one when they change. The keys have the
// name of the log.
func (c Checkpoint) Sign(keys ...Key) ([]byte, error) {
	if len(keys) == 0 {
		return nil, errors.New("sign the checkpoint: there is no key")
	}
	signers := make([]note.Signer, len(keys))
	for i, k := range keys {
		if k.Name() != c.Origin {
			return nil, fmt.Errorf("sign the checkpoint: it is of %s, and the key is of %s", c.Origin, k.Name())
		}
		signers[i] = k
	}
	if _, err := parseText(c.Text()); err != nil {
		return nil, fmt.Errorf("sign the checkpoint: %w", err)
	}
	return note.Sign(&note.Note{Text: c.Text()}, signers...)
}

// Signature is one that was found good.
type Signature struct {
	Name    string    `json:"name"`
	ID      string    `json:"id"` // of the key, 8 hex digits
	Witness bool      `json:"witness,omitempty"`
	At      time.Time `json:"at,omitzero"` // when a witness signed, to the second
}

// ErrNotSigned tells that none of the keys that are trusted signed a checkpoint.
var ErrNotSigned = errors.New("the checkpoint is not signed by a key that is trusted")

// Open reads a checkpoint and answers who of those that are trusted signed it. It answers [ErrNotSigned] when no key of
// the log did, others who signed, and another error when a signature by a trusted key is wrong, or the text is no checkpoint.
func (k Keys) Open(signed []byte) (Checkpoint, []Signature, error) {
	n, err := note.Open(signed, k)
	if unverified, ok := errors.AsType[*note.UnverifiedNoteError](err); ok {
		c, err := parseText(unverified.Note.Text)
		if err == nil {
			err = ErrNotSigned
		}
		return c, nil, err
	}
	if err != nil {
		return Checkpoint{}, nil, fmt.Errorf("open the checkpoint: %w", err)
	}
	c, err := parseText(n.Text)
	if err != nil {
		return Checkpoint{}, nil, err
	}
	var by []Signature
	var log bool
	for _, s := range n.Sigs {
		signature := Signature{Name: s.Name, ID: fmt.Sprintf("%08x", s.Hash), Witness: k.isWitness(s.Name, s.Hash)}
		if signature.Witness {
			if signature.At, err = cosignature.CoSigV1Timestamp(s); err != nil {
				return Checkpoint{}, nil, fmt.Errorf("open the checkpoint: %w", err)
			}
			signature.At = signature.At.UTC()
		}
		log = log || !signature.Witness && s.Name == c.Origin
		by = append(by, signature)
	}
	if !log {
		return c, by, ErrNotSigned
	}
	return c, by, nil
}

// ParseCheckpoint reads a checkpoint and looks at no signature: who trusts it has it from somewhere safe.
func ParseCheckpoint(signed []byte) (Checkpoint, error) {
	c, _, err := Keys{}.Open(signed)
	if errors.Is(err, ErrNotSigned) {
		err = nil
	}
	return c, err
}

// AddSignatures adds signature lines to a checkpoint, such as a witness answers: those by one of the keys, which must be good, and of
// which there must be one. Those by others are passed over, since a witness may sign with keys that nobody here knows (C2SP
// tlog-witness, add-checkpoint). One that is there already is not added again.
func (k Keys) AddSignatures(signed, lines []byte) ([]byte, error) {
	text, _, ok := bytes.Cut(signed, []byte("\n\n"))
	if !ok {
		return nil, errors.New("add signatures: there is no checkpoint")
	}
	if len(lines) == 0 {
		return nil, errors.New("add signatures: there is none")
	}
	all, known := bytes.Clone(signed), false
	for line := range bytes.Lines(lines) {
		if !isSignature(strings.TrimSuffix(string(line), "\n")) {
			return nil, errors.New("add signatures: these are not signature lines")
		}
		_, err := note.Open(slices.Concat(text, []byte("\n\n"), line), k)
		if _, other := errors.AsType[*note.UnverifiedNoteError](err); other {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("add signatures: %w", err)
		}
		if known = true; !bytes.Contains(all, line) {
			all = append(all, line...)
		}
	}
	if !known {
		return nil, errors.New("add signatures: none of them is by a key that is known")
	}
	return all, nil
}

// parseText reads what is signed. It takes no other form of the lines that it knows than the one that is written.
func parseText(text string) (c Checkpoint, err error) {
	var basic tlog.Checkpoint
	rest, err := basic.Unmarshal([]byte(text))
	if err != nil {
		return c, fmt.Errorf("read the checkpoint: %w", err)
	}
	if len(basic.Hash) != HashSize {
		return c, fmt.Errorf("read the checkpoint: its root has %d bytes, not %d", len(basic.Hash), HashSize)
	}
	if string(basic.Marshal())+string(rest) != text {
		return c, errors.New("read the checkpoint: its size or root is not written in the one form that it has")
	}
	c = Checkpoint{Origin: basic.Origin, Size: basic.Size, Root: Hash(basic.Hash)}
	if len(rest) == 0 {
		return c, nil
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(rest), "\n"), "\n") {
		if err := extend(&c, line); err != nil {
			return Checkpoint{}, fmt.Errorf("read the checkpoint: %w", err)
		}
	}
	return c, nil
}

// extend reads an extension line. Those that it does not know say nothing to it.
func extend(c *Checkpoint, line string) error {
	if line == "" {
		return errors.New("it has an empty line")
	}
	if value, ok := strings.CutPrefix(line, timeLine); ok {
		at, err := time.Parse(moment, value)
		if err != nil || at.Format(moment) != value || !c.At.IsZero() {
			return fmt.Errorf("%q is not one moment of the form %s", line, moment)
		}
		c.At = at
	}
	if value, ok := strings.CutPrefix(line, positionLine); ok {
		position, err := strconv.ParseUint(value, 10, 63)
		if err != nil || position == 0 || strconv.FormatUint(position, 10) != value || c.Position != 0 {
			return fmt.Errorf("%q is not one position", line)
		}
		c.Position = event.Position(position)
	}
	return nil
}

// SplitCheckpoints takes a file apart in which checkpoints stand one behind the other, as if files were joined with cat.
func SplitCheckpoints(text []byte) (each [][]byte) {
	for text = bytes.TrimLeft(text, "\n"); len(text) > 0; text = bytes.TrimLeft(text, "\n") {
		end := noteEnd(text)
		each, text = append(each, text[:end]), text[end:]
	}
	return each
}

// noteEnd is where the first note of a text ends: behind its signatures.
func noteEnd(text []byte) int {
	end, signed := 0, false
	for line := range bytes.Lines(text) {
		is := isSignature(strings.TrimSuffix(string(line), "\n"))
		if signed && !is {
			break
		}
		signed = is
		end += len(line)
	}
	return end
}

// isSignature says whether a line has the form of a signature, whoever made it.
func isSignature(line string) bool {
	_, encoded, ok := strings.Cut(strings.TrimPrefix(line, "— "), " ")
	if !ok || !strings.HasPrefix(line, "— ") {
		return false
	}
	_, err := base64.StdEncoding.DecodeString(encoded)
	return err == nil
}
