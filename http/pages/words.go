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

// languages are the languages of the pages. The first is the language of the texts in the code, and the default.
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
	return map[language]string{"en": "English", "hi": "हिन्दी", "gu": "ગુજરાતી"}[l]
}

//go:embed words/*.json
var wordFiles embed.FS

// english are the English words by their use, such as fields, options or hints. Other has texts that code translates by a variable, so a
// test cannot find their use.
var english = readWords[map[string]map[string]string]("en")

// translations has the translations of English texts. English has none.
var translations = map[language]map[string]string{
	"hi": readWords[map[string]string]("hi"), "gu": readWords[map[string]string]("gu"),
}

func readWords[T any](l language) (words T) {
	text, err := wordFiles.ReadFile("words/" + string(l) + ".json")
	if err == nil {
		err = json.Unmarshal(text, &words)
	}
	if err != nil {
		panic(fmt.Errorf("words/%s.json: %w", l, err)) // the files are part of the program
	}
	return words
}

// t translates an English text. It returns a text without a translation unchanged.
func (l language) t(text string) string {
	if translated, known := translations[l][text]; known {
		return translated
	}
	return text
}

// tf translates a format that has only %s verbs, and inserts the arguments.
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

// said translates a message of the interface, and formats its dates for people.
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
