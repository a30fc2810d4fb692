package nats_test

import (
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"bahi/eventstore/esdbserver"
	"bahi/internal/test/feedtest"
	"bahi/providers/feed"
	"bahi/providers/feed/nats"
)

const topic = "bahi.events"

func open(t *testing.T, address string) *nats.Publisher {
	t.Helper()
	p, err := nats.Open(address, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

func ids(messages []*message.Message) (all []string) {
	for _, m := range messages {
		all = append(all, m.UUID)
	}
	return all
}

// kept returns the ids of the messages in a stream, in their order.
func kept(s *feedtest.NATS, stream string, count int) (all []string) {
	for _, m := range s.Messages(stream, count) {
		all = append(all, m.Headers().Get("ce-id"))
	}
	return all
}

func TestMessageIsACloudEventWithTheExactPayload(t *testing.T) {
	t.Parallel()
	s := feedtest.Start(t)
	m := feedtest.Message(t, "bank-12", `{ "amount": 1250.50,  "id": 9007199254740993 }`)
	m.Metadata["actor"], m.Metadata["reason"] = "user:7", "50 % zurück\tan \"Asha\""
	require.NoError(t, open(t, s.Address).Publish(topic, m))
	got := s.Messages("BAHI", 1)[0]
	require.Equal(t, "bahi.events.bank.12", got.Subject())
	require.Equal(t, `{ "amount": 1250.50,  "id": 9007199254740993 }`, string(got.Data()))
	require.Equal(t, "application/json", got.Headers().Get("ce-datacontenttype"))
	e := feedtest.Event(t, got)
	require.Equal(t, m.UUID, e.ID())
	require.Equal(t, "urn:uuid:0195e8a0-7c1e-7000-8000-0000000000aa", e.Source())
	require.Equal(t, "BankRowAdded", e.Type())
	require.Equal(t, "bank-12", e.Subject())
	require.Equal(t, time.Date(2026, 11, 21, 21, 0, 0, 1000, time.UTC), e.Time())
	require.Equal(t, "application/json", e.DataContentType())
	require.Equal(t, "user:7", e.Extensions()["actor"])
	require.Equal(t, "00000000000000000007", e.Extensions()["sequence"])
	reason, err := url.PathUnescape(e.Extensions()["reason"].(string))
	require.NoError(t, err)
	require.Equal(t, "50 % zurück\tan \"Asha\"", reason)
}

func TestSubjectHasCategoryAndIDEncoded(t *testing.T) {
	t.Parallel()
	s := feedtest.Start(t)
	p := open(t, s.Address)
	want := map[string]string{
		"bank-12": "bank.12",
		"user-0195e8a0-7c1e-7000-8000-0000000000aa": "user.0195e8a0-7c1e-7000-8000-0000000000aa",
		"orders":            "orders._",
		"-7":                "_.7",
		"shop.eu-a.b*c>d e": "shop%2Eeu.a%2Eb%2Ac%3Ed%20e",
		"kunde-münchen\r\n": "kunde.m%C3%BCnchen%0D%0A",
	}
	var messages []*message.Message
	for stream := range want {
		messages = append(messages, feedtest.Message(t, stream, `{}`))
	}
	require.NoError(t, p.Publish(topic, messages...))
	got := map[string]string{}
	for _, m := range s.Messages("BAHI", len(want)) {
		stream, err := url.PathUnescape(m.Headers().Get("ce-subject"))
		require.NoError(t, err)
		got[stream] = strings.TrimPrefix(m.Subject(), topic+".")
	}
	require.Equal(t, want, got)
}

func TestMissingStreamIsCreatedAndAnExistingOneKept(t *testing.T) {
	t.Parallel()
	s := feedtest.Start(t)
	require.NoError(t, open(t, s.Address+"?stream=BOOKS").Publish(topic, feedtest.Messages(t, 1)...))
	made, err := s.JetStream().Stream(t.Context(), "BOOKS")
	require.NoError(t, err)
	require.Equal(t, []string{"bahi.events.>"}, made.CachedInfo().Config.Subjects)
	require.Equal(t, jetstream.FileStorage, made.CachedInfo().Config.Storage)
	require.Equal(t, 2*time.Minute, made.CachedInfo().Config.Duplicates)

	_, err = s.JetStream().CreateStream(t.Context(), jetstream.StreamConfig{Name: "MINE", Subjects: []string{"other.>"}, MaxMsgs: 2})
	require.NoError(t, err)
	all := feedtest.Messages(t, 3)
	require.NoError(t, open(t, s.Address).Publish("other", all...))
	require.Equal(t, ids(all[1:]), kept(s, "MINE", 2))
}

func TestRepeatedMessagesAreStoredOnce(t *testing.T) {
	t.Parallel()
	s := feedtest.Start(t)
	all := feedtest.Messages(t, 500)
	require.NoError(t, open(t, s.Address).Publish(topic, all[:300]...))
	require.NoError(t, open(t, s.Address).Publish(topic, all[100:400]...))
	require.NoError(t, open(t, s.Address).Publish(topic, all...))
	require.Equal(t, ids(all), kept(s, "BAHI", len(all)))
}

func TestOthersMayPublishToTheStream(t *testing.T) {
	t.Parallel()
	s := feedtest.Start(t)
	p := open(t, s.Address)
	all := feedtest.Messages(t, 300)
	require.NoError(t, p.Publish(topic, all[0]))
	js, begun, stop, stopped := s.JetStream(), make(chan struct{}), make(chan struct{}), make(chan int)
	first := sync.OnceFunc(func() { close(begun) })
	go func() {
		others := 0
		for {
			select {
			case <-stop:
				stopped <- others
				return
			default:
				if _, err := js.Publish(t.Context(), topic+".others", nil); err == nil {
					others++
					first()
				}
			}
		}
	}()
	<-begun
	require.NoError(t, p.Publish(topic, all[1:]...))
	close(stop)
	others := <-stopped
	var ours []string
	for _, id := range kept(s, "BAHI", len(all)+others) {
		if id != "" {
			ours = append(ours, id)
		}
	}
	require.Equal(t, ids(all), ours)
}

func TestNothingOvertakesATooLargeMessage(t *testing.T) {
	t.Parallel()
	s := feedtest.Start(t)
	config := jetstream.StreamConfig{Name: "SMALL", Subjects: []string{topic + ".>"}, MaxMsgSize: 2000}
	_, err := s.JetStream().CreateStream(t.Context(), config)
	require.NoError(t, err)
	all := feedtest.Messages(t, 9)
	all[4] = feedtest.Message(t, "bank-1", `"`+strings.Repeat("x", 4000)+`"`)
	p := open(t, s.Address)
	for range 2 {
		refused := (*feed.Refused)(nil)
		require.ErrorAs(t, p.Publish(topic, all...), &refused)
		require.Equal(t, all[4].UUID, refused.ID)
		require.ErrorContains(t, refused, "message size exceeds maximum allowed")
		require.Equal(t, ids(all[:4]), kept(s, "SMALL", 4))
	}
	config.MaxMsgSize = -1
	_, err = s.JetStream().UpdateStream(t.Context(), config)
	require.NoError(t, err)
	require.NoError(t, p.Publish(topic, all...))
	require.Equal(t, ids(all), kept(s, "SMALL", 9))
}

func TestMessageTooLargeForTheServerIsRefused(t *testing.T) {
	t.Parallel()
	s := feedtest.Start(t, func(o *server.Options) { o.MaxPayload = 4096 })
	all := feedtest.Messages(t, 3)
	all[1] = feedtest.Message(t, "bank-1", `"`+strings.Repeat("x", 4096)+`"`)
	refused := (*feed.Refused)(nil)
	p := open(t, s.Address)
	require.ErrorAs(t, p.Publish(topic, all...), &refused)
	require.Equal(t, all[1].UUID, refused.ID)
	require.ErrorContains(t, refused, "4096 bytes at most (max_payload)")
	require.Equal(t, ids(all[:1]), kept(s, "BAHI", 1))

	s.Reload(func(o *server.Options) { o.MaxPayload = 65536 }) // connected clients are not notified
	require.NoError(t, p.Publish(topic, all...))
	require.Equal(t, ids(all), kept(s, "BAHI", 3))
}

func TestOutageIsNotARefusal(t *testing.T) {
	t.Parallel()
	s := feedtest.Start(t)
	p := open(t, s.Address)
	s.Stop()
	m := feedtest.Messages(t, 1)
	err := p.Publish(topic, m...)
	require.ErrorContains(t, err, "cannot reach NATS")
	require.NotErrorAs(t, err, new(*feed.Refused))
	s.Start()
	require.Eventually(t, func() bool { return p.Publish(topic, m...) == nil }, time.Minute, 20*time.Millisecond)
	require.Equal(t, ids(m), kept(s, "BAHI", 1))
}

func TestServerWithoutJetStreamIsReported(t *testing.T) {
	t.Parallel()
	s := feedtest.Start(t, func(o *server.Options) { o.JetStream = false })
	require.ErrorContains(t, open(t, s.Address).Publish(topic, feedtest.Messages(t, 1)...), "the NATS server has no JetStream")
}

func TestUserSignsInOverTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca, err := esdbserver.OpenCA(dir, []string{"127.0.0.1"}, time.Now)
	require.NoError(t, err)
	roots := filepath.Join(dir, "ca.crt")
	s := feedtest.Start(t, func(o *server.Options) {
		o.Username, o.Password, o.TLSConfig, o.TLS, o.TLSTimeout = "bahi", "geheim", ca.TLS(), true, 5
	})
	with := func(password string) *nats.Publisher {
		return open(t, strings.Replace(s.Address, "nats://", "nats://bahi:"+password+"@", 1)+"?ca="+url.QueryEscape(roots))
	}
	all := feedtest.Messages(t, 2)
	require.NoError(t, with("geheim").Publish(topic, all...))
	require.ErrorContains(t, with("wrong").Publish(topic, all...), "authorization violation")
}

func TestRestoredAccessNeedsNoRestart(t *testing.T) {
	t.Parallel()
	s := feedtest.Start(t, func(o *server.Options) { o.Username, o.Password = "bahi", "geheim" })
	address := s.Address
	s.Address = strings.Replace(address, "nats://", "nats://bahi:geheim@", 1) // the address for readers
	p := open(t, strings.Replace(address, "nats://", "nats://bahi:neu@", 1))
	all := feedtest.Messages(t, 2)
	var first time.Time
	require.Eventually(t, func() bool {
		err := p.Publish(topic, all...)
		if turned := err != nil && strings.Contains(strings.ToLower(err.Error()), "authorization violation"); turned && first.IsZero() {
			first = time.Now()
		}
		return !first.IsZero() && time.Since(first) > 2*time.Second
	}, time.Minute, 20*time.Millisecond)
	s.Stop()
	s.Configure(func(o *server.Options) { o.Password = "neu" })
	s.Start()
	require.Eventually(t, func() bool { return p.Publish(topic, all...) == nil }, time.Minute, 20*time.Millisecond)
}

func TestInvalidAddressIsRefused(t *testing.T) {
	t.Parallel()
	for address, why := range map[string]string{
		"nats://":                         "expected an address",
		"nats://a:b":                      "expected an address",
		"nats://localhost:4222/x":         "expected an address",
		"nats://localhost?strem=X":        `unknown option "strem"; known are stream, replicas, creds, ca`,
		"nats://localhost?replicas=two":   "replicas: expected a number",
		"nats://localhost?creds=/nowhere": "creds: stat /nowhere",
		"nats://localhost?ca=/nowhere":    "read the authorities' certificates",
	} {
		_, err := nats.Open(address, nil)
		require.ErrorContains(t, err, why, address)
	}
	_, err := nats.Open("tls://token@one:4222,two:4222?replicas=3&stream=BOOKS", nil)
	require.NoError(t, err)
}
