package app_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
	"bahi/readmodels/ledgerview"
	"bahi/readmodels/messagingview"
)

// A program that is killed and started again while it asks parties, and while they answer, sends no message twice and notes each answer
// once.
func TestAKilledProgramAsksEachPartyOnce(t *testing.T) {
	t.Parallel()
	surviveConfirmation(t, 40, 1, 20)
}

// askedNetwork is a network that counts the received messages.
type askedNetwork struct {
	mu    sync.Mutex
	sent  map[string]int    // by message
	to    map[string]string // phones, by message
	files map[string]string // paths of the statements, by message
	marks []int             // numbers of messages at which the program is killed
	kill  chan struct{}
}

func (n *askedNetwork) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/message_templates"):
		_, _ = io.WriteString(w, `{"data":[{"id":"1","name":"balance","status":"APPROVED","language":"hi","components":[`+
			`{"type":"HEADER","format":"DOCUMENT"},{"type":"BODY","text":"{{1}}: {{2}} {{3}} {{4}}"}]}]}`)
	case r.Method == http.MethodGet:
		_, _ = io.WriteString(w, `{"quality_rating":"GREEN"}`)
	default:
		var m struct {
			Data     string `json:"biz_opaque_callback_data"`
			To       string
			Template struct {
				Components []struct {
					Parameters []struct{ Document struct{ Link string } }
				}
			}
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		file, _ := url.Parse(m.Template.Components[0].Parameters[0].Document.Link)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.sent[m.Data]++
		n.to[m.Data], n.files[m.Data] = m.To, file.Path
		if len(n.marks) > 0 && len(n.sent) == n.marks[0] {
			n.marks = n.marks[1:]
			n.kill <- struct{}{}
			<-r.Context().Done() // until the kill: the program records no result of this part
		}
		_, _ = fmt.Fprintf(w, `{"messages":[{"id":"w.%s"}]}`, m.Data)
	}
}

func (n *askedNetwork) count() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return int64(len(n.sent))
}

// asked is a program that asks parties, and may be killed.
type asked struct {
	t        *testing.T
	network  *askedNetwork
	database string
	command  func() *apptest.Cmd
	program  *apptest.Process
	id       int64
}

// restart kills the program and starts it again, as if the time after which its jobs count as lost had passed.
func (a *asked) restart() {
	a.t.Helper()
	a.program.Kill()
	apptest.EndLeases(a.t, a.database, time.Now())
	db := pgtest.Connect(a.t, a.database)
	pgtest.Exec(a.t, db, `update river.river_job set attempted_at = now() - interval '1 hour' where state = 'running'`)
	a.program = apptest.Serve(a.t, a.command())
	a.program.Ready()
}

