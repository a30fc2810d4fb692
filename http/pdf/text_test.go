package pdf

import (
	"bytes"
	"maps"
	"math"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/norm"
)

func TestConjunctsAreShapedIntoTheirOwnGlyphs(t *testing.T) {
	t.Parallel()
	ts := newTypesetter()
	for word, glyphs := range map[string]int{
		"क्ष":  1, // ka, virama, ssa: one conjunct
		"ज्ञ":  1,
		"श्र":  1,
		"श्री": 2, // the conjunct and its vowel
		"क्षि": 2,
		"र्क":  2, // ka with reph
		"ક્ષ":  1,
		"શ્રી": 2,
		"जी":   2,
	} {
		runs := ts.word(word, regular)
		require.Len(t, runs, 1, word)
		require.Len(t, runs[0].glyphs, glyphs, word)
		require.Equal(t, word, runs[0].text)
		for _, g := range runs[0].glyphs {
			require.NotZero(t, g.id, "%s: the font lacks a glyph", word)
		}
		require.Len(t, ts.clusters(runs[0], 100), 1, "%s must stay whole", word)
	}
}

func TestMixedTextIsSplitByScript(t *testing.T) {
	t.Parallel()
	ts := newTypesetter()
	lines := ts.lines("Ram રમેશ,\tरमेश\u00a0₹5।", regular, 100)
	require.Len(t, lines, 1)
	var parts []string
	for _, r := range lines[0].runs {
		parts = append(parts, string("RBDG"[r.face])+":"+r.text)
		require.Equal(t, r.face.shaped(), len(r.glyphs) > 0)
	}
	require.Equal(t, []string{"R:Ram ", "G:રમેશ", "R:, ", "D:रमेश", "R: ₹5", "D:।"}, parts)
}

func TestTextWithoutAGlyphIsInLatinLettersAndInvisibleTextIsLeftOut(t *testing.T) {
	t.Parallel()
	ts := newTypesetter()
	for in, want := range map[string]string{
		"a\x00b\x1bc\u0085d":       "abc d", // NEL is white space
		"bad \xff\xfe utf":         "bad \ufffd\ufffd utf",
		"ring 💍 and 👨‍👩‍👧":         "ring (ring) and (man)(woman)(girl)",
		"नथ💍🏽 ❤":                   "नथ(ring) ❤",
		"𑄌𑄋𑄴𑄟𑄳 𑄷𑄶":                 "caangaamaa 10",
		"བཀྲ་ཤིས":                  "bkr-shis",
		"ሰላም፡ነው 、㎏":                "salaame-nawe ,kg",
		"𝐑𝐚𝐦 🇮🇳 ﷺ":                 "Ram in ﷺ",
		"\u202eabc\u202c\u200fd":   "abcd",
		"عربي தமிழ்":               "عربي தமிழ்",
		"中国 Δ ไทย שלום":            "ZhongGuo Δ aithy SHlvm",
		"soft\u00adhy\ufeffphen":   "softhyphen",
		"Cafe\u0301":               "Café",
		"क\u094d\u200dष":           "क\u094d\u200dष",
		"  many \n\n\t spaces  ":   "many spaces",
		"\U000e0041\ufffe\uffff":   "",
		"Ωμέγα Жук ½ ™ € ₹ 1° → ☺": "Ωμέγα Жук ½ ™ € ₹ 1° → ☺",
		"":       "",
		"\u200b": "",
	} {
		require.Equal(t, want, ts.shown(in), "%q", in)
	}
}

func TestLinesKeepTheirWidthAndLoseNothing(t *testing.T) {
	t.Parallel()
	ts := newTypesetter()
	for _, text := range []string{
		strings.Repeat("word ", 1000), strings.Repeat("W", 5000), strings.Repeat("क्षत्रिय", 600), strings.Repeat("જ્વેલર્સ ", 300),
		strings.Repeat("aक્", 900), strings.Repeat("ि", 700), strings.Repeat("e\u0301\u0301", 500), "short",
	} {
		const width = 12.0
		lines := ts.lines(text, regular, width)
		var b strings.Builder
		for _, l := range lines {
			require.NotEmpty(t, l.runs)
			require.LessOrEqual(t, l.width, width+1e-9)
			require.InDelta(t, widthOf(l.runs), l.width, 1e-9)
			for _, r := range l.runs {
				b.WriteString(r.text)
			}
		}
		require.Equal(t, strings.ReplaceAll(ts.shown(text), " ", ""), strings.ReplaceAll(b.String(), " ", ""))
	}
}

