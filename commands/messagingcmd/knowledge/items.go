package knowledge

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// item is the unit of quotation in a passage: a paragraph, a row, or a question with its answer.
type item struct {
	heads   []string // headings above the item, the outermost first; quoted with it
	outer   []string // enclosing headings of plain text; not quoted, because their end is unknown
	text    string
	columns string // names of columns in the text
	listed  bool   // it is one of several lines
	passage int
}

// heads are the headings that apply at one point of a text.
type heads struct {
	marked [7]string // by level: one to six signs #
	outer  []string  // of the last sequence of headings in plain text
	last   string    // the innermost heading in plain text
	inner  string    // the first line of the paragraph, or the question before it
	fresh  bool      // outer and last are adjacent
	pure   bool      // each paragraph since the last heading has its own heading
}

const (
	longestHeading  = 60  // characters
	longestQuestion = 300 // characters
	longestLabel    = 60  // characters
	longestValued   = 80  // characters
)

var (
	markedHeading = regexp.MustCompile(`^(#{1,6})[ \t]+(.*?)[ \t#]*$`)
	bullet        = regexp.MustCompile(`^(?:[-*•·▪◦‣–—]|\d{1,3}[.)]|\(?[A-Za-z][.)])[ \t]+\S`)
	label         = regexp.MustCompile(`^[^:：=|\t]*?(?:[^\d:：=|\t](?:[:：]|[ \t]*[=|\t])|[.\-_–—]{3,}|…|[^ \t][ \t]+[-–—][ \t]|[^ \t][ \t]{2,` +
		`}|\d[:：][ \t])`)
	asks    = regexp.MustCompile(`[?？؟][ \t"”)\]*_]*$`)
	digits  = regexp.MustCompile(`\pN`)
	undated = regexp.MustCompile(`(?:19|20)\d\d(?:-\d\d)?|\d\d ?(?i:k|kt|ct|carat|karat)\b`) // digits that a heading may have
	ends    = regexp.MustCompile(`[.!?。！？।॥۔]`)
	cell    = regexp.MustCompile(`(?:^|; )([^:;]{1,60}): `)
)

// items returns the quotable items of a passage.
func items(passage string) (all []item) {
	h := &heads{}
	add := func(text string, listed bool) {
		it := item{heads: h.path(), outer: slices.Clone(h.outer), text: text, listed: listed}
		if labels := cell.FindAllStringSubmatch(text, -1); len(labels) > 1 && !strings.Contains(text, "\n") {
			for _, l := range labels {
				it.columns += l[1] + "\n"
			}
		}
		all = append(all, it)
	}
	blocks := blocksOf(passage)
	for i := 0; i < len(blocks); i++ {
		lines := blocks[i]
		if len(lines) > 1 {
			h.lines(lines, add)
			continue
		}
		line := lines[0]
		switch m := markedHeading.FindStringSubmatch(line); {
		case m != nil:
			h.mark(len(m[1]), m[2])
		case asked(line) && i+1 < len(blocks) && !asked(blocks[i+1][0]) && markedHeading.FindString(blocks[i+1][0]) == "":
			text := line + "\n\n" + strings.Join(blocks[i+1], "\n")
			// the announced lines
			for i++; strings.HasSuffix(text, ":") && i+1 < len(blocks) && !asked(blocks[i+1][0]) && !heading(blocks[i+1][0]); i++ {
				text += "\n\n" + strings.Join(blocks[i+1], "\n")
			}
			h.inner = ""
			add(text, false)
			h.inner = line
		case heading(line):
			run := []string{line}
			for i+1 < len(blocks) && len(blocks[i+1]) == 1 && heading(blocks[i+1][0]) {
				i++
				run = append(run, blocks[i][0])
			}
			if i+1 == len(blocks) || markedHeading.FindString(blocks[i+1][0]) != "" || asked(blocks[i+1][0]) { // no text is below the last headings
				if len(run) == 1 && i+1 == len(blocks) {
					add(line, false)
				}
				h.run(run[:1])
				for _, said := range run[1:] {
					add(said, true)
				}
				h.pure = false
				continue
			}
			h.run(run)
		default:
			add(line, entry(line))
			h.pure = false
		}
	}
	return all
}

