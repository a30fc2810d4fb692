package event

import (
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
)

// Sealed is a value that the log holds only encrypted, under a key of its subject. Events have it as
// a [Personal] or a [Secret].
//
// It begins in clear, in a command's decision; the vault seals it before the event is encoded. What
// is read back from the log is sealed, until somebody asks the vault to open it, which is no matter
// for Evolve: a fold may copy a Sealed and never looks inside. Two seals of one text differ, so
// comparing two of them tells nothing about their texts; a keyed hash beside the value does.
//
// The zero Sealed is no value at all: null in JSON, left out with omitzero.
type Sealed struct { //nolint:recvcheck // a value to everybody but the vault, which writes through a pointer
	class   Class
	state   sealState
	subject string
	key     int
	plain   string
	box     string
}

// Class says what a sealed value is.
type Class string

// The classes. Both end with the key of their subject.
const (
	ClassPersonal Class = "personal" // opened for those who may read the record
	ClassSecret   Class = "secret"   // opened for nothing but its use
)

type sealState uint8

const (
	noValue sealState = iota
	inClear           // as decided, not yet sealed
	closed
	opened
	erased
)

// sealFormat is the version of the stored form.
const sealFormat = 1

// The ways in which a sealed value cannot be read.
var (
	ErrErased    = errors.New("the value was erased")
	ErrNotOpened = errors.New("the value was not opened")
	errInClear   = errors.New("the value is in clear: the vault must seal it first")
)

// Personal is a value about a person. Where it was opened, it goes into a table as its text, and as
// null once it is erased.
type Personal struct{ Sealed }

// Secret is a value that gives power to who knows it, such as a provider's credential. It is never
// opened inside its event.
type Secret struct{ Sealed }

// NewPersonal is a personal value of the subject: whose key it is, and with whom it is erased. A
// subject names without telling, such as user-<uuid> or buyer-<keyed hash>, for it stays in the log
// in clear. It panics without one.
func NewPersonal(subject, text string) Personal {
	return Personal{newSealed(ClassPersonal, subject, text)}
}

// NewSecret is a secret of the subject, such as channel-<uuid>. It panics without one.
func NewSecret(subject, text string) Secret {
	return Secret{newSealed(ClassSecret, subject, text)}
}

func newSealed(class Class, subject, text string) Sealed {
	if subject == "" {
		panic("a " + string(class) + " value without a subject")
	}
	return Sealed{class: class, state: inClear, subject: subject, plain: text}
}

// Class is what it is.
func (s Sealed) Class() Class { return s.class }

// Subject is whose key it is sealed with.
func (s Sealed) Subject() string { return s.subject }

// IsZero says that there is no value.
func (s Sealed) IsZero() bool { return s.state == noValue }

// Erased says that the vault was asked and has the key no more. The value is gone for ever.
func (s Sealed) Erased() bool { return s.state == erased }

// Clear is the text that is still to be sealed. It is for the vault.
func (s Sealed) Clear() (text string, ok bool) { return s.plain, s.state == inClear }

// Box is the ciphertext and the version of the subject's key. It is for the vault.
func (s Sealed) Box() (key int, box []byte, ok bool) {
	return s.key, []byte(s.box), s.state >= closed
}

// Close puts the ciphertext in place of the text. It is for the vault.
func (s *Sealed) Close(key int, box []byte) {
	s.key, s.box, s.plain, s.state = key, string(box), "", closed
}

// Open puts the text beside the ciphertext. It is for the vault.
func (s *Sealed) Open(text string) { s.plain, s.state = text, opened }

// Erase notes that the key is gone. It is for the vault.
func (s *Sealed) Erase() { s.plain, s.state = "", erased }

// Text is the value in clear, [ErrErased], or [ErrNotOpened]. It is for the edges of the system, a
// mail to its receiver; folds copy the Personal instead.
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

// Value implements [driver.Valuer]. A projection hands the Personal on as it is.
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

// Format keeps the text out of logs and messages, whatever the verb.
func (s Sealed) Format(f fmt.State, _ rune) {
	if s.IsZero() {
		_, _ = fmt.Fprint(f, "no value")
		return
	}
	_, _ = fmt.Fprintf(f, "%s value of %s", s.class, s.subject)
}

// stored is the form in the log. docs/events.md describes it.
type stored struct {
	Sealed  int    `json:"sealed"`
	Class   Class  `json:"class"`
	Subject string `json:"subject"`
	Key     int    `json:"key"`
	Box     []byte `json:"box"`
}

// MarshalJSON writes the sealed form. A value that is still in clear is an error.
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

// UnmarshalJSON reads the sealed form of a personal value.
func (p *Personal) UnmarshalJSON(data []byte) error { return p.unmarshal(ClassPersonal, data) }

// UnmarshalJSON reads the sealed form of a secret.
func (s *Secret) UnmarshalJSON(data []byte) error { return s.unmarshal(ClassSecret, data) }

func (s *Sealed) unmarshal(class Class, data []byte) error {
	if string(data) == "null" {
		*s = Sealed{}
		return nil
	}
	var in stored
	err := json.Unmarshal(data, &in)
	switch {
	case err != nil: // its text could quote a value in clear
		return errors.New("this is no sealed value")
	case in.Sealed != sealFormat:
		return fmt.Errorf("sealed form %d is unknown to this program", in.Sealed)
	case in.Class != class:
		return fmt.Errorf("a %q value stands where a %s one belongs", in.Class, class)
	case in.Subject == "" || in.Key < 1 || len(in.Box) == 0:
		return errors.New("this sealed value lacks its subject, key or box")
	}
	*s = Sealed{class: class, state: closed, subject: in.Subject, key: in.Key, box: string(in.Box)}
	return nil
}
