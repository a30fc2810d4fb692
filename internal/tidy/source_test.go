package tidy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// sourceRules reports code that Go's own tools allow and this repository does not.
func sourceRules(fsys fs.FS, names []string) (complaints []string) {
	for _, name := range names {
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			complaints = append(complaints, err.Error())
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
		if err != nil {
			complaints = append(complaints, err.Error())
			continue
		}
		c := checker{test: strings.HasSuffix(name, "_test.go") || forTests(folderOf(name)),
			pure: slices.Contains([]string{"domain", "projections"}, top(name))}
		ast.Inspect(file, func(n ast.Node) bool {
			c.enter(n)
			if why := c.complaint(n); why != "" {
				complaints = append(complaints, fmt.Sprintf("%s: %s", files.Position(n.Pos()), why))
			}
			return true
		})
	}
	return complaints
}

// checker has the state of the check of a file.
type checker struct {
	test bool // a test, or shared test code
	pure bool // below domain or projections

	rapid        []rapidT
	transactions []ast.Node // functions with a *Tx
}

// guarded are the reads of tables that transactions may make. The transaction has loaded the lock of the books, and each row that such a
// read may miss was checked against that lock.
var guarded = []string{"EarliestRow", "Closing"}

// rapidT matches a function with a *rapid.T. Its Skip says that a step of a property test does not apply in this state, not that a test
// does not run.
type rapidT struct {
	from, to token.Pos
	name     string
}

func (c *checker) enter(n ast.Node) {
	var params *ast.FieldList
	switch n := n.(type) {
	case *ast.FuncDecl:
		params = n.Type.Params
	case *ast.FuncLit:
		params = n.Type.Params
	default:
		return
	}
	for _, field := range params.List {
		pointer, ok := field.Type.(*ast.StarExpr)
		if !ok {
			continue
		}
		if kind, ok := pointer.X.(*ast.SelectorExpr); ok && kind.Sel.Name == "Tx" && fmt.Sprint(kind.X) == "commands" {
			c.transactions = append(c.transactions, n)
		}
		if kind, ok := pointer.X.(*ast.SelectorExpr); ok && fmt.Sprint(kind.X) == "rapid" && kind.Sel.Name == "T" {
			for _, name := range field.Names {
				c.rapid = append(c.rapid, rapidT{n.Pos(), n.End(), name.Name})
			}
		}
	}
}

func (c *checker) isRapid(id *ast.Ident) bool {
	return slices.ContainsFunc(c.rapid, func(r rapidT) bool { return r.name == id.Name && r.from <= id.Pos() && id.Pos() < r.to })
}

func (c *checker) inTransaction(n ast.Node) bool {
	return slices.ContainsFunc(c.transactions, func(f ast.Node) bool { return f.Pos() <= n.Pos() && n.Pos() < f.End() })
}

func (c *checker) complaint(n ast.Node) string {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if n.Name.Name == "init" && n.Recv == nil {
			return "init runs before anybody asked; make what it makes where it is used"
		}
	case *ast.SelectorExpr:
		reads, ok := n.X.(*ast.SelectorExpr)
		if ok && slices.Contains([]string{"Reads", "Known", "Views"}, reads.Sel.Name) && !slices.Contains(guarded, n.Sel.Name) &&
			!c.test && c.inTransaction(n) {
			return n.Sel.Name + ": a transaction decides by what it loads from the log, which the store checks; a table may be late"
		}
		owner, ok := n.X.(*ast.Ident)
		switch {
		case !ok:
		case c.pure && !c.test && owner.Name == "time" && slices.Contains([]string{"Now", "Since", "Until"}, n.Sel.Name):
			return "time." + n.Sel.Name + ": a decision or a fold has no clock; the moment comes with the event or the command"
		case c.test && slices.Contains([]string{"t", "b", "f", "tb"}, owner.Name) && slices.Contains([]string{"Skip", "Skipf", "SkipNow"},
			n.Sel.Name) && !c.isRapid(owner):
			return n.Sel.Name + ": a test that does not run proves nothing"
		}
	case *ast.ImportSpec:
		if n.Name != nil && n.Name.Name != "_" && strings.HasPrefix(n.Path.Value, `"`+module+`/`) {
			return n.Name.Name + ": our packages are imported by their own names"
		}
	case *ast.Ident:
		for _, r := range renamed {
			if r.old.MatchString(n.Name) {
				return n.Name + ": write " + r.instead
			}
		}
		if c.pure && !c.test && (n.Name == "float64" || n.Name == "float32") {
			return n.Name + ": money and weights are exact decimals"
		}
	}
	return ""
}

