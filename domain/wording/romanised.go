package wording

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// The Unicode blocks of the Indian scripts have one order, that of ISCII, so the offset in its block identifies a letter.
const (
	firstIndic, lastIndic, block = 0x0900, 0x0d7f, 0x80

	firstVowel, lastVowel         = 0x05, 0x14
	firstConsonant, lastConsonant = 0x15, 0x39
	firstSign, lastSign           = 0x3e, 0x4c
	nukta, virama                 = 0x3c, 0x4d
	firstDigit, lastDigit         = 0x66, 0x6f
)

// The letters by ISO 15919 without diacritics, by the offset in the block.
var (
	vowels     = [...]string{"a", "a", "i", "i", "u", "u", "r", "l", "e", "e", "e", "ai", "o", "o", "o", "au"}
	consonants = [...]string{
		"k", "kh", "g", "gh", "n", "c", "ch", "j", "jh", "n", "t", "th", "d", "dh", "n", "t", "th", "d", "dh", "n", "n",
		"p", "ph", "b", "bh", "m", "y", "r", "r", "l", "l", "l", "v", "s", "s", "s", "h",
	}
	signs = [...]string{"a", "i", "i", "u", "u", "r", "r", "e", "e", "e", "ai", "o", "o", "o", "au"}
	marks = map[int]string{0x01: "m", 0x02: "m", 0x03: "h"}
)

// Devanagari converts a letter of another script of India to the one at its place in Devanagari. It keeps Gujarati, for which lists of
// words have words.
func Devanagari(c rune) rune {
	if c < firstIndic || c > lastIndic || c >= 0x0a80 && c < 0x0b00 {
		return c
	}
	return firstIndic + c%block
}

// latin replaces letters that are not an ASCII letter with a mark.
var latin = strings.NewReplacer("ß", "ss", "æ", "ae", "Æ", "ae", "œ", "oe", "Œ", "oe", "ø", "o", "Ø", "o", "đ", "d", "Đ",
	"d", "ł", "l", "Ł", "l", "þ", "th", "Þ", "th", "&", " and ")

// unmarked drops marks of letters.
func unmarked(c rune) rune {
	if unicode.Is(unicode.Mn, c) {
		return -1
	}
	return c
}

// Romanised returns a name in ASCII letters, as far as possible.
func Romanised(name string) string {
	var out strings.Builder
	inherent := false // the consonant's inherent a follows unless a sign replaces it
	for _, c := range norm.NFC.String(latin.Replace(name)) {
		place := int(c) % block
		if c < firstIndic || c > lastIndic {
			place = -1
		}
		joins := place >= firstSign && place <= virama || place == nukta || c == '\u200c' || c == '\u200d'
		if inherent && !joins {
			out.WriteByte('a')
			inherent = false
		}
		switch {
		case place >= firstVowel && place <= lastVowel:
			out.WriteString(vowels[place-firstVowel])
		case place >= firstConsonant && place <= lastConsonant:
			out.WriteString(consonants[place-firstConsonant])
			inherent = true
		case place >= firstSign && place <= lastSign:
			out.WriteString(signs[place-firstSign])
			inherent = false
		case place == virama:
			inherent = false
		case place >= firstDigit && place <= lastDigit:
			out.WriteByte(byte('0' + place - firstDigit))
		case place >= 0:
			out.WriteString(marks[place])
		case joins:
		default:
			out.WriteString(strings.Map(unmarked, norm.NFKD.String(string(c))))
		}
	}
	if inherent {
		out.WriteByte('a')
	}
	return out.String()
}
