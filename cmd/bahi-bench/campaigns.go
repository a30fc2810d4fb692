package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"bahi/commands"
	"bahi/commands/access"
	"bahi/domain/access/user"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/contact"
	"bahi/domain/patch"
	"bahi/internal/app"
	"bahi/internal/bench"
)

const (
	campaignEmail    = "bench@example.com"
	campaignPassword = "Kundan-meena-polki-7" //nolint:gosec // G101: of a system that lives as long as the run
	campaignSender   = "919800000000"
	campaignSecret   = "bench-secret"

	campaignMemory = 128 // MB
	campaignWithin = 30 * time.Minute
	rowClients     = 4 // beside a campaign: an office that posts rows, not a flood of them

	receiptsRate    = 5000 // a second
	receiptsOffered = 5050 // a second: some are under way when the time is over
	receiptsAtATime = 100
	receiptCallers  = 4
)

// mailing is a workspace with contacts and a channel.
type mailing struct {
	workspace uuid.UUID
	key       string // its owner's token
	channel   int64
	template  int64
	contacts  int
	before    int64 // number of the last message before the broadcast
	last      int64 // number of the last message of which a receipt was sent
}

// campaigns measures messages to many contacts, and the pages on which people answer.
func (b *benchmark) campaigns(ctx context.Context) (err error) {
	url, err := b.database(ctx, "campaigns")
	if err != nil {
		return err
	}
	m := &mailing{contacts: max(100, b.Rows/10)}
	if err := b.makeMailing(ctx, url, m); err != nil {
		return err
	}
	b.sayf("starting a server")
	s, err := b.serve(ctx, url, b.process(url, "BAHI_LIMIT_MESSAGING_GENERAL=off", "BAHI_LIMIT_CAMPAIGN_SEND=off", "BAHI_LIMIT_WEBHOOKS=off"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := b.signIn(ctx, s, m); err != nil {
		return err
	}
	for _, of := range []struct {
		name string
		run  func(context.Context, *server, *mailing) error
	}{{"broadcast", b.broadcast}, {"receipts", b.receipts}, {"inbox", b.inboxPage}, {"audience", b.audience}} {
		if b.wanted(of.name) && err == nil {
			err = of.run(ctx, s, m)
		}
	}
	return err
}

// makeMailing makes a user, a channel and contacts who have consented, with the server stopped.
func (b *benchmark) makeMailing(ctx context.Context, url string, m *mailing) error {
	sys, err := b.system(ctx, url)
	if err != nil {
		return err
	}
	defer sys.Close()
	made, err := sys.Accounts.Admit(ctx, sys.ByOperator(uuid.Nil), access.Registration{Email: campaignEmail, Password: campaignPassword, FirstName: "Asha", LastName: "Shah"})
	if err != nil {
		return err
	}
	owner, err := commands.Load(ctx, sys.Commands.Fresh(), user.Kind, made.ID.String())
	if err != nil {
		return err
	}
	m.workspace = owner.State.Workspace
	req := sys.ByOperator(m.workspace)
	out, err := sys.Messages.Create(ctx, req, channel.Create{Name: "Sales", Type: channel.Chat, Input: channel.Input{Settings: channel.Given{
		Change: channel.Change{SenderID: patch.Set(campaignSender)}, AppSecret: patch.Set(campaignSecret),
	}}})
	if err != nil {
		return err
	}
	if m.channel, err = strconv.ParseInt(out.ID, 10, 64); err != nil {
		return err
	}
	return b.makeContacts(ctx, sys, req, m.contacts)
}

// makeContacts makes contacts as the commands do, but many at once and without the claims of their phones.
func (b *benchmark) makeContacts(ctx context.Context, sys *app.System, req commands.Request, count int) error {
	b.sayf("making %d contacts", count)
	if err := reserve(ctx, sys, contact.Kind.Category(), int64(count)); err != nil {
		return err
	}
	const together = 1000
	for at := 0; at < count; at += together {
		ones := make([]commands.One[contact.State], min(together, count-at))
		for i := range ones {
			id := strconv.Itoa(at + i + 1)
			ones[i] = commands.Begins(id, contact.Add{ID: id, Name: "Asha " + id, Reach: contact.Reach{Phone: patch.Set(phoneOf(at + i + 1))}})
		}
		done, err := commands.HandleEach(ctx, sys.Commands, req, contact.Kind, ones)
		if err != nil {
			return err
		}
		for i, d := range done {
			ones[i].Loaded, ones[i].Command = d.Loaded, contact.Edit{ID: ones[i].ID, OptIn: patch.Set(true)}
		}
		if _, err := commands.HandleEach(ctx, sys.Commands, req, contact.Kind, ones); err != nil {
			return err
		}
	}
	return nil
}

// phoneOf returns a phone that the sandbox reaches: its end says whether it does.
func phoneOf(contact int) string { return fmt.Sprintf("9198%07d1", contact) }

// signIn signs the user in, and finds a template.
func (b *benchmark) signIn(ctx context.Context, s *server, m *mailing) error {
	var in struct {
		Token string `json:"access_token"`
	}
	if err := s.json(ctx, "POST", "/api/v1/auth/login", "", fmt.Sprintf(`{"email":%q,"password":%q}`, campaignEmail, campaignPassword), &in); err != nil {
		return err
	}
	m.key = in.Token
	var templates []struct {
		ID   int64
		Name string
	}
	if err := s.json(ctx, "GET", "/api/chat/templates", m.key, "", &templates); err != nil {
		return err
	}
	for _, t := range templates {
		if t.Name == "plain" {
			m.template = t.ID
		}
	}
	return nil
}

// json sends a request and decodes its answer.
func (s *server) json(ctx context.Context, method, path, key, body string, into any) error {
	a, err := s.do(ctx, bench.Request(method, path, key, body))
	if err != nil {
		return err
	}
	if a.Status/100 != 2 {
		return fmt.Errorf("%s %s failed with status %d: %s", method, path, a.Status, a.Body)
	}
	return json.Unmarshal(a.Body, into)
}

// campaignState is what a campaign's answer says of it.
type campaignState struct {
	ID     int64
	Status string
	Reason *string
	Stats  struct{ Total, Sent, Delivered, Read, Failed, Skipped int }
}

// send makes a campaign to everybody and dispatches it.
func (m *mailing) send(ctx context.Context, s *server) (c campaignState, err error) {
	body := fmt.Sprintf(`{"name":"Diwali","type":"broadcast","templateId":%d,"audience":"all"}`, m.template)
	if err := s.json(ctx, "POST", "/api/campaigns", m.key, body, &c); err != nil {
		return c, err
	}
	var sent struct{ Total int }
	return c, s.json(ctx, "POST", "/api/campaigns/send", m.key, fmt.Sprintf(`{"campaignId":%d}`, c.ID), &sent)
}

// until looks at a campaign until it is as wanted, and returns the time of that look.
func (m *mailing) until(ctx context.Context, s *server, id int64, wanted func(campaignState) bool) (at time.Time, err error) {
	for deadline := time.Now().Add(campaignWithin); ; time.Sleep(draftsSeen) {
		var c campaignState
		if err := s.json(ctx, "GET", fmt.Sprintf("/api/campaigns/%d", id), m.key, "", &c); err != nil {
			return at, err
		}
		switch at = time.Now(); {
		case wanted(c):
			return at, nil
		case c.Status == "failed" || c.Status == "paused":
			return at, fmt.Errorf("the campaign is %s: %s", c.Status, *c.Reason)
		case at.After(deadline):
			return at, fmt.Errorf("after %s the campaign has %+v", campaignWithin, c.Stats)
		}
	}
}

// broadcast measures a campaign through the sandbox, until all its receipts are counted, and the memory that it takes.
func (b *benchmark) broadcast(ctx context.Context, s *server, m *mailing) error {
	b.sayf("a broadcast to %d contacts", m.contacts)
	before, err := b.limits.Inserts(ctx, postClients)
	if err != nil {
		return err
	}
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.pid), []byte("5"), 0); err != nil { // forget the most that it had, proc(5)
		return err
	}
	idle, began := mostMemory(s.pid), time.Now()
	c, err := m.send(ctx, s)
	if err != nil {
		return err
	}
	sent, err := m.until(ctx, s, c.ID, func(c campaignState) bool { return c.Stats.Sent == m.contacts })
	if err != nil {
		return err
	}
	counted, err := m.until(ctx, s, c.ID, func(c campaignState) bool { return c.Status == "completed" && c.Stats.Read == m.contacts })
	if err != nil {
		return err
	}
	most := mostMemory(s.pid) - idle
	after, err := b.limits.Inserts(ctx, postClients)
	if err != nil {
		return err
	}
	title := fmt.Sprintf("broadcast to %d contacts", m.contacts)
	rate := float64(m.contacts) / sent.Sub(began).Seconds()
	b.conclude(bench.Figure{Name: "broadcast", Title: title, Unit: "/s", Goal: bench.AtLeast(0.1)}, []float64{rate}, "pgbench INSERT, 64 clients", bench.Series{before, after}.By(bench.Rate))
	b.conclude(bench.Figure{Name: "broadcast_receipts", Title: "the same: seconds until both receipts of each are counted", Unit: "s"}, []float64{counted.Sub(began).Seconds()}, "", nil)
	b.conclude(bench.Figure{Name: "broadcast_memory", Title: "the same: memory", Unit: "MB", Goal: bench.AtMost(campaignMemory)}, []float64{most}, "", nil)
	return nil
}

