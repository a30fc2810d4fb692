package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jung-kurt/gofpdf"

	"bahi/internal/bench"
	"bahi/internal/ocrtools"
	"bahi/projections"
)

const (
	pagesOf       = 5000 // rows of --rows for one page of the PDF, and
	talksOf       = 1000 // for one conversation
	pageLines     = 45
	answerers     = 16
	thinking      = 2 * time.Second // of the slow model
	repliedWithin = 10 * time.Minute
	replySeen     = 10 * time.Millisecond // a look more often would take the processor from what is measured
	botApp        = "BenchApp"
	botQuestion   = "Are you open on Sunday?"
)

// bots measures how bots learn and answer.
func (b *benchmark) bots(ctx context.Context) error {
	for _, of := range []struct {
		name string
		run  func(context.Context, *talkers) error
		model
	}{{"ingest", b.ingest, model{}}, {"answer", b.answers, model{}}, {"overhead", b.overhead, model{there: true}}, {"talks", b.talks, model{there: true, thinks: thinking}}} {
		if !b.wanted(of.name) {
			continue
		}
		if err := b.withBot(ctx, of.name, of.model, func(t *talkers) error { return of.run(ctx, t) }); err != nil {
			return err
		}
	}
	return nil
}

// model is a language model that always says the same, after some time.
type model struct {
	there  bool
	thinks time.Duration
	url    string
	asked  *atomic.Int64
	took   *atomic.Int64 // in nanoseconds, all answers together
}

