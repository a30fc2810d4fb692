package knowledge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/commands/messagingcmd/knowledge"
)

// quote returns what a bot without a model says.
func quote(t *testing.T, s *knowledge.Store, bot int64, titles map[int64]string, question string) string {
	t.Helper()
	passages, err := s.Search(t.Context(), bot, question, 6)
	require.NoError(t, err)
	var texts, of []string
	for _, p := range passages {
		texts, of = append(texts, p.Text), append(of, titles[p.Source])
	}
	q, err := s.Quote(t.Context(), bot, question, texts, of, knowledge.Bounds{Coverage: 0.5, Characters: 1000})
	require.NoError(t, err)
	return q.Text
}

const charges = "Making charges\n\nPayal: Rs 120\n\nKada: Rs 300\n\nNath: Rs 95"

func TestTheItemIsQuotedThatTheQuestionNames(t *testing.T) {
	t.Parallel()
	s := store(t, model{})
	bot := int64(0)
	for text, questions := range map[string]map[string]string{
		charges: {
			"charge of a kada?": "Making charges\n\nKada: Rs 300", "What is the making charge for a payal?": "Making charges\n\nPayal: Rs 120",
			"nath?":               "Making charges\n\nNath: Rs 95",
			"charge of a bangle?": "", "how much is a bangle": "",
			"what are your making charges?": "Making charges\n\nPayal: Rs 120\nKada: Rs 300\nNath: Rs 95",
			"charge of a kada and a nath?":  "Making charges\n\nKada: Rs 300\nNath: Rs 95",
		},
		"Making charges\nPayal: Rs 120\nKada: Rs 300\nNath: Rs 95": {"charge of a kada?": "Making charges\n\nKada: Rs 300",
			"charge of a bangle?": ""},
		"MAKING CHARGES:\n- Payal - Rs 120\n- Kada - Rs 300": {"charge of a kada?": "MAKING CHARGES:\n\n- Kada - Rs 300",
			"charge of a ring?": ""},
		"Making charges\n\nPayal 120\nKada 300\nNath 95": {"making charge of nath": "Making charges\n\nNath 95"},
		"Making charges\n\nPayal: Rs 120\n\nPolish charges\n\nPayal: Rs 20\n\nKada: Rs 35": {
			"polish charge of payal": "Polish charges\n\nPayal: Rs 20", "making charge of payal": "Making charges\n\nPayal: Rs 120",
			"making charge of kada": "",
			"charge of payal":       "Making charges\n\nPayal: Rs 120\n\nPolish charges\n\nPayal: Rs 20",
		},
		"# Shop\n## Making charges\n### Kada\nRs 300 a piece\n### Nath\nRs 95 a piece\n## Returns\nWithin 15 days.": {
			"making charge of nath": "Shop\n\nMaking charges\n\nNath\n\nRs 95 a piece", "returns?": "Shop\n\nReturns\n\nWithin 15 days.",
			"making charge of ring": "",
		},
		"Making charges\n\nKada\n\nRs 300\n\nNath\n\nRs 95": {"making charge of nath": "Nath\n\nRs 95",
			"making charge of kada": "Making charges\n\nKada\n\nRs 300"},
		"Opening hours\n\nMonday to Friday: 11 to 8\nSaturday: 10 to 9\nSunday: closed\nHoli: closed": {
			"are you open on saturday?": "Opening hours\n\nSaturday: 10 to 9", "opening hours on Sunday": "Opening hours\n\nSunday: closed",
			"are you open on Diwali?":      "",
			"What are your opening hours?": "Opening hours\n\nMonday to Friday: 11 to 8\nSaturday: 10 to 9\nSunday: closed\nHoli: closed",
		},
		"Our branches\n\nMumbai\n12 Zaveri Bazaar\n400002\n\nSurat\n5 Ring Road\n395002": {
			"address of the Surat branch?":  "Our branches\n\nSurat\n\n5 Ring Road\n395002",
			"where is the branch in Mumbai": "Our branches\n\nMumbai\n\n12 Zaveri Bazaar\n400002", "branch in Delhi?": "",
		},
		"What are your hours?\n\nWe work from 11 to 8.\n\nDo you ship abroad?\n\nYes\n\nCan engraved rings be returned?\n\nNo, never.": {
			"what are the hours": "What are your hours?\n\nWe work from 11 to 8.", "do you ship abroad": "Do you ship abroad?\n\nYes",
			"can I return an engraved ring?": "Can engraved rings be returned?\n\nNo, never.",
		},
		"Q: Do you ship abroad?\nA: Yes\nQ: Do you buy gold?\nA: No": {"do you buy gold": "Q: Do you buy gold?\nA: " +
			"No"},
		"Rates\n\n22K Gold: Rs 6,500 a gram\n18K Gold: Rs 5,300 a gram\nSilver: Rs 80 a gram": {"rate of 18K gold": "Rates\n\n18K Gold: Rs " +
			"5,300 a gram", "rate of platinum": "", "silver price?": "Rates\n\nSilver: Rs 80 a gram"},
		"Price list 2026\n\n1. Payal 120\n2. Kada 300\n3. Nath 95": {"price of the kada?": "Price list " +
			"2026\n\n2. Kada 300", "price of earrings": ""},
		"Wholesale prices\nKada: " +
			"250\n\nRetail " +
			"prices\nKada: 300": {"retail price of kada": "Retail prices\n\nKada: 300", "wholesale price of a kada": "Wholesale " +
			"prices\n\nKada: 250"},
		"Payal ........ 120\nKada ......... 300\nNath ......... 95": {"kada price": "Kada ......... 300"},
		"Kada | 300 | 5 days\nNath | 95 | 2 days":                   {"nath price": "Nath | 95 | 2 days"},
		"Contact\n\nPhone: 022 1234\nEmail: shop@example.com\nAddress: 12 Zaveri Bazaar, Mumbai": {
			"what is your phone number": "Contact\n\nPhone: 022 1234",
			"your email address?":       "Contact\n\nEmail: shop@example.com",
			"address?":                  "Contact\n\nAddress: 12 Zaveri Bazaar, Mumbai",
			"fax?":                      "",
		},
		"We ship to Surat in 3 days.\n\nRings are made to order.": {"Do you ship to Surat?": "We ship to Surat " +
			"in 3 days.", "Do you ship to Delhi?": ""},
		"Item: Payal; Making charge: Rs 120; Delivery: 3 days\nItem: Kada; Making charge: Rs 300; Delivery: 5 days": {
			"making charge of a kada": "Item: Kada; Making charge: Rs 300; Delivery: 5 days",
			"delivery of a payal":     "Item: Payal; Making charge: Rs 120; Delivery: 3 days", "delivery of a ring": "",
			"making charge of a ring": "",
		},
		"बनवाई का खर्च\n\nपायल: ₹120\n\nकड़ा: ₹300\n\nनथ: ₹95": {"कड़ा का खर्च कितना है?": "बनवाई का खर्च\n\nकड़ा: ₹300",
			"अंगूठी का खर्च?": "", "कड़े की बनवाई?": "बनवाई का खर्च\n\nकड़ा: ₹300"},
		"ઘડામણ\n\nપાયલ: ₹૧૨૦\n\nકડું: ₹૩૦૦\n\nનથ: ₹૯૫": {"કડું નું ઘડામણ કેટલું?": "ઘડામણ\n\nકડું: ₹૩૦૦",
			"વીંટી નું ઘડામણ?": ""},
		"செய்கூலி\n\nகொலுசு: ரூ 120\n\nவளையல்: ரூ 300\n\nமூக்குத்தி: ரூ 95": {"வளையல் செய்கூலி எவ்வளவு?": "செய்கூலி\n\nவளையல்: ரூ 300",
			"மோதிரம் செய்கூலி என்ன?": ""},
		"మజూరీ\n\nపట్టీలు: రూ 120\n\nగాజు: రూ 300\n\nముక్కెర: రూ 95": {"గాజు మజూరీ ఎంత?": "మజూరీ\n\nగాజు: రూ 300", "ఉంగరం మజూరీ ఎంత?": ""},
		"ಮಜೂರಿ\n\nಗೆಜ್ಜೆ: ರೂ 120\n\nಬಳೆ: ರೂ 300":                     {"ಬಳೆ ಮಜೂರಿ ಎಷ್ಟು?": "ಮಜೂರಿ\n\nಬಳೆ: ರೂ 300"},
		"পারিশ্রমিক\n\nনূপুর: ১২০ টাকা\n\nবালা: ৩০০ টাকা": {"বালা পারিশ্রমিক কত?": "পারিশ্রমিক\n\nবালা: ৩০০ টাকা",
			"আংটি পারিশ্রমিক কত?": ""},
		"പണിക്കൂലി\n\nപാദസരം: 120 രൂപ\n\nവള: 300 രൂപ": {"വള പണിക്കൂലി എത്രയാണ്?": "പണിക്കൂലി\n\nവള: 300 രൂപ"},
		"ਘੜਾਈ\n\nਪਾਇਲ: 120 ਰੁਪਏ\n\nਕੜਾ: 300 ਰੁਪਏ":     {"ਕੜਾ ਦੀ ਘੜਾਈ ਕਿੰਨੀ ਹੈ?": "ਘੜਾਈ\n\nਕੜਾ: 300 ਰੁਪਏ"},
		"اجرت\n\nپائل: 120 روپے\n\nکڑا: 300 روپے":     {"کڑا کی اجرت کتنی ہے؟": "اجرت\n\nکڑا: 300 روپے"},
	} {
		bot++
		put(t, s, bot, bot, "list.txt", chunks(t, text)...)
		for question, want := range questions {
			if got := quote(t, s, bot, map[int64]string{bot: "list.txt"}, question); got != want {
				t.Errorf("%s\nwant %q\ngot  %q", question, want, got)
			}
		}
	}
}

