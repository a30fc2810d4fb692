package http_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/actor"
	"bahi/http/api"
	"bahi/internal/app"
	"bahi/internal/test/apptest"
	"bahi/internal/test/worktest"
)

var update = flag.Bool("update", false, "rewrite openapi.json")

// listed is a line of endpoints.tsv, the specification's list.
type listed struct {
	method, path string
	who          string // public, required, decision; or area:level
	proven       bool   // a signature or token in the request replaces the credential
	status       int
	limit        string // such as auth_20_per_min, or -
	built        string // yes, or alias
}

func list(t *testing.T) (all []listed) {
	t.Helper()
	const file = "testdata/endpoints.tsv"
	text := worktest.File(t, file)
	for i, row := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		cells := strings.Split(row, "\t")
		require.Len(t, cells, 8, "%s:%d", file, i+1)
		if i == 0 {
			continue
		}
		status, err := strconv.Atoi(cells[4])
		require.NoError(t, err, "%s:%d", file, i+1)
		l := listed{method: cells[1], path: cells[2], who: cells[3], status: status, limit: cells[5], built: cells[7],
			proven: strings.Contains(row, "no bearer token")}
		all = append(all, l)
	}
	return all
}

// nameless finds the variables of a path.
var nameless = regexp.MustCompile(`\{[^}]+\}`)

// TestEndpointsAreThoseOfTheSpecification compares the registered operations with the list, with the names of path parameters.
func TestEndpointsAreThoseOfTheSpecification(t *testing.T) {
	t.Parallel()
	spec := list(t)
	require.Len(t, spec, 150)
	registered := map[string]api.Op{}
	for _, op := range apptest.Share(t).Api(apptest.OperatorKey).Operations() {
		registered[op.Method+" "+op.Path] = op
	}
	for _, l := range spec {
		name := l.method + " " + l.path
		if l.built == "alias" { // one operation, whose variable has another name
			require.True(t, slices.ContainsFunc(spec, func(other listed) bool {
				return other.built == "yes" && other.method == l.method &&
					nameless.ReplaceAllString(other.path, "{}") == nameless.ReplaceAllString(l.path, "{}")
			}), name)
			continue
		}
		op, there := registered[name]
		require.Equal(t, "yes", l.built, name)
		require.True(t, there, "%s is not built", name)
		require.Equal(t, l.status, status(op), name)
		require.Equal(t, l.who == "public" || l.proven, op.Public, name)
		if l.limit != "-" {
			limit := api.DefaultLimits()[op.Limit]
			require.Equal(t, l.limit, fmt.Sprintf("%s_%d_per_min", op.Limit, limit.Requests), name)
			require.Equal(t, time.Minute, limit.Per, name)
		}
		if area, level, ok := strings.Cut(l.who, ":"); ok {
			require.Equal(t, actor.Area(area), op.Area, name)
			wanted := actor.Read
			if op.Method != http.MethodGet {
				wanted = actor.Write
			}
			require.Equal(t, string(wanted), level, name)
		}
	}
}

func status(op api.Op) int {
	switch {
	case op.Status != 0:
		return op.Status
	case op.Method == http.MethodPost:
		return 201
	case op.Method == http.MethodDelete:
		return 204
	default:
		return 200
	}
}

// TestDocumentIsTheCommittedOne shows every change of the interface. `make generate` writes the file.
func TestDocumentIsTheCommittedOne(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	a := o.Anonymous().GET("/openapi.json").Status(200)
	require.Equal(t, "application/openapi+json", a.Header("Content-Type"))
	text, err := completed(o.Api(apptest.OperatorKey))
	require.NoError(t, err)
	var pretty bytes.Buffer
	require.NoError(t, json.Indent(&pretty, text, "", "  "))
	pretty.WriteByte('\n')
	written := strings.Replace(pretty.String(), `"version": "`+app.Version+`"`, `"version": "development"`, 1)
	const file = "testdata/openapi.json"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(written), 0o644))
	} else {
		require.JSONEq(t, string(text), a.Text)
	}
	committed := worktest.File(t, file)
	require.True(t, string(committed) == written, "run make generate; git diff http/%s shows what changed", file) //nolint:testifylint // long

	document := readDocument(t)
	require.Equal(t, "3.1.0", document.OpenAPI)
	for _, op := range o.Api(apptest.OperatorKey).Operations() {
		d := document.Paths[op.Path][strings.ToLower(op.Method)]
		require.Equal(t, op.ID, d.OperationID)
		require.Contains(t, d.Responses, strconv.Itoa(status(op)))
		for kind, c := range d.Responses[strconv.Itoa(status(op))].Content {
			require.NotEmpty(t, c.Schema, "%s: %s", op.ID, kind)
		}
	}
}
