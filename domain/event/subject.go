package event

import (
	"fmt"
	"slices"
	"time"

	"bahi/domain/patch"
)

// SubjectType is a category of data subjects with personal or secret values in the log: users, invitations, contacts. Each subject has one
// key. Its name is <category>-<id>, usually the name of its stream.
type SubjectType string

// Of returns the name of one of the subjects. The log has the name as plaintext, so an id must not identify a person.
func (s SubjectType) Of(id string) string { return StreamName(string(s), id) }

// Personal returns a personal value of one of the subjects, no value for an empty text.
func (s SubjectType) Personal(id, text string) Personal {
	if text == "" {
		return Personal{}
	}
	return NewPersonal(s.Of(id), text)
}

// Field is [SubjectType.Personal] for a field of a change. An empty text is null.
func (s SubjectType) Field(id string, f patch.Field[string]) patch.Field[Personal] {
	if f.Present() && f.Value == "" {
		return patch.Clear[Personal]()
	}
	return patch.Field[Personal]{Value: s.Personal(id, f.Value), State: f.State}
}

// ErasureTrigger is an event after which the sealed values of a subject must be erased, at once or from a time on. The sweep of erasures
// then destroys the subject's key, and Postgres removes the rows.
type ErasureTrigger interface {
	// Erases returns the erasure of a subject. id is the id of the event's stream.
	Erases(id string) Erasure
}

// Erasure specifies when the values of a subject must be erased.
type Erasure struct {
	Subject  string
	At       time.Time // zero: as soon as the event is in the log
	Unlisted bool      // no table has the values, so destroying the key is enough
}

// Sealing declares the subjects of the sealed values in the kind's events.
func (k *Kind[S]) Sealing(subjects ...SubjectType) *Kind[S] {
	k.subjects = append(k.subjects, subjects...)
	return k
}

// Subjects returns the subjects of the sealed values in the kind's events.
func (k *Kind[S]) Subjects() []SubjectType { return k.subjects }

// MaySeal returns an error if a value has a subject that the kind does not declare. Such a value would never be erased.
func (k *Kind[S]) MaySeal(values []*Sealed) error {
	for _, v := range values {
		category, _ := SplitStream(v.Subject())
		if !slices.Contains(k.subjects, SubjectType(category)) {
			return fmt.Errorf("kind %s does not declare that it seals values of %s: add Sealing", k.category, category)
		}
	}
	return nil
}
