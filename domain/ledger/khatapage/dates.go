package khatapage

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"bahi/domain/unit"
)

// months are the normalised names of the months in English, Hindi, Marathi and Gujarati. The first three letters of a name identify a
// month.
var months = func() (all [12][]string) {
	for i, names := range [12]string{
		"january जनवरी जानेवारी જાન્યુઆરી", "february फरवरी फ़रवरी फेब्रुवारी ફેબ્રુઆરી", "march मार्च માર્ચ", "april अप्रैल एप्रिल એપ્રિલ",
		"may मई मे મે", "june जून जुन જૂન જુન", "july जुलाई जुलै જુલાઈ", "august अगस्त ऑगस्ट ઑગસ્ટ ઓગસ્ટ ઓગષ્ટ",
		"september सितंबर सितम्बर सप्टेंबर સપ્ટેમ્બર સપ્ટેંબર", "october अक्टूबर अक्तूबर ऑक्टोबर ઑક્ટોબર ઓક્ટોબર ઓકટોબર",
		"november नवंबर नवम्बर नोव्हेंबर નવેમ્બર નવેંબર", "december दिसंबर दिसम्बर डिसेंबर ડિસેમ્બર ડિસેંબર",
	} {
		for name := range strings.FieldsSeq(names) {
			all[i] = append(all[i], folded(normal(name)))
		}
	}
	return all
}()

// monthOf returns the month that a word names, or 0.
func monthOf(word string) int {
	word = strings.TrimRight(folded(word), ".")
	for i, names := range months {
		for _, name := range names {
			if word == name || utf8.RuneCountInString(word) >= 3 && strings.HasPrefix(name, word) {
				return i + 1
			}
		}
	}
	return 0
}

// day is a written date. Year is 0 if it is absent. In a doubtful date, one digit of the year was read twice.
type day struct {
	year, month, day int
	doubtful         bool
}

func (d day) exists() bool {
	at := time.Date(max(d.year, 2000), time.Month(d.month), d.day, 0, 0, 0, 0, time.UTC) // 2000 has a 29 February
	return d.month >= 1 && d.month <= 12 && at.Day() == d.day && d.day > 0
}

// part matches a run of letters, or a run of digits with an optional ordinal ending.
var part = regexp.MustCompile(`(?i)(\d+)(?:st|nd|rd|th)?|([\p{L}\p{M}]+)`)

// monthYear matches a month and a number that may be its year, as in Mar-25.
var monthYear = regexp.MustCompile(`^[\p{L}\p{M}]+\.?(?:[-/]| ?')[23]\d$`)

// sign reports whether a character is neither of a word nor of a number.
func sign(c rune) bool { return !unicode.In(c, unicode.L, unicode.M, unicode.N) }

// dateOf parses d/m, d-m-yy, dd.mm.yyyy, d m yyyy and yyyy-mm-dd, with optional ordinals and names of months. It returns formed if the text
// has the form of a date, even if that date does not exist.
func dateOf(text string) (d day, formed bool) {
	text = strings.TrimFunc(text, sign)
	if monthYear.MatchString(text) {
		return d, true
	}
	misread := false
	latin := strings.ContainsAny(strings.ToLower(text), "olisbz")
	numeric := 2*digits(text) >= len([]rune(text))/2 || digits(text) > 0 && !latin
	named := slices.ContainsFunc(part.FindAllString(text, -1), func(p string) bool { return monthOf(p) > 0 })
	if numeric && !named && strings.ContainsAny(text, "/-.") {
		plain := confused.Replace(strings.ToLower(text))
		misread, text = !latin && !strings.EqualFold(plain, text), plain
	}
	var numbers []string
	between, end := "", 0
	for _, at := range part.FindAllStringSubmatchIndex(text, -1) {
		separator := strings.Trim(text[end:at[0]], " '")
		if separator == "" && end > 0 {
			separator = " "
		}
		end = at[1]
		if !strings.Contains("/-., ", separator) && separator != ",." {
			return d, false
		}
		between += separator
		month := monthOf(text[at[0]:at[1]])
		switch {
		case at[2] >= 0:
			numbers = append(numbers, text[at[2]:at[3]])
		case d.month > 0 || month == 0:
			return d, false
		default:
			d.month = month
		}
	}
	named, count := d.month > 0, len(numbers)
	if misread && count == 3 {
		numbers[2], d.doubtful = undoubledYear(numbers[2])
	}
	// Points of a date with a whole year may have been read as commas.
	commas := strings.Contains(between, ",") && (count < 3 || len(numbers[2]) != 4 || strings.Contains(between, " "))
	switch {
	case end < len(text), count == 0, !named && (count < 2 || commas), named && count > 2, count > 3,
		!named && count == 2 && between != "/" && between != "-":
		return d, false
	}
	if len(numbers[0]) == 4 && (named || count == 3) {
		slices.Reverse(numbers)
	}
	if !named && count == 3 && strings.Contains(between, " ") && len(numbers[2]) != 4 { // three numbers of any meaning
		return d, false
	}
	if named {
		numbers = slices.Insert(numbers, 1, strconv.Itoa(d.month))
	}
	if len(numbers[0]) > 2 || len(numbers[1]) > 2 || len(numbers) == 3 && len(numbers[2]) != 2 && len(numbers[2]) != 4 {
		return d, false
	}
	d.day, _ = strconv.Atoi(numbers[0]) // they have only digits
	d.month, _ = strconv.Atoi(numbers[1])
	if len(numbers) == 3 {
		if d.year, _ = strconv.Atoi(numbers[2]); len(numbers[2]) == 2 {
			d.year += 2000
		}
	}
	return d, true
}

