package wording

import (
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/kljensen/snowball/english"

	"bahi/domain/person"
)

const (
	maxWords    = 100       // of a record
	maxLength   = 40        // characters of a word
	maxPosition = 1<<14 - 1 // of a word in a tsvector
)

// Words returns the distinct words of texts, folded, in their order. A word consists of letters, marks and digits of any script.
func Words(texts ...string) (words []string) {
	for _, text := range texts {
		for word := range each(text) {
			if len(words) < maxWords && !slices.Contains(words, word) {
				words = append(words, word)
			}
		}
	}
	return words
}

// each returns the words of a text, folded, with repetitions.
func each(text string) iter.Seq[string] {
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

// joined removes characters that only join letters.
var joined = strings.NewReplacer("\u200c", "", "\u200d", "", "'", "", "’", "")

func between(c rune) bool { return !unicode.In(c, unicode.L, unicode.M, unicode.N) }

// Terms returns the words of a text for full-text search. Digits of all scripts become ASCII digits, and a rupee sign is a word.
func Terms(text string) iter.Seq[string] {
	return each(strings.Map(person.Digit, strings.ReplaceAll(text, "₹", " rs ")))
}

var (
	point     = regexp.MustCompile(`(\pN)\.(\pN)`)
	thousands = regexp.MustCompile(`(\pN),(\pN)`)
)

// WholeNumbers makes each number of a text one term: 12 is no term of 12.5, nor 800 of 84,800.
func WholeNumbers(text string) string {
	return point.ReplaceAllString(thousands.ReplaceAllString(text, "$1$2"), "${1}p$2")
}

// Stem returns the English stem of a term. A stop word, and a term in other than ASCII letters, is its own stem.
func Stem(term string) string {
	if !IsASCII(term) {
		return term
	}
	return english.Stem(term, false)
}

// IsStop reports whether a term is an English word without content.
func IsStop(term string) bool { return english.IsStopWord(term) }

// IsASCII reports whether a term has only ASCII letters and digits.
func IsASCII(term string) bool {
	return !strings.ContainsFunc(term, func(c rune) bool { return c > unicode.MaxASCII })
}

// IsNumbered reports whether a word has a digit.
func IsNumbered(word string) bool { return strings.ContainsFunc(word, unicode.IsDigit) }

// Vector returns a text as a tsvector of Postgres: its terms and, with weight A, the stems of its terms without digits. The lexemes begin
// with the scope, so that an index for several scopes reads only those of one.
func Vector(scope int64, text string) string {
	var out strings.Builder
	at := 0
	for term := range Terms(text) {
		at = min(at+1, maxPosition)
		fmt.Fprintf(&out, "%d/%s:%d ", scope, term, at)
		if stem := Stem(term); stem != term && !IsNumbered(term) {
			fmt.Fprintf(&out, "%d/%s:%dA ", scope, stem, at)
		}
	}
	return out.String()
}

// Query returns a tsquery of Postgres for texts with a term of each list.
func Query(scope int64, lists ...[]string) string {
	all := make([]string, len(lists))
	for i, terms := range lists {
		all[i] = fmt.Sprintf("(%d/%s)", scope, strings.Join(terms, fmt.Sprintf("|%d/", scope)))
	}
	return strings.Join(all, "&")
}

// Grams returns the distinct trigrams of a word with two blanks before it and one after it. They do not depend on the database's locale,
// which may lack the letters of India (CONTRACT.md B1).
func Grams(word string) (grams []string) {
	padded := []rune("  " + word + " ")
	for i := range len(padded) - 2 {
		if gram := string(padded[i : i+3]); !slices.Contains(grams, gram) {
			grams = append(grams, gram)
		}
	}
	return grams
}

// RareGrams returns some trigrams of a word, without the first ones, which are frequent. Any word that has at least this percentage of the
// word's trigrams has one of the returned trigrams.
func RareGrams(word string, percentage int) []string {
	grams := Grams(word)
	return grams[(percentage*len(grams)+99)/100-1:]
}

// Common returns the number of trigrams that words have in common with other words, and the number of all trigrams of both.
func Common(words, others []string) (common, all int) {
	a, b := gramsOf(words), gramsOf(others)
	for gram := range a {
		if b[gram] {
			common++
		}
	}
	return common, len(a) + len(b) - common
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

// Similarity returns the similarity of two names in thousandths. It is 1000 if the folded names are equal, else less, by the common
// trigrams of their words in any order. For an Indian and a Latin spelling, it compares the sounds, and never returns 1000. A name without
// words has similarity 0.
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
	common, all := Common(one, other)
	return min(1000*common/all, 999)
}

// VocabularyOf returns the distinct words, and the trigrams of each word, one on a line. It omits words with a digit. There are as many
// numbers and codes as records, and similar ones are unrelated.
func VocabularyOf(words []string) (distinct, grams []string) {
	seen := map[string]bool{}
	for _, word := range words {
		if !seen[word] && !IsNumbered(word) {
			seen[word] = true
			distinct, grams = append(distinct, word), append(grams, strings.Join(Grams(word), "\n"))
		}
	}
	return distinct, grams
}
