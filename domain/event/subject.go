package event

import (
	"fmt"
	"slices"
	"time"

	"bahi/domain/patch"
)

// SubjectType is a category of data subjects, whose personal and secret values the log has: users, invitations, contacts. Each subject has
// one key, and its name is <category>-<id>, mostly that of its stream.
type SubjectType string

// Of returns the name of one of the subjects. The log has it as plaintext, so an id must not identify a person.
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

// ErasureTrigger is an event that ends a subject: from a time on, its sealed values must be erased. The sweep of erasures then destroys the
// subject's key, and Postgres removes the rows.
type ErasureTrigger interface {
	// Erases returns the erasure of a subject. The id is that of the event's stream.
	Erases(id string) Erasure
}

// Erasure specifies when the values of a subject must be erased.
type Erasure struct {
	Subject  string
	At       time.Time // zero: as soon as the event is in the log
	Unlisted bool      // no table has the values, so destroying the key is enough
}

// Sealing declares the subjects whose values the kind's events have sealed.
func (k *Kind[S]) Sealing(subjects ...SubjectType) *Kind[S] {
	k.subjects = append(k.subjects, subjects...)
	return k
}

// Subjects returns the subjects whose values the kind's events have sealed.
func (k *Kind[S]) Subjects() []SubjectType { return k.subjects }

// MaySeal returns an error if a value has a subject that the kind does not declare: nothing would ever erase it.
func (k *Kind[S]) MaySeal(values []*Sealed) error {
	for _, v := range values {
		category, _ := SplitStream(v.Subject())
		if !slices.Contains(k.subjects, SubjectType(category)) {
			return fmt.Errorf("kind %s does not declare that it seals values of %s: add Sealing", k.category, category)
		}
	}
	return nil
}
