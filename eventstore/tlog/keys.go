package tlog

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	cosignature "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"
)

// Origin returns a log's name in its checkpoints, which is also the name of its signing keys.
func Origin(store uuid.UUID) string { return "bahi/" + store.String() }

// Key signs a log's checkpoints: Ed25519, in the format of C2SP signed-note.
type Key struct {
	note.Signer

	public string
}

// ParseKey reads a private key: PRIVATE+KEY+<origin>+<id>+<base64>. Its error does not quote the text.
func ParseKey(text string) (Key, error) {
	text = strings.TrimSpace(text)
	malformed := errors.New("read the signing key: it is not an Ed25519 key of the form PRIVATE+KEY+<name>+<id>+<base64>")
	s, err := note.NewSigner(text)
	if err != nil {
		return Key{}, malformed
	}
	seed, err := base64.StdEncoding.DecodeString(strings.SplitN(text, "+", 5)[4]) // base64 may contain a plus
	if err != nil || len(seed) != 1+ed25519.SeedSize {
		return Key{}, malformed
	}
	public, _ := ed25519.NewKeyFromSeed(seed[1:]).Public().(ed25519.PublicKey)
	v, err := note.NewEd25519VerifierKey(s.Name(), public)
	return Key{Signer: s, public: v}, err
}

// Public returns the key that verifies this key's signatures: <origin>+<id>+<base64>.
func (k Key) Public() string { return k.public }

// The supported types of keys, as numbered by C2SP signed-note.
const (
	typeLog          = 1 // Ed25519, of a log
	typeWitness      = 4 // Ed25519, of a witness
	typeWitnessMLDSA = 6 // ML-DSA-44, of a witness
)

// Keys are trusted public keys: of logs, and of witnesses (C2SP tlog-cosignature).
type Keys struct {
	verifiers []note.Verifier
	witness   []bool // whether the verifier at this index is a witness
}

// ParseKeys reads public keys, one per line. It skips empty lines and lines that begin with #.
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

// Len returns the number of keys.
func (k Keys) Len() int { return len(k.verifiers) }

func parseVerifier(line string) (v note.Verifier, witness bool, err error) {
	malformed := errors.New("it is not a public key of the form <name>+<id>+<base64>")
	parts := strings.SplitN(line, "+", 3) // base64 may contain a plus, the others may not
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
		return nil, false, fmt.Errorf("keys of type %d are not supported", raw[0])
	}
	if err != nil || parts[1] != fmt.Sprintf("%08x", v.KeyHash()) {
		return nil, false, malformed
	}
	return v, raw[0] != typeLog, nil
}

func same(v note.Verifier, name string, hash uint32) bool {
	return v.Name() == name && v.KeyHash() == hash
}

// Verifier implements note.Verifiers.
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
