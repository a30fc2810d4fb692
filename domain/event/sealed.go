package event

import (
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Sealed is a value that the log has only in encrypted form. A key of its subject encrypts it. Events contain it as a [Personal] or a
// [Secret].
//
// A command's decision creates it as plaintext. The vault seals it before the event is encoded. In an event from the log it is sealed until
// the vault opens it. Evolve may copy a Sealed but never needs the plaintext. Two ciphertexts of one text differ, so events with values to
// compare also contain a keyed hash.
//
// The zero Sealed is no value: null in JSON, omitted with omitzero.
type Sealed struct { //nolint:recvcheck // a value to everybody but the vault, which writes through a pointer
	class   Class
	state   sealState
	subject string
	key     int
	plain   string
	box     string
}

// Class is the class of a sealed value.
type Class string

// The classes. Values of both are lost with the key of their subject.
const (
	ClassPersonal Class = "personal" // opened for readers of the record
	classSecret   Class = "secret"   // opened only for use
)

type sealState uint8

const (
	noValue sealState = iota
	inClear           // decided, not yet sealed
	closed
	opened
	erased
)

// sealFormat is the version of the stored form.
const sealFormat = 1

// Reasons why a sealed value cannot be read.
var (
	ErrErased    = errors.New("the value was erased")
	ErrNotOpened = errors.New("the value was not opened")
	errInClear   = errors.New("the value is plaintext: the vault must seal it first")
)

// Personal is a value about a person. A table has the text of an opened value, and null for an erased one.
type Personal struct{ Sealed }

// Secret is a credential, such as a provider's. It is never opened inside its event.
type Secret struct{ Sealed }

// NewPersonal returns a personal value of the subject. The subject's key seals the value, and the subject's erasure erases it. The
// subject's name stays readable in the log, so it must be a pseudonym such as user-<uuid> or buyer-<keyed hash>. NewPersonal panics without
// a subject.
func NewPersonal(subject, text string) Personal {
	return Personal{newSealed(ClassPersonal, subject, text)}
}

// NewSecret returns a secret of the subject, such as channel-<uuid>. It panics without one.
func NewSecret(subject, text string) Secret {
	return Secret{newSealed(classSecret, subject, text)}
}

func newSealed(class Class, subject, text string) Sealed {
	if subject == "" {
		panic("a " + string(class) + " value without a subject")
	}
	return Sealed{class: class, state: inClear, subject: subject, plain: text}
}

// Class returns the class of the value.
func (s Sealed) Class() Class { return s.class }

// Subject returns the subject of the value. The subject's key seals the value.
func (s Sealed) Subject() string { return s.subject }

// IsZero reports whether there is no value.
func (s Sealed) IsZero() bool { return s.state == noValue }

// Erased reports whether the vault no longer has the key. Then the value is permanently unreadable.
func (s Sealed) Erased() bool { return s.state == erased }

// Plaintext returns the text to be sealed, for the vault.
func (s Sealed) Plaintext() (text string, ok bool) { return s.plain, s.state == inClear }

// Box returns the ciphertext and the version of the subject's key, for the vault.
func (s Sealed) Box() (key int, box []byte, ok bool) {
	return s.key, []byte(s.box), s.state >= closed
}

// SetCiphertext replaces the text by the ciphertext, for the vault.
func (s *Sealed) SetCiphertext(key int, box []byte) {
	s.key, s.box, s.plain, s.state = key, string(box), "", closed
}

// Open adds the text to the ciphertext, for the vault. It removes NULs, as decoding a payload does.
func (s *Sealed) Open(text string) {
	s.plain, s.state = strings.ReplaceAll(text, "\x00", ""), opened
}

// Erase records that the key is destroyed, for the vault.
func (s *Sealed) Erase() { s.plain, s.state = "", erased }

// Text returns the plaintext, [ErrErased], or [ErrNotOpened]. It is for the edges of the system, such as a mail to the person. Folds copy
// the Personal instead.
func (p Personal) Text() (string, error) {
	switch p.state {
	case noValue, inClear, opened:
		return p.plain, nil
	case erased:
		return "", ErrErased
	default:
		return "", ErrNotOpened
	}
}

// Shown returns the plaintext for a response, nil if there is none or it was erased. The value must be opened.
func (p Personal) Shown() *string {
	if text, err := p.Text(); err == nil && !p.IsZero() {
		return &text
	}
	return nil
}

// Value implements [driver.Valuer], so that a projection can store the Personal.
func (p Personal) Value() (driver.Value, error) {
	switch p.state {
	case noValue, erased:
		return nil, nil //nolint:nilnil // SQL's null
	case opened:
		return p.plain, nil
	case inClear:
		return nil, errInClear
	default:
		return nil, ErrNotOpened
	}
}

// Format implements fmt.Formatter. It hides the text for every verb.
func (s Sealed) Format(f fmt.State, _ rune) {
	if s.IsZero() {
		_, _ = fmt.Fprint(f, "no value")
		return
	}
	_, _ = fmt.Fprintf(f, "%s value of %s", s.class, s.subject)
}

// stored is the form in the log. docs/events.md specifies it.
type stored struct {
	Sealed  int    `json:"sealed"`
	Class   Class  `json:"class"`
	Subject string `json:"subject"`
	Key     int    `json:"key"`
	Box     []byte `json:"box"`
}

// MarshalJSON encodes the sealed form. A plaintext value is an error.
func (s Sealed) MarshalJSON() ([]byte, error) {
	switch s.state {
	case noValue:
		return []byte("null"), nil
	case inClear:
		return nil, fmt.Errorf("%s: %w", s, errInClear)
	default:
		return json.Marshal(stored{Sealed: sealFormat, Class: s.class, Subject: s.subject, Key: s.key, Box: []byte(s.box)})
	}
}

// UnmarshalJSON decodes the sealed form of a personal value.
func (p *Personal) UnmarshalJSON(data []byte) error { return p.unmarshal(ClassPersonal, data) }

// UnmarshalJSON decodes the sealed form of a secret.
func (s *Secret) UnmarshalJSON(data []byte) error { return s.unmarshal(classSecret, data) }

func (s *Sealed) unmarshal(class Class, data []byte) error {
	if string(data) == "null" {
		*s = Sealed{}
		return nil
	}
	var in stored
	err := json.Unmarshal(data, &in)
	switch {
	case err != nil: // the decoder's error could quote a plaintext
		return errors.New("not a sealed value")
	case in.Sealed != sealFormat:
		return fmt.Errorf("sealed form %d is unknown to this program", in.Sealed)
	case in.Class != class:
		return fmt.Errorf("a %q value instead of a %s one", in.Class, class)
	case in.Subject == "" || in.Key < 1 || len(in.Box) == 0:
		return errors.New("this sealed value lacks its subject, key or box")
	}
	*s = Sealed{class: class, state: closed, subject: in.Subject, key: in.Key, box: string(in.Box)}
	return nil
}