// call lets the network call the program, again until the program has accepted the call.
func (a *asked) call(value string) {
	a.t.Helper()
	body := `{"object":"chat_account","entry":[{"id":"ACC","changes":[{"field":"messages","value":{"messaging_product":"chat",` +
		`"metadata":{"phone_number_id":"PN1"},` + value + `}}]}]}`
	mac := hmac.New(sha256.New, []byte("confirm-secret"))
	_, _ = io.WriteString(mac, body)
	require.Eventually(a.t, func() bool {
		req, err := http.NewRequestWithContext(a.t.Context(), http.MethodPost, a.program.URL+"/api/webhook/social", strings.NewReader(body))
		require.NoError(a.t, err)
		req.Header.Set("X-Hub-Signature-256", fmt.Sprintf("sha256=%x", mac.Sum(nil)))
		req.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(req)
		if err != nil { // it was killed
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, time.Minute, 100*time.Millisecond)
}

// receipts sends receipts of the network's deliveries.
func (a *asked) receipts() {
	a.t.Helper()
	var statuses []string
	a.network.mu.Lock()
	for id, to := range a.network.to {
		statuses = append(statuses, fmt.Sprintf(`{"id":"w.%s","status":"delivered","timestamp":"%d","recipient_id":%q,`+
			`"biz_opaque_callback_data":%q}`, id, time.Now().Unix(), to, id))
	}
	a.network.mu.Unlock()
	for part := range parts(statuses) {
		a.call(`"statuses":[` + strings.Join(part, ",") + `]`)
	}
}

const partSize = 100

func parts(all []string) func(func([]string) bool) {
	return func(yield func([]string) bool) {
		for from := 0; from < len(all); from += partSize {
			if !yield(all[from:min(from+partSize, len(all))]) {
				return
			}
		}
	}
}

// answers lets each party that was asked write a text. With restart, the program is killed in the middle.
func (a *asked) answers(name string, restart bool, text func(phone string) string) {
	a.t.Helper()
	var messages []string
	a.network.mu.Lock()
	for _, to := range a.network.to {
		messages = append(messages, fmt.Sprintf(`{"from":%q,"id":"%s.%s","timestamp":"%d","type":"text","text":{"body":%q}}`, to, name, to,
			time.Now().Unix(), text(to)))
	}
	a.network.mu.Unlock()
	told := 0
	for part := range parts(messages) {
		value := `"contacts":[],"messages":[` + strings.Join(part, ",") + `]`
		a.call(value)
		if restart && told == len(messages)/partSize/2 {
			a.restart()
			a.call(value) // the network repeats the call
		}
		told++
	}
}

// fetchStatements fetches the statement of each message, as the network does. Each party has its own.
func (a *asked) fetchStatements() {
	a.t.Helper()
	paths := slices.Sorted(maps.Values(a.network.files))
	require.Len(a.t, slices.Compact(paths), len(a.network.sent))
	c := a.program.Client()
	var fetching errgroup.Group
	fetching.SetLimit(8)
	for _, path := range paths {
		fetching.Go(func() error {
			if file := c.GET(path).Status(200).Text; !strings.HasPrefix(file, "%PDF-") {
				return fmt.Errorf("GET %s: %.20q is no PDF", path, file)
			}
			return nil
		})
	}
	require.NoError(a.t, fetching.Wait())
}

func (a *asked) counts(reached func(n ledgerview.ConfirmationCounts) bool) (c ledgerview.Confirmation) {
	a.t.Helper()
	require.Eventually(a.t, func() bool {
		c = ledgerview.Confirmation{}
		a.program.Client().GET(fmt.Sprintf("/books/confirmations/%d", a.id)).Status(200).JSON(&c)
		return reached(c.Counts)
	}, 5*time.Minute, 200*time.Millisecond, "the confirmation is %+v", &c)
	return c
}

// disagrees reports whether a party disputes its balance.
func disagrees(phone string) bool { return strings.HasSuffix(phone, "7") }

// surviveConfirmation asks parties with a program that is killed a number of times meanwhile. After a kill at most inDoubt messages have an
// unknown outcome.
func surviveConfirmation(t *testing.T, parties, kills, inDoubt int) {
	sending := &askedNetwork{sent: map[string]int{}, to: map[string]string{}, files: map[string]string{}, kill: make(chan struct{}, 1)}
	for i := range kills {
		sending.marks = append(sending.marks, (i+1)*parties/(kills+1))
	}
	network := worktest.Serve(t, sending)
	database, data := apptest.Database(t), t.TempDir()
	a := &asked{t: t, network: sending, database: database, command: func() *apptest.Cmd {
		return apptest.Program(t, data, "serve").With("DATABASE_URL="+database, "CHAT_BASE_URL="+network.URL,
			"BAHI_FETCH_ALLOW="+strings.TrimPrefix(network.URL, "http://"), fmt.Sprintf("BAHI_CAMPAIGN_RATE=%d", inDoubt))
	}}
	a.program = apptest.Serve(t, a.command())
	a.program.Ready()
	c := a.program.Client()
	channel := apptest.IdOf(t, []byte(c.POST("/api/channels", `{"name":"Sales","type":"chat","apiKey":"k","settings":{"senderId":"PN1",`+
		`"accountId":"ACC","appSecret":"confirm-secret"}}`).Status(201).Text))
	templates := apitest.Read[[]messagingview.Template](c.GET("/api/chat/templates").Status(200))
	openParties(t, a.program, parties)
	began := time.Now()
	a.id = apptest.IdOf(t, []byte(c.POST("/books/confirmations", fmt.Sprintf(
		`{"kind":"client","as_of":"2025-03-31","channelId":%d,"templateId":%d}`, channel, templates[0].ID)).Status(201).Text))
	t.Logf("asked %d parties: the request took %s", parties, time.Since(began))
	for range kills {
		<-sending.kill
		a.restart()
	}
	least := int64(parties - kills*inDoubt)
	requireAllSent(t, database, parties)
	a.receipts()
	a.counts(func(n ledgerview.ConfirmationCounts) bool { return n.Sent == sending.count() })
	t.Logf("sent after %s", time.Since(began))

	first := func(phone string) string {
		if disagrees(phone) {
			return "नहीं"
		}
		return "1"
	}
	count := sending.count()
	said := func(n ledgerview.ConfirmationCounts) bool { return n.Confirmed+n.Disputed == count }
	a.answers("first", true, first)
	was := a.counts(said)
	a.answers("second", false, func(phone string) string {
		if disagrees(phone) {
			return "1"
		}
		return "2"
	})
	t.Logf("answered after %s", time.Since(began))
	a.fetchStatements()
	t.Logf("statements fetched after %s", time.Since(began))
	requireEachOnce(t, database, count)
	require.Equal(t, was.Counts, a.counts(said).Counts)
	disputed := int64(0)
	sending.mu.Lock()
	defer sending.mu.Unlock()
	for id, times := range sending.sent {
		require.Equal(t, 1, times, id)
		if disagrees(sending.to[id]) {
			disputed++
		}
	}
	require.Equal(t, disputed, was.Counts.Disputed)
	require.GreaterOrEqual(t, count, least)
}

// openParties opens clients with contacts who have opted in.
func openParties(t *testing.T, program *apptest.Process, parties int) {
	t.Helper()
	c := program.Client()
	var file bytes.Buffer
	file.WriteString("name,phone,optIn,optInEvidence\n")
	for i := range parties {
		fmt.Fprintf(&file, "Party %d,98%08d,true,signed form\n", i, i)
	}
	form, contentType := apptest.Form(t, "text/csv", file.Bytes())
	c.With("Content-Type", contentType).POST("/api/contacts/import", string(form)).Status(200)
	var opening errgroup.Group
	opening.SetLimit(8)
	for page := 1; (page-1)*200 < parties; page++ {
		contacts := apitest.Read[[]messagingview.Contact](c.GET(fmt.Sprintf("/api/contacts?limit=200&page=%d", page)).Status(200))
		for _, k := range contacts {
			opening.Go(func() error {
				account := apptest.IdOf(t, []byte(c.POST("/client", fmt.Sprintf(`{"name":%q}`, *k.Name)).Status(201).Text))
				c.PUT(fmt.Sprintf("/books/accounts/%d/contact", account), fmt.Sprintf(`{"contactId":%d}`, k.ID)).Status(200)
				return nil
			})
		}
	}
	require.NoError(t, opening.Wait())
}

// requireEachOnce waits until all messages are handled, and requires one answer for each party in the log.
func requireEachOnce(t *testing.T, database string, parties int64) {
	t.Helper()
	db := pgtest.Connect(t, database)
	number := func(sql string) (n int64) {
		require.NoError(t, db.QueryRow(t.Context(), sql).Scan(&n))
		return n
	}
	require.Eventually(t, func() bool {
		return number(`select count(*) from log.event where type = 'MessageReceived'`) == 2*parties &&
			number(`select count(*) from river.river_job where kind = 'answer_confirmation'
				and state not in ('completed', 'cancelled', 'discarded')`) == 0
	}, 5*time.Minute, 200*time.Millisecond)
	require.Equal(t, parties, number(`select count(*) from log.event where type in ('BalanceConfirmed', 'BalanceDisputed')`))
	require.Equal(t, parties, number(`select count(distinct stream) from log.event where type in ('BalanceConfirmed', 'BalanceDisputed')`))
}

// requireAllSent waits until all messages of a campaign are recorded, and the last one has a result. A campaign sends one part after the
// other, so that a running node sends no further message. The parts of killed nodes remain in doubt.
func requireAllSent(t *testing.T, database string, messages int) {
	t.Helper()
	db := pgtest.Connect(t, database)
	require.Eventually(t, func() (all bool) {
		require.NoError(t, db.QueryRow(t.Context(), `
			with last as (select stream from log.event where type = 'MessageQueued' order by position desc limit 1)
			select (select count(*) from log.event where type = 'MessageQueued') = $1
				and exists (select from log.event join last using (stream) where type in ('MessageAccepted', 'MessageFailed'))`,
			messages).Scan(&all))
		return all
	}, 5*time.Minute, 50*time.Millisecond)
}

// twoSenders is a network that counts the messages of two nodes. It leaves a call of the first sender without an answer.
type twoSenders struct {
	mu     sync.Mutex
	sent   map[string]int // calls by recipient
	by     [2]int         // calls by node
	after  int            // calls before the one without an answer
	caught chan int       // the node of that call
}

func (n *twoSenders) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/message_templates"):
		_, _ = io.WriteString(w, `{"data":[{"id":"1","name":"sale","status":"APPROVED","language":"en","components":[{"type":"BODY",`+
			`"text":"Sale"}]}]}`)
		return
	case r.Method == http.MethodGet:
		_, _ = io.WriteString(w, `{"quality_rating":"GREEN"}`)
		return
	}
	var m struct{ To string }
	_ = json.NewDecoder(r.Body).Decode(&m)
	node := 0
	if strings.HasPrefix(r.URL.Path, "/1/") {
		node = 1
	}
	n.mu.Lock()
	n.sent[m.To]++
	n.by[node]++
	caught := n.after > 0 && len(n.sent) == n.after
	if caught {
		n.after = 0
	}
	n.mu.Unlock()
	if caught {
		n.caught <- node
		<-r.Context().Done()
		return
	}
	_, _ = fmt.Fprintf(w, `{"messages":[{"id":"w.%s"}]}`, m.To)
}

