package knowledge

import (
	_ "embed"
	"slices"
	"strings"
	"unicode/utf8"

	"bahi/domain/wording"
)

// Each line of synonyms.txt has words that customers and jewellers use for one thing, in their languages and scripts. Words
// after a star name an attribute of a thing, such as its price.
//
//go:embed synonyms.txt
var synonymLines string

const (
	maxEnding    = 3   // maximum letters of an ending after a listed word, in a script without stemming
	minKnown     = 2   // minimum letters of a listed word for matches with endings
	maxMeant     = 64  // synonyms of a word
	synonymFit   = 0.7 // quality of a match by a synonym
	longestLatin = 4   // letters of an English ending
)

// attributes are the words after a star, without endings.
var attributes = map[string]bool{}

// synonyms has the groups of each listed word.
var synonyms = func() map[string][][]string {
	all := map[string][][]string{}
	for line := range strings.Lines(synonymLines) {
		line, is := strings.CutPrefix(line, "* ")
		group := slices.Collect(wording.Terms(line))
		for _, word := range group {
			all[stem(word)] = append(all[stem(word)], group)
			if is {
				attributes[stem(word)] = true
			}
		}
	}
	return all
}()

// meaning returns the synonyms of a word.
func meaning(word string) (all []string) {
	groups := synonyms[stem(word)]
	if !wording.IsASCII(word) {
		for rest, cut := word, 0; len(groups) == 0 && cut < maxEnding && utf8.RuneCountInString(rest) > minKnown; cut++ {
			_, width := utf8.DecodeLastRuneInString(rest)
			rest = rest[:len(rest)-width]
			groups = synonyms[rest]
		}
	}
	for _, group := range groups {
		for _, other := range group {
			if other != word && !slices.Contains(all, other) && len(all) < maxMeant {
				all = append(all, other)
			}
		}
	}
	return all
}

// means reports whether a word is a listed word or one of its synonyms.
func means(word, listed string) bool {
	return stem(word) == stem(listed) || slices.Contains(meaning(word), listed)
}

// stem returns an English word without a common ending, so that the list does not require each form. Users never see the
// result.
func stem(word string) string {
	if !wording.IsASCII(word) {
		return word
	}
	for _, ending := range []string{"ings", "ing", "ers", "ies", "ed", "es", "er", "s", "e", "y"} {
		if rest, is := strings.CutSuffix(word, ending); is && len(rest) >= longestLatin-1 {
			return rest
		}
	}
	return word
}