// receipts compares rows that are posted alone with rows that are posted while a campaign is sent and receipts come in.
func (b *benchmark) receipts(ctx context.Context, s *server, m *mailing) error {
	account, err := s.post(ctx, "/bank", `{"name":"HDFC"}`)
	if err != nil {
		return err
	}
	rows := make([][]byte, prebuilt)
	for i := range rows {
		rows[i] = bench.Request("POST", fmt.Sprintf("/bank-ledger/%d", account), s.key, fmt.Sprintf(`{"date":"2026-10-01","in_entries":[{"amount":%d}]}`, 1+i))
	}
	load := bench.Load{Address: s.address, Clients: rowClients, For: b.Round, Requests: rows}
	alone := make(bench.Series, b.Rounds)
	for i := range alone {
		if alone[i], err = load.Run(ctx); err != nil {
			return err
		}
	}
	conn, schema, err := s.tables(ctx, "messages")
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it is discarded
	if err := conn.QueryRow(ctx, `select coalesce(max(id), 0) from `+schema+`.message`).Scan(&m.before); err != nil {
		return err
	}
	c, err := m.send(ctx, s)
	if err != nil {
		return err
	}
	if _, err := m.until(ctx, s, c.ID, func(c campaignState) bool { return c.Stats.Sent > 0 }); err != nil {
		return err
	}
	telling, stop := context.WithCancel(ctx)
	var came float64
	told := make(chan error, 1)
	go func() {
		var failed error
		came, failed = m.tell(telling, s, conn, schema)
		told <- failed
	}()
	beside := make(bench.Series, b.Rounds)
	for i := range beside {
		if beside[i], err = load.Run(ctx); err != nil {
			break
		}
	}
	stop()
	if err := errors.Join(err, <-told); err != nil {
		return err
	}
	if _, err := m.until(ctx, s, c.ID, func(c campaignState) bool { return c.Stats.Read == m.contacts }); err != nil {
		return err
	}
	b.conclude(bench.Figure{Name: "receipts", Title: fmt.Sprintf("rows posted by %d clients beside a broadcast and receipts: p50", rowClients), Unit: "ms", Goal: bench.AtMost(1.3)},
		beside.By(bench.P50), "rows alone", alone.By(bench.P50))
	b.conclude(bench.Figure{Name: "receipts_rows", Title: "the same: rows", Unit: "/s"}, beside.By(bench.Rate), "rows alone", alone.By(bench.Rate))
	b.conclude(bench.Figure{Name: "receipts_rate", Title: "the same: receipts that came in", Unit: "/s", Goal: bench.AtLeast(receiptsRate)}, []float64{came}, "", nil)
	return nil
}

