package tlog

import (
	"bytes"
	"cmp"
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

// moment is the format of a checkpoint's time: UTC, in microseconds like the log's times.
const moment = "2006-01-02T15:04:05.000000Z"

// The extension lines of our checkpoints.
const (
	timeLine     = "time "
	positionLine = "position "
	numberLine   = "number "
	mapLine      = "bahi-map/v1 "
)

// Checkpoint states the content of a log at some size (C2SP tlog-checkpoint). Extension lines give its time, the position of its last
// event, its number and the root of the map of accounts; other logs' checkpoints lack them.
type Checkpoint struct {
	Origin   string         `json:"origin"` // the log's name, see [Origin]
	Size     uint64         `json:"size"`   // number of events
	Root     Hash           `json:"root"`   // root of the tree over them
	At       time.Time      `json:"at"`     // when it was made; zero if not stated
	Position event.Position `json:"position"`
	Number   int64          `json:"number,omitempty"` // order of signing, from 1 without gaps; 0 if not stated
	Map      Hash           `json:"map,omitzero"`     // root of the map of accounts, see [Map]; zero if not stated
}

// Text returns the text to sign.
func (c Checkpoint) Text() string {
	text := string(tlog.Checkpoint{Origin: c.Origin, Size: c.Size, Hash: c.Root[:]}.Marshal())
	if !c.At.IsZero() {
		text += timeLine + c.At.UTC().Format(moment) + "\n"
	}
	if c.Position > 0 {
		text += positionLine + strconv.FormatUint(uint64(c.Position), 10) + "\n"
	}
	if c.Number > 0 {
		text += numberLine + strconv.FormatInt(c.Number, 10) + "\n"
	}
	if c.Map != (Hash{}) {
		text += mapLine + c.Map.String() + "\n"
	}
	return text
}

// Sign signs a checkpoint with each of the keys: one, or the old and the new one during a rotation. The keys must have the
// log's name.
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

// Signature is a verified signature.
type Signature struct {
	Name    string    `json:"name"`
	ID      string    `json:"id"` // ID of the key, 8 hex digits
	Witness bool      `json:"witness,omitempty"`
	At      time.Time `json:"at,omitzero"` // time of a witness's signature, in seconds
}

// ErrNotSigned reports that no trusted key signed a checkpoint.
var ErrNotSigned = errors.New("the checkpoint is not signed by a trusted key")

// Open reads a checkpoint and returns its signatures by trusted keys. If the log's keys are not among them, it also returns
// [ErrNotSigned]. It returns another error if a signature by a trusted key is wrong or the text is not a checkpoint.
func (k Keys) Open(signed []byte) (Checkpoint, []Signature, error) {
	n, err := note.Open(signed, k)
	if unverified, ok := errors.AsType[*note.UnverifiedNoteError](err); ok {
		c, err := parseText(unverified.Note.Text)
		err = cmp.Or(err, ErrNotSigned)
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

// ParseCheckpoint reads a checkpoint without verifying signatures, for callers that trust its source.
func ParseCheckpoint(signed []byte) (Checkpoint, error) {
	c, _, err := Keys{}.Open(signed)
	if errors.Is(err, ErrNotSigned) {
		err = nil
	}
	return c, err
}

// AddSignatures adds signature lines, such as a witness returns, to a checkpoint. There must be a signature by a known key, and each of
// those must be valid. AddSignatures skips signatures that the checkpoint already has, and those by unknown keys: a witness may sign with
// further keys (C2SP tlog-witness, add-checkpoint).
func (k Keys) AddSignatures(signed, lines []byte) ([]byte, error) {
	text, _, ok := bytes.Cut(signed, []byte("\n\n"))
	if !ok {
		return nil, errors.New("add signatures: there is no checkpoint")
	}
	if len(lines) == 0 {
		return nil, errors.New("add signatures: there are none")
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
		return nil, errors.New("add signatures: none of them is by a known key")
	}
	return all, nil
}

// parseText reads the signed text. It accepts known lines only in canonical form.
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
		return c, errors.New("read the checkpoint: its size or root is not in canonical form")
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

// extend reads an extension line, and ignores lines that it does not know.
func extend(c *Checkpoint, line string) error {
	if line == "" {
		return errors.New("it has an empty line")
	}
	if value, ok := strings.CutPrefix(line, timeLine); ok {
		at, err := time.Parse(moment, value)
		if err != nil || at.Format(moment) != value || !c.At.IsZero() {
			return fmt.Errorf("%q is not a single time of the form %s", line, moment)
		}
		c.At = at
	}
	var err error
	if value, ok := strings.CutPrefix(line, positionLine); ok {
		c.Position, err = count(line, value, c.Position)
	}
	if value, ok := strings.CutPrefix(line, numberLine); ok {
		c.Number, err = count(line, value, c.Number)
	}
	if value, ok := strings.CutPrefix(line, mapLine); ok {
		if c.Map != (Hash{}) || c.Map.UnmarshalText([]byte(value)) != nil || c.Map == (Hash{}) {
			return fmt.Errorf("%q is not a single root of a map", line)
		}
	}
	return err
}

// count reads the value of a line that a checkpoint has once, from 1.
func count[N ~int64 | ~uint64](line, value string, before N) (N, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n <= 0 || strconv.FormatInt(n, 10) != value || before != 0 {
		return 0, fmt.Errorf("%q is not a single number from 1", line)
	}
	return N(n), nil
}

// SplitCheckpoints splits a file of concatenated checkpoints.
func SplitCheckpoints(text []byte) (each [][]byte) {
	for text = bytes.TrimLeft(text, "\n"); len(text) > 0; text = bytes.TrimLeft(text, "\n") {
		end := noteEnd(text)
		each, text = append(each, text[:end]), text[end:]
	}
	return each
}

// noteEnd returns the end of the first note in a text, after its signatures.
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

// isSignature reports whether a line has the form of a signature.
func isSignature(line string) bool {
	_, encoded, ok := strings.Cut(strings.TrimPrefix(line, "— "), " ")
	if !ok || !strings.HasPrefix(line, "— ") {
		return false
	}
	_, err := base64.StdEncoding.DecodeString(encoded)
	return err == nil
}