// renamed has beginnings and ends of identifiers, each with the glossary's word.
var renamed = []struct {
	old     *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`^most[A-Z]`), "max"}, {regexp.MustCompile(`^(least|fewest)[A-Z]`), "min"},
	{regexp.MustCompile(`^usual[A-Z]`), "default"},
	{regexp.MustCompile(`^\w*[a-z]Within$`), "a timeout"}, {regexp.MustCompile(`^[a-z]\w*[a-z]Every$`), "an interval"},
	{regexp.MustCompile(`^\w*[a-z]Lasts$`), "a lifetime"}, {regexp.MustCompile(`^[aA]tOnce$|^[a-z]\w*AtOnce$`),
		"maxConcurrent, or a batch"},
	{regexp.MustCompile(`^Why$`), "Reason"}, {regexp.MustCompile(`^(new)?(rig|Rig|Town)$|^(town|townNode)$`), "fixture"},
	{regexp.MustCompile(`^frail`), "failing"},
	{regexp.MustCompile(`^(AtHand|Sparing|ReadSparing|Strayed|ErrNotProven)$`), "the glossary's name"},
}

func folderOf(name string) string {
	i := strings.LastIndex(name, "/")
	return name[:max(i, 0)]
}

func TestSourcesKeepTheRules(t *testing.T) {
	t.Parallel()
	require.Empty(t, sourceRules(repository(t)))
}

func TestBrokenRulesAreFound(t *testing.T) {
	t.Parallel()
	for text, names := range map[string][]string{
		`import "time"; var at = time.Now()`:                                 {"domain/ledger/bank/bank.go", "projections/batch.go"},
		`import "time"; var at = time.Since`:                                 {"domain/unit/unit.go"},
		`var rate float64`:                                                   {"domain/unit/unit.go", "projections/ledgerproj/books.go"},
		`func f(v any) { _ = v.([]float32) }`:                                {"projections/batch.go"},
		`func init() {}`:                                                     {"cmd/bahi/main.go", "http/api/api_test.go"},
		`import "testing"; func T(t *testing.T) { t.Skip("later") }`:         {"http/api/api_test.go", "internal/test/browsertest/page.go"},
		`func a(t *rapid.T) { t.Skip() }; func b(t *testing.T) { t.Skip() }`: {"commands/handler_test.go"},
		`import "testing"; func B(b *testing.B) { b.SkipNow() }`:             {"commands/handler_test.go"},
		`import "testing"; func F(f *testing.F) { f.Skipf("%d", 1) }`:        {"domain/unit/unit_test.go"},
		`import flows "bahi/commands/ledgercmd"`:                             {"http/ledgerhttp/routes.go"},
		`const mostRows = 1`:                                                 {"domain/unit/unit.go"},
		`const askWithin = 1`:                                                {"http/api/api.go"},
		`type refusal struct{ Why string }`:                                  {"http/api/api.go"},
		`type rig struct{}`:                                                  {"commands/node_test.go"},
		`const sendAtOnce = 8`:                                               {"reactors/workers.go"},
		`func f(tx *commands.Tx) { b.Reads.Rows() }`:                         {"commands/ledgercmd/books.go"},
		`var f = func(tx *commands.Tx) { func() { b.Known.Heard() }() }`:     {"commands/messagingcmd/receive.go"},
		`this is not Go`:                                                     {"domain/unit/unit.go"},
	} {
		for _, name := range names {
			require.Len(t, sourceRules(fstest.MapFS{name: {Data: []byte("package x\n" + text)}}, []string{name}), 1, "%s: %s", name, text)
		}
	}
	for text, names := range map[string][]string{
		`import "time"; var at = time.Now()`: {"cmd/bahi/main.go", "domain/unit/unit_test.go",
			"internal/test/projectiontest/cases.go"},
		`import "time"; var at time.Time`:                                                {"domain/unit/unit.go"},
		`func f() { b.Reads.Rows() }; func g(tx *commands.Tx) { b.Reads.EarliestRow() }`: {"commands/ledgercmd/books.go"},
		`var rate float64`:                            {"http/api/decode.go", "domain/unit/unit_test.go"},
		`type s struct{}; func (s) init() {}`:         {"cmd/bahi/main.go"},
		`// float64 and time.Now in a comment` + "\n": {"domain/unit/unit.go"},
		`func a(t *rapid.T) { t.Skip("no row") }; var b = func(t *rapid.T) { t.Skip() }`: {"commands/handler_test.go"},
		`type r struct{}; func (r) Skip() {}; var q r; var _ = q.Skip`:                   {"http/api/rate_test.go"},
	} {
		for _, name := range names {
			require.Empty(t, sourceRules(fstest.MapFS{name: {Data: []byte("package x\n" + text)}}, []string{name}), name)
		}
	}
}