// tell sends signed receipts of the newest messages at their rate until ctx ends, many in a call as networks do, and returns the rate that was taken.
func (m *mailing) tell(ctx context.Context, s *server, conn *pgx.Conn, schema string) (rate float64, err error) {
	var (
		taken   atomic.Int64
		callers errgroup.Group
		bodies  = make(chan string)
		began   = time.Now()
	)
	for range receiptCallers {
		callers.Go(func() error { return m.call(ctx, s, bodies, &taken) })
	}
	callers.Go(func() error {
		defer close(bodies)
		for due := began; ; due = due.Add(time.Second * receiptsAtATime / receiptsOffered) { // a call that is late is made up for
			body, err := m.statuses(ctx, conn, schema)
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil:
				return err
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(time.Until(due)):
			}
			select {
			case <-ctx.Done():
				return nil
			case bodies <- body:
			}
		}
	})
	err = callers.Wait()
	return float64(receiptsAtATime*taken.Load()) / time.Since(began).Seconds(), err
}

// statuses returns a call's body, with receipts of the messages that follow on the last ones, or, where too few do, of the broadcast's first.
func (m *mailing) statuses(ctx context.Context, conn *pgx.Conn, schema string) (body string, err error) {
	var ids []string
	for ; len(ids) < receiptsAtATime; m.last = m.before {
		m.last = max(m.last, m.before)
		rows, _ := conn.Query(ctx, `select provider_id from `+schema+`.message where id > $1 and provider_id is not null order by id limit $2`, m.last, receiptsAtATime) // CollectRows returns the error
		if ids, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			return "", err
		}
	}
	last := ids[len(ids)-1]
	if m.last, err = strconv.ParseInt(last[strings.LastIndex(last, "_")+1:], 10, 64); err != nil {
		return "", err
	}
	statuses := make([]string, len(ids))
	for i, id := range ids {
		statuses[i] = fmt.Sprintf(`{"id":%q,"status":"delivered","timestamp":"%d","recipient_id":"919812345678"}`, id, time.Now().Unix())
	}
	return fmt.Sprintf(`{"object":"chat_account","entry":[{"id":"1","changes":[{"field":"messages","value":{"metadata":{"phone_number_id":%q},"statuses":[%s]}}]}]}`, campaignSender, strings.Join(statuses, ",")), nil
}