// Day parses a date that somebody wrote. The year is 0 if it is absent.
func Day(text string) (year, month, day int, ok bool) {
	d, formed := dateOf(text)
	return d.year, d.month, d.day, formed && d.exists() && !d.doubtful
}

// undoubledYear removes a digit that text recognition read twice from a year of three or five digits.
func undoubledYear(text string) (year string, doubled bool) {
	for i := 1; i < len(text) && (len(text) == 3 || len(text) == 5 && text[:2] == "20"); i++ {
		if text[i] == text[i-1] {
			return text[:i] + text[i+1:], true
		}
	}
	return text, false
}

// isDate reports whether a word is a date.
func isDate(text string) bool {
	d, formed := dateOf(text)
	return formed && d.exists()
}

var (
	garbled = regexp.MustCompile(`(?i)^[\doqilsbz]{1,4}(?:[/-]\d{1,3}(?:\D|$)|` +
		`[/.~_:·⁄∕\\-][\doqilsbz]{1,3}[/.~_:·⁄∕\\-]|[/.-][\p{L}\p{M}]+[/.-]\d)`)
	leading = regexp.MustCompile(`^(\d{1,2}[/.-]\d{1,2}[/.-](?:\d{4}|\d{2}))([\p{L}"].*)$`) // a date with text directly after it
)

// likeDate reports whether a word is a date, or resembles one.
func likeDate(text string) bool {
	_, formed := dateOf(text)
	return formed || digits(text) > 1 && garbled.MatchString(text)
}

// maxDateWords is the maximum number of words of a date, as in "2 nd March 2025".
const maxDateWords = 4

// dateLabels are words directly before a date, also weekdays.
var dateLabels = func() (all []string) {
	for name := range strings.FieldsSeq("dt date dated दिनांक तारीख ता દિનાંક તારીખ તા " +
		"sunday monday tuesday wednesday thursday friday saturday " +
		"रविवार सोमवार मंगलवार बुधवार गुरुवार शुक्रवार शनिवार રવિવાર સોમવાર મંગળવાર બુધવાર ગુરુવાર શુક્રવાર શનિવાર") {
		all = append(all, folded(normal(name)))
	}
	return all
}()

func isDateLabel(text string) bool {
	text = folded(strings.Trim(text, ".,:-"))
	return slices.ContainsFunc(dateLabels, func(name string) bool {
		return text == name || utf8.RuneCountInString(text) >= 3 && strings.HasPrefix(name, text)
	})
}

// leadingDate returns the number of leading words that form a date, and the date, which may not exist.
func leadingDate(words []Word) (count int, d day) {
	if len(words) > 1 && isDateLabel(words[0].Text) {
		if count, d = leadingDate(words[1:]); count > 0 {
			return count + 1, d
		}
	}
	together := 1
	for ; together < min(len(words), maxDateWords); together++ {
		if before, w := words[together-1], words[together]; w.Left-before.Right >= max(w.Bottom-w.Top, before.Bottom-before.Top) {
			break
		}
	}
	if together > 1 {
		year := confused.Replace(words[1].Text)
		if year != words[1].Text && len(year) == 3 {
			year, _ = undoubledYear(year)
		}
		if len(year) == 2 && digits(year) == 2 && strings.HasSuffix(words[0].Text, "20") {
			if d, formed := dateOf(words[0].Text + year); formed { // a year in two words
				return 2, d
			}
		}
	}
	for n := together; n > 0; n-- {
		texts := make([]string, n)
		for i, w := range words[:n] {
			texts[i] = w.Text
		}
		if d, formed := dateOf(strings.Replace(strings.Join(texts, " "), " of ", " ", 1)); formed &&
			(n == len(words) || n == 1 || unitOf(words[n].Text) == "" || len(words[n-1].Text) == 4) {
			return n, d
		}
	}
	return 0, d
}

