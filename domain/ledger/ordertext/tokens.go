package ordertext

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"bahi/domain/person"
	"bahi/domain/wording"
)

// token is a number, a word or a mark.
type token struct {
	text   string // as written
	folded string // folded text of a word
	number bool
	value  int64 // value of a number, in thousandths; -1: too long to be a quantity
	whole  bool  // a number without a decimal point
	glued  bool  // directly follows the previous token
}

func (t token) word() bool { return t.folded != "" }

// fractions replaces fractions before NFKC, which would convert 1½ to 11/2.
var fractions = strings.NewReplacer(
	"½", ".5", "¼", ".25", "¾", ".75", "⅓", ".333", "⅔", ".667", "⅛", ".125", "⅜", ".375", "⅝", ".625", "⅞", ".875",
)

// mixed matches a fraction before a word, with or without a whole number before it: 1/2 tola, 1 ½ tola.
var mixed = regexp.MustCompile(`(^|[^\d/.,])(\d{1,4} +)?(1/[248]|3/[48]|[½¼¾⅓⅔⅛⅜⅝⅞])( *)([\p{L}\p{M}]+)`)

// slashed are fractions written with a slash.
var slashed = map[string]string{"1/2": ".5", "1/4": ".25", "3/4": ".75", "1/8": ".125", "3/8": ".375"}

// decimals converts fractions of a weight to decimals. Before other words, 1/2 may be a date.
func decimals(text string) string {
	return mixed.ReplaceAllStringFunc(text, func(found string) string {
		parts := mixed.FindStringSubmatch(found)
		if weights[fold.String(norm.NFKC.String(parts[5]))] == 0 {
			return found
		}
		part := parts[3]
		if decimal, is := slashed[part]; is {
			part = decimal
		}
		return parts[1] + strings.TrimSpace(parts[2]) + part + parts[4] + parts[5]
	})
}

// normal returns a text in NFKC with ASCII digits and without zero-width characters.
func normal(text string) string {
	text = strings.Map(person.Digit, strings.ToValidUTF8(text, " "))
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r', r == '\u2028', r == '\u2029', r == '\v', r == '\f':
			return '\n'
		case r == '–', r == '—', r == '−', r == '‐', r == '‑':
			return '-'
		case r == '×', r == '✕', r == '✖':
			return 'x'
		case r == '।':
			return ';'
		case unicode.Is(unicode.Cf, r), unicode.Is(unicode.So, r), r == '\ufe0f':
			return -1
		case r != '\n' && (unicode.IsSpace(r) || unicode.IsControl(r)):
			return ' '
		}
		return r
	}, norm.NFKC.String(fractions.Replace(decimals(text))))
}

var fold = cases.Fold()

// tokenize splits a line.
func tokenize(line string) (all []token) {
	runes := []rune(line)
	glued := false
	for i := 0; i < len(runes); {
		r := runes[i]
		start := i
		switch {
		case r == ' ':
			i++
			glued = false
			continue
		case digit(r), r == '.' && i+1 < len(runes) && digit(runes[i+1]) && !glued:
			t := number(runes[i:])
			i += len([]rune(t.text))
			t.glued = glued
			all = append(all, t)
		case letter(r):
			for i < len(runes) && (letter(runes[i]) && !timesAt(runes, start, i) || runes[i] == '\'' || runes[i] == '’' || joins(runes, start, i)) {
				i++
			}
			text := string(runes[start:i])
			all = append(all, token{text: text, folded: fold.String(strings.Map(wording.Devanagari, text)), glued: glued})
		default:
			i++
			all = append(all, token{text: string(r), glued: glued})
		}
		glued = true
	}
	return all
}

// offset merges words such as "paune" with the number after them, if a unit follows.
func offset(all []token) (merged []token) {
	for i := 0; i < len(all); i++ {
		t := all[i]
		if i+2 < len(all) && offsets[t.folded] != 0 && unitWord(all[i+2].folded) {
			if n := all[i+1].amount(all[i+2]); n > 0 {
				t = token{text: t.text + " " + all[i+1].text, number: true, value: n + offsets[t.folded], glued: t.glued}
				i++
			}
		}
		merged = append(merged, t)
	}
	return merged
}

func letter(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) }

// timesAt reports whether the letter at i is a multiplication sign, as in 5gmx4.
func timesAt(runes []rune, start, i int) bool {
	return (runes[i] == 'x' || runes[i] == 'X') && i > start && i+1 < len(runes) && digit(runes[i+1]) &&
		unitWord(fold.String(string(runes[start:i])))
}

const longestMark = 20 // maximum characters of a word that is separate from its neighbours

// joins reports whether the mark at i joins two words, as in k-pin.
func joins(runes []rune, start, i int) bool {
	return (runes[i] == '-' || runes[i] == '&') && i+1 < len(runes) && letter(runes[i+1]) &&
		(i-start > longestMark || !lone(fold.String(string(runes[start:i]))))
}

func digit(r rune) bool { return r >= '0' && r <= '9' }

// longest is the maximum number of digits of a quantity. Phones have more.
const longest = 7

// number parses a number such as 250, 1,25,000, 2.5 or .5.
func number(runes []rune) token {
	var (
		text, digits strings.Builder
		places       int
		value        int64
		pointed      bool
	)
	i := 0
	for i < len(runes) {
		r := runes[i]
		switch {
		case digit(r):
			digits.WriteRune(r)
			if !pointed || places < 3 {
				value = min(value*10+int64(r-'0'), 1<<40)
			}
			if pointed {
				places++
			}
		case r == '.' && !pointed && i+1 < len(runes) && digit(runes[i+1]):
			pointed = true
		case r == ',' && !pointed && grouped(runes, i):
		default:
			return finish(text.String(), digits.Len(), value, places, pointed)
		}
		text.WriteRune(r)
		i++
	}
	return finish(text.String(), digits.Len(), value, places, pointed)
}

func finish(text string, digits int, value int64, places int, pointed bool) token {
	for range max(0, 3-places) {
		value *= 10
	}
	if digits-places > longest {
		value = -1
	}
	return token{text: text, number: true, value: value, whole: !pointed}
}

// grouped reports whether a comma at i groups digits: 1,250 or 1,25,000.
func grouped(runes []rune, i int) bool {
	run := func(from int) int {
		n := 0
		for from+n < len(runes) && digit(runes[from+n]) {
			n++
		}
		return n
	}
	before := 0
	for i-before-1 >= 0 && digit(runes[i-before-1]) {
		before++
	}
	if before == 0 || before > 3 {
		return false
	}
	for n := run(i + 1); ; n = run(i + 1) {
		switch {
		case n == 3:
			return true
		case n == 2 && i+3 < len(runes) && runes[i+3] == ',':
			i += 3
		default:
			return false
		}
	}
}
