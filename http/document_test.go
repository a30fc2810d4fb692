package http_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bahi/internal/test/worktest"

	"github.com/stretchr/testify/require"
)

// committed is the document in testdata of the interface.
type committed struct {
	OpenAPI    string
	Servers    []struct{ URL string }
	Components struct {
		Responses map[string]any
		Schemas   map[string]objectSchema
	}
	Paths map[string]map[string]struct {
		OperationID, Summary, Description string

		Permission  string `json:"x-permission"`
		Security    *[]map[string][]string
		RequestBody documentBody
		Responses   map[string]struct {
			Ref string `json:"$ref"`
			documentBody
		}
	}
}

type objectSchema struct {
	Ref        string `json:"$ref"`
	OneOf      []any
	Type       any
	Required   []string
	Properties map[string]struct{ Type any }
}

type documentBody struct {
	Content map[string]struct {
		Example json.RawMessage
		Schema  objectSchema
	}
}

func readDocument(t *testing.T) (d committed) {
	t.Helper()
	text := worktest.File(t, "testdata/openapi.json")
	require.NoError(t, json.Unmarshal(text, &d))
	return d
}

// Redocly's recommended rules for OpenAPI, those that were broken once.
func TestTheDocumentKeepsTheLintersRules(t *testing.T) {
	t.Parallel()
	document := readDocument(t)
	require.NotEmpty(t, document.Servers, "no-empty-servers")
	text := worktest.File(t, "testdata/openapi.json")
	for _, m := range regexp.MustCompile(`"\$ref": "#/components/schemas/([^"]+)"`).FindAllStringSubmatch(string(text), -1) {
		require.Contains(t, document.Components.Schemas, m[1], "no-unresolved-refs")
	}
	seen, used := map[string]bool{}, map[string]bool{}
	for path, operations := range document.Paths {
		for _, op := range operations {
			require.NotNil(t, op.Security, "security-defined: %s of %s", op.OperationID, path)
			require.False(t, seen[op.OperationID], "operation-operationId-unique: %s", op.OperationID)
			seen[op.OperationID] = true
			require.NotEmpty(t, op.Summary, "operation-summary: %s", op.OperationID)
			refusals := 0
			for status, response := range op.Responses {
				name, refers := strings.CutPrefix(response.Ref, "#/components/responses/")
				if status[0] == '4' || status[0] == '5' {
					require.True(t, refers, "a refusal is a component: %s of %s", status, op.OperationID)
				}
				if refers {
					require.Contains(t, document.Components.Responses, name, "no-unresolved-refs: %s", op.OperationID)
					used[name] = true
				}
				if status[0] == '4' {
					refusals++
				}
			}
			require.NotZero(t, refusals, "operation-4xx-response: %s", op.OperationID)
		}
	}
	for name := range document.Components.Responses {
		require.True(t, used[name], "no-unused-components: %s", name)
	}
}

// A generated client then has numbers and lists, without a case for null.
func TestIDsAndListsOfTheDocumentAreNeverNull(t *testing.T) {
	t.Parallel()
	document := readDocument(t)
	list := []any{"array", "null"}
	for name, s := range document.Components.Schemas {
		require.NotContains(t, fmt.Sprint(s.Properties["id"].Type), "null", name)
		for property, one := range s.Properties { // of requests too, where a PATCH accepts null for []
			require.NotEqual(t, list, one.Type, "%s of %s", property, name)
		}
	}
	for path, operations := range document.Paths {
		for _, op := range operations {
			for _, response := range op.Responses {
				require.NotEqual(t, list, response.Content["application/json"].Schema.Type, path)
			}
		}
	}
	row := document.Components.Schemas["LedgerBankRow"]
	require.Equal(t, "integer", row.Properties["id"].Type)
	require.Contains(t, row.Required, "id", "though a dry run's answer has none")
}

func TestEveryOperationHasAnExample(t *testing.T) {
	t.Parallel()
	document := readDocument(t)
	const kind = "application/json"
	for _, operations := range document.Paths {
		for _, op := range operations {
			if of, takes := op.RequestBody.Content[kind]; takes {
				require.NotEmpty(t, of.Example, "%s has no example of a request", op.OperationID)
			}
			for status, answer := range op.Responses {
				if of, answers := answer.Content[kind]; answers && status[0] == '2' {
					require.NotEmpty(t, of.Example, "%s has no example of an answer: a sample that is refused needs a scene in scenes_test.go",
						op.OperationID)
				}
			}
		}
	}
}

var (
	inCode  = regexp.MustCompile(`Code: *"([a-z_]+)"|\{fault\.[A-Z]\w+, "([a-z_]+)"\}`)
	claimed = regexp.MustCompile(`Name: "([a-z_]+)", Taken:`)
)

func TestTheDocumentNamesEveryCodeOfARefusal(t *testing.T) {
	t.Parallel()
	document := worktest.File(t, "testdata/openapi.json")
	named := func(code string) bool {
		return regexp.MustCompile("`code`: ([a-z_]+, )*" + code + `[,"]`).Match(document)
	}
	found := 0
	for _, layer := range []string{"domain", "commands", "http", "reactors"} {
		require.NoError(t, filepath.WalkDir(filepath.Join("..", layer), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range inCode.FindAllStringSubmatch(string(text), -1) {
				found++
				require.True(t, named(m[1]+m[2]), "%s: %s", path, m[1]+m[2])
			}
			for _, m := range claimed.FindAllStringSubmatch(string(text), -1) {
				found++
				require.True(t, named(m[1]+"_taken"), "%s: %s", path, m[1])
			}
			return err
		}))
	}
	require.Greater(t, found, 20)
}

// ofMembers are public operations that do less for a caller without the permission.
var ofMembers = []string{"add-contact", "edit-contact", "get-contact"}

// TestADocumentedOperationNamesItsPermission is about every operation that refuses some who have signed in: see
// aKeyWithoutTheAreaOpensNothing.
func TestADocumentedOperationNamesItsPermission(t *testing.T) {
	t.Parallel()
	document := readDocument(t)
	without := slices.DeleteFunc(slices.Concat(forEverybody, ofTheCallers), func(id string) bool { return slices.Contains(ofMembers, id) })
	for _, operations := range document.Paths {
		for _, op := range operations {
			if slices.Contains(without, op.OperationID) {
				require.Empty(t, op.Permission, op.OperationID)
			} else {
				require.Regexp(t, `^(operator|[a-z]+:(read|write))$`, op.Permission, op.OperationID)
			}
		}
	}
}

// wordy are verbs that a summary avoids: the glossary has a plain one for each.
var wordy = []string{"Make", "Let", "Tell", "Give", "Take", "Have", "Get", "Show", "How", "What", "Follow", "Watch", "Draw"}

func TestSummariesOfTheDocumentAreImperativeSentences(t *testing.T) {
	t.Parallel()
	document := readDocument(t)
	sentence := regexp.MustCompile(`^[A-Z][a-z]+ \S.*[^.!?;:]$`)
	for _, operations := range document.Paths {
		for _, op := range operations {
			require.Regexp(t, sentence, op.Summary, op.OperationID)
			require.LessOrEqual(t, len(op.Summary), 90, op.OperationID)
			require.NotContains(t, op.Summary, ";", "%s: a further sentence is the description", op.OperationID)
			verb, _, _ := strings.Cut(op.Summary, " ")
			require.NotContains(t, wordy, verb, "%s: %s", op.OperationID, op.Summary)
			if op.Description != "" {
				require.Regexp(t, `^[A-Zdfn].*\.$`, op.Description, op.OperationID) // or a parameter or a value
			}
		}
	}
}
