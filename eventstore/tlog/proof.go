package tlog

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	tlogproof "github.com/transparency-dev/formats/proof"

	"bahi/domain/event"
)

// ProofExtension is the extension of files of proofs.
const ProofExtension = ".tlog-proof"

const (
	proofHeader = "c2sp.org/tlog-proof@v1\n"
	extraLine   = "extra "
)

// Proof shows to a holder of the log's public key that the log has an event (C2SP tlog-proof).
type Proof struct {
	Event      event.Stored
	Index      uint64 // index of its leaf, from 0
	Hashes     []Hash // from the leaf's sibling up
	Checkpoint []byte // signed
}

// ErrNotAsHashed reports that an event, the tiles and the checkpoint do not match.
var ErrNotAsHashed = errors.New("the event differs from the hashed one")

// Prove creates the proof of an event whose leaf is at index, in the tree of the signed checkpoint, or returns [ErrNotAsHashed].
func Prove(ctx context.Context, tiles Tiles, e event.Stored, index uint64, signed []byte) (Proof, error) {
	c, err := ParseCheckpoint(signed)
	if err != nil {
		return Proof{}, err
	}
	hashes, err := Inclusion(ctx, tiles, index, c.Size)
	if err != nil {
		return Proof{}, err
	}
	p := Proof{Event: e, Index: index, Hashes: hashes, Checkpoint: signed}
	if p.Holds(c) != nil {
		return Proof{}, ErrNotAsHashed
	}
	return p, nil
}

// AppendProof appends a proof to a file of proofs. The event's leaf is in the proof's extra data, so a verifier needs nothing
// else. Files of proofs may be concatenated.
func AppendProof(to []byte, p Proof) []byte {
	file := tlogproof.TLogProof{Index: p.Index, Checkpoint: p.Checkpoint, ExtraData: appendLeaf(nil, p.Event)}
	for _, h := range p.Hashes {
		file.Hashes = append(file.Hashes, h)
	}
	return append(to, file.Marshal()...)
}

// ParseProofs reads a file of proofs without verifying them, see [Keys.Verify].
func ParseProofs(text []byte) ([]Proof, error) {
	var proofs []Proof
	for len(text) > 0 {
		one := text[:noteEnd(text)]
		p, err := parseProof(one)
		if err != nil {
			return nil, fmt.Errorf("read proof %d: %w", len(proofs)+1, err)
		}
		proofs, text = append(proofs, p), text[len(one):]
	}
	if len(proofs) == 0 {
		return nil, errors.New("read the proof: the file is empty")
	}
	return proofs, nil
}

// IsProof reports whether a text begins like a file of proofs.
func IsProof(beginning []byte) bool { return bytes.HasPrefix(beginning, []byte(proofHeader)) }

// parseProof reads one proof. It reads the leaf's line itself, because the library's reader refuses lines over 64 kB. It compares the rest
// with the library's writer, so only the canonical form is valid.
func parseProof(text []byte) (p Proof, err error) {
	rest, ok := bytes.CutPrefix(text, []byte(proofHeader))
	if !ok {
		return p, errors.New("it does not begin with c2sp.org/tlog-proof@v1")
	}
	extra, rest, _ := bytes.Cut(rest, []byte("\n"))
	encoded, ok := bytes.CutPrefix(extra, []byte(extraLine))
	if !ok {
		return p, errors.New("it has no line with the event")
	}
	leaf, err := base64.StdEncoding.DecodeString(string(encoded))
	if err != nil {
		return p, errors.New("its line with the event is not base64")
	}
	if p.Event, err = parseLeaf(leaf); err != nil {
		return Proof{}, err
	}
	if year := p.Event.At.Year(); year < 0 || year > 9999 {
		return Proof{}, fmt.Errorf("its event is of the year %d", year)
	}
	var file tlogproof.TLogProof
	if err := file.Unmarshal(append([]byte(proofHeader), rest...)); err != nil {
		return Proof{}, err
	}
	file.ExtraData = leaf
	if !bytes.Equal(file.Marshal(), text) {
		return Proof{}, errors.New("it is not in canonical form")
	}
	for _, h := range file.Hashes {
		p.Hashes = append(p.Hashes, h)
	}
	p.Index, p.Checkpoint = file.Index, file.Checkpoint
	return p, nil
}

// Verify returns a valid proof's checkpoint and its signatures.
func (k Keys) Verify(p Proof) (Checkpoint, []Signature, error) {
	c, by, err := k.Open(p.Checkpoint)
	if err != nil {
		return c, by, err
	}
	return c, by, p.Holds(c)
}

// Holds returns nil if the tree of a checkpoint has the event. The caller must have a reason to trust the checkpoint.
func (p Proof) Holds(c Checkpoint) error {
	return VerifyInclusion(LeafHash(p.Event), p.Index, c.Size, p.Hashes, c.Root)
}
