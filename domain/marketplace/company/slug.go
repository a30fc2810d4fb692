package company

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// maxSlug is how long a slug may be, without the number that keeps it apart from others (CONTRACT.md 8.4).
const maxSlug = 80

// reserved are the slugs that have another meaning in a path (CONTRACT.md D24).
var reserved = map[string]bool{"search": true, "check-domain": true, "me": true, "new": true}

// idForm is the form of an id, which a slug never has.
var idForm = regexp.MustCompile(`(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// IsID reports whether a text from a path is an id, and no slug.
func IsID(text string) bool { return idForm.MatchString(text) }

// Slug returns the slug that a company of this name would like to have. One without a letter that can be written in ASCII gets one of its id.
func Slug(name, id string) string {
	slug := strings.Trim(apart.ReplaceAllString(strings.ToLower(Romanised(name)), "-"), "-")
	if len(slug) > maxSlug {
		slug = strings.TrimRight(slug[:maxSlug], "-")
	}
	switch {
	case slug == "":
		return "company-" + id[max(0, len(id)-8):]
	case reserved[slug] || IsID(slug):
		return slug + "-company"
	}
	return slug
}

// Nth returns the slug of the nth company that would like to have one, from 1.
func Nth(slug string, n int) string {
	if n == 1 {
		return slug
	}
	return slug + "-" + strconv.Itoa(n)
}

var apart = regexp.MustCompile(`[^a-z0-9]+`)

// The blocks of the scripts of India have one order, that of ISCII, so a letter's place in its block says which it is.
const (
	firstIndic, lastIndic, block = 0x0900, 0x0d7f, 0x80

	firstVowel, lastVowel         = 0x05, 0x14
	firstConsonant, lastConsonant = 0x15, 0x39
	firstSign, lastSign           = 0x3e, 0x4c
	nukta, virama                 = 0x3c, 0x4d
	firstDigit, lastDigit         = 0x66, 0x6f
)

// ISO 15919 without diacritics, by the place in the block.
var (
	vowels     = [...]string{"a", "a", "i", "i", "u", "u", "r", "l", "e", "e", "e", "ai", "o", "o", "o", "au"}
	consonants = [...]string{
		"k", "kh", "g", "gh", "n", "c", "ch", "j", "jh", "n", "t", "th", "d", "dh", "n", "t", "th", "d", "dh", "n", "n",
		"p", "ph", "b", "bh", "m", "y", "r", "r", "l", "l", "l", "v", "s", "s", "s", "h",
	}
	signs = [...]string{"a", "i", "i", "u", "u", "r", "r", "e", "e", "e", "ai", "o", "o", "o", "au"}
	marks = map[int]string{0x01: "m", 0x02: "m", 0x03: "h"}
)

// latin are letters that are no letter of ASCII with a mark.
var latin = strings.NewReplacer("ß", "ss", "æ", "ae", "Æ", "ae", "œ", "oe", "Œ", "oe", "ø", "o", "Ø", "o", "đ", "d", "Đ", "d", "ł", "l", "Ł", "l", "þ", "th", "Þ", "th", "&", " and ")

// unmarked drops marks of letters.
func unmarked(c rune) rune {
	if unicode.Is(unicode.Mn, c) {
		return -1
	}
	return c
}

// Romanised returns a name in letters of ASCII, as far as they have it.
func Romanised(name string) string {
	var out strings.Builder
	inherent := false // the a of a consonant is due, unless a sign takes its place
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