func (n *twoSenders) count(node int) (calls, people int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.by[node], len(n.sent)
}

// A campaign whose sender is killed is continued by the other node. Nobody gets a message twice. The campaign says why some
// messages have no result.
func TestAnotherNodeContinuesACampaignOfAKilledOne(t *testing.T) {
	t.Parallel()
	const people, rate = 150, 50
	sending := &twoSenders{sent: map[string]int{}, after: people / 3, caught: make(chan int, 1)}
	network := worktest.Serve(t, sending)
	n := &nodes{t: t, database: apptest.Database(t)}
	for i := range n.serving {
		n.data[i] = t.TempDir()
		n.env[i] = []string{fmt.Sprintf("CHAT_BASE_URL=%s/%d", network.URL, i), fmt.Sprintf("BAHI_CAMPAIGN_RATE=%d", rate),
			"BAHI_FETCH_ALLOW=" + strings.TrimPrefix(network.URL, "http://")}
		n.start(i)
	}
	c := n.serving[0].Client()
	channel := apptest.IdOf(t, []byte(c.POST("/api/channels", `{"name":"Sales","type":"chat","apiKey":"k","settings":{"senderId":"PN1",`+
		`"accountId":"ACC","appSecret":"secret"}}`).Status(201).Text))
	templates := apitest.Read[[]messagingview.Template](c.GET("/api/chat/templates").Status(200))
	var file bytes.Buffer
	file.WriteString("name,phone,optIn,optInEvidence\n")
	for i := range people {
		fmt.Fprintf(&file, "Buyer %d,98%08d,true,signed form\n", i, i)
	}
	form, contentType := apptest.Form(t, "text/csv", file.Bytes())
	c.With("Content-Type", contentType).POST("/api/contacts/import", string(form)).Status(200)
	id := apptest.IdOf(t, []byte(c.POST("/api/campaigns", fmt.Sprintf(`{"name":"Sale","type":"broadcast","templateId":%d,"channelId":%d,`+
		`"audience":"all"}`, templates[0].ID, channel)).Status(201).Text))
	c.POST("/api/campaigns/send", fmt.Sprintf(`{"campaignId":%d}`, id)).Status(202)

	dies := <-sending.caught
	lives := 1 - dies
	before, _ := sending.count(lives)
	require.Zero(t, before, "one node sends a campaign")
	died := time.Now()
	n.serving[dies].Kill()
	require.Eventually(t, func() bool { calls, _ := sending.count(lives); return calls > 0 }, 3*time.Minute, 20*time.Millisecond)
	t.Logf("the other node sent after %s", time.Since(died))
	at := fmt.Sprintf("/api/campaigns/%d", id)
	var got messagingview.Campaign
	require.Eventually(t, func() bool {
		got = apitest.Read[messagingview.Campaign](n.serving[lives].Client().GET(at).Status(200))
		return got.Stats.Sent >= people-rate && got.Reason != nil
	}, 2*time.Minute, 200*time.Millisecond, "the campaign is %+v", &got)
	t.Logf("%d of %d sent, and the reason shown, after %s: %s", got.Stats.Sent, people, time.Since(died), *got.Reason)
	require.Equal(t, "active", got.Status)
	sending.mu.Lock()
	defer sending.mu.Unlock()
	for to, times := range sending.sent {
		require.Equal(t, 1, times, to)
	}
}
