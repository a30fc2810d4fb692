package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/commands"
	flows "bahi/commands/messaging"
	"bahi/domain/event"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/message"
	"bahi/domain/patch"
	"bahi/internal/app"
	"bahi/internal/bench"
)

const (
	talkApp    = "BenchApp"
	talkPeople = 900 // contacts who have just written
	talkChunk  = 1000
)

// talk is a workspace's conversations.
type talk struct {
	key         string // may write messages
	channel     int64
	phones      []string
	long, short int64 // contacts
	sent        int   // messages that wait for their receipts, the ids of which are aggregator-<n>
}

// conversations measures conversations: what comes in, what goes out, and who reads.
func (b *benchmark) conversations(ctx context.Context) (err error) {
	url, err := b.database(ctx, "talk")
	if err != nil {
		return err
	}
	t, err := b.makeTalk(ctx, url)
	if err != nil {
		return err
	}
	b.sayf("starting a server")
	s, err := b.serve(ctx, url, b.process(url, "GATEWAY_WEBHOOK_TOKEN="+chatToken))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if t.key, err = s.makeKey(ctx, `{"messaging":"write"}`); err != nil {
		return err
	}
	for _, of := range []struct {
		name string
		run  func(context.Context, *server, *talk) error
	}{{"send", b.sends}, {"inbound", b.inbound}, {"history", b.history}, {"followers", b.followers}} {
		if b.wanted(of.name) && err == nil {
			err = of.run(ctx, s, t)
		}
	}
	return err
}

// makeTalk makes a channel and its conversations, with the server stopped.
func (b *benchmark) makeTalk(ctx context.Context, url string) (*talk, error) {
	sys, err := b.system(ctx, url)
	if err != nil {
		return nil, err
	}
	defer sys.Close()
	req, t := commands.Request{Workspace: sys.Home}, &talk{}
	out, err := sys.Messages.Create(ctx, req, channel.Create{Name: "Sales", Type: channel.Chat, Input: channel.Input{Settings: channel.Given{Change: channel.Change{
		Dialect: patch.Set("envelope_v2"), AppName: patch.Set(talkApp), SenderID: patch.Set("919800000001"),
	}}}})
	if err != nil {
		return nil, err
	}
	if t.channel, err = strconv.ParseInt(out.ID, 10, 64); err != nil {
		return nil, err
	}
	var contacts []int64
	for i := range talkPeople {
		phone := fmt.Sprintf("9198%08d", 10_000_001+i)
		made, err := flows.AddContact(ctx, sys.Commands, req, contact.Add{Name: "Asha " + strconv.Itoa(i), Reach: contact.Reach{Phone: patch.Set(phone)}})
		if err != nil {
			return nil, err
		}
		id, err := strconv.ParseInt(made.ID, 10, 64)
		if err != nil {
			return nil, err
		}
		t.phones, contacts = append(t.phones, phone), append(contacts, id)
	}
	t.long, t.short = contacts[0], contacts[1]
	if b.wanted("inbound") {
		t.sent = b.Rounds * prebuilt
	}
	long := 0
	if b.wanted("history") {
		long = b.Rows
	}
	return t, b.fillTalk(ctx, sys, req, t, contacts, long)
}

// fillTalk makes the messages: of each contact a few, of the one with the long conversation as many as wanted, and those that wait for receipts.
func (b *benchmark) fillTalk(ctx context.Context, sys *app.System, req commands.Request, t *talk, contacts []int64, long int) error {
	b.sayf("making %d messages", talkPeople+shortRows+long+t.sent)
	if err := reserve(ctx, sys, message.Kind.Category(), int64(2*(talkPeople+shortRows+long+t.sent))); err != nil {
		return err
	}
	var (
		waiting []commands.One[message.State]
		last    int64
	)
	flush := func() ([]commands.Done[message.State], error) {
		done, err := commands.HandleEach(ctx, sys.Commands, req, message.Kind, waiting)
		waiting = waiting[:0]
		return done, err
	}
	add := func(c event.Command[message.State]) (err error) {
		last++
		if waiting = append(waiting, commands.Begins(strconv.FormatInt(last, 10), c)); len(waiting) == talkChunk {
			_, err = flush()
		}
		return err
	}
	came := func(of int64, at time.Time) error {
		return add(message.Receive{
			Draft:   message.Draft{Channel: t.channel, Text: "Is my order ready? " + strconv.FormatInt(last, 10)},
			Contact: of, ProviderID: "made-" + strconv.FormatInt(last, 10), SentAt: at, Now: time.Now(),
		})
	}
	year := time.Now().AddDate(-1, 0, 0)
	for of, count := range map[int64]int{t.long: long, t.short: shortRows} {
		for i := range count {
			if err := came(of, year.Add(time.Duration(i)*time.Second)); err != nil {
				return err
			}
		}
	}
	for _, of := range contacts {
		if err := came(of, time.Now()); err != nil {
			return err
		}
	}
	if _, err := flush(); err != nil {
		return err
	}
	for at := 0; at < t.sent; at += talkChunk {
		for i := at; i < min(at+talkChunk, t.sent); i++ {
			last++
			waiting = append(waiting, commands.Begins(strconv.FormatInt(last, 10), message.Queue{
				Draft: message.Draft{Channel: t.channel, To: t.phones[i%talkPeople], Text: "It is."}, Contact: contacts[i%talkPeople],
			}))
		}
		queued := append([]commands.One[message.State]{}, waiting...)
		done, err := flush()
		if err != nil {
			return err
		}
		for i, d := range done {
			queued[i].Loaded, queued[i].Command = d.Loaded, message.Settle{ProviderID: "aggregator-" + strconv.Itoa(at+i)}
		}
		if _, err := commands.HandleEach(ctx, sys.Commands, req, message.Kind, queued); err != nil {
			return err
		}
	}
	return nil
}

