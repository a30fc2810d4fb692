package pages

import (
	"go/ast"
	"go/parser"
	"go/token"
	"html"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/wording"
)

// TestWordsAreTranslated fails for each text without a translation, and logs these texts as JSON to fill in. It also fails for a
// translation of an unused text.
func TestWordsAreTranslated(t *testing.T) {
	t.Parallel()
	used := usedTexts(t)
	for _, l := range languages[1:] {
		missing, verbs := map[string]string{}, regexp.MustCompile(`%(\[\d\])?s|\{\d?\}`)
		for text := range used {
			translated, known := translations[l][text]
			if !known || translated == "" {
				missing[text] = ""
				continue
			}
			require.Len(t, verbs.FindAllString(translated, -1), len(verbs.FindAllString(text, -1)), "%s: the verbs of %q", l, text)
		}
		if len(missing) > 0 {
			t.Errorf("words/%s.json has no translation for %d texts:\n%s", l, len(missing), indented(t, missing))
		}
		for text := range translations[l] {
			if !used[text] {
				t.Errorf("words/%s.json translates a text that nothing uses: %q", l, text)
			}
		}
		file, err := os.ReadFile("words/" + string(l) + ".json")
		require.NoError(t, err)
		require.Equal(t, indented(t, translations[l]), string(file), "words/%s.json is sorted, with two spaces before each text", l)
	}
}

// TestWordsOfTemplatesAreGivenToT fails for English text in a template outside of an action.
func TestWordsOfTemplatesAreGivenToT(t *testing.T) {
	t.Parallel()
	unseen := regexp.MustCompile(`(?s)\{\{.*?\}\}|<!--.*?-->|<kbd.*?</kbd>|<script.*?</script>`)
	seen := regexp.MustCompile(`\b(?:placeholder|title|alt|aria-label|label|value)="([^"]*)"`)
	tag := regexp.MustCompile(`(?s)<[^>]*>`)
	allowed := regexp.MustCompile( // or attributes
		`\b(Bahi|g|kg|PDF|CSV|XLSX|SKU|GSTIN|csv|pdf|xlsx)\b|[a-z-]+="[^"]*"|\b(required|autofocus)\b`)
	eachTemplate(t, func(name, text string) {
		text = unseen.ReplaceAllString(text, "")
		visible := []string{tag.ReplaceAllString(text, "\n")}
		for _, attribute := range seen.FindAllStringSubmatch(text, -1) {
			if !strings.HasPrefix(attribute[0], "value") || strings.Contains(attribute[1], " ") { // one word is a value that a form sends
				visible = append(visible, attribute[1])
			}
		}
		for line := range strings.Lines(strings.Join(visible, "\n")) {
			if words := allowed.ReplaceAllString(html.UnescapeString(line), ""); regexp.MustCompile(`\pL`).MatchString(words) {
				t.Errorf("%s has text that is not given to t: %q", name, strings.TrimSpace(line))
			}
		}
	})
}

func TestWordsAreInTheLanguageOfTheVisitor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cookie, accept string
		want           language
	}{
		{"", "", "en"},
		{"gu", "hi", "gu"},
		{"fr", "hi-IN,en;q=0.5", "hi"},
		{"", "en-IN,gu;q=0.9", "en"},
		{"", "fr,gu;q=0.9,en;q=0.8", "gu"},
		{"", "ta,*;q=0.1", "en"},
		{"", "%%%;q=x", "en"},
	} {
		require.Equal(t, c.want, languageOf(c.cookie, c.accept), "%+v", c)
	}
	require.Equal(t, "तारीख़", language("hi").t("Date"))
	require.Equal(t, "a text without a translation", language("hi").t("a text without a translation"))
	require.Equal(t, "जमा, लाइन 2", language("hi").tf("%s, line %s", "जमा", 2))
	for _, l := range languages {
		require.NotEmpty(t, l.Name())
	}
}

// usedTexts returns the texts that templates and code translate.
func usedTexts(t *testing.T) map[string]bool {
	t.Helper()
	used := map[string]bool{}
	for _, text := range monthNames {
		used[text] = true
	}
	for _, key := range entryFields {
		used[fieldLabel(key)] = true
	}
	for _, words := range english {
		for _, text := range words {
			if text != "" { // a hint that says nothing
				used[text] = true
			}
		}
	}
	for _, s := range searches {
		used[s.name] = true
	}
	recordTexts(t, used)
	delete(used, "") // a field without a hint
	for text := range messages(t) {
		if !forPrograms[text] {
			used[text] = true
		}
	}
	given := regexp.MustCompile(`\btf? "([^"]*)"|"([^"]*)" \| t\b`)
	eachTemplate(t, func(_, text string) {
		for _, found := range given.FindAllStringSubmatch(text, -1) {
			used[found[1]+found[2]] = true
		}
	})
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			require.NoError(t, err)
			ast.Inspect(parsed, func(n ast.Node) bool { return codeTexts(n, used) })
		}
	}
	return used
}

