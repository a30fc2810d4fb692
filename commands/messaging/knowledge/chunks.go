package knowledge

import (
	"iter"
	"regexp"
	"strings"
	"unicode/utf8"
)

// The sizes of chunks, in characters (CONTRACT.md 8.11).
const (
	leastChunk = 2000
	mostChunk  = 3000
	overlap    = 300
)

var paragraph = regexp.MustCompile(`\n[ \t]*(?:\n[ \t]*)+|\f`)

// Chunks cuts the pages of a text into parts of 2,000 to 3,000 characters at borders of paragraphs, or of sentences in a long paragraph. Each part but the
// first repeats the end of the one before. The last one may be shorter.
func Chunks(pages iter.Seq2[string, error]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var current strings.Builder
		size, on := 0, true
		end := func() {
			chunk := strings.TrimSpace(current.String())
			current.Reset()
			size = 0
			if chunk == "" {
				return
			}
			on = yield(chunk, nil)
			if tail := lastOf(chunk, overlap); tail != "" {
				current.WriteString(tail + "\n\n")
				size = utf8.RuneCountInString(tail) + 2
			}
		}
		added := false // since the last end, beside what is repeated
		for page, err := range pages {
			if err != nil {
				yield("", err)
				return
			}
			for part := range paragraphs(strings.ReplaceAll(page, "\r\n", "\n")) {
				for part = strings.TrimSpace(part); part != ""; {
					length := utf8.RuneCountInString(part)
					if size+length <= mostChunk {
						current.WriteString(part + "\n\n")
						size, part, added = size+length+2, "", true
						continue
					}
					if size < leastChunk {
						head, rest := cut(part, mostChunk-size)
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

// Text is the pages of a text that is there as a whole.
func Text(text string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) { yield(text, nil) }
}

// paragraphs returns the parts of a text between its blank lines and pages, as the expression above cuts it, in a tenth of the time.
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

// borders are where a text is cut, the best ones first.
var borders = []string{"\n", "। ", ". ", "? ", "! ", "; ", ", ", " "}

// cut cuts a text before so many characters, at the last good border of its second half.
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

// lastOf returns the end of a text: at most so many characters, from the beginning of a sentence or a word.
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

const (
	longestHeading = 60 // characters
	leastStem      = 4
)

// Excerpt returns the paragraph of a passage that has most of a question's words, with its heading if it has one.
func Excerpt(passage, question string) string {
	paragraphs := paragraph.Split(passage, -1)
	best, most := 0, -1
	for i, p := range paragraphs {
		has := 0
		for word := range terms(question) {
			if !empty[word] && there(word, p) {
				has++
			}
		}
		if has > most {
			best, most = i, has
		}
	}
	said := strings.TrimSpace(paragraphs[best])
	if heading(said) && best+1 < len(paragraphs) {
		return said + "\n\n" + strings.TrimSpace(paragraphs[best+1])
	}
	if best > 0 && heading(paragraphs[best-1]) {
		return strings.TrimSpace(paragraphs[best-1]) + "\n\n" + said
	}
	return said
}

// heading reports whether a paragraph names what the next one is about.
func heading(p string) bool {
	p = strings.TrimSpace(p)
	return utf8.RuneCountInString(p) <= longestHeading && !strings.ContainsAny(p, ".!?।\n")
}

// there reports whether a paragraph has a word, or one that begins as it does.
func there(word, p string) bool {
	stem := []rune(word)
	if len(stem) > leastStem {
		stem = stem[:max(leastStem, len(stem)-2)]
	}
	for other := range terms(p) {
		if other == word || len(stem) >= leastStem && strings.HasPrefix(other, string(stem)) {
			return true
		}
	}
	return false
}
