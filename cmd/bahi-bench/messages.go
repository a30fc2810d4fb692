package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"bahi/internal/test/bench"
)

// contactsFile returns a CSV of contacts with phones that begin with the same digits.
func contactsFile(prefix, count int) []byte {
	var file strings.Builder
	file.WriteString("name,phone\n")
	for i := range count {
		fmt.Fprintf(&file, "Asha %d,%s\n", i, phone(prefix, i))
	}
	return []byte(file.String())
}

// phone returns a phone that the sandbox reaches: its last digit is not 0.
func phone(prefix, i int) string { return fmt.Sprintf("98%02d%05d1", prefix, i) }

// importContacts imports new contacts.
func (s *server) importContacts(ctx context.Context, key string, prefix, count int) error {
	expected := fmt.Sprintf(`"created":%d,"failed":0`, count)
	return s.upload(ctx, "/api/contacts/import", key, "contacts.csv", contactsFile(prefix, count), expected)
}

// contacts measures imports of contacts, and posts of rows in another workspace at the same time.
func (b *benchmark) contacts(ctx context.Context, s *server) error {
	const rows = 5000
	other, err := s.newKey(ctx, uuid.NewString())
	if err != nil {
		return err
	}
	var imports atomic.Int64
	bring := func(ctx context.Context, key string) error {
		return s.importContacts(ctx, key, int(imports.Add(1)), rows)
	}
	beside := func(ctx context.Context) error {
		for ctx.Err() == nil {
			if err := bring(context.WithoutCancel(ctx), other); err != nil {
				return err
			}
		}
		return nil
	}
	load := b.load(s, 16, s.postings(s.accounts))
	if err := warm(rounds(ctx, load)); err != nil {
		return err
	}
	return errors.Join(
		b.compare(ctx, insert64, b.inserts(ctx, 64), timed(rows, func() error { return bring(ctx, s.key) }), figure{
			name: "contacts", title: fmt.Sprintf("import of a CSV of %d contacts", rows), number: bench.Rate, unit: "rows/s",
		}),
		b.compare(ctx, "without imports", rounds(ctx, load), during(ctx, load, beside), figure{
			name: "fairness_p99", title: "POST of a row, 16 clients, beside another workspace's imports of contacts: p99", number: bench.P99,
			goal: bench.AtMost(2),
		}),
	)
}

// messages measures incoming messages, and outgoing texts through the sandbox, with their effects.
func (b *benchmark) messages(ctx context.Context, s *server) error {
	const people = 900
	var channel struct{ ID int64 }
	if err := s.json(ctx, "POST", "/api/channels", operatorKey, `{"name":"Sales","type":"chat",`+
		`"settings":{"dialect":"envelope_v2","appName":"BenchApp","senderId":"919800000001"}}`, &channel); err != nil {
		return err
	}
	if err := s.importContacts(ctx, s.key, 0, people); err != nil {
		return err
	}
	comeIn := b.load(s, 64, nil)
	comeIn.After = s.after(acting)
	comeIn.Fresh = func() [][]byte {
		return requests(prebuilt, func(i int, _ *rand.Rand) []byte {
			return bench.Request("POST", "/api/webhooks/gateway/incoming_msg", "", fmt.Sprintf(`{"app":"BenchApp","type":"message",`+
				`"timestamp":%d,"payload":{"id":%q,"source":"91%s","type":"text","payload":{"text":"Is my order ready?"}}}`,
				time.Now().UnixMilli(), uuid.New(), phone(0, i%people)), "X-Gateway-Token: "+webhookToken)
		})
	}
	if err := warm(rounds(ctx, comeIn)); err != nil { // afterwards each contact has sent a message
		return err
	}
	goOut := b.load(s, 64, requests(prebuilt, func(i int, _ *rand.Rand) []byte {
		return bench.Request("POST", "/api/chat/send", s.key, fmt.Sprintf(`{"to":"91%s","message":"Your order A-%d is ready","channelId":%d}`,
			phone(0, i%people), i, channel.ID))
	}))
	goOut.After = s.after(acting)
	return errors.Join(
		b.compare(ctx, insert64, b.inserts(ctx, 64), rounds(ctx, comeIn),
			figure{name: "inbound", title: "messages that come in, 64 senders, with their effects", number: bench.Rate, goal: bench.AtLeast(0.6)},
			figure{name: "inbound_p99", title: "the same: p99 of a response", number: bench.P99}),
		b.compare(ctx, insert64, b.inserts(ctx, 64), rounds(ctx, goOut),
			figure{name: "send", title: "texts through the sandbox, 64 clients, with their receipts", number: bench.Rate, goal: bench.AtLeast(0.3)},
			figure{name: "send_p99", title: "the same: p99 of a response", number: bench.P99}),
	)
}

