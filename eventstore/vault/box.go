package vault

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/tink-crypto/tink-go/v2/aead/subtle"
	"github.com/tink-crypto/tink-go/v2/tink"

	"bahi/domain/event"
)

func newAEAD(key []byte) (tink.AEAD, error) {
	aead, err := subtle.NewAESGCM(key)
	if err != nil {
		return nil, fmt.Errorf("use a key: %w", err)
	}
	return aead, nil
}

// join returns the parts, each preceded by its length: no two lists of parts give the same bytes.
func join(parts ...string) []byte {
	var b []byte
	for _, p := range parts {
		b = binary.BigEndian.AppendUint64(b, uint64(len(p)))
		b = append(b, p...)
	}
	return b
}

// The associated data of sealed values and wrapped keys; the package's documentation lists them.

func ofValue(class event.Class, subject string, version int) []byte {
	return join("bahi value 1", string(class), subject, strconv.Itoa(version))
}

func ofDataKey(subject string, version int) []byte {
	return join("bahi data key 1", subject, strconv.Itoa(version))
}

func ofNamed(name string) []byte { return join("bahi named key 1", name) }

func ofEnclosed(what, name, purpose string) []byte {
	return join("bahi enclosed "+what+" 1", name, purpose)
}
