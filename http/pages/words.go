package pages

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"

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

// texts are texts that code translates by a variable, so that a test cannot find them where they are used. A test finds the literals
// that are given to t and tf, titles of pages, faults, monthNames and the labels of entryFields.
var texts = []string{
	"you owe", "owes you", "settled", "overdrawn", // owed
	"Bank", "Bullion dealer", "Client", "Karigar", "Polisher",
	"Metal", "Cash", "Rate cut", "per gram", "per 10 g", "per kg", // enumWords
	"Date", "Name", "Reason", "First name", "Last name",
	"An API key", "The system", // actors
	"Available", "Pending", "Scheduled", "Running", "Retryable", "Completed", "Cancelled", "Discarded", // states of jobs
	"Live", "Building", "Parked", "Paused", "Requested", "Filling", "Indexing", "Catching up", "Comparing", "Differs", // of projections
	"Projection", "Build", "Kept", "Reactor", "Waiting", "Handled", "Ignored", "Sent", "Failed", "Unknown", // of what is parked, calls, messages
	"Mail", "Chat", "Crm", "Gateway", "State", "Kind", "Endpoint", "Verdict", "Port", // filters of operators
	"Stream", "Category", "Type", "Actor", "Workspace", "From time", "To time", "To position",
	"Accept differences", // of a rebuild
}