// texts returns requests that send a text each.
func (t *talk) texts() [][]byte {
	requests := make([][]byte, prebuilt)
	for i := range requests {
		requests[i] = bench.Request("POST", "/api/chat/send", t.key, fmt.Sprintf(`{"to":%q,"message":"Your order A-%d is ready","channelId":%d}`, t.phones[i%talkPeople], i, t.channel))
	}
	return requests
}

// sends measures texts through the sandbox.
func (b *benchmark) sends(ctx context.Context, s *server, t *talk) error {
	load := bench.Load{Address: s.address, Clients: postClients, For: b.Round, Requests: t.texts()}
	limit, found, err := b.interleave(ctx, "texts through the sandbox", func() (bench.Sample, error) { return b.limits.Inserts(ctx, postClients) },
		func() (bench.Sample, error) {
			sample, err := load.Run(ctx)
			if err == nil {
				err = s.idle(ctx)
			}
			return sample, err
		})
	if err != nil {
		return err
	}
	const insert64 = "pgbench INSERT, 64 clients"
	b.conclude(bench.Figure{Name: "send", Title: "texts through the sandbox, 64 clients", Unit: "/s", Goal: bench.AtLeast(0.3)}, found[0].By(bench.Rate), insert64, limit.By(bench.Rate))
	b.conclude(bench.Figure{Name: "send_p99", Title: "the same: p99 of an answer", Unit: "ms"}, found[0].By(bench.P99), insert64, limit.By(bench.P99))
	return nil
}

// idle waits until the jobs of calls and messages are there, and done.
func (s *server) idle(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it only read
	for {
		var busy bool
		if err := conn.QueryRow(ctx, `select exists (select from inbox.call where verdict = 'waiting')
			or exists (select from river.river_job where state in ('available', 'running') and kind in ('handle_webhook', 'play_receipts'))
			or exists (select from reactor.checkpoint where name = 'messages' and position < (select position from log.event order by position desc limit 1))`).Scan(&busy); err != nil || !busy {
			return err
		}
		time.Sleep(5 * lookEvery)
	}
}

// cameIn returns the gateway's call of a message with a text.
func (t *talk) cameIn(id, text string, from int) []byte {
	return bench.Request("POST", "/api/webhooks/gateway/incoming_msg", "", fmt.Sprintf(
		`{"app":%q,"type":"message","timestamp":%d,"payload":{"id":%q,"source":%q,"type":"text","payload":{"text":%q}}}`,
		talkApp, time.Now().UnixMilli(), id, t.phones[from%talkPeople], text), "X-Gateway-Token: "+chatToken)
}

// incoming returns the gateway's calls of a round: messages, and receipts of messages that wait for them.
func (t *talk) incoming(round int) (came, receipts [][]byte) {
	came, receipts = make([][]byte, prebuilt), make([][]byte, prebuilt)
	for i := range prebuilt {
		came[i] = t.cameIn(fmt.Sprintf("in-%d-%d", round, i), "Is my order ready?", i)
		receipts[i] = bench.Request("POST", "/api/webhooks/gateway/message-events", "", fmt.Sprintf(
			`{"app":%q,"type":"message-event","payload":{"id":"network-%d","gsId":"aggregator-%d","type":"delivered"}}`, talkApp, round*prebuilt+i, round*prebuilt+i),
			"X-Gateway-Token: "+chatToken)
	}
	return came, receipts
}

