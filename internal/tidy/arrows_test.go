package tidy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "bahi"

// mayImport lists which of our folders the code of a folder may import, besides its own: STYLE.md's table. An entry that ends in /...
// includes the packages below it. cmd, internal/app and internal/cli are not in it: they wire everything.
var mayImport = map[string][]string{
	"domain":      {},
	"migrations":  {},
	"eventstore":  {"domain/event/..."},
	"commands":    {"domain/...", "eventstore/..."},
	"projections": {"domain/...", "eventstore/..."},
	"readmodels":  {"domain/..."},
	"providers":   {"domain/..."},
	"http":        {"commands/...", "readmodels/...", "domain/..."},
	"reactors":    {"domain/...", "eventstore/...", "commands/...", "readmodels/...", "projections", "providers/..."},
	"internal":    {},
	"docs":        {},
	"scripts":     {},
}

// mayAlsoImport lists packages with a right that their folder lacks.
var mayAlsoImport = map[string][]string{
	"http/pages":                      {"docs"},                            // the guides
	"commands/ledgercmd":              {"providers/ocr", "providers/jail"}, // reads a scanned page before it decides
	"commands/messagingcmd/answering": {"providers/llm"},                   // asks a model before it decides
	"http/webhooks":                   {"providers/..."},                   // verifies and decodes what a provider sends
	"http/accesshttp":                 {"providers/idp"},                   // sends browsers to the provider and back
	"readmodels/auditview":            {"eventstore/tlog"},                 // leaves, trees and proofs, which need no store
}

// areas are the parts of the system; below domain they do not know each other.
var areas = []string{"access", "ledger", "marketplace", "messaging"}

type goPackage struct {
	ImportPath, Name string
	Imports          []string
}

// arrows complains of each forbidden import.
func arrows(packages []goPackage) (complaints []string) {
	for _, p := range packages {
		from := strings.TrimPrefix(p.ImportPath, module+"/")
		for _, path := range p.Imports {
			to, ours := strings.CutPrefix(path, module+"/")
			if ours {
				if why := wrongWay(from, to); why != "" {
					complaints = append(complaints, fmt.Sprintf("%s imports %s: %s", from, to, why))
				}
			}
		}
	}
	return complaints
}

func wrongWay(from, to string) string {
	folder, target := top(from), top(to)
	switch {
	case forTests(from):
		return ""
	case forTests(to):
		return "what is for tests is imported by tests only"
	case wires(from):
		return ""
	case wires(to):
		return "only what wires imports it"
	case folder == "domain" && target == "domain":
		return betweenAreas(from, to)
	case folder == target:
		return ""
	}
	allowed, known := mayImport[folder]
	if !known {
		return "STYLE.md's table has no row for " + folder
	}
	allowed = append(slices.Clone(allowed), mayAlsoImport[from]...)
	if slices.ContainsFunc(allowed, func(a string) bool {
		tree, below := strings.CutSuffix(a, "/...")
		return to == tree || below && strings.HasPrefix(to, tree+"/")
	}) {
		return ""
	}
	return "STYLE.md's table has no arrow from " + folder + " to it"
}

// wires reports whether a package assembles the others: a program, the system behind it, a shell command.
func wires(path string) bool {
	return top(path) == "cmd" || strings.HasPrefix(path+"/", "internal/app/") || strings.HasPrefix(path+"/", "internal/cli/")
}

// betweenAreas checks imports within domain. The catalogue and the laws of the log may import all areas, an area the shared packages and
// itself, and a shared package no area.
func betweenAreas(from, to string) string {
	if from == "domain" || from == "domain/laws" {
		return ""
	}
	parts := strings.Split(to, "/")
	if len(parts) < 2 {
		return "only folders outside domain import the catalogue"
	}
	if slices.Contains(areas, parts[1]) && !strings.HasPrefix(from+"/", "domain/"+parts[1]+"/") {
		return "it belongs to the area " + parts[1]
	}
	return ""
}

func top(path string) string {
	folder, _, _ := strings.Cut(path, "/")
	return folder
}

// forTests reports whether a package is a test kit, the benchmark or the provers.
func forTests(path string) bool {
	return slices.ContainsFunc([]string{"internal/test/", "internal/prove/", "cmd/bahi-bench/", "cmd/bahi-prove/"},
		func(folder string) bool { return strings.HasPrefix(path+"/", folder) })
}

