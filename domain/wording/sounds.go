package wording

import (
	"regexp"
	"strings"
)

// sounding unifies spellings of the same sound: Laxmi and Lakshmi, Deepak and Dipak, Fateh and Phateh, Wazir and Vazir.
var sounding = strings.NewReplacer("x", "ks", "ph", "p", "f", "p", "w", "v", "z", "j", "q", "k", "ee", "i", "oo", "u", "ii",
	"i", "uu", "u", "y", "i", "mb", "nb", "mp", "np")

var (
	breaths = regexp.MustCompile(`([bcdgjklmnprstv])h+`) // an h after a consonant
	schwas  = regexp.MustCompile(`(\pL)a+`)              // every a but a word's first letter
)

// PhoneticKeys returns the words of a name in a spelling that is the same for its Devanagari, Gujarati and Latin forms. It drops every a
// except a first letter, because Devanagari and Gujarati do not mark a silent a.
func PhoneticKeys(name string) (words []string) {
	for _, word := range Words(Romanised(name)) {
		word = schwas.ReplaceAllString(breaths.ReplaceAllString(sounding.Replace(word), "$1"), "$1")
		single := []rune{}
		for _, c := range word {
			if len(single) == 0 || single[len(single)-1] != c {
				single = append(single, c)
			}
		}
		words = append(words, string(single))
	}
	return words
}

// Indic reports whether a text has a letter of an Indian script.
func Indic(text string) bool {
	return strings.ContainsFunc(text, func(c rune) bool { return c >= firstIndic && c <= lastIndic })
}
