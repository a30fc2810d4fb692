package audit

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/uuid"
	cosignature "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"
)

// Origin names a log in its checkpoints, and is the name of the keys that sign them.
func Origin(store uuid.UUID) string { return "bahi/" + store.String() }

// Key signs a log's checkpoints: Ed25519, as C2SP signed-note has it.
type Key struct {
	note.Signer

	public string
}

// NewKey makes a key of the log that origin names, see [Origin]. The text is the private key, which [ParseKey] reads.
func NewKey(rand io.Reader, origin string) (text string, err error) {
	text, _, err = note.GenerateKey(rand, origin)
	return text, err
}

// ParseKey reads a private key: PRIVATE+KEY+<origin>+<id>+<base64>. Its error does not repeat the text.
func ParseKey(text string) (Key, error) {
	text = strings.TrimSpace(text)
	malformed := errors.New("read the signing key: it is not an Ed25519 key of the form PRIVATE+KEY+<name>+<id>+<base64>")
	s, err := note.NewSigner(text)
	if err != nil {
		return Key{}, malformed
	}
	seed, err := base64.StdEncoding.DecodeString(strings.SplitN(text, "+", 5)[4]) // base64 may hold a plus, too
	if err != nil || len(seed) != 1+ed25519.SeedSize {
		return Key{}, malformed
	}
	public, _ := ed25519.NewKeyFromSeed(seed[1:]).Public().(ed25519.PublicKey)
	v, err := note.NewEd25519VerifierKey(s.Name(), public)
	return Key{Signer: s, public: v}, err
}

// Public is the key that verifies what this one signs: <origin>+<id>+<base64>.
func (k Key) Public() string { return k.public }

// The types of keys that are read, as C2SP signed-note numbers them.
const (
	typeLog          = 1 // Ed25519, of a log
	typeWitness      = 4 // Ed25519, of a witness
	typeWitnessMLDSA = 6 // ML-DSA-44, of a witness
)

// Keys are the public keys that somebody trusts: those of logs, and those of witnesses (C2SP tlog-cosignature).
type Keys struct {
	verifiers []note.Verifier
	witness   []bool // of the verifier at the same place
}

// ParseKeys reads public keys, a line each. Empty lines and those that begin with # are passed over.
func ParseKeys(text string) (Keys, error) {
	var k Keys
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		v, witness, err := parseVerifier(line)
		if err != nil {
			return Keys{}, fmt.Errorf("read the public keys: line %d: %w", i+1, err)
		}
		if !slices.ContainsFunc(k.verifiers, func(other note.Verifier) bool { return same(other, v.Name(), v.KeyHash()) }) {
			k.verifiers, k.witness = append(k.verifiers, v), append(k.witness, witness)
		}
	}
	return k, nil
}

// Len is how many keys there are.
func (k Keys) Len() int { return len(k.verifiers) }

func parseVerifier(line string) (v note.Verifier, witness bool, err error) {
	malformed := errors.New("it is not a public key of the form <name>+<id>+<base64>")
	parts := strings.SplitN(line, "+", 3) // base64 may hold a plus, the others may not
	if len(parts) != 3 {
		return nil, false, malformed
	}
	raw, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil || len(raw) == 0 {
		return nil, false, malformed
	}
	switch raw[0] {
	case typeLog:
		v, err = note.NewVerifier(line)
	case typeWitness, typeWitnessMLDSA:
		v, err = cosignature.NewVerifierForCosignatureV1(line)
	default:
		return nil, false, fmt.Errorf("a key of type %d is of no use here", raw[0])
	}
	if err != nil || parts[1] != fmt.Sprintf("%08x", v.KeyHash()) {
		return nil, false, malformed
	}
	return v, raw[0] != typeLog, nil
}

func same(v note.Verifier, name string, hash uint32) bool {
	return v.Name() == name && v.KeyHash() == hash
}

// Verifier finds a key for package note.
func (k Keys) Verifier(name string, hash uint32) (note.Verifier, error) {
	for _, v := range k.verifiers {
		if same(v, name, hash) {
			return v, nil
		}
	}
	return nil, &note.UnknownVerifierError{Name: name, KeyHash: hash}
}

func (k Keys) isWitness(name string, hash uint32) bool {
	i := slices.IndexFunc(k.verifiers, func(v note.Verifier) bool { return same(v, name, hash) })
	return i >= 0 && k.witness[i]
}
