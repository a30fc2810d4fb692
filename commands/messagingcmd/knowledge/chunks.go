package knowledge

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// The sizes of chunks in characters (CONTRACT.md 8.11).
const (
	minChunk = 2000
	maxChunk = 3000
	overlap  = 300
)

// Chunks splits a text into chunks of 2,000 to 3,000 characters. It splits between paragraphs, or between sentences of a long paragraph.
// Each chunk but the first repeats the last heading and the end of the previous chunk. The last chunk may be shorter.
func Chunks(text string) (chunks []string) {
	var current strings.Builder
	last := "" // the heading of the current text
	size := 0
	end := func() {
		chunk := strings.TrimSpace(current.String())
		current.Reset()
		size = 0
		if chunk == "" {
			return
		}
		chunks = append(chunks, chunk)
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
	for _, part := range gap.Split(strings.ReplaceAll(text, "\r\n", "\n"), -1) {
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
			end()
			added = false
		}
	}
	if added {
		end()
	}
	return chunks
}

// gap matches what separates paragraphs: blank lines, and the end of a page.
var gap = regexp.MustCompile(`\n[ \t]*(?:\n[ \t]*)+|\f`)

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
	runes := []rune(text)
	if len(runes) <= 2*most { // a short text is not repeated
		return ""
	}
	tail := string(runes[len(runes)-most:])
	for _, border := range borders {
		if at := strings.Index(tail, border); at >= 0 && at < len(tail)/2 {
			return strings.TrimSpace(tail[at+len(border):])
		}
	}
	return tail
}
