package ordertext

import (
	"strings"

	"golang.org/x/text/unicode/norm"
)

// set returns the words in the normalised form of tokens.
func set(words string) map[string]bool {
	all := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		all[fold.String(norm.NFKC.String(w))] = true
	}
	return all
}

// factors returns the factor of each word.
func factors(by map[string]int64) map[string]int64 {
	all := map[string]int64{}
	for words, factor := range by {
		for w := range set(words) {
			all[w] = factor
		}
	}
	return all
}

const microgramsOfKilo = 1_000_000_000

var (
	// weights has the micrograms of each unit. A tola is 11.664 g, of 12 masha or 96 ratti.
	weights = factors(map[string]int64{
		"g gm gms gram grams grm grms gr gramme grammes ग्राम ग्रा ग्रां ग्रॅम " +
			"ગ્રામ ગ્રા किराम् ग्रामुलु گرام": 1_000_000,
		"kg kgs kilo kilos kilogram kilograms किलो किग्रा किलोग्राम کلو " +
			"કિલો કિગ્રા કિલોગ્રામ": microgramsOfKilo,
		"mg mgs milligram milligrams मिग्रा મિગ્રા":                1_000,
		"tola tolas tolla tole bhori vori भरि तोला तोले तोळा તોલા": 11_664_000,
		"masha mashe maasha माशा માસા":                             972_000,
		"ratti rattis rati रत्ती રતી":                              121_500,
	})
	// counts has the number of pieces of each unit.
	counts = factors(map[string]int64{
		"pc pcs pce pieces piece nos nag nang pair pairs jodi jodis नग नंग નંગ पीस પીસ " +
			"जोड़ी जोडी જોડી टि टा عدد": 1,
		"dozen dozens doz darjan दर्जन ડઝન": 12,
	})
	// otherUnits are units that are not converted.
	otherUnits = set("oz ounce ounces lb lbs pound pounds quintal quintals carats cts val vaal vaals grain grains dwt pennyweight " +
		"sovereign sovereigns pavan savaran वाल વાલ")
	// spelled are number words in thousandths. They are numbers only before a unit, because "do" also means give.
	spelled = factors(map[string]int64{
		"half aadha adha आधा અડધો અડધા": 500, "paav pav पाव પા": 250, "pauna paun पौन पौना પોણો": 750, "dedh डेढ़ દોઢ": 1_500,
		"sava sawa सवा સવા":  1_250,
		"dhai adhai ढाई અઢી": 2_500,
		"one ek एक એક":       1_000, "two do दो બે": 2_000, "three teen tin तीन ત્રણ": 3_000, "four char चार ચાર": 4_000,
		"five panch paanch पांच पाँच પાંચ": 5_000,
		"six chhe chah छह છ":               6_000, "seven saat सात સાત": 7_000, "eight aath आठ આઠ": 8_000, "nine nau नौ નવ": 9_000,
		"ten das दस દસ": 10_000,
	})
	// offsets are words that change the next number, in thousandths: "paune do" is 1.75.
	offsets = factors(map[string]int64{
		"sava sawa सवा સવા": 250, "sadhe saadhe साढ़े साढे સાડા": 500,
		"paune pone पौने પોણા": -250,
	})

	// ofTheName are units after a number in an item's name, such as 22k or 2.5 inch. sizes are words before such a
	// number.
	ofTheName = set(`k kt ct karat carat touch tunch % " inch inches in mm cm size कैरेट કેરેટ टंच ટચ इंच ઇંચ`)
	sizes     = set("size saiz साइज સાઇઝ model design touch tunch")
	assays    = set("916 925 750 999")

	// papers are words before a number that is no quantity.
	papers = set("bill ref reference invoice challan voucher memo बिल चालान બિલ ચલણ")

	weightMarks = set("wt weight wajan vajan वजन વજન")
	countMarks  = set("qty quantity qnty")
	slipMarks   = set("slip slips slipno स्लिप સ્લિપ parchi पर्ची પરચી પર્ચી chit chitthi चिट्ठी ચિઠ્ઠી")
	numberMarks = set("no num number # № नं नंबर નં નંબર") // after a slip mark or a size; the short ones also alone
	prices      = set(`rate rates bhav bhaav price cost rs inr ₹ @ labour labor making majuri mazdoori majduri charge charges advance
		भाव ભાવ रेट રેટ मजदूरी મજૂરી दाम કિંમત`)
	rupees = set("rs inr ₹ rupees rupee rupaye rupya रु रुपये रुपए રૂ રૂપિયા") // after a number
	totals = set("total totals grand sum kul कुल टोटल जोड़ કુલ ટોટલ સરવાળો")
	ands   = set("and aur ane और अने અને & +")
	each   = set("each apiece every prati pratyek per प्रति प्रत्येक हर દરેક પ્રતિ")

	// refusals say that something is not ordered. asides also have words that make a value a question, an estimate or a change.
	refusals = set("no not dont don't nahi nahin nai mat cancel cancelled except without नहीं मत रद्द નહીં નહિ નથી રદ")
	asides   = set(`instead minus less plus extra
		return returned wapas received recd वापस પાછું add sorry galti actually correction wastage ghat
		remove change changed replace badle jagah
		kam approx approximately about around nearly almost lagbhag karib gross net
		min minimum max maximum upto between atleast atmost under below above jyada zyada kya what which when how
		mil milega milegi jayega jayegi hoga hogi available stock kitna kitne kab confirm
		बदले जगह कम ज्यादा ज़्यादा लगभग करीब क्या कब
		कितना कितने मिलेगा मिलेगी होगा होगी
		બદલે જગ્યાએ ઓછું વધુ વધારે લગભગ આશરે શું ક્યારે
		કેટલા કેટલું મળશે થશે`)

	clientMarks = set("party client customer from messrs for name naam नाम નામ पार्टी પાર્ટી ग्राहक ગ્રાહક")
	inlineMarks = set("for party client customer पार्टी પાર્ટી ग्राहक ગ્રાહક")
	accounts    = set("m/s a/c c/o")                                 // before a client's name
	liye        = set("liye ko को वास्ते लिए लिये માટે maate vaste") // after a client's name
	ke          = set("ke के")

	// honorifics end a person's name.
	honorifics = set("ji jee bhai bhaiya ben behen bahen जी भाई बेन જી ભાઈ બેન બહેન")

	// ofANames are second words of names. A client's name ends with such a word.
	ofANames = set(`ji jee bhai bhaiya ben behen bahen jewellers jeweller jewelers jewels jewellery ornaments gold silver traders trader ` +
		`sons bros brothers
		company co house art arts palace जी भाई बेन ज्वेलर्स જી ભાઈ બેન બહેન જ્વેલર્સ ज्वैलर्स सोनी સોની`)
	courtesy = set(`ji jee bhai bhaiya bhaijaan ben behen sir madam mam saab sahab saheb seth sethji didi kaka uncle aunty all everyone ` +
		`sab sabko sa paji paaji veerji team dear
		جی بھائی जी भाई भैया बेन सर साहब सेठ सब सबको सा
		જી ભાઈ બેન બહેન સાહેબ શેઠ બધા બધાને સૌ સૌને`)

	// starters and deities form greetings: a starter and a deity, or two deities.
	starters = set(`jai jay jaya hare har hari om bolo sat namo ganpati
		जय हर हरे हरि ॐ ओम सत नमो गणपति જય હર હરે હરિ ૐ
		ઓમ નમો ગણપતિ`)
	deities = set(`ram raam rama siya siyaram sita seeta sitaram seetaram shri shree sri krishna krushna krishn krisna ` +
		`radhe radha shyam swaminarayan ` +
		`jinendra jinendr mata mataji maa
		ma di ambe amba bhavani bholenath bhole mahadev shiv shiva shivay shivaya namah namo hanuman bajrangbali ganesh ganesha gurudev ` +
		`dwarkadhish dwarikadhish
		gopal bappa morya बप्पा मोरया બાપ્પા મોરયા
		khodiyar jalaram akal hind bhim jhulelal jagannath om vitthal
		राम सिया सीता सियाराम सीताराम श्री कृष्ण
		कृष्णा राधे राधा श्याम ` +
		`स्वामीनारायण जिनेन्द्र
		जिनेंद्र स्री
		माता माताजी मां माँ दी अंबे अम्बे भवानी
		भोलेनाथ महादेव शिव शिवाय नमः हनुमान गणेश
		अकाल हिंद हिन्द झूलेलाल ॐ રામ સિયા સીતા ` +
		`સિયારામ સીતારામ શ્રી કૃષ્ણ કૃષ્ણા રાધે રાધા
		શ્યામ સ્વામિનારાયણ જિનેન્દ્ર જીનેન્દ્ર માતા માતાજી મા અંબે ભવાની ભોલેનાથ મહાદેવ શિવ શિવાય નમઃ હનુમાન ગણેશ હિંદ ખોડિયાર જલારામ`)
	// couples are a goddess and a god, a greeting if no further name follows. radhas before krishnas are one before a courtesy.
	couples = set(`sitaram sitaraam seetaram seetaraam siyaram siyaraam
		सीताराम सियाराम સીતારામ સિયારામ`)
	radhas   = set("radha radhe राधा राधे રાધા રાધે")
	krishnas = set(`krishna krushna krishn krisna shyam
		कृष्ण कृष्णा श्याम કૃષ્ણ કૃષ્ણા શ્યામ`)
	ki       = set("ki kee की કી")                               // between a god and "jai"
	toPerson = set("ko ke का के को ka ne ને નો માટે maate liye") // after a name
	hails    = set(`hello helo hlo hi hey hii namaste namaskar namaskaram pranam pranaam good gud morning evening afternoon ` +
		`night jsk kem cho ` +
		`chho majama
		khamma ghani खम्मा घणी
		kaise kaisa ho hain haal salam salaam assalamualaikum
		walekum adaab aadab adab vanakkam वणक्कम् سلام السلام علیکم آداب happy mubarak
		नमस्कारं waheguru satnam
		सतनाम સતનામ
		vande mataram shubh suprabhat ramram radheradhe ` +
		`jaishreekrishna
		jaishrikrishna jaijinendra jaimatadi harharmahadev jaisiyaram sitaram ` +
		`नमस्ते नमस्कार प्रणाम सुप्रभात शुभ ` +
		`प्रभात कैसे हो हैं केम छो जयश्रीकृष्ण ` +
		`रामराम राधेराधे जयजिनेन्द्र सलाम
		નમસ્તે નમસ્કાર પ્રણામ સુપ્રભાત શુભ પ્રભાત સવાર કેમ છો મજામાં જયશ્રીકૃષ્ણ રામરામ જયજિનેન્દ્ર greetings welcome`)

	// noiseWords are words that occur in no name of an item or client.
	noiseWords = set(`please pls plz kindly send bhejo bhejna bhejdo bhej bhejiye order orders deliver delivery
		chahiye chaiye chahie need needed want ` +
		`urgent urgently jaldi fast asap soon
		thanks thank thankyou you so much ok okay done forwarded
		fwd fw today tomorrow kal aaj note new कृपया भेजो भेजना भेजें
		भेजिए चाहिए ऑर्डर ` +
		`जल्दी धन्यवाद शुक्रिया कल आज મોકલો
		મોકલજો જોઈએ ઓર્ડર જલ્દી આભાર કાલે આજે make banao banana banwana बनाओ बनाना બનાવો dijiye dena do de दो देना दीजिए આપો the of a is are ` +
		`my our we i me
		will require required ready give mujhe muje hume hamein मुझे हमें મને અમને this that these to only karo karna kardo ` +
		`following items item list hai है છે ye yeh ka ki ke का की के ના ની નું
		date dated dt tarikh तारीख તારીખ`)

	// A line with only these words is not a client's name.
	articles = set(`payal anklet anklets ring rings chain chains kada kadas bichiya bichhiya nath jhanjhar bangle bangles mangalsutra ` +
		`pendant pendants set coin
		coins sikka tops earring earrings necklace bracelet mala gold silver चांदी पायल अंगूठी चेन कड़ा नथ झांझर बिछिया कंगन मंगलसूत्र सिक्का ` +
		`माला પાયલ વીંટી ચેઇન
		સાંકળા કડું નથ ઝાંઝર બંગડી મંગળસૂત્ર સિક્કો`)

	// An article with one of these words remains one article: chain 10 gm gold.
	materials = set("gold silver set tops mala चांदी माला માલા")

	// until are words before a date or time, behindIt are words after it. strict words require no known date or time.
	until    = set("before after by till until upto on for at within in")
	strict   = set("before after till until upto")
	fillers  = set("the next this coming agle is अगले इस આવતા")
	behindIt = set("tak pehle pahle pehele pahela pahelan sudhi sudhima baad pachhi " +
		"तक पहले बाद सुधी પહેલા પહેલાં સુધી સુધીમાં પછી બાદ")
	se     = set("se ke से के ની ના")
	months = set(`jan january feb february mar march apr april may june jun july jul aug august sep sept september oct october nov ` +
		`november dec december
		जनवरी फरवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर अक्टूबर नवंबर दिसंबर જાન્યુઆરી ફેબ્રુઆરી માર્ચ એપ્રિલ મે જૂન જુલાઈ ઓગસ્ટ સપ્ટેમ્બર ` +
		`ઓક્ટોબર નવેમ્બર ડિસેમ્બર`)
	moments = set(`monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun somvar mangalvar budhvar guruvar ` +
		`shukravar shanivar ravivar
		today tomorrow tonight kal aaj parso week month hafte mahine diwali deepavali dipawali divali dhanteras navratri dussehra dasara ` +
		`akshaya akha holi rakhi eid christmas
		ganpati janmashtami onam pongal wedding marriage shaadi shadi सोमवार मंगलवार बुधवार गुरुवार शुक्रवार शनिवार रविवार आज कल परसों हफ्ते ` +
		`महीने दिवाली दीपावली
		धनतेरस नवरात्रि दशहरा होली राखी ईद शादी સોમવાર મંગળવાર બુધવાર ગુરુવાર શુક્રવાર શનિવાર રવિવાર આજે કાલે દિવાળી ધનતેરસ નવરાત્રિ હોળી ` +
		`રાખડી લગ્ન`)
	ordinals = set("st nd rd th")
	tarikh   = set("tarikh तारीख તારીખ")
	hours    = set("am pm baje bje o'clock बजे વાગ્યે વાગે")
	spans    = set("day days din week weeks hafte month months mahine दिन दिनों हफ्ते महीने દિવસ દિવસમાં અઠવાડિયા")
)

// lone reports whether a word keeps its meaning if a hyphen joins it to another word.
func lone(word string) bool {
	return unitWord(word) || clientMarks[word] || slipMarks[word] || word == "x"
}

func unitWord(word string) bool { return weights[word] != 0 || counts[word] != 0 }
