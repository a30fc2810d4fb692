package ocr

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"bahi/domain/ledger/khatapage"
	"bahi/providers/jail"
)

const (
	scanResolution = 300 // dots per inch
	longestScan    = 4200
	pointsAnInch   = 72
)

var (
	pagesText = regexp.MustCompile(`(?m)^Pages:\s+(\d+)`)
	sizeText  = regexp.MustCompile(`(?m)^Page\s+(\d+) size:\s+([\d.]+) x ([\d.]+) pts`)
	locked    = regexp.MustCompile(`(?m)^Encrypted:\s+yes`)
)

// pdf reads a PDF: the text of each page, or a picture of a page with too little text.
func (s *session) pdf(ctx context.Context, file []byte) error {
	if s.tools.PDFInfo == "" || s.tools.PDFToText == "" || s.tools.PDFToPPM == "" {
		return s.missing("poppler")
	}
	if err := s.cage.Put("in.pdf", file); err != nil {
		return err
	}
	info, err := s.cage.Run(ctx, s.tools.PDFInfo, "-f", "1", "-l", strconv.Itoa(maxPages), "in.pdf")
	if failed, ok := errors.AsType[*jail.ExitError](err); ok {
		if strings.Contains(failed.Said, "Incorrect password") {
			return ErrEncrypted
		}
		return ErrBroken
	}
	if err != nil {
		return err
	}
	match := pagesText.FindSubmatch(info)
	if locked.Match(info) {
		return ErrEncrypted
	}
	if match == nil {
		return ErrBroken
	}
	pages, err := strconv.Atoi(string(match[1]))
	switch {
	case err != nil || pages > maxPages:
		return ErrPages
	case pages < 1:
		return ErrBroken
	}
	longest := map[int]float64{}
	for _, m := range sizeText.FindAllSubmatch(info, -1) {
		n, _ := strconv.Atoi(string(m[1]))
		width, _ := strconv.ParseFloat(string(m[2]), 64)
		height, _ := strconv.ParseFloat(string(m[3]), 64)
		longest[n] = max(width, height)
	}
	for n := range pages {
		if err := s.pdfPage(ctx, Page{Number: n + 1, Of: pages}, longest[n+1]); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) pdfPage(ctx context.Context, p Page, longest float64) error {
	n := strconv.Itoa(p.Number)
	text, err := s.cage.Run(ctx, s.tools.PDFToText, "-f", n, "-l", n, "-bbox", "in.pdf", "-")
	if _, failed := errors.AsType[*jail.ExitError](err); failed {
		return ErrBroken
	}
	if err != nil {
		return err
	}
	if p.Page = boxes(text); len(p.Words) >= fewWords {
		return s.each(p)
	}
	p.Page = khatapage.Page{}
	resolution := scanResolution
	if longest > 0 {
		resolution = max(1, min(resolution, int(longestScan*pointsAnInch/longest)))
	}
	_, err = s.cage.Run(ctx, s.tools.PDFToPPM, "-f", n, "-l", n, "-r", strconv.Itoa(resolution), "-gray", "-png", "-singlefile",
		"in.pdf", "scan")
	if _, failed := errors.AsType[*jail.ExitError](err); failed {
		return ErrSlow
	}
	if err != nil {
		return err
	}
	picture, err := s.cage.ReadFile("scan.png")
	if err != nil {
		return ErrBroken // there is nothing to draw
	}
	from, err := decode(PNG, picture)
	if err != nil {
		return err
	}
	return s.recognise(ctx, p, from)
}

// certain is the confidence of a PDF's own words.
const certain = 96

// boxes reads the output of pdftotext -bbox: pages with their width, and words with their positions, in points. The result is in tenths of
// a point.
func boxes(text []byte) (p khatapage.Page) {
	d := xml.NewDecoder(strings.NewReader(string(text)))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	var word *khatapage.Word
	for {
		token, err := d.Token()
		if err != nil { // io.EOF, or invalid XML
			if !errors.Is(err, io.EOF) {
				return khatapage.Page{}
			}
			return p
		}
		switch t := token.(type) {
		case xml.StartElement:
			at := map[string]int{}
			for _, a := range t.Attr {
				if v, err := strconv.ParseFloat(a.Value, 64); err == nil && v > -1e6 && v < 1e6 {
					at[a.Name.Local] = int(v * 10)
				}
			}
			switch t.Name.Local {
			case "page":
				p.Width = at["width"]
			case "word":
				word = &khatapage.Word{Left: at["xMin"], Top: at["yMin"], Right: at["xMax"], Bottom: at["yMax"], Confidence: certain}
			}
		case xml.CharData:
			if word != nil {
				word.Text += string(t)
			}
		case xml.EndElement:
			if word != nil && t.Name.Local == "word" {
				if word.Text = strings.TrimSpace(word.Text); word.Text != "" {
					p.Words = append(p.Words, *word)
				}
				word = nil
			}
		}
	}
}
