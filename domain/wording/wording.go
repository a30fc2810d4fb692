// Package wording has the rules for texts of users, and the words by which searches find these texts.
package wording

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"bahi/domain/fault"
	"bahi/domain/patch"
	"bahi/domain/person"
)

// Normalise returns a text without surrounding space and direction marks (CONTRACT.md M4). An invisible text becomes empty. It refuses a
// text of more than most characters, control characters except tabs and line breaks, and characters that reverse the text direction. Markup
// and formulas are ordinary text.
func Normalise(field, text string, most int) (string, error) {
	text = person.Unmarked(text)
	switch {
	case utf8.RuneCountInString(text) > most:
		return "", fault.Wrong(field, fmt.Sprintf("at most %d characters", most))
	case !utf8.ValidString(text) || strings.ContainsFunc(text, refused):
		return "", fault.Wrong(field, "control characters are not allowed")
	case !strings.ContainsFunc(text, person.Visible):
		return "", nil
	}
	return text, nil
}

// Required is [Normalise] for a text that must not be empty.
func Required(field, text string, most int) (string, error) {
	text, err := Normalise(field, text, most)
	if err == nil && text == "" {
		err = fault.Wrong(field, "must not be empty")
	}
	return text, err
}

// maxPhone is the maximum length of an unreadable telephone number.
const maxPhone = 40

// Phone returns a telephone number like [person.Phone]. It returns an unreadable one as a normalised text (CONTRACT.md 0.12, R5).
func Phone(field, text string) (string, error) {
	number, err := person.Phone(field, text)
	if err == nil {
		return number, nil
	}
	return Normalise(field, Unformatted(text), maxPhone)
}

// maxUnread is the maximum length of an unreadable telephone number in a file. Requests have a shorter one.
const maxUnread = 200

// ParseE164 parses a given telephone number like [person.ParseE164]. For an unreadable one, it returns null and the normalised text
// (CONTRACT.md 0.12, R5).
func ParseE164(field string, given patch.Field[string]) (phone patch.Field[string], unread string, err error) {
	phone, err = given.With(func(text string) (string, error) { return person.ParseE164(field, text) })
	if err == nil {
		return phone, "", nil
	}
	unread, err = Normalise(field, Unformatted(given.Value), maxUnread)
	return patch.Clear[string](), unread, err
}

// Unformatted returns a text without format characters (Unicode's category Cf), which only affect the display.
func Unformatted(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.Is(unicode.Cf, c) {
			return -1
		}
		return c
	}, text)
}

// UnreadPhone is the warning about an unreadable telephone number.
const UnreadPhone = "is not a readable telephone number: it is stored as a text, and not used"

// Unread returns a warning about an unreadable telephone number that [Phone] has kept as a text.
func Unread(field string, phone *string) []fault.Field {
	if phone != nil {
		if _, err := person.Phone(field, *phone); err != nil {
			return []fault.Field{{Field: field, Message: UnreadPhone}}
		}
	}
	return nil
}

// TidyAll normalises the texts of a change, drops unchanged ones, and returns all faults. before and change are pointers to structs of one
// type, see [patch.Texts]. An empty text equals null, and no format applies to it. formats has the formats by field name.
func TidyAll(before, change any, formats map[string]func(field, text string) (string, error)) error {
	var wrong []error
	texts := patch.Texts(before)
	for i, f := range patch.Texts(change) {
		var err error
		if *f.Field, err = f.With(func(text string) (string, error) { return Normalise(f.Name, text, f.MaxLength) }); err == nil &&
			f.State == patch.Given && f.Value == "" {
			*f.Field = patch.Clear[string]()
		}
		if format := formats[f.Name]; format != nil && err == nil {
			*f.Field, err = f.With(func(text string) (string, error) { return format(f.Name, text) })
		}
		wrong = append(wrong, err)
		*f.Field = patch.Differing(*f.Field, texts[i].Value)
	}
	return fault.Join(wrong...)
}

// refused reports whether texts must not contain the character.
func refused(c rune) bool {
	return c < ' ' && !strings.ContainsRune("\t\n\r", c) || c >= '\u202a' && c <= '\u202e' || c >= '\u2066' && c <= '\u2069'
}