// blocksOf returns the lines of a text's paragraphs.
func blocksOf(text string) (all [][]string) {
	for _, p := range gap.Split(text, -1) {
		var lines []string
		for line := range strings.Lines(p) {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			if markedHeading.MatchString(line) {
				if len(lines) > 0 {
					all = append(all, lines)
				}
				all, lines = append(all, []string{line}), nil
				continue
			}
			lines = append(lines, line)
		}
		if len(lines) > 0 {
			all = append(all, lines)
		}
	}
	return all
}

// lines adds the items of a paragraph with several lines.
func (h *heads) lines(lines []string, add func(text string, listed bool)) {
	if heading(lines[0]) { // a heading of this paragraph only
		if !h.pure {
			h.outer, h.last = nil, ""
		}
		h.inner, lines = lines[0], lines[1:]
		defer func() { h.inner = "" }()
	} else {
		h.pure = false
	}
	if asked(lines[0]) { // each question with the following lines
		for len(lines) > 0 {
			n := 1
			for n < len(lines) && (n == 1 || !asked(lines[n])) {
				n++
			}
			add(strings.Join(lines[:n], "\n"), false)
			lines = lines[n:]
		}
		return
	}
	if !listing(lines) {
		add(strings.Join(lines, "\n"), false)
		return
	}
	loose := !valuedAll(lines) // lines without a mark continue the previous one
	for len(lines) > 0 {
		n := 1
		for n < len(lines) && loose && !entry(lines[n]) {
			n++
		}
		add(strings.Join(lines[:n], "\n"), true)
		lines = lines[n:]
	}
}

// listing reports whether most lines are entries of a list.
func listing(lines []string) bool {
	n := 0
	for _, line := range lines {
		if entry(line) {
			n++
		}
	}
	return 2*n > len(lines) || valuedAll(lines)
}

// entry reports whether a line begins a list entry: it has a bullet, or a label before its value.
func entry(line string) bool {
	return bullet.MatchString(line) || utf8.RuneCountInString(label.FindString(line)) <= longestLabel && label.MatchString(line)
}

// maxUnit is the maximum number of words of a value: 120 per pair.
const maxUnit = 4

// valuedAll reports whether each line ends in a value, as in "Payal 120".
func valuedAll(lines []string) bool {
	for _, line := range lines {
		words := strings.Fields(line)
		value := strings.Join(words[min(len(words), max(1, len(words)-maxUnit)):], " ")
		if len(words) < 2 || utf8.RuneCountInString(line) > longestValued || !digits.MatchString(value) || digits.MatchString(words[0]) {
			return false
		}
	}
	return true
}

// asked reports whether a line is a question.
func asked(line string) bool {
	return asks.MatchString(line) && utf8.RuneCountInString(line) <= longestQuestion
}

// heading reports whether a line is a heading of the following text.
func heading(line string) bool {
	named := strings.TrimRight(line, ":：")
	return named != "" && utf8.RuneCountInString(line) <= longestHeading && !strings.ContainsAny(named, ",\n") && !ends.MatchString(named) &&
		!entry(named) && !digits.MatchString(undated.ReplaceAllString(named, ""))
}

// mark starts a section with a marked heading.
func (h *heads) mark(level int, text string) {
	h.marked[level] = text
	clear(h.marked[level+1:])
	h.outer, h.last, h.inner, h.fresh, h.pure = nil, "", "", false, true
}

// run starts a section of plain text with a sequence of headings.
func (h *heads) run(names []string) {
	n := len(names) - 1
	if h.fresh = n > 0; h.fresh {
		h.outer = names[:n:n]
	}
	h.last, h.inner, h.pure = names[n], "", true
}

// path returns the headings to quote.
func (h *heads) path() (all []string) {
	all = append(all, h.marked[:]...)
	if h.fresh {
		all = append(all, h.outer...)
		h.fresh = false
	}
	return slices.DeleteFunc(append(all, h.last, h.inner), func(name string) bool { return name == "" })
}
