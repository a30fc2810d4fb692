// Package labelled has the labelled test set of a jeweller: documents in English, Hindi, Gujarati and mixed languages,
// with questions about their content.
package labelled

import (
	_ "embed"
	"strings"
)

//go:embed jeweller.txt
var jeweller string

// Document is a document of the set.
type Document struct {
	Language, Title, Text string

	Questions []string // in the document's words
	Others    []string // in words that the document does not use
}

// Documents returns the set.
func Documents() (all []Document) {
	for block := range strings.SplitSeq(strings.TrimPrefix(jeweller, "= "), "\n= ") {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		language, title, _ := strings.Cut(lines[0], " ")
		d := Document{Language: language, Title: title}
		for _, line := range lines[1:] {
			switch question, is := strings.CutPrefix(line, "? "); {
			case is:
				d.Questions = append(d.Questions, question)
			case strings.HasPrefix(line, "~ "):
				d.Others = append(d.Others, line[2:])
			default:
				d.Text += line + "\n"
			}
		}
		all = append(all, d)
	}
	return all
}
