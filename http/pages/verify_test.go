package pages

import (
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore/tlog"
	"bahi/internal/test/audittest"
	"bahi/internal/test/browsertest"
)

// made returns the page with the current verifier, whether or not one was built into this program.
var made = sync.OnceValues(func() (*verifier, error) {
	dir, err := os.MkdirTemp("", "bahi-verifier-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if out, err := exec.Command("../../scripts/verifier.sh", dir).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	program, err := os.ReadFile(filepath.Join(dir, filepath.Base(verifierFile)))
	if err != nil {
		return nil, err
	}
	support, err := os.ReadFile(filepath.Join(dir, filepath.Base(supportFile)))
	if err != nil {
		return nil, err
	}
	return newVerifier(program, support)
})

// verifies submits the page's form and returns the result.
func verifies(p *browsertest.Page) (title, text string) {
	var before int // the page may start after the click has returned, so the earlier result is ignored
	p.Evaluate(`document.getElementById("answer").replaceChildren(), document.getElementById("verify").focus(), 0`, &before)
	p.Keys(kb.Enter) // a click misses a button that moves
	p.Until(`!document.getElementById("verify").disabled && document.querySelector("#answer h2")`)
	return p.Text("#answer h2"), p.Text("#answer")
}

func TestVerifierWorksInABrowserAndFromAFile(t *testing.T) {
	t.Parallel()
	v, err := made()
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { v.serve(w, "inline") }))
	t.Cleanup(server.Close)
	saved := audittest.File(t, "saved.html", v.page)
	l := audittest.New(t, 400)
	honest := l.Archive(t, l.Checkpoint(t, 400))
	zipped := filepath.Join(t.TempDir(), "march.tar")
	out, err := exec.CommandContext(t.Context(), "tar", "-cf", zipped, "-C", filepath.Dir(honest), "archive").CombinedOutput()
	require.NoError(t, err, string(out))
	ledgers := l.Forged(func(e []event.Stored) []event.Stored {
		for i, event := range [][3]string{{"bank-1", "BankAccountOpened", `{"name":"HDFC"}`},
			{"bankrow-1", "BankRowAdded", `{"account":1,"date":"2025-03-31","in_entries":[{"amount":12.5}]}`}} {
			e[i].Stream, e[i].Type, e[i].Data = event[0], event[1], []byte(event[2])
		}
		return e[:2]
	}).Archive(t)
	forged := l.Forged(func(e []event.Stored) []event.Stored {
		e[250].Data = []byte(`{"amount":1,"description":"<b>Bill</b>"}`)
		return e
	})
	books := audittest.Books(t)
	stated := tlog.Stated{Opening: tlog.Figures{Cash: "0.00", Fine: "0.000"}, Closing: tlog.Figures{Cash: "69.50", Fine: "0.000"}}
	file, code := books.Statement(t, stated)
	stated.Closing.Cash = "96.50"
	_, wrong := books.Statement(t, stated)
	statement := audittest.File(t, "statement.proof", file)
	bad, kept := forged.Archive(t, forged.Checkpoint(t, 400)), audittest.File(t, "kept.txt", l.Checkpoint(t, 400))

	for base, path := range map[string]string{server.URL: "/", "file://" + filepath.Dir(saved): "/saved.html"} {
		p := browsertest.Open(t, base)
		p.Go(path)
		p.Accessible()

		p.Choose("#log input", zipped)
		p.Type("#keys", l.Key.Public())
		title, text := verifies(p)
		require.Equal(t, "Verified", title, text)
		require.Contains(t, text, "The first 400 events are what was signed; 1 checkpoint agrees.")
		p.Accessible()

		p.Choose("#log input[webkitdirectory]", ledgers)
		p.Click("#books")
		_, text = verifies(p)
		require.Contains(t, text, "closing bank 1 1250 0 1")
		p.Accessible()
		p.Choose("#tables", audittest.File(t, "tables.txt", []byte("bahi-books/v1 2 as_of - known_at -\n")))
		_, text = verifies(p)
		require.Contains(t, text, "DIFFERENT. The first difference of the file from the archive: the file ends before \"workspace ")

		p.Choose("#log input[webkitdirectory]", bad)
		p.Choose("#checkpoints", kept)
		title, text = verifies(p)
		require.Equal(t, "Tampered with", title, text)
		require.Contains(t, text, "The first bad event is one of the events 1 to 400")
		if base != server.URL {
			continue // it runs the same program
		}
		p.Choose("#copy input[webkitdirectory]", honest)
		title, text = verifies(p)
		require.Equal(t, "Tampered with", title, text)
		require.Contains(t, text, "The first bad event is event 251: the events before it are those of the copy, which is proven.")
		require.Contains(t, text, "these differ: payload: amount.")

		p.Choose("#log input", audittest.File(t, "row.tlog-proof", l.Proofs(t, 77)))
		title, text = verifies(p)
		require.Equal(t, "Verified", title, text)
		require.Contains(t, text, "The event at position 78, BankRowEdited bankrow-2@15")
		require.Contains(t, text, `"description":"<b>Bill</b>"`, "it must be text, not markup")

		p.Choose("#log input", audittest.File(t, "row.txt", l.Proofs(t, 77)))
		title, text = verifies(p)
		require.Equal(t, "Verified", title, text)

		p.Go(path + "?scanned" + code) // as the camera of a telephone opens it
		p.Choose("#log input", statement)
		p.Type("#keys", books.Key.Public())
		title, text = verifies(p)
		require.Equal(t, "Verified", title, text)
		require.Contains(t, text, "Account 1, HDFC, Bank ledger, from its first row to its last: opening ₹ 0.00, closing ₹ 69.50.")
		require.Contains(t, text, "The figures on paper are those of the events up to position 4.")
		scans := func(text string) {
			printed, err := qrcode.NewQRCodeWriter().Encode(text, gozxing.BarcodeFormat_QR_CODE, 480, 480, nil)
			require.NoError(t, err)
			browsertest.Camera(t, printed)
			p.Type("#code", "")
			p.Click("#scan")
			p.Until(fmt.Sprintf(`document.getElementById("code").value == %q`, text))
		}
		scans(base + path + wrong)
		title, text = verifies(p)
		require.Equal(t, "Tampered with", title, text)
		require.Contains(t, text, "The closing cash is 96.50 by the statement on paper, and 69.50 by the events.")
		scans(base + path + code)
		title, text = verifies(p)
		require.Equal(t, "Verified", title, text)

		p.Choose("#log input", audittest.File(t, "other.zip", []byte("PKx")))
		title, text = verifies(p)
		require.Equal(t, "It could not be read", title, text)

		// Not even a script in the page could send data.
		require.Empty(t, p.Forgive())
		var reached bool
		p.Evaluate(`fetch("http://127.0.0.1:9/").then(() => true, () => false)`, &reached)
		require.False(t, reached)
		require.Contains(t, strings.Join(p.Forgive(), "\n"), "Content Security Policy")
	}
}

