package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/domain/ledger/ordertext"
	"bahi/internal/bench"
)

const (
	chatToken  = "bench-token"
	chatPhone  = "919812345678" // becomes drafts
	strangers  = "919800000000" // is dropped
	draftsOf   = 100            // rows of --rows for one draft
	draftsMade = 10 * time.Minute
	draftsSeen = 100 * time.Millisecond
)

// orderLines are what the messages are made of.
var orderLines = []string{
	"payal 250 gm 4 pcs", "ring 20.5 gm", "party: Ramesh Jewellers", "चेन २५ ग्राम २ पीस", "slip 214", "for Asha bangles 3 tola x 6", "પાયલ ૧૨.૫ ગ્રામ ૪ નંગ", "Good morning", "2) nath 8.250 gm, tops 5 gm 2 pcs",
}

// orderText returns the text of a message as JSON has it.
func orderText(random *rand.Rand) string {
	text := ""
	for range 1 + random.IntN(4) {
		text += orderLines[random.IntN(len(orderLines))] + `\n`
	}
	return text
}

// chat measures the way of a chat message: the answer to its webhook, the rules that read it, and the list of drafts.
func (b *benchmark) chat(ctx context.Context) (err error) {
	if b.wanted("rules") {
		b.rules()
	}
	if !b.wanted("webhook") && !b.wanted("drafts") {
		return nil
	}
	url, err := b.database(ctx, "chat")
	if err != nil {
		return err
	}
	b.sayf("starting a server")
	s, err := b.serve(ctx, url, b.process(url, "GATEWAY_WEBHOOK_TOKEN="+chatToken, "GATEWAY_ALLOWED_PHONES="+chatPhone))
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := s.stop(); err == nil {
			err = stopErr
		}
	}()
	if b.wanted("webhook") {
		err = b.webhook(ctx, s)
	}
	if err == nil && b.wanted("drafts") {
		err = b.drafts(ctx, s)
	}
	return err
}

// rules measures the parser.
func (b *benchmark) rules() {
	random := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // the same texts in each run
	texts := make([]string, prebuilt)
	for i := range texts {
		texts[i] = strings.ReplaceAll(orderText(random), `\n`, "\n")
	}
	rounds := make([]float64, b.Rounds)
	for i := range rounds {
		read, began := 0, time.Now()
		for ; time.Since(began) < b.Round; read++ {
			ordertext.Parse(texts[read%len(texts)])
		}
		rounds[i] = float64(read) / time.Since(began).Seconds()
	}
	b.conclude(bench.Figure{Name: "rules", Title: "messages read by rules, one processor", Unit: "/s"}, rounds, "", nil)
}

// ordersByChat returns calls of the gateway, each with a message of its own.
func ordersByChat(count int, prefix, from string) [][]byte {
	random := rand.New(rand.NewPCG(seed, 8)) //nolint:gosec // the same texts in each run
	all := make([][]byte, count)
	for i := range all {
		all[i] = orderByChat(fmt.Sprintf("%s-%d", prefix, i), from, random)
	}
	return all
}

// orderByChat returns a call of the gateway.
func orderByChat(id, from string, random *rand.Rand) []byte {
	return bench.Request("POST", "/gateway_incoming_webhook", "", fmt.Sprintf(
		`{"type":"message","timestamp":%d,"payload":{"id":%q,"source":%q,"type":"text","payload":{"text":"%s"}}}`, time.Now().UnixMilli(), id, from, orderText(random)),
		"X-Gateway-Token: "+chatToken)
}

// webhook measures the answers to the gateway's calls. The messages are a stranger's, so that the work behind an answer is the least.
func (b *benchmark) webhook(ctx context.Context, s *server) error {
	round := 0
	limit, found, err := b.interleave(ctx, "calls of the gateway", func() (bench.Sample, error) { return b.limits.Inserts(ctx, postClients) }, func() (bench.Sample, error) {
		round++
		return bench.Load{Address: s.address, Clients: postClients, For: b.Round, Requests: ordersByChat(4*prebuilt, strconv.Itoa(round), strangers)}.Run(ctx)
	})
	if err != nil {
		return err
	}
	const insert64 = "pgbench INSERT, 64 clients"
	b.conclude(bench.Figure{Name: "webhook", Title: "calls of the gateway, 64 senders", Unit: "/s", Goal: bench.AtLeast(0.4)}, found[0].By(bench.Rate), insert64, limit.By(bench.Rate))
	b.conclude(bench.Figure{Name: "webhook_p99", Title: "the same: p99 of an answer", Unit: "ms", Goal: bench.AtMost(2.5)}, found[0].By(bench.P99), insert64, limit.By(bench.P99))
	return nil
}

// drafts measures the list of many drafts.
func (b *benchmark) drafts(ctx context.Context, s *server) error {
	count := max(10, b.Rows/draftsOf)
	b.sayf("making %d order drafts", count)
	for _, call := range ordersByChat(count, "draft", chatPhone) {
		if a, err := s.do(ctx, call); err != nil || a.Status != 200 {
			return fmt.Errorf("a call of the gateway was answered with status %d: %w", a.Status, err)
		}
	}
	conn, schema, err := s.tables(ctx, "order_drafts")
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it is discarded
	for deadline, made := time.Now().Add(draftsMade), 0; made < count; {
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d drafts were made within %s", made, count, draftsMade)
		}
		time.Sleep(draftsSeen)
		if err := conn.QueryRow(ctx, `select count(*) from `+schema+`.order_draft`).Scan(&made); err != nil {
			return err
		}
	}
	of := bench.Figure{Name: "drafts", Title: fmt.Sprintf("list of %d pending drafts: p50", count), Goal: bench.AtMost(3)}
	return b.list(ctx, conn, s, of, "/order-drafts", operatorKey, `select d.*, (select json_agg(e order by e.id) from `+schema+`.order_draft_entry e where e.draft_id = d.id)::text from `+schema+`.order_draft d order by d.id`)
}

// list measures a list beside a plain SELECT of the same rows.
func (b *benchmark) list(ctx context.Context, conn *pgx.Conn, s *server, of bench.Figure, path, key, plain string) error {
	list := bench.Load{Address: s.address, Clients: 1, For: b.Round, Requests: [][]byte{bench.Request("GET", path, key, "")}}
	limit, found, err := b.interleave(ctx, of.Title, func() (bench.Sample, error) {
		return repeated(ctx, conn, b.Round, plain)
	}, func() (bench.Sample, error) { return list.Run(ctx) })
	if err != nil {
		return err
	}
	of.Unit = "ms"
	b.conclude(of, found[0].By(bench.P50), "plain SELECT", limit.By(bench.P50))
	return nil
}
