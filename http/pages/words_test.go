package pages

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"html"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
		case "title", "Title", "about", "About", "button", "Button", "because", "Then", "Name", "Label", "Text", "Detail":
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
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	require.NoError(t, e.Encode(words))
	return text.String()
}

func TestEachTemplateIsParsedInEachLanguage(t *testing.T) {
	t.Parallel()
	p := &Pages{assets: map[string]asset{}}
	require.NoError(t, p.readFiles())
	for lang, views := range p.views {
		require.NotEmpty(t, views)
		for name, parsed := range views {
			_, err := parsed()
			require.NoError(t, err, "%s in %s", name, lang)
		}
	}
}
