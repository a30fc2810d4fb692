package audit

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

// leafTag begins every leaf. It says what the bytes are, and of which version of this encoding.
const leafTag = "bahi event 1\n"

// The prefixes that keep leaves and nodes apart (RFC 6962, section 2.1).
const (
	leafPrefix = 0
	nodePrefix = 1
)

// HashSize is the size of a hash in bytes.
const HashSize = sha256.Size

// Hash is a SHA-256 of the tree: of a leaf, a node or a root. As text it is base64, as checkpoints have it.
type Hash [HashSize]byte

func (h Hash) String() string { return base64.StdEncoding.EncodeToString(h[:]) }

// MarshalText writes base64 (RFC 4648, section 4).
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads base64 of 32 bytes.
func (h *Hash) UnmarshalText(text []byte) error {
	raw, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil || len(raw) != HashSize || Hash(raw).String() != string(text) {
		return fmt.Errorf("%q is not a hash: it wants base64 of %d bytes", text, HashSize)
	}
	*h = Hash(raw)
	return nil
}

// AppendLeaf adds the leaf of an event: all that matters of it, in one form to the byte. Numbers are big-endian, texts
// have their length before them in 4 bytes; docs/audit-format.md has the order. Payload and metadata are the exact bytes
// that were appended, personal values as they are sealed, so an erasure changes no leaf.
func AppendLeaf(to []byte, e event.Stored) []byte {
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

// ParseLeaf reads a leaf back. It answers an error for anything that [AppendLeaf] would not have written.
func ParseLeaf(leaf []byte) (e event.Stored, err error) {
	r := leafReader{rest: leaf}
	if string(r.take(len(leafTag))) != leafTag {
		return e, errors.New("read the leaf: it is not the leaf of an event, or of a version that this program does not know")
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
		return event.Stored{}, errors.New("read the leaf: it is cut off")
	case len(r.rest) > 0:
		return event.Stored{}, fmt.Errorf("read the leaf: %d bytes follow it", len(r.rest))
	case revision > math.MaxInt64:
		return event.Stored{}, errors.New("read the leaf: its revision is not one")
	}
	e.Revision, e.At = int64(revision), time.UnixMicro(int64(micros)).UTC()
	return e, nil
}

// leafReader takes a leaf apart. Once the leaf was too short it answers nothing but zeros.
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

// LeafHash is the hash of an event's leaf. Who hashes many has a [Hasher].
func LeafHash(e event.Stored) Hash {
	var h Hasher
	return h.Leaf(e)
}

// Hasher hashes leaves in memory that it uses again. It is for one goroutine.
type Hasher struct{ leaf []byte }

// Leaf is the hash of an event's leaf.
func (h *Hasher) Leaf(e event.Stored) Hash {
	h.leaf = AppendLeaf(append(h.leaf[:0], leafPrefix), e)
	return sha256.Sum256(h.leaf)
}

// hashLeaf is the hash of a leaf that is already encoded.
func hashLeaf(leaf []byte) Hash {
	return sha256.Sum256(append([]byte{leafPrefix}, leaf...))
}

// hashNode is the hash of two hashes that are beside each other.
func hashNode(left, right *Hash) Hash {
	var node [1 + 2*HashSize]byte
	node[0] = nodePrefix
	copy(node[1:], left[:])
	copy(node[1+HashSize:], right[:])
	return sha256.Sum256(node[:])
}
