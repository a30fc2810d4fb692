package tlog

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"bahi/domain/event"
)

// leafTag begins every leaf. It has the name and version of the encoding.
const leafTag = "bahi event 1\n"

// The prefixes that distinguish leaves from nodes (RFC 6962, section 2.1).
const (
	leafPrefix = 0
	nodePrefix = 1
)

// HashSize is the size of a hash in bytes.
const HashSize = sha256.Size

// Hash is a SHA-256 hash of a leaf, a node or a root. Its text is base64, as in checkpoints.
type Hash [HashSize]byte

func (h Hash) String() string { return base64.StdEncoding.EncodeToString(h[:]) }

// MarshalText returns base64 (RFC 4648, section 4).
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads base64 of 32 bytes.
func (h *Hash) UnmarshalText(text []byte) error {
	raw, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil || len(raw) != HashSize || Hash(raw).String() != string(text) {
		return fmt.Errorf("%q is not a hash: expected base64 of %d bytes", text, HashSize)
	}
	*h = Hash(raw)
	return nil
}

// appendLeaf appends the leaf of an event: its canonical encoding. Numbers are big-endian, texts follow their length in 4
// bytes; docs/audit-format.md has the order. Payload and metadata are the stored bytes, with personal values sealed, so
// an erasure changes no leaf.
func appendLeaf(to []byte, e event.Stored) []byte {
	to = append(to, leafTag...)
	to = binary.BigEndian.AppendUint64(to, uint64(e.Position))
	to = appendText(to, e.Stream)
	to = binary.BigEndian.AppendUint64(to, uint64(e.Revision))
	to = append(to, e.ID[:]...)
	to = appendText(to, e.Type)
	to = binary.BigEndian.AppendUint64(to, uint64(e.At.UnixMicro()))
	to = appendText(to, e.Meta)
	return appendText(to, e.Data)
}

func appendText[T string | []byte](to []byte, text T) []byte {
	return append(binary.BigEndian.AppendUint32(to, uint32(len(text))), text...)
}

// parseLeaf decodes a leaf. It returns an error for anything that [appendLeaf] does not write.
func parseLeaf(leaf []byte) (e event.Stored, err error) {
	r := leafReader{rest: leaf}
	if string(r.take(len(leafTag))) != leafTag {
		return e, errors.New("read the leaf: it is not an event's leaf of a known version")
	}
	e.Position = event.Position(r.number())
	e.Stream = string(r.text())
	revision := r.number()
	copy(e.ID[:], r.take(len(e.ID)))
	e.Type = string(r.text())
	micros := r.number()
	e.Meta, e.Data = r.text(), r.text()
	switch {
	case r.short:
		return event.Stored{}, errors.New("read the leaf: it is truncated")
	case len(r.rest) > 0:
		return event.Stored{}, fmt.Errorf("read the leaf: %d bytes follow it", len(r.rest))
	case revision > math.MaxInt64:
		return event.Stored{}, errors.New("read the leaf: its revision is invalid")
	}
	e.Revision, e.At = int64(revision), time.UnixMicro(int64(micros)).UTC()
	return e, nil
}

// leafReader decodes a leaf. After a truncated field it returns only zeros.
type leafReader struct {
	rest  []byte
	short bool
}

func (r *leafReader) take(n int) []byte {
	if r.short || n > len(r.rest) {
		r.short = true
		return nil
	}
	taken := r.rest[:n:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *leafReader) number() uint64 {
	if b := r.take(8); !r.short {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (r *leafReader) text() []byte {
	b := r.take(4)
	if r.short {
		return nil
	}
	n := binary.BigEndian.Uint32(b)
	if uint64(n) > uint64(len(r.rest)) {
		r.short = true
		return nil
	}
	return r.take(int(n))
}

// LeafHash returns the hash of an event's leaf. A [Hasher] is cheaper for many events.
func LeafHash(e event.Stored) Hash {
	var h Hasher
	return h.Leaf(e)
}

// Hasher hashes leaves and reuses its memory. Only one goroutine may use it.
type Hasher struct{ leaf []byte }

// Leaf returns the hash of an event's leaf.
func (h *Hasher) Leaf(e event.Stored) Hash {
	h.leaf = appendLeaf(append(h.leaf[:0], leafPrefix), e)
	return sha256.Sum256(h.leaf)
}

// hashNode returns the hash of two adjacent nodes.
func hashNode(left, right *Hash) Hash {
	var node [1 + 2*HashSize]byte
	node[0] = nodePrefix
	copy(node[1:], left[:])
	copy(node[1+HashSize:], right[:])
	return sha256.Sum256(node[:])
}