// inbound measures messages and receipts that come in, as fast as they are taken, until they have had their effects.
func (b *benchmark) inbound(ctx context.Context, s *server, t *talk) error {
	var (
		round   int
		handled []float64
	)
	limit, found, err := b.interleave(ctx, "messages and receipts that come in", func() (bench.Sample, error) { return b.limits.Inserts(ctx, postClients) },
		func() (bench.Sample, error) {
			came, receipts := t.incoming(round)
			round++
			began := time.Now()
			sample, err := bench.Load{Address: s.address, Clients: postClients, For: b.Round, Requests: came, Odd: receipts}.Run(ctx)
			if err == nil {
				err = s.idle(ctx)
			}
			handled = append(handled, sample.Rate*b.Round.Seconds()/time.Since(began).Seconds())
			return sample, err
		})
	if err != nil {
		return err
	}
	const insert64 = "pgbench INSERT, 64 clients"
	b.conclude(bench.Figure{Name: "inbound", Title: "messages and receipts that come in, 64 senders", Unit: "/s", Goal: bench.AtLeast(0.4)}, found[0].By(bench.Rate), insert64, limit.By(bench.Rate))
	b.conclude(bench.Figure{Name: "inbound_p99", Title: "the same: p99 of an answer", Unit: "ms", Goal: bench.AtMost(2.5)}, found[0].By(bench.P99), insert64, limit.By(bench.P99))
	b.conclude(bench.Figure{Name: "inbound_handled", Title: "the same, until they have had their effects", Unit: "/s"}, handled, insert64, limit.By(bench.Rate))
	return nil
}

// history measures pages of a long conversation beside those of a short one.
func (b *benchmark) history(ctx context.Context, s *server, t *talk) error {
	page := func(of int64, before string) func(*bench.Conn) (time.Duration, error) {
		return asked(bench.Request("GET", fmt.Sprintf("/api/contacts/%d/messages?limit=%d%s", of, pageSize, before), t.key, ""))
	}
	middle := func(of int64, count int) (string, error) {
		a, err := s.do(ctx, bench.Request("GET", fmt.Sprintf("/api/contacts/%d/messages?limit=1", of), t.key, ""))
		var newest []struct{ ID string }
		if err == nil {
			err = json.Unmarshal(a.Body, &newest)
		}
		if err != nil || len(newest) == 0 {
			return "", fmt.Errorf("a conversation was answered with status %d: %w", a.Status, err)
		}
		conn, err := pgx.Connect(ctx, s.url)
		if err != nil {
			return "", err
		}
		defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it only read
		var schema, id string
		if err := conn.QueryRow(ctx, `select 'messages_g' || generation from projection.generation where live and name = 'messages'`).Scan(&schema); err != nil {
			return "", err
		}
		err = conn.QueryRow(ctx, `select 'msg_' || id from `+schema+`.message where contact_id = $1 order by began offset $2 limit 1`, of, count/2).Scan(&id)
		return "&before=" + id, err
	}
	for _, of := range []struct {
		name, title string
		middle      bool
	}{{"history", "newest page of a conversation of %d", false}, {"history_middle", "page in the middle of a conversation of %d", true}} {
		var long, short string
		var err error
		if of.middle {
			if long, err = middle(t.long, b.Rows); err == nil {
				short, err = middle(t.short, shortRows)
			}
		}
		if err != nil {
			return err
		}
		small, large, err := s.ask(ctx, b.pairs(pairOfReads), page(t.short, short), page(t.long, long))
		if err != nil {
			return err
		}
		b.conclude(bench.Figure{Name: of.name, Title: fmt.Sprintf(of.title, b.Rows), Unit: "ms", Goal: bench.AtMost(1.5)},
			bench.Series{large}.By(bench.P50), "of 100 messages", bench.Series{small}.By(bench.P50))
	}
	return nil
}

// profileTalk profiles texts through the sandbox, and what comes in until it has had its effect.
func (b *benchmark) profileTalk(ctx context.Context) error {
	url, err := b.database(ctx, "talk")
	if err != nil {
		return err
	}
	t, err := b.makeTalk(ctx, url)
	if err != nil {
		return err
	}
	s, err := b.serve(ctx, url, b.inside(url))
	if err != nil {
		return err
	}
	defer s.stop() //nolint:errcheck // the measurement is complete
	if t.key, err = s.makeKey(ctx, `{"messaging":"write"}`); err != nil {
		return err
	}
	if b.wanted("send") {
		if err := b.profile(ctx, "send", func() (bench.Sample, error) {
			sample, err := bench.Load{Address: s.address, Clients: postClients, For: profiled, Requests: t.texts()}.Run(ctx)
			return sample, errors.Join(err, s.idle(ctx))
		}); err != nil {
			return err
		}
	}
	if !b.wanted("inbound") {
		return nil
	}
	return b.profile(ctx, "inbound", func() (bench.Sample, error) {
		came, receipts := t.incoming(0)
		sample, err := bench.Load{Address: s.address, Clients: postClients, For: profiled, Requests: came, Odd: receipts}.Run(ctx)
		began := time.Now()
		err = errors.Join(err, s.idle(ctx))
		b.sayf("had their effects %s later", time.Since(began))
		return sample, err
	})
}
