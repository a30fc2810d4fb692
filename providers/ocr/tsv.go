package ocr

import (
	"strconv"
	"strings"

	"bahi/domain/ledger/khatapage"
)

// words reads tesseract's TSV: level, page_num, block_num, par_num, line_num, word_num, left, top, width, height, conf, text. Words have
// level 5.
func words(tsv []byte) (all []khatapage.Word) {
	for line := range strings.SplitSeq(string(tsv), "\n") {
		f := strings.SplitN(strings.TrimRight(line, "\r"), "\t", 12)
		if len(f) < 12 || f[0] != "5" || strings.TrimSpace(f[11]) == "" {
			continue
		}
		var n [4]int
		bad := false
		for i := range n {
			v, err := strconv.Atoi(f[6+i])
			n[i], bad = v, bad || err != nil
		}
		whole, _, _ := strings.Cut(f[10], ".")
		confidence, err := strconv.Atoi(whole)
		if bad || err != nil {
			continue
		}
		all = append(all, khatapage.Word{
			Left: n[0], Top: n[1], Right: n[0] + n[2], Bottom: n[1] + n[3], Text: strings.TrimSpace(f[11]), Confidence: min(max(confidence, 0), 100),
		})
	}
	return all
}
