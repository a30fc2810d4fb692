package khatapage

import (
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// The kinds of columns beside the two sides.
const (
	dateColumn   = "date"
	itemColumn   = "item"
	weightColumn = "weight"
	touchColumn  = "touch"
	fineColumn   = "fine"
	amountColumn = "amount"
	otherColumn  = "other" // its name is unknown
)

// headers are the words that name sides and columns (CONTRACT.md 5.2), normalised.
var headers = dictionary(map[string]string{
	In:           "in jama received recd credit जमा जमां જમા आवक આવક",
	Out:          "out naame naam nave udhar given debit नाम नामे नावे નામે उधार ઉધાર जावक જાવક",
	dateColumn:   "date dt तारीख दिनांक तिथि તારીખ",
	itemColumn:   "item items particulars details description narration विवरण विगत माल વિગત વિવરણ માલ",
	weightColumn: "wt wt. weight gross वजन वज़न વજન",
	touchColumn:  "touch tunch tanch टंच टच ટંચ ટચ",
	fineColumn:   "fine pure फाइन फाईन शुद्ध ફાઇન ફાઈન શુદ્ધ",
	amountColumn: "rs rs. amount amt cash ₹ रकम राशि रुपये रु રકમ રૂપિયા રૂ",
})

// marks are words that change the meaning of the line that they begin or end.
var (
	totals   = dictionary(map[string]string{"total": "total sum कुल जोड़ योग टोटल કુલ સરવાળો ટોટલ"})
	openings = dictionary(map[string]string{"opening": "opening balance b/f b/d c/f c/d o/b closing शेष बाकी बकाया પુરાંત બાકી સિલક"})
	parties  = dictionary(map[string]string{
		"party": "party name a/c account m/s shri श्री श्रीमान नाम पार्टी खातेदार શ્રી નામ પાર્ટી ખાતેદાર"})
	titles = dictionary(map[string]string{
		"":         "khata bahi ledger book page folio sheet no year fy खाता बही खाते पन्ना पृष्ठ वर्ष ખાતું ખાતા વહી પાનું વર્ષ",
		"bank":     "bank बैंक બેંક",
		"bullion":  "bullion dealer बुलियन બુલિયન",
		"client":   "client customer ग्राहक ગ્રાહક",
		"karigar":  "karigar artisan कारीगर કારીગર",
		"polisher": "polisher polish पॉलिश पालिश પોલિશ",
	})
	units = dictionary(map[string]string{
		"g": "g gm gms gram grams ग्राम ગ્રામ", "kg": "kg kgs किलो કિલો", "rs": "rs rs. ₹ रु रु. રૂ રૂ. inr /-", "%": "%",
	})
)

// counting are units of counts. A number before such a unit is no value.
var counting = func() map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(
		"pcs pc pieces piece nos no kt k ct carat karat pair pairs inch नग पीस कैरेट जोड़ी નંગ પીસ કેરેટ જોડી") {
		all[folded(normal(word))] = true
	}
	return all
}()

func dictionary(kinds map[string]string) map[string]string {
	all := map[string]string{}
	for kind, words := range kinds {
		for word := range strings.FieldsSeq(words) {
			all[folded(normal(word))] = kind
		}
	}
	return all
}

var folding = cases.Fold()

// folded returns a word in the form of the dictionaries. Text recognition often confuses the two Indian scripts.
func folded(text string) string { return strings.Trim(oneScript(folding.String(text)), ":,;-()[]\"'|") }

// oneScript replaces Gujarati letters by Devanagari ones. Unicode has both alphabets in the same order.
func oneScript(text string) string {
	return strings.Map(func(c rune) rune {
		if c >= 0x0a80 && c <= 0x0aff {
			return c - 0x0a80 + 0x0900
		}
		return c
	}, text)
}

// headerOf returns the kind of a heading, which may have a unit, as in "Wt(g)".
func headerOf(text string) string {
	if kind := headers[folded(text)]; kind != "" {
		return kind
	}
	name, _, _ := strings.Cut(strings.TrimRight(text, "%"), "(")
	return headers[folded(name)]
}

// SideOf returns the side that a word names, in or out, or "".
func SideOf(text string) string {
	if side := headerOf(normal(strings.TrimSpace(text))); side == In || side == Out {
		return side
	}
	return ""
}

func unitOf(text string) string { return units[folded(text)] }

var asciiDigits = func() *strings.Replacer {
	var pairs []string
	for _, zero := range []rune{'०', '૦'} {
		for i := range rune(10) {
			pairs = append(pairs, string(zero+i), string('0'+i))
		}
	}
	return strings.NewReplacer(append(pairs, "–", "-", "—", "-", "−", "-", "’", "'", "‘", "'", "“", "\"", "”", "\"", "„", "\"",
		"″", "\"", "〃", "\"")...)
}()

// normal returns a word in NFC with ASCII digits and quotes and without zero-width characters.
func normal(text string) string {
	text = asciiDigits.Replace(norm.NFC.String(strings.ToValidUTF8(text, "")))
	return strings.Map(func(c rune) rune {
		if unicode.Is(unicode.Cf, c) || unicode.IsControl(c) || unicode.IsSpace(c) {
			return -1
		}
		return c
	}, text)
}

func digits(text string) (n int) {
	for _, c := range text {
		if c >= '0' && c <= '9' {
			n++
		}
	}
	return n
}

func letters(text string) (n int) {
	for _, c := range text {
		if unicode.IsLetter(c) {
			n++
		}
	}
	return n
}

// isDitto reports whether a word is a ditto mark.
func isDitto(text string) bool {
	switch strings.ToLower(strings.Trim(text, "-.")) {
	case `"`, `''`, `""`, `,,`, `"'`, `'"`, "do", "ditto", "ibid", "वही", "तदैव", "એજ":
		return true
	}
	return false
}
