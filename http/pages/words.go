package pages

import (
	"embed"
	"encoding/json"
	"fmt"
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

// isoDay is a day in a message of the interface.
var isoDay = regexp.MustCompile(`\b\d{4}-\d{2}-\d{2}\b`)

// said translates a message of the interface, and writes its days as people do.
func (l language) said(text string) string {
	days := isoDay.FindAllString(text, -1)
	if len(days) == 0 {
		return l.t(text)
	}
	args := make([]any, len(days))
	for i, day := range days {
		args[i] = l.day(day)
	}
	return l.tf(isoDay.ReplaceAllString(strings.ReplaceAll(text, "%", "%%"), "%s"), args...)
}

// texts are texts that code translates by a variable, so that a test cannot find them where they are used. A test finds the literals
// that are given to t and tf, titles of pages, faults, monthNames and the labels of entryFields.
var texts = []string{
	"you owe", "owes you", "settled", "overdrawn", // owed
	"Bank", "Bullion dealer", "Client", "Karigar", "Polisher",
	"Books are locked through %s", "expected a number", // said
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
	"Order", "Takada", "Delivery date", "Notes", "Phone number", draftClient, "is required", "Order draft has no entries",
	"Empty Excel file", "Empty CSV file", "Conversation", "The log up to here", "Products belong to a company: add your company first.", // resources
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