// nodes measures two processes on one database and the same processors. It shows the cost of sharing: the lock on the log's head, and
// smaller groups of appends.
func (b *benchmark) nodes(ctx context.Context, s *server) error {
	second, err := b.serve(ctx, s.url, s.data+"_of_second")
	if err != nil {
		return err
	}
	measure := func() error {
		one := b.load(s, 64, s.postings(s.accounts))
		two := one
		two.Others = []string{second.address}
		if err := warm(rounds(ctx, two)); err != nil {
			return err
		}
		const title = "POST of a row, 64 clients, over two nodes on the same processors"
		return b.compare(ctx, "one node", rounds(ctx, one), rounds(ctx, two),
			figure{name: "nodes", title: title, number: bench.Rate, goal: bench.AtLeast(0.95)},
			figure{name: "nodes_p99", title: "the same: p99", number: bench.P99})
	}
	return errors.Join(measure(), second.stop())
}

// journal compares Bahi with and without a journal of its log. The journal is in the server that EVENTSTORE_TEST_URL names, or in the
// gateway of another Bahi.
func (b *benchmark) journal(ctx context.Context, s *server) error {
	address := os.Getenv("EVENTSTORE_TEST_URL")
	if address == "" {
		return b.besideGateway(ctx, func(address string) error { return b.withJournal(ctx, s, address) })
	}
	return b.withJournal(ctx, s, address)
}

// besideGateway starts a Bahi with a gateway.
func (b *benchmark) besideGateway(ctx context.Context, measure func(address string) error) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := listener.Addr().String()
	database, err := b.database(ctx, "journals")
	if err = errors.Join(err, listener.Close()); err != nil { // frees the port for the gateway
		return err
	}
	data := filepath.Join(b.dir, "journals")
	g, err := b.serve(ctx, database, data, "BAHI_GATEWAY_GRPC_ADDR="+address, "BAHI_GATEWAY_WRITE=true")
	if err != nil {
		return err
	}
	return errors.Join(measure("esdb://"+url.UserPassword("bench", operatorKey).String()+"@"+address+
		"?tlsCAFile="+url.QueryEscape(filepath.Join(data, "gateway", "ca.crt"))), g.stop())
}

func (b *benchmark) withJournal(ctx context.Context, without *server, address string) error {
	database, err := b.database(ctx, "with_journal")
	if err != nil {
		return err
	}
	with, err := b.serve(ctx, database, filepath.Join(b.dir, "with_journal"), "EVENTSTORE_URL="+address)
	if err != nil {
		return err
	}
	measure := func() error {
		if err := with.openAccounts(ctx); err != nil {
			return err
		}
		for clients, goal := range map[int]*bench.Goal{1: nil, 8: bench.AtLeast(0.5), 64: bench.AtLeast(0.6)} {
			title := fmt.Sprintf("with a journal: POST of a row, %d clients", clients)
			name := fmt.Sprintf("journal_post_%d", clients)
			if err := b.compare(ctx, "without", rounds(ctx, b.load(without, clients, without.postings(without.accounts))),
				rounds(ctx, b.load(with, clients, with.postings(with.accounts))),
				figure{name: name, title: title, number: bench.Rate, goal: goal},
				figure{name: name + "_p99", title: title + ": p99", number: bench.P99}); err != nil {
				return err
			}
		}
		return nil
	}
	return errors.Join(measure(), with.stop())
}