// codeTexts adds the literals that code gives to t or tf, or shows as a title, a fault or a confirmation.
func codeTexts(n ast.Node, used map[string]bool) bool {
	var textOf func(e ast.Expr) string
	textOf = func(e ast.Expr) (text string) {
		if literal, is := e.(*ast.BasicLit); is {
			text, _ = strconv.Unquote(literal.Value) // a number is none
		} else if sum, is := e.(*ast.BinaryExpr); is && textOf(sum.X) != "" && textOf(sum.Y) != "" {
			text = textOf(sum.X) + textOf(sum.Y)
		}
		return text
	}
	add := func(expressions ...ast.Expr) {
		for _, e := range expressions {
			if text := textOf(e); text != "" {
				used[text] = true
			}
		}
	}
	nameOf := func(e ast.Node) string {
		switch e := e.(type) {
		case *ast.Ident:
			return e.Name
		case *ast.SelectorExpr:
			return e.Sel.Name
		default:
			return ""
		}
	}
	switch n := n.(type) {
	case *ast.CallExpr:
		_, isMethod := n.Fun.(*ast.SelectorExpr)
		switch name := nameOf(n.Fun); {
		case !isMethod || len(n.Args) == 0:
		case name == "t", name == "tf":
			add(n.Args[0])
		case name == "New" && len(n.Args) == 2: // fault.New
			add(n.Args[1])
		}
	case *ast.KeyValueExpr:
		switch nameOf(n.Key) {
		case "title", "Title", "about", "About", "button", "Button", "Then", "Name", "Hint", "Label", "Text", "Detail":
			add(n.Value)
		}
	case *ast.AssignStmt:
		if name := nameOf(n.Lhs[len(n.Lhs)-1]); name == "Wrong" || name == "About" {
			add(n.Rhs[len(n.Rhs)-1])
		}
	}
	return true
}

func eachTemplate(t *testing.T, visit func(name, text string)) {
	t.Helper()
	require.NoError(t, fs.WalkDir(os.DirFS("templates"), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".html" {
			return err
		}
		text, err := os.ReadFile(filepath.Join("templates", name))
		visit(name, string(text))
		return err
	}))
}

func indented(t *testing.T, words map[string]string) string {
	t.Helper()
	return indent([]byte(asJSON(t, words))) + "\n"
}

func TestEachTemplateIsParsedInEachLanguage(t *testing.T) {
	t.Parallel()
	p := &Pages{assets: map[string]asset{}}
	p.readFiles()
	for lang, views := range p.views {
		require.NotEmpty(t, views)
		for name, parsed := range views {
			require.NotPanics(t, func() { parsed() }, "%s in %s", name, lang)
		}
	}
}

// messageFolders have the messages that a page of a shop can show.
var messageFolders = []string{
	"domain/ledger", "commands/ledgercmd", "http/ledgerhttp", "domain/person", "domain/messaging/contact", "domain/messaging/contactlist",
	"domain/messaging/campaign", "domain/messaging/message", "domain/messaging/network", "commands/messagingcmd", "reactors/messagingreact",
}

// messages returns the texts of faults and warnings in the source folders, with {} in place of each value.
func messages(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, folder := range messageFolders {
		require.NoError(t, filepath.WalkDir("../../"+folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err == nil {
				ast.Inspect(file, func(n ast.Node) bool { return messagesIn(n, found) })
			}
			return err
		}))
	}
	return found
}

var verbOf = regexp.MustCompile(`%[+#.0-9]*[a-z]`)

// telling are the functions and fields of these packages that take messages.
var telling = map[string]bool{
	"New": true, "Newf": true, "Wrong": true, "warnf": true, "doubt": true, "conflictWith": true,
	"Message": true, "Detail": true, "NoAccount": true, "tooMany": true, "negative": true, "needsMetal": true,
	"errAllRefused": true, "ErrNoChannel": true, "UnsendableError": true,
}

// messagesIn adds the messages of a part of a program.
func messagesIn(n ast.Node, found map[string]bool) bool {
	add := func(name ast.Expr, values ...ast.Expr) {
		if called, is := name.(*ast.SelectorExpr); is {
			name = called.Sel
		}
		if named, is := name.(*ast.Ident); is && telling[named.Name] {
			for _, e := range values {
				if text := messageOf(e); strings.Contains(text, " ") {
					found[text] = true
				}
			}
		}
	}
	switch n := n.(type) {
	case *ast.CallExpr:
		add(n.Fun, n.Args...)
	case *ast.KeyValueExpr:
		add(n.Key, n.Value)
	case *ast.ValueSpec:
		add(n.Names[0], n.Values...)
		if texts, is := slices.Concat(n.Values, []ast.Expr{nil})[0].(*ast.CompositeLit); is && n.Names[0].Name == "meanings" {
			for _, e := range texts.Elts {
				found[messageOf(e.(*ast.KeyValueExpr).Value)] = true
			}
		}
	}
	return true
}

