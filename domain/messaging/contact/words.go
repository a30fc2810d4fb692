package contact

import (
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// words are texts by which a contact moves consent: false takes it, true gives it back (CONTRACT.md N9).
var words = func() map[string]bool {
	all := map[string]bool{}
	for optIn, texts := range map[bool][]string{
		false: {"stop", "stop all", "unsubscribe", "opt out", "band karo", "बंद", "बन्द", "बंद करो", "बंद करा", "બંધ", "બંધ કરો", "રોકો"},
		true:  {"start", "चालू", "ચાલુ"},
	} {
		for _, text := range texts {
			all[bare(text)] = optIn
		}
	}
	return all
}()

// Word returns whether a text is one of the words, and what it does to consent. It must be the whole text.
func Word(text string) (optIn, is bool) {
	optIn, is = words[bare(text)]
	return optIn, is
}

// longestWord is more than the longest of the words, in bytes.
const longestWord = 200

// bare returns a text without case, punctuation and what cannot be seen.
func bare(text string) string {
	if len(text) > longestWord {
		return ""
	}
	text = cases.Fold().String(norm.NFKC.String(text))
	text = strings.Map(func(c rune) rune {
		switch {
		case unicode.In(c, unicode.Cf, unicode.P, unicode.S):
			return -1
		case unicode.IsSpace(c):
			return ' '
		default:
			return c
		}
	}, text)
	return strings.Join(strings.Fields(text), " ")
}
