package knowledge

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// The sizes of chunks in characters (CONTRACT.md 8.11).
const (
	minChunk = 2000
	maxChunk = 3000
	overlap  = 300
)

// Chunks splits the pages of a text into chunks of 2,000 to 3,000 characters. It splits between paragraphs, or between
// sentences of a long paragraph. Each chunk but the first repeats the last heading and the end of the previous chunk.
// The last chunk may be shorter.
func Chunks(pages iter.Seq2[string, error]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var current strings.Builder
		last := "" // the heading of the current text
		size, on := 0, true
		end := func() {
			chunk := strings.TrimSpace(current.String())
			current.Reset()
			size = 0
			if chunk == "" {
				return
			}
			on = yield(chunk, nil)
			tail := lastOf(chunk, overlap)
			if last != "" && !strings.Contains(tail, last) {
				tail = strings.TrimSpace(last + "\n\n" + tail)
			}
			if tail != "" {
				current.WriteString(tail + "\n\n")
				size = utf8.RuneCountInString(tail) + 2
			}
		}
		added := false // text was added besides the repeated part
		for page, err := range pages {
			if err != nil {
				yield("", err)
				return
			}
			for part := range paragraphs(strings.ReplaceAll(page, "\r\n", "\n")) {
				part = strings.TrimSpace(part)
				if first, _, _ := strings.Cut(part, "\n"); heading(first) || markedHeading.MatchString(first) {
					last = first
				}
				for part != "" {
					length := utf8.RuneCountInString(part)
					if size+length <= maxChunk {
						current.WriteString(part + "\n\n")
						size, part, added = size+length+2, "", true
						continue
					}
					if size < minChunk {
						head, rest := cut(part, maxChunk-size)
						current.WriteString(head)
						part = strings.TrimSpace(rest)
					}
					if end(); !on {
						return
					}
					added = false
				}
			}
		}
		if added {
			end()
		}
	}
}

// Text returns the pages of a complete text.
func Text(text string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) { yield(text, nil) }
}

// paragraphs splits a text at blank lines and pages.
func paragraphs(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for page := range strings.SplitSeq(text, "\f") {
			for from, at := 0, 0; at < len(page); {
				line, _, _ := strings.Cut(page[at:], "\n")
				end := min(at+len(line)+1, len(page))
				if strings.Trim(line, " \t") == "" {
					if !yield(page[from:at]) {
						return
					}
					from = end
				} else if end == len(page) && !yield(page[from:]) {
					return
				}
				at = end
			}
		}
	}
}

// borders are the strings after which a text is split, the best ones first.
var borders = []string{"\n", "। ", ". ", "? ", "! ", "; ", ", ", " "}

// cut splits a text after at most the given number of characters, at the best and last border of its second half.
func cut(text string, most int) (head, rest string) {
	limit := 0
	for i := range text {
		if most == 0 {
			limit = i
			break
		}
		most--
	}
	for _, border := range borders {
		if at := strings.LastIndex(text[:limit], border); at >= limit/2 {
			return text[:at+len(border)], text[at+len(border):]
		}
	}
	return text[:limit], text[limit:]
}

// lastOf returns at most the given number of characters from the end of a text. They begin with a sentence or a word.
func lastOf(text string, most int) string {
	if utf8.RuneCountInString(text) <= 2*most { // a short text is not repeated
		return ""
	}
	from := len(text)
	for range most {
		_, width := utf8.DecodeLastRuneInString(text[:from])
		from -= width
	}
	tail := text[from:]
	for _, border := range borders {
		if at := strings.Index(tail, border); at >= 0 && at < len(tail)/2 {
			return strings.TrimSpace(tail[at+len(border):])
		}
	}
	return tail
}
