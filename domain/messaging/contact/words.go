package contact

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// words are the keywords with which a contact opts out (false) or in (true) (CONTRACT.md N9). A hyphen stands for an
// optional blank.
var words = wordsOf(map[bool][]string{
	false: {
		"stop", "stop-all", "stop-karo", "stop-kar-do", "unsubscribe", "unsub", "opt-out", "remove-me",
		"dont-message", "don't-message", "do-not-message", "dont-send-messages", "don't-send-messages", "do-not-send-messages",
		"band-karo", "band-kardo", "band-kar-do", "band-kare", "band-karein", "bandh-karo", "bandh-kar-do", "bandh-karein",
		"message-mat-bhejo", "msg-mat-bhejo", "no-messages",
		"बंद", "बंद-करो", "बंद-करा", "बंद-करें", "बंद-कीजिए",
		"बंद-कर-दो", "बंद-कर-दीजिए", "मैसेज-मत-भेजो",
		"संदेश-मत-भेजो", "स्टॉप",
		"अनसब्सक्राइब",
		"બંધ", "બંધ-કરો", "બંધ-કરશો", "બંધ-કરી-દો", "મેસેજ-ન-મોકલો",
		"મેસેજ-ન-મોકલશો", "સ્ટોપ", "રોકો",
	},
	true: {"start", "chalu-karo", "चालू", "चालू-करो", "ચાલુ", "ચાલુ-કરો"},
})

// balanceWords are the keywords with which a contact agrees with its balances (true) or disagrees (false).
var balanceWords = wordsOf(map[bool][]string{
	true: {
		"1", "१", "૧", "yes", "agree", "agreed", "correct", "हाँ", "सही", "सही-है", "सहमत", "मंजूर", "haan", "sahi",
		"હા", "સાચું", "બરાબર-છે", "સહમત", "મંજૂર",
	},
	false: {
		"2", "२", "૨", "no", "differ", "disagree", "wrong", "नहीं", "गलत", "असहमत", "नामंजूर", "nahi", "galat",
		"ના", "ખોટું", "અસહમત", "નામંજૂર",
	},
})

// wordsOf returns the meaning of each form of the texts.
func wordsOf(texts map[bool][]string) map[string]bool {
	all := map[string]bool{}
	for meaning, same := range texts {
		for _, text := range same {
			for _, form := range bare(text) {
				all[form] = meaning
			}
		}
	}
	return all
}

// fillers are the words that may be beside a consent keyword: first the polite ones, then those that say what to stop.
var fillers = []map[string]bool{
	wordSet(`please pls plz kindly thanks thank you sir madam ji bhai hi hello ok kripya krupa karine me mujhe these your any more
		कृपया कृपा करके प्लीज जी भाई धन्यवाद मुझे કૃપા
		કરીને મહેરબાની પ્લીઝ જી ભાઈ આભાર મને`),
	wordSet("sending messaging message messages msg msgs sms texts promotional promotions offers ads मैसेज मेसेज संदेश મેસેજ સંદેશ"),
}

func wordSet(text string) map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		all[bare(word)[0]] = true
	}
	return all
}

// ConsentKeyword reports whether a whole text is a consent keyword, apart from fillers, repetitions and quoted lines, and its effect.
func ConsentKeyword(text string) (optIn, is bool) {
	text = quoted.ReplaceAllString(text, "")
	optIn, is = keyword(words, text)
	said := strings.Fields(bare(text)[0])
	if len(said)*2-1 == utf8.RuneCountInString(strings.Join(said, " ")) { // s t o p
		said = []string{strings.Join(said, "")}
	}
	for i := 0; i < len(fillers) && !is; i++ {
		said = slices.Compact(slices.DeleteFunc(said, func(word string) bool { return fillers[i][word] }))
		optIn, is = keyword(words, strings.Join(said, " "))
	}
	return optIn, is
}

// quoted matches the lines of an earlier message.
var quoted = regexp.MustCompile(`(?m)^[ \t]*>.*$`)

// BalanceKeyword reports whether a whole text is a keyword for balances, and whether it agrees.
func BalanceKeyword(text string) (agrees, is bool) { return keyword(balanceWords, text) }

// keyword reports whether a text is one of the words, and its meaning.
func keyword(words map[string]bool, text string) (meaning, is bool) {
	for _, form := range bare(text) {
		if meaning, is = words[form]; is {
			return meaning, is
		}
	}
	return false, false
}

// longestWord is greater than the length of the longest keyword with surrounding characters, in bytes.
const longestWord = 1000

// unspoken are characters without meaning.
var unspoken = []*unicode.RangeTable{
	unicode.Cf, unicode.P, unicode.S, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point, unicode.Me,
}

// bare returns a text in lower case and in one spelling (CONTRACT.md R9), first with blanks in place of unspoken characters, then without
// them.
func bare(text string) (forms [2]string) {
	if len(text) > longestWord {
		return forms
	}
	text = cases.Fold().String(norm.NFKC.String(text))
	for i, instead := range []rune{' ', -1} {
		form := strings.Map(func(c rune) rune {
			switch {
			case unicode.IsSpace(c):
				return ' '
			case unicode.In(c, unspoken...), unicode.IsControl(c):
				return instead
			default:
				return c
			}
		}, text)
		forms[i] = strings.Join(strings.Fields(once(spelt(form))), " ")
	}
	return forms
}

// once returns a text without the repetitions of a letter, as in "stopp".
func once(text string) string {
	before := rune(0)
	return strings.Map(func(c rune) rune {
		repeated := c == before && !unicode.Is(unicode.N, c)
		before = c
		if repeated {
			return -1
		}
		return c
	}, text)
}

var (
	// nasal matches, in Devanagari and Gujarati, a nasal consonant without a vowel before another consonant, or the sign of a nasal vowel.
	nasal = regexp.MustCompile("[ङञणनम]\u094d([क-ह])|[ઙઞણનમ]\u0acd([ક-હ])|\u0901()|\u0a81()")

	// signs removes nuktas, and shortens the signs of long vowels.
	signs = strings.NewReplacer("\u093c", "", "\u0abc", "", "\u0940", "\u093f", "\u0942", "\u0941", "\u0ac0", "\u0abf", "\u0ac2", "\u0ac1")
)

// spelt returns a text in one spelling of Devanagari and Gujarati: each nasal as its sign, no nuktas, short vowels.
func spelt(text string) string {
	return nasal.ReplaceAllStringFunc(signs.Replace(text), func(found string) string {
		runes := []rune(found)
		sign := "\u0902"
		if runes[0] >= '\u0a80' {
			sign = "\u0a82"
		}
		if len(runes) == 1 {
			return sign
		}
		return sign + string(runes[2:])
	})
}
