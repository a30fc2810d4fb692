package knowledge

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"bahi/domain/ledger/khatapage"
	"bahi/domain/person"
	"bahi/domain/wording"
)

// maxStated is the maximum number of chunks of statements in a search.
const maxStated = 1000

var (
	statementTitle = regexp.MustCompile(`(?m)^.*Statement of (?:account|IN \(jama\)|OUT \(naame\))\n(.+: \S+ ledger)$`)
	rowOf          = regexp.MustCompile(`^(Date: .*?; No\.: \d+); Details: `)
	carried        = regexp.MustCompile(`^Details: (?:Carried|Brought) forward; `)
	summed         = regexp.MustCompile(`^Details: (Opening|Closing) (?:balance|total); `)
	totalOf        = regexp.MustCompile(`^Details: Total; `)
	ofStatement    = regexp.MustCompile(`; (?:IN \(jama\)|OUT \(naame\)|Balance)(?: [^:;]*)?: `)
	dateOfRow      = regexp.MustCompile(`^Date: (.*?); No\.: `)
)

// statement rewrites the text of a statement of the books. The account is a heading. Each entry has the date and the number of its row.
func statement(text string) string {
	text = statementTitle.ReplaceAllString(text, "\n# $1\n")
	if !strings.Contains(text, " ledger\n") {
		return text
	}
	lines := strings.Split(text, "\n")
	row := ""
	out := lines[:0]
	for i, line := range lines {
		line = strings.Replace(line, " (continued); ", "; ", 1)
		entry := strings.HasPrefix(line, "Details: ") && !summed.MatchString(line) &&
			(!totalOf.MatchString(line) || i+1 < len(lines) && !summed.MatchString(lines[i+1]))
		switch m := rowOf.FindStringSubmatch(line); {
		case carried.MatchString(line):
			continue
		case m != nil:
			row = m[1]
		case entry && row != "":
			line = row + "; " + line
		case summed.MatchString(line):
			row = ""
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// stated reports whether an item is a row of a statement.
func (i item) stated() bool {
	return strings.Contains(i.text, "Details: ") && ofStatement.MatchString(i.text) && strings.HasSuffix(i.account(), " ledger")
}

// account returns the heading of a statement.
func (i item) account() string {
	if len(i.heads) == 0 {
		return ""
	}
	return i.heads[0]
}

// asking is a question about a statement.
type asking struct {
	refused       bool // it is about several days, or about what a statement lacks
	dated         bool
	year          int // 0: any
	month, day    int
	balance       bool
	opening       bool
	total         bool
	given, theirs bool // a side; what the account does
	received      bool
	rest          string // the other words
}

func wordSet(words string) map[string]bool {
	all := map[string]bool{}
	for word := range wording.Terms(words) {
		all[word] = true
	}
	return all
}

var (
	balances = wordSet(`balance balances baki baaki bakaya due dues owe owes owed outstanding pending remaining closing current final latest
		बाकी बाक़ी बकाया शेष बैलेंस बैलेन्स
		બાકી બેલેન્સ બેલેંસ સિલક`)
	openings = wordSet(`opening शुरुआती ઓપનિંગ`)
	totals   = wordSet(`total totals कुल टोटल કુલ ટોટલ`)
	givings  = wordSet(`give gave given giving issue issued out naame paid pay pays sent sold diya diye dia
		aapyu apyu aapya apya api aapi apyo
		दिया दी दिए दिये नामे भेजा
		આપ્યું આપી આપ્યા આપ્યો નામે`)
	gettings = wordSet(`receive received receives get got gets take took taken takes came come jama aaya aayi aaye mila mili mile liya li
		malyu mali malya avyu aavyu avi aavi lidhu lidhi lidha
		आया आई आए मिला मिली मिले लिया ली लिए जमा
		મળ્યું મળી મળ્યા
		આવ્યું આવી આવ્યા લીધું લીધી લીધા જમા`)
	plainWords = wordSet(`did does do was were is are had has have been be happen happened entry entries row rows transaction transactions
		made done date dated day on account ledger statement us they he she we i his her their them him our ours
		क्या हुआ खाता खाते तारीख हमने हमें उसने उन्होंने
		પાસે શું થયું ખાતું તારીખ અમે તેણે તેમણે`)
	refusals = regexp.MustCompile(`(?i)(?:^|[^\pL\pM])(?:before|after|since|until|till|between|except|not|never|average|more|less|most|` +
		`least|every|each|first|last|yesterday|today|tomorrow|week|pehle|baad|पहले|बाद|आज|कल|` +
		`પહેલાં|પછી|આજે|કાલે)(?:$|[^\pL\pM])`)
	numericDate = regexp.MustCompile(`\d{1,4}[/.-](?:\d{1,2}|\pL{3,9})[/.-]\d{2,4}`)
	writtenDate = regexp.MustCompile(`(?i)(\d{1,2})(?:st|nd|rd|th)?[ ]+(?:of )?([\pL\pM]+),?(?:[ ]+(\d{4}))?`)
	monthFirst  = regexp.MustCompile(`(?i)([\pL\pM]+)[ ]+(\d{1,2})(?:st|nd|rd|th)?(?:,?[ ]+(\d{4}))?(?:[^\d]|$)`)
	ofAccount   = regexp.MustCompile(`(?i)(?:^|[^\pL])(?:did|does|has|have|do)(?: (we|i|you)[^\pL]|[^\pL])|(?:^|[^\pL])ne[^\pL]|` +
		`[\pL\pM]+ ने(?: |$)`)
	ours = regexp.MustCompile(`(?i)(?:हमने|अमने|maine|humne|hamne|મેં|અમે)`)
)

// asksStatement parses a question about a statement. It reports whether the question has a date, a side, or a word for a balance.
func asksStatement(question string) (a asking, is bool) {
	question = strings.Map(person.Digit, strings.Join(strings.Fields(question), " "))
	rest := question
	cut := func(text string, year, month, day int) {
		if a.dated && (a.year != year || a.month != month || a.day != day) {
			a.refused = true
		}
		a.dated, a.year, a.month, a.day = true, year, month, day
		rest = strings.Replace(rest, text, " ", 1)
	}
	for _, text := range numericDate.FindAllString(rest, -1) {
		if y, m, d, ok := khatapage.Day(text); ok {
			cut(text, y, m, d)
		} else {
			a.refused = true
		}
	}
	for _, form := range []*regexp.Regexp{writtenDate, monthFirst} {
		for _, m := range form.FindAllStringSubmatch(rest, -1) {
			day, month := m[1], m[2]
			if form == monthFirst {
				day, month = month, day
			}
			if y, mo, d, ok := khatapage.Day(strings.TrimSpace(day + " " + month + " " + m[3])); ok {
				cut(strings.TrimRight(m[0], " ?.!,"), y, mo, d)
			}
		}
	}
	var words []string
	for word := range wording.Terms(rest) {
		switch {
		case balances[word]:
			a.balance = true
		case openings[word]:
			a.opening = true
		case totals[word]:
			a.total = true
		case givings[word]:
			a.given = true
		case gettings[word]:
			a.received = true
		case !plainWords[word]:
			words = append(words, word)
		}
	}
	a.rest = strings.Join(words, " ")
	m := ofAccount.FindStringSubmatch(rest)
	a.theirs = len(m) > 0 && m[1] == "" && !ours.MatchString(rest)
	a.refused = a.refused || refusals.MatchString(rest)
	return a, a.dated || a.balance || a.opening || a.total || a.given || a.received
}

// Statements returns the chunks of a bot's statements, if the question is about a statement.
func (s *Store) Statements(ctx context.Context, bot int64, question string) ([]Passage, error) {
	if a, is := asksStatement(question); !is || a.refused {
		return nil, nil
	}
	rows, _ := s.Pool.Query(ctx, `select source_id, ordinal, text, 0::float8, 0::float8 from knowledge.chunk
		where bot_id + 0 = $1 and words @@ $2::text::tsquery order by source_id, ordinal limit $3`,
		bot, wording.Query(bot, []string{"naame", "jama"}), maxStated+1)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Passage])
	if err != nil {
		return nil, fmt.Errorf("read the statements of bot %d: %w", bot, err)
	}
	if len(all) > maxStated { // a part of a statement could give a wrong answer
		return nil, nil
	}
	return all, nil
}

// QuoteStatements returns the rows of statements that a question names: by a day, a side, or as a balance. It returns none if a further
// word of the question is neither in the row nor in the account's name.
func (s *Store) QuoteStatements(ctx context.Context, bot int64, question string, passages []string, most int) (q Quoted, err error) {
	a, is := asksStatement(question)
	if !is || a.refused {
		return q, nil
	}
	c := choice{}
	if c.words, _, err = s.words(ctx, bot, wording.WholeNumbers(a.rest)); err != nil {
		return q, err
	}
	c.days = make([]int, len(c.words))
	for i := range c.days {
		c.days[i] = -1
	}
	var all []held
	for i, p := range passages {
		for _, it := range items(p) {
			if it.passage = i; it.stated() {
				all = append(all, held{item: it})
			}
		}
	}
	return q.of(&c, a.chosen(&c, all), most), nil
}

// chosen returns the rows that the question names.
func (a asking) chosen(c *choice, all []held) (best []held) {
	top := 0.0
	for _, h := range all {
		if !a.names(h.text) {
			continue
		}
		h.score = 1
		for i, word := range c.words {
			fit := 0.0
			switch {
			case c.holds(h.account(), i) > 0:
			case c.holds(h.text, i) > 0:
				fit = c.holds(h.text, i)
			case attributes[stem(word.text)]:
			default:
				h.score = 0
			}
			if h.score > 0 {
				h.score += fit
			}
		}
		if h.score == 0 || h.score < top-nearly {
			continue
		}
		if h.score > top+nearly {
			top, best = h.score, nil
		}
		n := len(best) - 1
		if a.balance && a.dated && n >= 0 && best[n].account() == h.account() { // the day's last balance
			best = best[:n]
		}
		best = append(best, h)
	}
	return best
}

// holds returns how well a text has a word of the question, in any script.
func (c *choice) holds(text string, word int) float64 {
	if len(c.words) == 0 {
		return 0
	}
	if fit := c.fits(text)[word]; fit >= synonymFit {
		return fit
	}
	for _, key := range wording.PhoneticKeys(c.words[word].text) {
		if wording.Indic(c.words[word].text) && slices.Contains(wording.PhoneticKeys(text), key) {
			return synonymFit
		}
	}
	return 0
}

// names reports whether the question is about a row: about its day, its side, or its kind.
func (a asking) names(row string) bool {
	sum := summed.FindStringSubmatch(row)
	switch at := dateOfRow.FindStringSubmatch(row); {
	case a.total:
		return totalOf.MatchString(row) && !a.dated && !a.balance && a.sided(row)
	case a.opening:
		return len(sum) > 0 && sum[1] == "Opening" && !a.dated && strings.Contains(row, "; Balance ")
	case a.balance && !a.dated:
		return len(sum) > 0 && sum[1] == "Closing" && strings.Contains(row, "; Balance ")
	case at == nil: // a sum
		return false
	case a.dated && !a.on(at[1]), a.balance && !strings.Contains(row, "; Balance "):
		return false
	default:
		return a.balance || a.sided(row)
	}
}

// sided reports whether a row has an amount on the side of the question. What the account gives is IN.
func (a asking) sided(row string) bool {
	side := "; IN (jama)"
	if a.given != a.theirs {
		side = "; OUT (naame)"
	}
	return a.given == a.received || strings.Contains(row, side)
}

// on reports whether a row's day is the day of the question.
func (a asking) on(text string) bool {
	year, month, day, ok := khatapage.Day(text)
	return ok && day == a.day && month == a.month && (a.year == 0 || year == a.year)
}
