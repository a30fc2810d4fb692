package pages

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// messageFolders have the messages that a page of a shop can show.
var messageFolders = []string{
	"domain/ledger", "commands/ledgercmd", "http/ledgerhttp", "domain/person", "domain/messaging/contact", "domain/messaging/contactlist",
	"domain/messaging/campaign", "domain/messaging/message", "commands/messagingcmd",
}

// messages returns the messages of faults and warnings of the folders. {} stands for a value in them.
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
	"the text differs": true, "there is no such tool": true, "requires page_size": true,
}

func TestMessagesAreTranslatedWithTheirValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Books are locked through 2025-03-31":                    "31 मार्च 2025 तक की बहियाँ बंद हैं",
		"the number 4 of the line \"a; b: c\" is taken for text": "लाइन \"a; b: c\" की संख्या 4 को शब्द माना गया",
		"requires touch or fine_weight":                          "टंच % या फ़ाइन वज़न भी लिखें",
		"Validation error; Name: is required":                    "इसमें कुछ ठीक नहीं है; नाम: " + language("hi").t("is required"),
		"a text of others: 5":                                    "a text of others: 5",
	} {
		require.Equal(t, want, language("hi").said(text))
		require.NotContains(t, language("gu").said(text), "{")
	}
	require.Equal(t, "Books are locked through 31 Mar 2025", language("en").said("Books are locked through 2025-03-31"))
	for text := range messages(t) {
		if !forPrograms[text] {
			text = strings.ReplaceAll(text, "{}", "7")
			require.NotEqual(t, text, language("gu").said(text))
		}
	}
}
