package cli_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

func TestTheProgramExplainsItself(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	out, _, status := apptest.Execute(t, apptest.Command(t, data, "version"))
	require.Equal(t, 0, status)
	require.Equal(t, "bahi v0-test\n", out)
	for _, args := range []string{"--help", "serve --help", "projections rebuild -h"} {
		out, _, status := apptest.Execute(t, apptest.Command(t, data, strings.Fields(args)...))
		require.Equal(t, 0, status, args)
		for line := range strings.SplitSeq(out, "\n") {
			require.LessOrEqual(t, len(line), 120, "%s: %s", args, line)
		}
	}
	for _, args := range []string{"audit verify", "demo", "gateway", "user create", "health"} {
		out, _, _ = apptest.Execute(t, apptest.Command(t, data, append(strings.Fields(args), "--help")...))
		require.NotContains(t, out, "DATABASE_URL", "%s: the command's own options only", args)
		require.NotContains(t, out, "LLM_BASE_URL", args)
		require.Contains(t, out, "Flags:", args)
	}
	for _, args := range []string{"", "nonsense", "events show", "events show 1 --stream bank-1", "apikey create", "apikey revoke x",
		"doctor nonsense", "projections rebuild nonsense", "serve --addr"} {
		_, wrong, status := apptest.Execute(t, apptest.Command(t, data, strings.Fields(args)...))
		require.NotEqual(t, 0, status, args)
		require.Contains(t, wrong, "bahi: ", args)
	}
}

func TestEventsAreShownFromTheShell(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	row := apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "12.5"))
	out := o.Done(t, "events", "tail", "-n", "1")
	require.Regexp(t, fmt.Sprintf(`^ +%d  \S+  BankRowAdded +bankrow-%d@0  \{.*12\.5.*\}\n$`, o.Head(), row.ID), out)
	out = o.Done(t, "events", "tail")
	require.Len(t, slices.Collect(o.Events(0)), strings.Count(out, "\n"))
	byPosition := o.Done(t, "events", "show", strconv.FormatInt(o.Head(), 10))
	byStream := o.Done(t, "events", "show", "--stream", fmt.Sprintf("bankrow-%d", row.ID))
	require.Equal(t, byPosition, byStream)
	for _, word := range []string{fmt.Sprintf("position  %d", o.Head()), "BankRowAdded", `"amount": 12.5`, `"workspace": "` + apptest.Home} {
		require.Contains(t, byStream, word)
	}
	o.Denied(t, fmt.Sprintf("bahi: the log has no event at position %d", o.Head()+1), "events", "show", strconv.FormatInt(o.Head()+1, 10))
	o.Denied(t, "bahi: there is no stream bank-999", "events", "show", "--stream", "bank-999")
}

func TestKeysAreMadeListedAndRevokedFromTheShell(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	out := o.Done(t, "apikey", "create", "--name", "Till", "--workspace", o.Home)
	require.Regexp(t, `^bahi_\S+\n$`, out, "the key alone, for a script")
	till := o.Anonymous().With("Authorization", "Bearer "+strings.TrimSpace(out))
	till.GET("/banks").Status(200)
	till.POST("/bank", `{"name":"HDFC"}`).Status(201)
	till.GET("/api/v1/api-keys").Status(403)

	list := o.Done(t, "apikey", "list", "--workspace", o.Home)
	require.Contains(t, list, `{"ledger":"write"`)
	id := regexp.MustCompile(`(?m)^(\S{36})  Till`).FindStringSubmatch(list)
	require.NotNil(t, id, list)
	elsewhere := o.Done(t, "apikey", "list")
	require.NotContains(t, elsewhere, "Till")

	o.Denied(t, "bahi: API key not found", "apikey", "revoke", id[1]) // the key is another workspace's
	o.Done(t, "apikey", "revoke", id[1], "--workspace", o.Home)
	require.Eventually(t, func() bool { return till.GET("/banks").Response.StatusCode == http.StatusUnauthorized }, time.Minute,
		5*time.Millisecond,
		"the server refuses the revoked key")
}