func TestImportsRunOneWay(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Name,Imports", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err)
	var packages []goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			require.NoError(t, err)
		}
		packages = append(packages, p)
	}
	require.NotEmpty(t, packages)
	require.Empty(t, arrows(packages))
	require.Empty(t, namedTwice(packages))
}

// namedTwice complains of packages that are not named as their folder, and of names that several packages have.
func namedTwice(packages []goPackage) (complaints []string) {
	seen := map[string]string{}
	for _, p := range packages {
		name := path.Base(p.ImportPath)
		if p.Name != "main" && p.Name != name {
			complaints = append(complaints, fmt.Sprintf("%s is named %s", p.ImportPath, p.Name))
		}
		if other := seen[name]; other != "" && p.Name != "main" {
			complaints = append(complaints, fmt.Sprintf("%s and %s have the same name", other, p.ImportPath))
		}
		seen[name] = p.ImportPath
	}
	return complaints
}

func TestPackagesOfOneNameAreFound(t *testing.T) {
	t.Parallel()
	twice := []goPackage{{ImportPath: "bahi/domain/ledger", Name: "ledger"}, {ImportPath: "bahi/http/ledger", Name: "ledger"},
		{ImportPath: "bahi/http/api", Name: "routes"}}
	require.Len(t, namedTwice(twice), 2)
}

func TestForbiddenImportsAreFound(t *testing.T) {
	t.Parallel()
	bad := map[string][]string{
		"domain/ledger/bank":     {"eventstore", "commands", "domain", "domain/marketplace/company", "internal/pgcluster"},
		"domain/event":           {"domain/ledger/bank"},
		"eventstore/postgres":    {"domain/fault", "domain", "commands", "projections"},
		"commands/ledgercmd":     {"projections", "readmodels/ledgerview", "http/api"},
		"projections/ledgerproj": {"commands", "readmodels/ledgerview"},
		"readmodels/ledgerview":  {"eventstore", "projections/ledgerproj", "commands"},
		"http/api":               {"eventstore", "projections", "providers/chat", "internal/pgcluster"},
		"reactors/ledgerreact":   {"projections/ledgerproj", "http/api", "migrations"},
		"http/ledgerhttp":        {"internal/test/eventtest", "internal/test/pgtest"},
		"cmd/bahi":               {"internal/test/pgtest"},
		"migrations":             {"domain"},
		"anything":               {"domain"},
		"internal/pgcluster":     {"domain/event", "internal/app", "internal/cli/events"},
	}
	for from, imports := range bad {
		for _, to := range imports {
			require.Len(t, arrows([]goPackage{sample(from, "fmt", to)}), 1, "%s imports %s", from, to)
		}
	}
	good := map[string][]string{
		"domain":                       {"domain/event", "domain/ledger/bank", "domain/messaging/bot"},
		"domain/ledger/bank":           {"domain/event", "domain/ledger/book"},
		"eventstore/postgres":          {"domain/event", "eventstore"},
		"http/webhooks":                {"providers/chat/cloud", "commands", "domain/fault", "http/api"},
		"reactors/ledgerreact":         {"projections", "commands/ledgercmd", "readmodels/ledgerview", "providers/mail"},
		"internal/test/projectiontest": {"internal/test/pgtest", "migrations", "eventstore/postgres"},
		"cmd/bahi":                     {"projections/ledgerproj", "http/api", "internal/pgcluster", "providers/mail/smtp", "migrations"},
		"internal/app":                 {"http/ledgerhttp", "projections/ledgerproj", "internal/pgcluster"},
		"internal/cli/projectionscli":  {"internal/app", "internal/cli/progress", "http/opshttp"},
		"commands/marketplacecmd":      {"domain/marketplace/company", "domain/ledger/bank", "eventstore/vault"},
	}
	for from, imports := range good {
		require.Empty(t, arrows([]goPackage{sample(from, imports...)}))
	}
}

func sample(from string, imports ...string) goPackage {
	p := goPackage{ImportPath: module + "/" + from}
	for _, to := range imports {
		if to != "fmt" {
			to = module + "/" + to
		}
		p.Imports = append(p.Imports, to)
	}
	return p
}
