package pages

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	xlanguage "golang.org/x/text/language"
)

// language is a language of the pages, by its code.
type language string

// languages are the languages of the pages. The first is the one in which texts are written, and the default.
var languages = []language{"en", "hi", "gu"}

var matcher = xlanguage.NewMatcher([]xlanguage.Tag{xlanguage.English, xlanguage.Hindi, xlanguage.Gujarati}) // in the order of languages

// languageOf returns the language of a cookie, else the best one for an Accept-Language header.
func languageOf(cookie, acceptLanguage string) language {
	if l := language(cookie); slices.Contains(languages, l) {
		return l
	}
	_, i := xlanguage.MatchStrings(matcher, acceptLanguage)
	return languages[i]
}

// Name returns the language's own name.
func (l language) Name() string {
	switch l {
	case "hi":
		return "हिन्दी"
	case "gu":
		return "ગુજરાતી"
	default:
		return "English"
	}
}

//go:embed words/*.json
var wordFiles embed.FS

// translations has the translations of English texts. English has none.
var translations = readWords()

func readWords() map[language]map[string]string {
	read := map[language]map[string]string{}
	for _, l := range languages[1:] {
		words, err := wordFiles.ReadFile("words/" + string(l) + ".json")
		if err != nil {
			panic(err) // the files are part of the program
		}
		into := map[string]string{}
		if err := json.Unmarshal(words, &into); err != nil {
			panic(fmt.Errorf("words/%s.json: %w", l, err))
		}
		read[l] = into
	}
	return read
}

// t translates an English text. It returns a text without a translation unchanged.
func (l language) t(text string) string {
	if translated, known := translations[l][text]; known {
		return translated
	}
	return text
}

// tf translates a format of which all verbs are %s, and puts the arguments in.
func (l language) tf(format string, args ...any) string {
	texts := make([]any, len(args))
	for i, arg := range args {
		texts[i] = fmt.Sprint(arg)
	}
	return fmt.Sprintf(l.t(format), texts...)
}

// pattern is a message of the interface with values in it, written as {}. The translation numbers them, as in {2}, to change their order.
type pattern struct {
	text       *regexp.Regexp
	translated string
}

// patterns are the messages with values, those with the longest texts first.
var patterns = func() map[language][]pattern {
	of := map[language][]pattern{}
	for l, words := range translations {
		for _, text := range slices.SortedFunc(maps.Keys(words), func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }) {
			if strings.Contains(text, "{}") {
				exp := "^" + strings.ReplaceAll(regexp.QuoteMeta(text), regexp.QuoteMeta("{}"), "(.+?)") + "$"
				of[l] = append(of[l], pattern{regexp.MustCompile(exp), words[text]})
			}
		}
	}
	return of
}()

// isoDay is a day in a message of the interface.
var isoDay = regexp.MustCompile(`\b\d{4}-\d{2}-\d{2}\b`)

// said translates a message of the interface, and writes its days as people do.
func (l language) said(text string) string {
	return isoDay.ReplaceAllStringFunc(l.message(text), l.day)
}

func (l language) message(text string) string {
	words := translations[l]
	if translated, known := words[text]; known {
		return translated
	}
	for _, p := range patterns[l] {
		found := p.text.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		translated := p.translated
		for i, value := range found[1:] {
			if at := slices.IndexFunc(entryFields, func(f entryField) bool { return f.key == value }); at >= 0 {
				value = l.t(entryFields[at].label)
			}
			for _, place := range []string{fmt.Sprintf("{%d}", i+1), "{}"} {
				if strings.Contains(translated, place) {
					translated = strings.Replace(translated, place, value, 1)
					break
				}
			}
		}
		return translated
	}
	if first, rest, several := strings.Cut(text, "; "); several { // see detail
		return l.message(first) + "; " + l.message(rest)
	}
	if label, rest, is := strings.Cut(text, ": "); is && words[label] != "" {
		return words[label] + ": " + l.message(rest)
	}
	return text
}

// texts are texts that code translates by a variable, so that a test cannot find them where they are used. A test finds the literals
// that are given to t and tf, titles of pages, faults, monthNames and the labels of entryFields.
var texts = []string{
	"you owe", "owes you", "settled", "overdrawn", // owed
	"Bank", "Bullion dealer", "Client", "Karigar", "Polisher",
	"expected a number", "expected a whole number", "must not be null", // problems of all operations
	"expected a date such as 2025-03-31, from 1900 to 2199", "at most {} decimal places", "at most {} digits before the decimal point",
	"Validation error", "Not enough permissions", "Not found", "It was changed since you read it", "It took too long, try again",
	"The disk is full, try again later", "The answer is too long: narrow it to fewer days, or ask for pages",
	"The file is too large: at most {}",
	"Metal", "Cash", "Rate cut", "per gram", "per 10 g", "per kg", // enumWords
	"Date", "Name", "Reason", "First name", "Last name",
	"posted", "to check", "not readable", "being read", // khataUpload.Word
	"Polisher: regular", "Polisher: meena", "Polisher: rodium", // polisherKinds
	"Drafts to check", "Khata pages to post", "Unread conversations", "New enquiries", // todos
	"%s opened the account", "%s renamed the account", "%s edited the account", "%s deleted the account", // trailWords
	"%s added the order", "%s edited the order", "%s deleted the order",
	"%s added the takada", "%s edited the takada", "%s deleted the takada", "%s moved the lock of the books",
	"Items", "Type", "Delivery date", "Conversations",
	"Date", "Name", "Reason", "First name", "Last name", "Locked through",
	"An API key", "The system", // actors
	"open", "partly delivered", "delivered", // statusWords
	"%s added the order", "%s edited the order", "%s deleted the order", // recordSentences
	"%s added the takada of %s", "%s edited the takada of %s", "%s deleted the takada of %s",
	"Order", "Takada", "Delivery date", "Notes", "Phone number", draftClient,
	// resources
	"Products belong to a company: add your company first.",
	"A link was mailed to the address of the company. Enquiries go there once somebody has opened it.",
	"Still open", "Pending", "Resolved", "Contacted", "Qualified", "Converted", "Lost", // statuses of conversations and enquiries
	"Mail to you", "Chat to you", "CRM", // ways of telling the company
	"Image", "File", "Audio", "Video", "Reaction", "Location", "Sticker", "Status", "Phone", "Email",
	"API key %s", "Campaign %s", "Bot %s", "former member", "An API key", "A campaign", "A bot", "A provider", "A visitor", "A member",
	// actorKinds
	"The system",
	"Nothing", "Read", "Read and write", "Light", "Dark", "As the system", // settings
	"Email", "Phone", "Current password", "New password", "City", "State", "Country", "Website", "Domain", "Category", "Sub category",
	"Description",
	"in stock", "out of stock", "preorder", "discontinued", "Quantity", "Message", // goods
	"Available", "Pending", "Scheduled", "Running", "Retryable", "Completed", "Cancelled", "Discarded", // states of jobs
	"Live", "Building", "Parked", "Paused", "Requested", "Filling", "Indexing", "Catching up", "Comparing", "Differs", // of projections
	"Projection", "Build", "Kept", "Reactor", "Waiting", "Handled", "Ignored", "Sent", "Failed", "Unknown",
	// of what is parked, calls, messages
	"Mail", "Chat", "Crm", "Gateway", "State", "Kind", "Endpoint", "Verdict", "Port", // filters of operators
	"Stream", "Category", "Type", "Actor", "Workspace", "From time", "To time", "To position",
	"Accept differences", // of a rebuild
}