// messageOf returns the text of an expression, with {} for each part that is not constant.
func messageOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return strings.ReplaceAll(verbOf.ReplaceAllString(text, "{}"), "%%", "%")
	case *ast.BinaryExpr:
		return messageOf(e.X) + messageOf(e.Y)
	case *ast.CallExpr:
		if f, is := e.Fun.(*ast.SelectorExpr); is && f.Sel.Name == "Sprintf" {
			return messageOf(e.Args[0])
		}
	}
	return "{}"
}

// forPrograms are messages that no page can show, because its forms never cause them.
var forPrograms = map[string]bool{
	"The page may not show this chat": true, "The session is unknown or has expired": true,
	"expected the id of a message, as in msg_8121": true,
	"expected true or false":                       true, "differs from row_id": true, "differs from the header Bahi-Reason": true,
	"is required: the id of the row": true, "must be given once": true, "no message has the receipt's id yet": true,
	"respond-async has no dry run: nothing would be read": true, "take `counter` out to set it yourself": true,
	"the run of the campaign has ended": true, "nothing waits for an answer": true,
	"the text differs": true, "there is no such tool": true, "requires page_size": true,
}

func TestMessagesAreTranslatedWithTheirValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Books are locked through 2025-03-31":                    "31 मार्च 2025 तक की बहियाँ बंद हैं",
		"the number 4 of the line \"a; b: c\" is taken for text": "लाइन \"a; b: c\" की संख्या 4 को शब्द माना गया",
		"requires touch or fine_weight":                          "टंच % या फ़ाइन वज़न भी लिखें",
		"Validation error; Name: is required":                    "इसमें कुछ ठीक नहीं है; नाम: " + language("hi").t("is required"),
		"The network is not available (7)":                       "नेटवर्क अभी नहीं चल रहा (7)",
		"a text of others: 5":                                    "a text of others: 5",
		`"old one too" was not used`:                             `"old one too" काम में नहीं आया`,
		`phone_number "x" ` + wording.UnreadPhone: `फ़ोन नंबर "x" पढ़ा नहीं जाता: ` +
			`उसे लिखावट के रूप में रखा गया, काम में नहीं लिया`,
	} {
		require.Equal(t, want, language("hi").said(text))
		require.NotContains(t, language("gu").said(text), "{")
	}
	require.Equal(t, "Books are locked through 31 Mar 2025", language("en").said("Books are locked through 2025-03-31"))
	require.Equal(t, "requires pure weight or fine weight", language("en").said("requires pure_weight or fine_weight"))
	for text := range messages(t) {
		if !forPrograms[text] {
			text = strings.ReplaceAll(text, "{}", "7")
			require.NotEqual(t, text, language("gu").said(text))
		}
	}
}

// recordTexts adds the labels of all fields of the resources, and the words of their options.
func recordTexts(t *testing.T, used map[string]bool) {
	t.Helper()
	d, err := readSpec()
	require.NoError(t, err)
	var of func(s *schema)
	asked := func(s *schema) {
		if s != nil {
			each(s.fields("", nil, nil, 1), func(f *field) { used[f.Hint] = true })
		}
	}
	for _, kind := range kinds {
		asked(d["add-"+kind.Value+"-row"].Body)
	}
	of = func(s *schema) {
		if s == nil {
			return
		}
		for _, option := range s.Options {
			used[wordOf(option, s.Options...)] = true
		}
		of(s.Items)
		for _, p := range s.Properties {
			used[labelOf(p.Name)] = true
			of(p.schema)
		}
	}
	var each func(all []*resource)
	each = func(all []*resource) {
		for _, r := range all {
			operations := []string{r.list, r.get}
			narrow := map[string][]string{}
			if r.cells != "" {
				operations = nil // their pages show only the columns
			}
			for _, name := range append(r.columns, r.live...) {
				used[labelOf(name)] = true
			}
			for _, a := range append(r.forms(false), r.forms(true)...) {
				operations = append(operations, a.operation)
				narrow[a.operation] = a.fields
			}
			for _, id := range operations {
				o, known := d[id]
				require.True(t, known || id == "", "there is no operation %q", id)
				if id == "" {
					continue
				}
				body := o.Body
				if narrow[id] != nil {
					body = body.only("", narrow[id])
				}
				of(body)
				if r.refs == nil { // their fields have no hints
					asked(body)
				}
				if r.cells == "" && r.own == nil {
					of(o.Answer)
				}
				for _, p := range o.Params {
					if slices.Contains(r.without, p.Name) || r.cells != "" && p.In == "path" {
						continue
					}
					of(&schema{Properties: []property{p.property}})
				}
			}
			each(r.parts)
		}
	}
	one := []*resource{
		enquiryResource(), orderResource(), draftResource(), transferResource(), partiesResource(), confirmationResource(),
	}
	of(d["get-confirmation"].Answer.of("counts")) // a computed field shows them
	each(slices.Concat(operateResources(), settingsResources(), goodsResources(), one, resources))
}

// ResourcePaths returns the addresses of the lists of all resources.
func ResourcePaths() (paths []string) {
	var each func(all []*resource)
	each = func(all []*resource) {
		for _, r := range all {
			paths = append(paths, r.path())
			each(r.parts)
		}
	}
	each(resources)
	return paths
}