func TestTheCacheOfWordsIsBounded(t *testing.T) {
	t.Parallel()
	ts := newTypesetter()
	for i := range shapedWords + 500 {
		ts.word("é"+strings.Repeat("x", i%100)+string(rune('a'+i/100%26))+string(rune('a'+i/2600)), regular)
	}
	require.LessOrEqual(t, len(ts.words), shapedWords)
}

func TestVeryLongNameEndsInAnEllipsis(t *testing.T) {
	t.Parallel()
	s := bank(3)
	s.Account, s.Title, s.Ledger = strings.Repeat("Ramesh ", 700), strings.Repeat("W", 5000), strings.Repeat("ક્ષ", 200)
	s.Drawn.StoreID, s.Drawn.Checkpoint = strings.Repeat("s", 900), strings.Repeat("x", 2000)
	p := write(t, s)
	require.Equal(t, "Closing balance | "+Rupees.number(s.closing()[0]), p.One("Closing"))
	ends := 0
	for _, l := range p.Lines(0) {
		ends += strings.Count(l, "…")
	}
	require.Equal(t, 5, ends, "title, account, ledger and both lines of the footer")
	for _, page := range p.Pages {
		for _, s := range page {
			require.GreaterOrEqual(t, s.Y, 10.0)
			require.Less(t, s.Y, pageHeight)
		}
	}
}

// seen returns a word in the order in which a document has its letters.
func seen(word string) (text string) {
	for _, r := range leftToRight(newTypesetter().lines(word, regular, math.Inf(1))[0].runs) {
		letters := []rune(r.text)
		if r.face == perso {
			slices.Reverse(letters)
		}
		text += string(letters)
	}
	return text
}

// names are of people, in the scripts of the Eighth Schedule's languages.
var names = map[face][]string{
	devanagari: {"श्री लक्ष्मी ज्वेलर्स", "रमेश"},
	gujarati:   {"શ્રી ક્ષત્રિય"},
	bengali:    {"শ্রীমতী লক্ষ্মী চট্টোপাধ্যায়", "অসমীয়া ৰূপ"},
	gurmukhi:   {"ਗੁਰਪ੍ਰੀਤ ਸਿੰਘ"},
	odia:       {"ଶ୍ରୀ ଜଗନ୍ନାଥ"},
	tamil:      {"முருகன் ஸ்ரீனிவாசன்"},
	telugu:     {"వెంకటేశ్వర్లు కృష్ణ"},
	kannada:    {"ಕೃಷ್ಣಮೂರ್ತಿ"},
	malayalam:  {"ഉണ്ണിക്കൃഷ്ണൻ"},
	meetei:     {"ꯃꯤꯇꯩ ꯃꯌꯦꯛ"},
	santali:    {"ᱥᱟᱱᱛᱟᱲᱤ"},
	perso:      {"محمد علی خان", "سنڌي ٻولي", "کٲشُر", "پرویز"},
}

func TestEveryScriptOfIndiaIsShaped(t *testing.T) {
	t.Parallel()
	ts := newTypesetter()
	for f := devanagari; f < numerals; f++ {
		require.NotEmpty(t, names[f])
		for _, name := range names[f] {
			require.Equal(t, norm.NFC.String(name), ts.shown(name))
			for _, r := range ts.lines(name, regular, math.Inf(1))[0].runs {
				if r.face == regular && r.text == " " {
					continue
				}
				require.Equal(t, f, r.face, name)
				for _, g := range r.glyphs {
					require.NotZero(t, g.id, "%s: the font lacks a glyph", name)
				}
			}
		}
	}
	require.Empty(t, ts.notes())
	ts.lines("王 and 李", regular, 100)
	require.Len(t, ts.notes(), 1, "transliteration is said")
	require.Equal(t, "sh rii lNkaa phuu", ts.shown("ශ් රී ලංකා ผู้"))
	for r := rune(0x20); r < 0x20000; r++ { // also next to a Gujarati letter, which has another font
		for _, text := range []string{string(r), "ક" + string(r), "a" + string(r)} {
			for _, run := range ts.lines(text, regular, math.Inf(1))[0].runs {
				for _, g := range run.glyphs {
					require.NotZero(t, g.id, "%q has no glyph", text)
				}
				for _, c := range run.text {
					require.True(t, (run.face.shaped() || ts.has(run.face, c)) && (c != '□' || c == r), "%q has no glyph", text)
				}
			}
		}
	}
}

