// Package wording has the rules for texts that people write, and the words by which such texts are found.
package wording

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"bahi/domain/fault"
	"bahi/domain/patch"
	"bahi/domain/person"
)

// Normalise returns a text without the space around it and marks of direction (CONTRACT.md M4); one of which nothing can be seen is empty.
// It refuses one of more than
// most characters, and characters that no text needs: control characters but tabs and line breaks, and what turns the direction of text
// around. Markup and formulas are text.
func Normalise(field, text string, most int) (string, error) {
	text = person.Unmarked(text)
	switch {
	case utf8.RuneCountInString(text) > most:
		return "", fault.Fields(fault.Field{Field: field, Message: fmt.Sprintf("at most %d characters", most)})
	case !utf8.ValidString(text) || strings.ContainsFunc(text, refused):
		return "", fault.Fields(fault.Field{Field: field, Message: "control characters are not allowed"})
	case !strings.ContainsFunc(text, person.Visible):
		return "", nil
	}
	return text, nil
}

// maxPhone is how long a telephone number may be that cannot be read.
const maxPhone = 40

// Phone returns a telephone number as [person.Phone] does. One that cannot be read is kept as a text in order (CONTRACT.md 0.12, R5).
func Phone(field, text string) (string, error) {
	number, err := person.Phone(field, text)
	if err == nil {
		return number, nil
	}
	return Normalise(field, Unformatted(text), maxPhone)
}

// Unformatted returns a text without format characters (Unicode's category Cf), which only direct how a text is shown.
func Unformatted(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.Is(unicode.Cf, c) {
			return -1
		}
		return c
	}, text)
}

// Unread warns of a telephone number that [Phone] keeps although it cannot be read.
func Unread(field string, phone *string) []fault.Field {
	if phone != nil {
		if _, err := person.Phone(field, *phone); err != nil {
			return []fault.Field{{Field: field, Message: "is no telephone number that can be read: it is kept as a text, and not used"}}
		}
	}
	return nil
}

// TidyAll puts the texts of a change in order and takes out those that change nothing. It returns all that is wrong with them. Before and
// change point to structs of one type, see [patch.Texts]. An empty text is none, and no format applies to it. The formats are by the
// fields' names.
func TidyAll(before, change any, formats map[string]func(field, text string) (string, error)) error {
	var wrong []error
	texts := patch.Texts(before)
	for i, f := range patch.Texts(change) {
		var err error
		if *f.Field, err = f.With(func(text string) (string, error) { return Normalise(f.Name, text, f.Most) }); err == nil &&
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

// refused reports whether no text may have the character.
func refused(c rune) bool {
	return c < ' ' && !strings.ContainsRune("\t\n\r", c) || c >= '\u202a' && c <= '\u202e' || c >= '\u2066' && c <= '\u2069'
}

const (
	maxWords  = 100 // of a record
	maxLength = 40  // characters of a word
)

// Words returns the distinct words of texts, folded, in their order. A word is letters, marks and digits of any script.
func Words(texts ...string) (words []string) {
	for _, text := range texts {
		for word := range Each(text) {
			if len(words) < maxWords && !slices.Contains(words, word) {
				words = append(words, word)
			}
		}
	}
	return words
}

// Each returns the words of a text, folded, as often as they are there.
func Each(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for word := range strings.FieldsFuncSeq(joined.Replace(person.Folded(text)), between) {
			if runes := []rune(word); len(runes) > maxLength {
				word = string(runes[:maxLength])
			}
			if !yield(word) {
				return
			}
		}
	}
}

// joined drops what joins letters, but is none.
var joined = strings.NewReplacer("\u200c", "", "\u200d", "", "'", "", "’", "")

func between(c rune) bool { return !unicode.In(c, unicode.L, unicode.M, unicode.N) }

// Grams returns the distinct trigrams of a word, as if two blanks were before it and one after it. They do not depend on a database's
// locale, in which the letters of India may be none (CONTRACT.md B1).
func Grams(word string) (grams []string) {
	padded := []rune("  " + word + " ")
	for i := range len(padded) - 2 {
		if gram := string(padded[i : i+3]); !slices.Contains(grams, gram) {
			grams = append(grams, gram)
		}
	}
	return grams
}

// Similarity returns how alike two names are, in thousandths: 1000 if they are the same after folding, else below, by the trigrams of their
// words that are common, whatever the words' order. Of names in Indian and in Latin letters, the sounds are compared, and nothing is sure.
// Names without a word are like none.
func Similarity(a, b string) int {
	if Indic(a) != Indic(b) {
		return likeness(PhoneticKeys(a), PhoneticKeys(b)) * 9 / 10
	}
	return likeness(Words(a), Words(b))
}

func likeness(one, other []string) int {
	if len(one) == 0 || len(other) == 0 {
		return 0
	}
	if slices.Equal(one, other) {
		return 1000
	}
	grams := gramsOf(one)
	common, all := 0, len(grams)
	for gram := range gramsOf(other) {
		if grams[gram] {
			common++
		} else {
			all++
		}
	}
	return min(1000*common/all, 999)
}

func gramsOf(words []string) map[string]bool {
	all := map[string]bool{}
	for _, word := range words {
		for _, gram := range Grams(word) {
			all[gram] = true
		}
	}
	return all
}

// VocabularyOf returns words, each once, and the trigrams of each, one on a line. Words with a digit are left out: they are numbers and
// codes, of which there are as many as records, and a similar one is another one.
func VocabularyOf(words []string) (distinct, grams []string) {
	seen := map[string]bool{}
	for _, word := range words {
		if !seen[word] && !strings.ContainsFunc(word, unicode.IsDigit) {
			seen[word] = true
			distinct, grams = append(distinct, word), append(grams, strings.Join(Grams(word), "\n"))
		}
	}
	return distinct, grams
}