func TestVerifierIsPublicAndCanBeSaved(t *testing.T) {
	t.Parallel()
	v, err := newVerifier([]byte("program"), []byte("'support';"))
	require.NoError(t, err)
	for _, made := range []struct {
		page   *verifier
		err    error
		status int
	}{{v, nil, http.StatusOK}, {nil, fs.ErrNotExist, http.StatusNotFound}} {
		p := &Pages{Config: Config{Now: time.Now, Log: slog.New(slog.DiscardHandler)}, mux: http.NewServeMux(), assets: map[string]asset{}}
		p.seal, err = newSeal(make([]byte, 32))
		require.NoError(t, err)
		p.readFiles()
		p.verifyRoutes(func() (*verifier, error) { return made.page, made.err })
		server := httptest.NewServer(p)
		t.Cleanup(server.Close)
		for path, disposition := range map[string]string{"/verify": "inline",
			"/verify/bahi-verify.html": `attachment; filename="bahi-verify.html"`} {
			answer, err := http.Get(server.URL + path)
			require.NoError(t, err)
			body, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, made.status, answer.StatusCode)
			if made.err == nil {
				require.Equal(t, disposition, answer.Header.Get("Content-Disposition"))
				require.Equal(t, string(v.page), string(body))
				require.Contains(t, answer.Header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'sha256-")
				require.NotContains(t, answer.Header.Get("Content-Security-Policy"), "'self'")
			} else {
				require.Contains(t, string(body), "This program was built without the verifier&#39;s page.")
			}
		}
	}
}