func TestAQuoteSurroundsWhatMatched(t *testing.T) {
	t.Parallel()
	s := store(t, model{})
	before, after := strings.Repeat("We polish pieces with care. ", 60), strings.Repeat("Everything is weighed. ", 60)
	put(t, s, 1, 1, "", chunks(t, "Services\n\n"+before+"A kada costs Rs 300 to repair. "+after)...)
	got := quote(t, s, 1, nil, "How much does it cost to repair a kada?")
	require.Contains(t, got, "A kada costs Rs 300 to repair.")
	require.LessOrEqual(t, len([]rune(got)), 1000)
	require.True(t, strings.HasSuffix(got, "…"), got)

	var rows strings.Builder
	rows.WriteString("Making charges\n\n")
	for i := range 400 {
		fmt.Fprintf(&rows, "Design K%d: Rs %d\n", 1000+i, 3*i)
	}
	put(t, s, 2, 2, "", chunks(t, rows.String())...)
	require.Equal(t, "Making charges\n\nDesign K1390: Rs 1170", quote(t, s, 2, nil, "making charge of design K1390"),
		"the heading is far away")
	require.LessOrEqual(t, len([]rune(quote(t, s, 2, nil, "making charges"))), 1000)
	require.Empty(t, quote(t, s, 2, nil, "making charge of design K9999"))
}

func TestQuestionsOfASetAreAnsweredByTheirDocument(t *testing.T) {
	t.Parallel()
	s := store(t, model{})
	set := jeweller(t, s)
	titles := map[int64]string{}
	for i, d := range set {
		titles[int64(i+1)] = d.Title
	}
	for name, others := range map[string]bool{"in the document's words": false, "in other words": true} {
		total, right, wrong := 0, 0, 0
		for _, d := range set {
			questions := d.Questions
			if others {
				questions = d.Others
			}
			for _, question := range questions {
				total++
				lines := strings.Split(strings.TrimSpace(d.Text), "\n")
				switch got := quote(t, s, 1, titles, question); {
				case got == "":
					t.Logf("handed over: %s: %s", d.Title, question)
				case slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(got, line) }):
					right++
				default:
					wrong++
					t.Logf("wrong: %s: %s: %s", d.Title, question, got)
				}
			}
		}
		t.Logf("%s: %d questions, %d right, %d wrong", name, total, right, wrong)
		require.LessOrEqual(t, wrong, total/40)
		require.GreaterOrEqual(t, right, total*map[bool]int{false: 80, true: 33}[others]/100)
	}
}