func TestTextFromRightToLeftKeepsItsOrder(t *testing.T) {
	t.Parallel()
	ts := newTypesetter()
	for text, want := range map[string]string{
		"Slip 7 محمد علی, 12 gm": "Slip 7 یلع دمحم, 12 gm",
		"محمد (علی) خان":         "ناخ (یلع) دمحم",
		"خان 12.50 علی":          "یلع 12.50 ناخ",
		"خان ۱۲ علی":             "یلع ۱۲ ناخ",
		"علی Ali خان":            "یلع Ali ناخ",
		"(علی)":                  "(یلع)",
	} {
		require.Equal(t, want, seen(text), text)
		for _, width := range []float64{3, 6, 100} {
			var whole strings.Builder
			for _, l := range ts.lines(text, regular, width) {
				for _, r := range l.runs {
					whole.WriteString(r.text)
				}
			}
			require.Equal(t, strings.ReplaceAll(text, " ", ""), strings.ReplaceAll(whole.String(), " ", ""))
		}
	}
}

// Poppler reads the text as a person who copies it would get it.
func TestNamesInEveryScriptAreCopiedAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	all := slices.Concat(slices.Collect(maps.Values(names))...)
	s := bank(3 * len(all)) // one OUT, two IN, and so on
	for i, name := range all {
		s.Rows[3*i].Out[0].Text, s.Rows[3*i+1].In[0].Text = name+" 12 gm", "Paid to "+name
	}
	var document bytes.Buffer
	require.NoError(t, Write(&document, s.whole()))
	read := exec.CommandContext(t.Context(), "pdftotext", "-", "-")
	read.Stdin = &document
	text, err := read.Output()
	require.NoError(t, err)
	for _, name := range all {
		require.Equal(t, 2, strings.Count(strings.Join(strings.Fields(string(text)), " "), norm.NFC.String(name)), "%s in %s", name, text)
	}
}

func FuzzDescriptions(f *testing.F) {
	for _, seed := range []string{
		"", "Sale of rings", "श्री लक्ष्मी", "ક્ષત્રિય", "मिला jewellers જ્વેલર્સ", "\x00\x01\x1f\x7f", "\xff\xfe\xfd", "\u202e\u2066abc\u2069",
		"👨\u200d👩\u200d👧💍", strings.Repeat("W", 120), strings.Repeat("क्ष", 1700), strings.Repeat("word ", 1000), "()\\\r\n(\\)",
		"\u0a0d\u0d0a\u5c29",
		"e" + strings.Repeat("\u0301", 300), "ि्\u200d\u200c़", "\u200d\u200c", "عربي", "\U0010ffff\ufffe\uffff", "/F1 12 Tf ET Q",
		"<<>>", "₹ 1,25,000.50", "□",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 20_000 {
			return
		}
		s := bank(2)
		s.Account, s.Notes = text, []string{text}
		s.Rows[0].Out[0].Text, s.Rows[1].In[0].Text = text, text+" "+text
		p := write(t, s)
		want := newTypesetter().shown(text)
		require.True(t, utf8.ValidString(want))
		require.Equal(t, "Closing balance | "+Rupees.number(s.closing()[0]), p.One("Closing balance | "))
		all := ""
		for i := range p.Pages {
			for _, s := range p.Pages[i] {
				if s.X > 60 && s.X < 500 {
					all += s.Text
				}
			}
		}
		bare := strings.NewReplacer(" ", "").Replace
		for word := range strings.FieldsSeq(want) {
			if n := utf8.RuneCountInString(word); n < 20 { // the end of a line may break a longer word
				require.Contains(t, bare(all), bare(seen(word)))
			}
		}
	})
}
