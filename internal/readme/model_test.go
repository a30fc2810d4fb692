package readme

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/llmtest"
	"bahi/internal/test/worktest"
)

func TestTheSessionWithAModelCallsAnEndpoint(t *testing.T) {
	t.Parallel()
	model := llmtest.New(t, llmtest.Calls(llmtest.Call{ID: "1", Name: "wh_1_stock", Arguments: `{"item":"payal"}`}),
		llmtest.Says("We have 7 payal."))
	endpoint := worktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method+" "+r.URL.String() != "GET /stock/payal?unit=pieces" || r.Header.Get("X-Key") != "hunter2" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = io.WriteString(w, `{"item": "payal", "stock": 7}`)
	}))
	address := strings.TrimPrefix(endpoint.URL, "http://")
	with := apptest.Settings(t, apptest.Database(t))
	with.Outside.ModelURL, with.Outside.ModelName, with.Outside.FetchAllow = model.URL, "m", []string{address}
	o := apptest.StartAs(t, with)
	checkout := t.TempDir()
	require.NoError(t, os.Symlink(with.Data, filepath.Join(checkout, "data")))
	require.NoError(t, os.MkdirAll(filepath.Join(with.Data, "keys"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(with.Data, "keys", "admin.key"), []byte(apptest.OperatorKey), 0o600))

	text := worktest.File(t, "../../docs/bots-webhooks.md")
	sh := openShell(t, checkout)
	for _, s := range steps(string(text)) {
		got := sh.run(strings.NewReplacer("localhost:8080", strings.TrimPrefix(o.URL, "http://"), "localhost:9000", address).Replace(s.command))
		require.Regexp(t, pattern(s.shown), got, s.command)
	}
	asked := model.Asked()
	require.Len(t, asked, 2)
	last := asked[1].Messages[len(asked[1].Messages)-1]
	require.Contains(t, last.Text(), `{\"item\": \"payal\", \"stock\": 7}`)
	for _, m := range asked[0].Messages {
		require.NotContains(t, m.Text(), "hunter2")
	}
}