// resolve returns the date of a day. An absent year is the year of the sheet, else the year nearest to the last complete date, else the
// latest year without a date after tomorrow. believed is false for a year after the next (CONTRACT.md I19).
func (r *reader) resolve(d day) (date *unit.Date, believed bool) {
	today := r.Today.Time()
	of := func(year int) (unit.Date, bool) {
		at := time.Date(year, time.Month(d.month), d.day, 0, 0, 0, 0, time.UTC)
		return unit.DateOf(at), at.Day() == d.day
	}
	if d.year != 0 {
		if date, exists := of(d.year); exists && d.year <= today.Year()+1 && d.year >= 1900 {
			r.near = date
			return &date, true
		}
		r.warnf("the year %d is not plausible", d.year)
	}
	if d.year == 0 && r.year == 0 && r.near != 0 { // the year nearest to the last complete date
		var best *unit.Date
		for year := r.near.Time().Year() - 1; year <= r.near.Time().Year()+1; year++ {
			if date, exists := of(year); exists && date <= r.Today+1 &&
				(best == nil || max(date-r.near, r.near-date) < max(*best-r.near, r.near-*best)) {
				best = &date
			}
		}
		return best, best != nil
	}
	year := today.Year()
	if r.year != 0 {
		year = r.year
		if d.month < 4 { // a financial year begins in April
			if date, exists := of(year + 1); exists && r.fiscal && date <= r.Today+1 {
				return &date, d.year == 0
			}
		}
	}
	for range 8 {
		if date, exists := of(year); exists && date <= r.Today+1 {
			return &date, d.year == 0
		}
		year--
	}
	return nil, false
}

// date returns the date of an entry. An absent or repeated date is the date of the entry above.
func (r *reader) date(l *layout, side string, c *cell) *unit.Date {
	if c.date != nil || c.unread {
		r.dates[side], r.unclear[side] = c.date, c.unclear // the lines below repeat it
		return c.date
	}
	date, known := r.dates[side]
	if !known && !c.dated {
		for _, other := range []string{In, Out} {
			if date = r.dates[other]; date != nil {
				if !l.shared {
					r.doubt(c, "the line %q has no date: it gets the other side's", c.raw)
				}
				return date
			}
		}
	}
	switch text := r.unclear[side]; {
	case date == nil:
		r.doubt(c, "the line %q has no date", c.raw)
	case text != "":
		r.doubt(c, "the date %q of the line %q is hard to read", text, c.raw)
	}
	return date
}

// checkOrder adds a warning about dates that are not between their neighbours, because a digit may have been misread.
// Pages are in ascending or descending order.
func (r *reader) checkOrder(entries []Entry) {
	for _, side := range []string{In, Out} {
		var all []*Entry // the first entry of each date
		of := map[*unit.Date][]*Entry{}
		for i := range entries {
			e := &entries[i]
			if e.Side != side || e.Date == nil {
				continue
			}
			if of[e.Date] == nil {
				all = append(all, e)
			}
			of[e.Date] = append(of[e.Date], e)
		}
		forwards, changes := 0, 0
		for i := 1; i < len(all); i++ {
			step := int(min(max(*all[i].Date-*all[i-1].Date, -1), 1))
			forwards, changes = forwards+step, changes+abs(step)
		}
		if len(all) < 4 || 2*abs(forwards) < changes { // the dates are in no order
			continue
		}
		later := func(a, b *Entry) bool { return forwards > 0 && *a.Date > *b.Date || forwards < 0 && *a.Date < *b.Date }
		for i, e := range all {
			wrong := i > 0 && later(all[i-1], e) && (i+1 == len(all) || !later(all[i-1], all[i+1])) ||
				i+1 < len(all) && later(e, all[i+1]) && (i == 0 || !later(all[i-1], all[i+1]))
			if !wrong {
				continue
			}
			r.warnf("the date of the line %q is not between its neighbours'", e.Raw)
			for _, doubted := range of[e.Date] {
				doubted.Confidence = min(doubted.Confidence, unsure)
			}
		}
	}
}