// serve starts the model, which ends with stop.
func (m *model) serve(ctx context.Context) (stop func(), err error) {
	m.asked, m.took = &atomic.Int64{}, &atomic.Int64{}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m.url = "http://" + listener.Addr().String() + "/v1"
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		began := time.Now()
		m.asked.Add(1)
		time.Sleep(m.thinks)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"choices":[{"message":{"role":"assistant","content":"Yes, from 11 to 4 [1]."},"finish_reason":"stop"}],"usage":{"total_tokens":42}}`)
		m.took.Add(int64(time.Since(began)))
	})}
	go server.Serve(listener) //nolint:errcheck // it ends with Close
	return func() { _ = server.Close() }, nil
}

// talkers are a server with a bot that knows the FAQ, and who talks to it.
type talkers struct {
	*server
	model

	conn  *pgx.Conn
	bot   int64
	wrote int // messages so far, each of another person
}

// withBot measures a server on a new database with a bot on a sandbox channel.
func (b *benchmark) withBot(ctx context.Context, name string, m model, measure func(*talkers) error) (err error) {
	url, err := b.database(ctx, name)
	if err != nil {
		return err
	}
	settings := []string{"GATEWAY_WEBHOOK_TOKEN=" + chatToken}
	if m.there {
		end, err := m.serve(ctx)
		if err != nil {
			return err
		}
		defer end()
		settings = append(settings, "LLM_BASE_URL="+m.url, "LLM_MODEL=bench")
	}
	b.sayf("starting a server")
	s, err := b.serve(ctx, url, b.process(url, settings...))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	t := &talkers{server: s, model: m}
	if t.conn, err = pgx.Connect(ctx, url); err != nil {
		return err
	}
	defer t.conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it only read
	own := *s
	own.key = operatorKey
	channel, err := own.post(ctx, "/api/channels", `{"name":"Questions","type":"chat","settings":{"dialect":"envelope_v2","appName":"`+botApp+`"}}`)
	if err != nil {
		return err
	}
	if t.bot, err = own.post(ctx, "/api/bots", fmt.Sprintf(`{"name":"Asha","description":"Answers questions of customers","systemPrompt":"Be brief.","channelIds":[%d]}`, channel)); err != nil {
		return err
	}
	if err := t.teach(ctx, "faq.txt", []byte("Opening hours\n\nOn Sunday we are open from 11 to 4.\n\nReturns\n\nUnworn jewellery may be returned within 15 days.")); err != nil {
		return err
	}
	return measure(t)
}

// teach gives the bot a file and waits until it is read.
func (t *talkers) teach(ctx context.Context, name string, data []byte) error {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", name)
	if err == nil {
		_, err = part.Write(data)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://%s/api/bots/%d/files", t.address, t.bot), &form)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+operatorKey)
	req.Header.Set("Content-Type", w.FormDataContentType())
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	var file struct{ ID int64 }
	if err := json.NewDecoder(answer.Body).Decode(&file); err != nil || file.ID == 0 {
		return fmt.Errorf("giving the bot a file was answered with %s: %w", answer.Status, err)
	}
	var state string
	for state != "ready" && err == nil {
		if err = t.wait(ctx, replySeen, t.conn.QueryRow(ctx, `select status from `+t.tables(ctx, "bots")+`.source where id = $1`, file.ID).Scan(&state)); state == "failed" {
			return errors.New("the bot could not read its file")
		}
	}
	return err
}

// tables returns the schema of a projection.
func (t *talkers) tables(ctx context.Context, name string) string {
	var generation int
	_ = t.conn.QueryRow(ctx, `select generation from projection.generation where live and name = $1`, name).Scan(&generation) // 0 fails in the statement
	return projections.SchemaName(name, generation)
}

// wait waits a little, unless there was an error.
func (*talkers) wait(ctx context.Context, little time.Duration, err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(little):
		return err
	}
}

// ingest measures a PDF from its upload until the bot knows it.
func (b *benchmark) ingest(ctx context.Context, t *talkers) error {
	pages := max(4, b.Rows/pagesOf)
	file, err := textPDF(pages)
	if err != nil {
		return err
	}
	tools, err := ocrtools.Find(ctx, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	name := filepath.Join(b.dir, "pages.pdf")
	if err := os.WriteFile(name, file, 0o600); err != nil {
		return err
	}
	timed := func(do func() error) func() (bench.Sample, error) {
		return func() (bench.Sample, error) {
			began := time.Now()
			err := do()
			took := time.Since(began)
			return bench.SampleOf([]time.Duration{took}, took), err
		}
	}
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", t.pid), []byte("5"), 0); err != nil { // forget the most that it had, proc(5)
		return err
	}
	idle := mostMemory(t.pid)
	limit, found, err := b.interleave(ctx, fmt.Sprintf("a PDF of %d pages", pages), timed(func() error {
		cmd := exec.CommandContext(ctx, tools.PDFToText, "-enc", "UTF-8", "-q", name, "-") //nolint:gosec // the machine's own
		cmd.Env = append(os.Environ(), tools.Env...)
		_, err := cmd.Output()
		return err
	}), timed(func() error { return t.teach(ctx, "pages.pdf", file) }))
	if err != nil {
		return err
	}
	b.conclude(bench.Figure{Name: "ingest", Title: fmt.Sprintf("PDF of %d pages, from its upload until a bot knows it", pages), Unit: "ms", Goal: bench.AtMost(1.5)},
		found[0].By(bench.P50), "pdftotext", limit.By(bench.P50))
	b.conclude(bench.Figure{Name: "ingest_memory", Title: "the same: memory of the server", Unit: "MB", Goal: bench.AtMost(memoryBound)}, []float64{mostMemory(t.pid) - idle}, "", nil)
	return nil
}

// textPDF returns a PDF with pages full of text.
func textPDF(pages int) ([]byte, error) {
	random := rand.New(rand.NewPCG(seed, 9)) //nolint:gosec // the same text in each run
	pdf := gofpdf.New("P", "mm", "A4", "")
	pdf.SetFont("Helvetica", "", 11)
	for range pages {
		pdf.AddPage()
		for line := range pageLines {
			text := ""
			for range 12 {
				text += benchWord(random) + " "
			}
			pdf.Cell(0, 6, text)
			pdf.Ln(6)
			if line%9 == 8 {
				pdf.Ln(4)
			}
		}
	}
	var out bytes.Buffer
	err := pdf.Output(&out)
	return out.Bytes(), err
}

// benchWord returns a word, a few of which are frequent.
func benchWord(random *rand.Rand) string {
	const syllables, words = "ba de ki lo mu na pe ri so tu va ze", 20_000
	parts := strings.Fields(syllables)
	n := random.IntN(1 + random.IntN(1+random.IntN(words)))
	word := parts[n%len(parts)]
	for n /= len(parts); n > 0; n /= len(parts) {
		word += parts[n%len(parts)]
	}
	return word
}

// ask plays a question of another person each time, and returns its network's id.
func (t *talkers) asks(count int) (ids []string, calls [][]byte) {
	for range count {
		t.wrote++
		id := fmt.Sprintf("ask-%d", t.wrote)
		ids = append(ids, id)
		calls = append(calls, bench.Request("POST", "/api/webhooks/gateway/incoming_msg", "", fmt.Sprintf(
			`{"app":%q,"timestamp":%d,"version":2,"type":"message","payload":{"id":%q,"source":"9198%07d7","type":"text","payload":{"text":%q},"sender":{"name":"Ravi"}}}`,
			botApp, time.Now().UnixMilli(), id, t.wrote, botQuestion), "X-Gateway-Token: "+chatToken))
	}
	return ids, calls
}

// replied waits until all messages are answered, and returns when each was seen to be.
func (t *talkers) replied(ctx context.Context, ids []string) (seen map[string]time.Time, err error) {
	seen = map[string]time.Time{}
	sql := `select m.provider_id from ` + t.tables(ctx, "messages") + `.message m join ` + t.tables(ctx, "bot_answers") + `.answer a on a.id = m.id::text
		where m.provider_id = any($1) and a.reply <> 0 and not a.handed_over`
	for began := time.Now(); len(ids) > 0; {
		if time.Since(began) > repliedWithin {
			return nil, fmt.Errorf("%d messages have no answer", len(ids))
		}
		// Asks for the newest messages, as readers do: while nobody reads, they are gathered.
		if _, err := t.conn.Exec(ctx, `select pg_notify('bahi_asks', 'ask messages ' || log.head())`); err != nil {
			return nil, err
		}
		rows, _ := t.conn.Query(ctx, sql, ids)
		done, err := pgx.CollectRows(rows, pgx.RowTo[string])
		now := time.Now()
		for _, id := range done {
			seen[id] = now
		}
		ids = slices.DeleteFunc(ids, func(id string) bool { return !seen[id].IsZero() })
		if err := t.wait(ctx, replySeen, err); err != nil {
			return nil, err
		}
	}
	return seen, nil
}

// answers measures answers without a model: what is tried, and from a webhook until the answer is sent.
func (b *benchmark) answers(ctx context.Context, t *talkers) error {
	try := bench.Load{Address: t.address, Clients: answerers, For: b.Round, Requests: [][]byte{t.trial()}}
	talk := func() (bench.Sample, error) {
		var took []time.Duration
		began := time.Now()
		for len(took) == 0 || time.Since(began) < b.Round {
			ids, calls := t.asks(answerers)
			sent := time.Now()
			var next atomic.Int32
			if err := atOnce(answerers, func() error { return t.succeed(ctx, calls[next.Add(1)-1]) }); err != nil {
				return bench.Sample{}, err
			}
			seen, err := t.replied(ctx, ids)
			if err != nil {
				return bench.Sample{}, err
			}
			for _, at := range seen {
				took = append(took, at.Sub(sent))
			}
		}
		return bench.SampleOf(took, time.Since(began)), nil
	}
	if _, err := talk(); err != nil { // warm up
		return err
	}
	tried, found, err := b.interleave(ctx, "answers without a model", func() (bench.Sample, error) { return try.Run(ctx) }, talk)
	if err != nil {
		return err
	}
	b.conclude(bench.Figure{Name: "answer_p99", Title: "answers without a model, 16 conversations at once, from the webhook to the outbox: p99", Unit: "ms", Goal: bench.AtMost(100)},
		found[0].By(bench.P99), "", nil)
	b.conclude(bench.Figure{Name: "answer_tried_p99", Title: "the same, where a bot is tried: p99", Unit: "ms", Goal: bench.AtMost(100)}, tried.By(bench.P99), "", nil)
	return nil
}

func (t *talkers) trial() []byte {
	return bench.Request("POST", fmt.Sprintf("/api/bots/%d/try", t.bot), operatorKey, `{"text":"`+botQuestion+`"}`)
}

// succeed sends a request that must succeed.
func (t *talkers) succeed(ctx context.Context, request []byte) error {
	a, err := t.do(ctx, request)
	if err == nil && a.Status/100 != 2 {
		err = fmt.Errorf("a request failed with status %d: %s", a.Status, a.Body)
	}
	return err
}

// overhead measures what an answer takes beside the model's time.
func (b *benchmark) overhead(ctx context.Context, t *talkers) error {
	var rounds []float64
	for range b.Rounds {
		asked, took := t.asked.Load(), t.took.Load()
		sample, err := bench.Load{Address: t.address, Clients: 1, For: b.Round, Requests: [][]byte{t.trial()}}.Run(ctx)
		if err != nil {
			return err
		}
		of := time.Duration((t.took.Load() - took) / max(1, t.asked.Load()-asked))
		rounds = append(rounds, bench.P50(bench.Sample{P50: sample.P50 - of}))
	}
	b.conclude(bench.Figure{Name: "overhead", Title: "answer by a model, beside the model's own time: p50", Unit: "ms", Goal: bench.AtMost(20)}, rounds, "", nil)
	return nil
}

// talks measures posts while many conversations wait for a slow model.
func (b *benchmark) talks(ctx context.Context, t *talkers) error {
	count := max(20, b.Rows/talksOf)
	accounts, err := t.openAccounts(ctx)
	if err != nil {
		return err
	}
	posts := bench.Load{Address: t.address, Clients: postClients, For: b.Round, Requests: t.postings(accounts)}
	var alone, beside bench.Series
	post := func(to *bench.Series) error {
		sample, err := posts.Run(ctx)
		*to = append(*to, sample)
		return err
	}
	for range b.Rounds + 1 { // the first is for warming up
		if err := post(&alone); err != nil {
			return err
		}
	}
	b.sayf("%d conversations with a model that takes %s", count, thinking)
	ids, calls := t.asks(count)
	began := time.Now()
	answered := make(chan error, 1)
	go func() {
		for _, call := range calls {
			if err := t.succeed(ctx, call); err != nil {
				answered <- err
				return
			}
		}
		_, err := t.replied(ctx, ids)
		answered <- err
	}()
	for under := true; under; {
		if err := post(&beside); err != nil {
			return err
		}
		select {
		case err := <-answered:
			if err != nil {
				return err
			}
			under = false
		default:
		}
	}
	all := time.Since(began)
	typical := func(of bench.Series) []float64 { return []float64{bench.Median(of.By(bench.P50))} }
	b.conclude(bench.Figure{Name: "talks_post", Title: fmt.Sprintf("POST of a row, 64 clients, while %d conversations wait for a model of 2 s: p50", count), Unit: "ms", Goal: bench.AtMost(1.2)},
		typical(beside), "without them", typical(alone[1:]))
	b.conclude(bench.Figure{Name: "talks", Title: fmt.Sprintf("the same: until all %d are answered", count), Unit: "s"}, []float64{all.Seconds()}, "", nil)
	return nil
}
