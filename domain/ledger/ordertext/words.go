package ordertext

import (
	"strings"

	"golang.org/x/text/unicode/norm"
)

// set returns the words in the form in which tokens are compared.
func set(words string) map[string]bool {
	all := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		all[norm.NFKC.String(w)] = true
	}
	return all
}

// factors returns a unit's factor for each of its words.
func factors(by map[string]int64) map[string]int64 {
	all := map[string]int64{}
	for words, factor := range by {
		for w := range set(words) {
			all[w] = factor
		}
	}
	return all
}

var (
	// weights has the milligrams of each unit (a tola is 11.664 g).
	weights = factors(map[string]int64{
		"g gm gms gram grams grm grms gr ग्राम ग्रा ग्रॅम ગ્રામ ગ્રા":  1_000,
		"kg kgs kilo kilos kilogram kilograms किलो किग्रा કિલો કિગ્રા": 1_000_000,
		"mg मिग्रा મિગ્રા":                                             1,
		"tola tolas tolla तोला તોલા":                                   11_664,
	})
	// counts has the number of pieces of each unit.
	counts = factors(map[string]int64{
		"pc pcs pce pieces piece nos pair pairs jodi jodis नग નંગ पीस પીસ जोड़ी जोडी જોડી": 1,
		"dozen dozens doz दर्जन ડઝન": 12,
	})

	// ofTheName follow a number that is a part of the item's name, such as 22k or 2.5 inch. sizes come before such a number.
	ofTheName = set("k kt ct karat carat touch % inch inches in mm cm size कैरेट કેરેટ टंच ટચ इंच ઇંચ")
	sizes     = set("size saiz साइज સાઇઝ model design touch")

	weightMarks = set("wt weight wajan vajan वजन વજન")
	countMarks  = set("qty quantity qnty")
	slipMarks   = set("slip slips slipno स्लिप સ્લિપ पर्ची પરચી")
	prices      = set("rate bhav bhaav rs inr ₹ @ भाव ભાવ रेट")
	rupees      = set("rs inr ₹ rupees rupee rupaye रु रुपये रुपए રૂ રૂપિયા") // behind a number
	totals      = set("total totals grand sum kul कुल टोटल जोड़ કુલ ટોટલ સરવાળો")
	ands        = set("and aur ane और અને")

	clientMarks = set("party client customer for name naam नाम નામ पार्टी પાર્ટી ग्राहक ગ્રાહક")

	// noise has words that neither items nor clients have.
	noise = set(`hello hi hey helo namaste namaskar pranam good morning evening afternoon night jsk dear sir madam please pls plz kindly send bhejo bhejna
		bhejdo bhej order orders chahiye chaiye need needed want urgent jaldi thanks thank you ok okay forwarded today tomorrow kal aaj note new
		नमस्ते नमस्कार प्रणाम कृपया भेजो भेजना भेजें चाहिए ऑर्डर जल्दी धन्यवाद कल आज નમસ્તે પ્રણામ મોકલો મોકલજો જોઈએ ઓર્ડર જલ્દી આભાર કાલે આજે
		make banao banana banwana बनाओ बनाना બનાવો dijiye dena do de दो देना दीजिए આપો the of a is are my our we i me will require required ready give
		this that these following items item list ye yeh ka ki ke का की के ના ની નું`)

	// greetings are whole lines.
	greetings = set("ramram jaishreekrishna jaishrikrishna jaijinendra jaimatadi radheradhe जयश्रीकृष्ण रामराम જયશ્રીકૃષ્ણ જયજિનેન્દ્ર राधेराधे")
)