// call sends bodies on a connection, and counts those that were taken.
func (m *mailing) call(ctx context.Context, s *server, bodies <-chan string, taken *atomic.Int64) error {
	c, err := bench.Dial(ctx, s.address)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // the connection is discarded
	for body := range bodies {
		mac := hmac.New(sha256.New, []byte(campaignSecret))
		mac.Write([]byte(body))
		a, err := c.Do(bench.Request("POST", "/api/webhook/social", "", body, fmt.Sprintf("X-Hub-Signature-256: sha256=%x", mac.Sum(nil))))
		if err != nil || a.Status != http.StatusOK {
			return fmt.Errorf("receipts were answered with status %d: %w", a.Status, err)
		}
		taken.Add(1)
	}
	return nil
}

// tables returns a connection to the server's database, and the schema of a projection's live tables.
func (s *server) tables(ctx context.Context, projection string) (conn *pgx.Conn, schema string, err error) {
	if conn, err = pgx.Connect(ctx, s.url); err != nil {
		return nil, "", err
	}
	if schema, err = tablesOf(ctx, conn, projection); err != nil {
		err = errors.Join(err, conn.Close(ctx))
	}
	return conn, schema, err
}

// tablesOf returns the schema of a projection's live tables.
func tablesOf(ctx context.Context, conn *pgx.Conn, projection string) (schema string, err error) {
	err = conn.QueryRow(ctx, `select name || '_g' || generation from projection.generation where live and name = $1`, projection).Scan(&schema)
	if err != nil {
		err = fmt.Errorf("find the tables of %s: %w", projection, err)
	}
	return schema, err
}

// audience measures how long a campaign takes until it knows all its recipients.
func (b *benchmark) audience(ctx context.Context, s *server, m *mailing) error {
	conn, schema, err := s.tables(ctx, "messaging_contacts")
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it is discarded
	b.sayf("an audience of %d", b.Rows)
	//nolint:dupword // values of columns
	if _, err := conn.Exec(ctx, `
		insert into `+schema+`.contact (id, workspace_id, name, name_folded, phone, source, opt_in, reply_bot, status, created_at, updated_at, revision)
		select i, $1, 'Asha ' || i, 'asha ' || i, '9198' || lpad(i::text, 7, '0') || '1', 'manual', true, true, 'open', now(), now(), 0 from generate_series($2::bigint, $3) i`,
		m.workspace, m.contacts+1, b.Rows); err != nil {
		return err
	}
	if err := b.settle(ctx); err != nil {
		return err
	}
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.pid), []byte("5"), 0); err != nil { // as above
		return err
	}
	idle, began := mostMemory(s.pid), time.Now()
	c, err := m.send(ctx, s)
	if err != nil {
		return err
	}
	frozen, err := m.until(ctx, s, c.ID, func(c campaignState) bool { return c.Stats.Total+c.Stats.Skipped == max(b.Rows, m.contacts) })
	if err != nil {
		return err
	}
	most := mostMemory(s.pid) - idle
	var ended campaignState
	if err := s.json(ctx, "POST", fmt.Sprintf("/api/campaigns/%d/cancel", c.ID), m.key, "", &ended); err != nil {
		return err
	}
	b.conclude(bench.Figure{Name: "audience", Title: fmt.Sprintf("an audience of %d frozen", b.Rows), Unit: "s", Goal: bench.AtMost(30)}, []float64{frozen.Sub(began).Seconds()}, "", nil)
	b.conclude(bench.Figure{Name: "audience_memory", Title: "the same: memory", Unit: "MB", Goal: bench.AtMost(campaignMemory)}, []float64{most}, "", nil)
	return nil
}
