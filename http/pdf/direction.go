package pdf

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// leftToRight returns the runs in drawing order: it reverses passages that are written from right to left. The base direction is left to
// right, as in the tables.
func leftToRight(runs []run) []run {
	if !slices.ContainsFunc(runs, func(r run) bool { return r.face == perso }) {
		return runs
	}
	runs = slices.Clone(runs)
	for i := 0; i < len(runs); i++ {
		end := i // after the last word of this passage
		for j := i; j < len(runs) && (runs[j].face == perso || j > i && runs[j].between()); j++ {
			if runs[j].face == perso {
				end = j + 1
			}
		}
		if end == i {
			continue
		}
		passage := runs[i:end]
		slices.Reverse(passage)
		for j := range passage {
			if !passage[j].face.shaped() {
				passage[j].text = mirrored(passage[j].text)
			}
		}
		i = end - 1
	}
	return runs
}

// between reports whether the direction of the run depends on the text around it.
func (r run) between() bool {
	return r.face == numerals || !r.face.shaped() && !strings.ContainsFunc(r.text, unicode.IsLetter)
}

// mirrored reverses a text and mirrors its brackets, for a right-to-left passage. Numbers keep their order.
func mirrored(text string) string {
	brackets := strings.NewReplacer("(", ")", ")", "(", "[", "]", "]", "[", "{", "}", "}", "{", "<", ">", ">", "<", "«", "»", "»", "«")
	var parts []string
	for rest := text; rest != ""; {
		part := numberAt.FindString(rest)
		if part == "" {
			_, size := utf8.DecodeRuneInString(rest)
			part = brackets.Replace(rest[:size])
			rest = rest[size:]
		} else {
			rest = rest[len(part):]
		}
		parts = append(parts, part)
	}
	slices.Reverse(parts)
	return strings.Join(parts, "")
}

var numberAt = regexp.MustCompile(`^[₹+-]?[0-9](?:[0-9.,:/%-]*[0-9%])?`)
