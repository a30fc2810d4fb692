package cli_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/unit"
	"bahi/internal/cli/demo"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

const little = 100 // events

// records returns the content of a workspace, without ids and times, in a fixed order.
func records(t *testing.T, c *apitest.Client) (all []string) {
	t.Helper()
	var take func(where string, v any)
	take = func(where string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, value := range v {
				take(where+" "+name, value)
			}
		case []any:
			for _, value := range v {
				take(where, value)
			}
		case json.Number, string:
			all = append(all, where+" "+texts(v))
		}
	}
	read := func(path string) (v any) {
		require.NoError(t, json.Unmarshal([]byte(c.GET(path).Status(200).Text), &v))
		return v
	}
	for _, ledger := range []string{"bank", "bullion", "client", "karigar", "polisher"} {
		accounts, _ := read("/" + ledger + "s").([]any)
		require.NotEmpty(t, accounts)
		for _, a := range accounts {
			var rows []struct {
				Date string            `json:"date"`
				In   []json.RawMessage `json:"in_entries"`
				Out  []json.RawMessage `json:"out_entries"`
			}
			account, _ := a.(map[string]any)
			id, _ := account["id"].(float64)
			require.NoError(t, json.Unmarshal([]byte(c.GET("/"+ledger+"-ledger/"+texts(id)).Status(200).Text), &rows))
			require.NotEmpty(t, rows)
			for _, r := range rows {
				line, err := json.Marshal(r)
				require.NoError(t, err)
				all = append(all, ledger+" "+texts(account["name"])+" "+string(line))
			}
		}
	}
	for path, fields := range map[string][]string{
		"/client-orders?page_size=100": {"slip_number", "date", "item_name", "weight", "making_charge"},
		"/takadas":                     {"date", "item_name", "weight"},
		"/order-drafts":                {"raw_text", "item_name", "weight"},
		"/api/v1/enquiries?limit=100":  {"user_name", "user_email", "message", "quantity", "status"},
		"/api/contacts?limit=100":      {"name", "phone", "optIn"},
		"/api/campaigns":               {"name"},
		"/api/bots?scope=workspace":    {"name", "fileCount"},
	} {
		from := len(all)
		take(path, read(path))
		wanted := regexp.MustCompile(` (` + strings.Join(fields, "|") + `) `)
		all = append(all[:from], slices.DeleteFunc(slices.Clone(all[from:]), func(s string) bool {
			return !wanted.MatchString(s) || strings.Contains(s, " notifications ") // jobs write these later
		})...)
		require.Greater(t, len(all), from, path)
	}
	slices.Sort(all)
	return all
}

func texts(v any) string {
	text, _ := json.Marshal(v) //nolint:errchkjson // of plain values
	return string(text)
}

// filled fills a workspace, and returns a client of it.
func filled(t *testing.T, o *apptest.Server, seed uint64, email string) *apitest.Client {
	t.Helper()
	until, err := unit.ParseDate("2026-09-30")
	require.NoError(t, err)
	var last, all int64
	f, err := demo.Fill(t.Context(), o.Sys, demo.Plan{Events: little, Seed: seed, Until: until, Email: email, Password: "kundan and meena"},
		func(done, total int64) {
			require.LessOrEqual(t, last, done)
			last, all = done, total
		})
	require.NoError(t, err)
	require.Equal(t, all, last, "the bar ends at its total")
	return o.Bearer(f.Key)
}

func TestTheSameSeedGivesTheSameRecords(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	once := records(t, filled(t, o, 7, o.Address("once")))
	require.Equal(t, once, records(t, filled(t, o, 7, o.Address("again"))))
}

func TestTheDemoSaysWhereToLook(t *testing.T) {
	t.Parallel()
	with := apptest.Settings(t, apptest.Database(t))
	run := func(args ...string) (string, string, int) {
		cmd := apptest.Command(t, with.Data, append([]string{"demo"}, args...)...)
		cmd.Env = append(cmd.Env, "DATABASE_URL="+with.DatabaseURL, "BAHI_MASTER_KEY="+with.MasterKey)
		return apptest.Execute(t, cmd)
	}
	out, wrong, status := run("--events", "200", "--until", "2026-09-30") // also without a server
	require.Zero(t, status, wrong)
	o := apptest.StartAs(t, with)
	for _, path := range regexp.MustCompile(`(?m)http://127.0.0.1:8080(/\S+)$`).FindAllStringSubmatch(out, -1) {
		require.Less(t, o.Anonymous().GET(path[1]).Response.StatusCode, 400, path[1])
	}
	require.Regexp(t, `^\d+ events in \d+s, \d+ a second\.\n`, out)
	signed := regexp.MustCompile(`Password +(\S+)`).FindStringSubmatch(out)
	require.Len(t, signed, 2)
	require.NotEmpty(t, o.SignIn("demo@example.org", signed[1]).Access)
	key := regexp.MustCompile(`API key +(\S+)`).FindStringSubmatch(out)
	o.Bearer(key[1]).GET("/books/summary?as_of=2026-09-30").Status(200).Contains(`"accounts":12`)

	_, wrong, status = run("--events", "200")
	require.Equal(t, 1, status)
	require.Contains(t, wrong, "demo@example.org")
	_, wrong, status = run("--until", "yesterday", "--email", "other@example.org")
	require.Equal(t, 1, status)
	require.Contains(t, wrong, "--until")
	_, wrong, status = run("--chat-base-url", "https://chat.example.org", "--email", "other@example.org")
	require.Equal(t, 1, status)
	require.Contains(t, wrong, "real networks")
}
