// Package kafka publishes to a Kafka topic.
//
// Messages are CloudEvents in binary mode (Kafka protocol binding 1.0.2: attributes are headers, the value is the payload as it is). All go
// to one topic. The record's key is the event stream, so a stream's events are in one partition, in order. With a topic per category, the
// first event of a new category would stop the feed until an operator created its topic.
//
// At most one batch per partition is in flight. Otherwise a broker that refuses a batch could store the next one, and franz-go would
// continue after the gap. After any error the producer is discarded, and a new one publishes the unacknowledged messages again.
package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"bahi/providers/feed"
)

const (
	// answerTimeout limits the wait for the brokers' acknowledgement.
	answerTimeout = 20 * time.Second

	connectTimeout = 5 * time.Second

	// metadataAfter is the minimum interval of requests to the brokers for their leader.
	metadataAfter = 500 * time.Millisecond

	// defaultMost is the largest batch, in bytes, of a topic with an unknown limit. Kafka's default is slightly larger.
	defaultMost = 1_000_012

	// The bounds that franz-go accepts.
	minMost      = 512
	greatestMost = 64 << 20

	// batchOverhead is an upper bound of the size of a batch with one record, without key, value and headers. headerOverhead is an upper
	// bound for a header, without its name and value.
	batchOverhead  = 256
	headerOverhead = 16
)

// Publisher publishes to a topic. One goroutine uses it.
type Publisher struct {
	options []kgo.Opt
	client  *kgo.Client // nil: the next Publish opens one
	most    int32       // largest batch of the topic, in bytes
	known   bool        // the client knows the topic's partitions
}

var _ message.Publisher = (*Publisher)(nil)

// Open returns a publisher, which connects at its first Publish. The address is
// kafka://user:password@host:port,host:port with the options
//
//   - sasl: the method of login: plain, scram-sha-256 or scram-sha-512 (default)
//   - tls: true to speak TLS
//   - ca: a file with the authorities of the brokers' certificates, in PEM; implies TLS
func Open(address string) (*Publisher, error) {
	a, err := feed.ParseAddress(address, "sasl", "tls", "ca")
	if err != nil {
		return nil, err
	}
	p := &Publisher{most: defaultMost}
	p.options = []kgo.Opt{
		kgo.SeedBrokers(a.Hosts...), kgo.ClientID("bahi-feed"), kgo.DialTimeout(connectTimeout), kgo.AllowAutoTopicCreation(),
		kgo.MetadataMinAge(metadataAfter), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.StopProducerOnDataLossDetected(),
		kgo.AllowIdempotentProduceCancellation(), // a cancelled client is discarded
		kgo.ManualFlushing(),                     // so that a batch is complete
		kgo.ProducerBatchMaxBytesFn(func(string) int32 { return p.most }),
	}
	encrypted, err := strconv.ParseBool(a.Options.Get("tls"))
	if a.Options.Has("tls") && err != nil {
		return nil, errors.New("tls: expected true or false")
	}
	if encrypted || a.TLS.RootCAs != nil {
		p.options = append(p.options, kgo.DialTLSConfig(a.TLS))
	}
	password, _ := a.User.Password()
	if a.User != nil && password == "" {
		return nil, errors.New("sasl: the user has no password")
	}
	mechanism, err := signIn(a.Options.Get("sasl"), a.User.Username(), password)
	switch {
	case err != nil:
		return nil, err
	case a.User != nil:
		p.options = append(p.options, kgo.SASL(mechanism))
	case a.Options.Has("sasl"):
		return nil, errors.New("sasl: the address has no user")
	}
	return p, nil
}

func signIn(how, user, password string) (sasl.Mechanism, error) {
	switch how {
	case "plain":
		return plain.Auth{User: user, Pass: password}.AsMechanism(), nil
	case "scram-sha-256":
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism(), nil
	case "", "scram-sha-512":
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism(), nil
	default:
		return nil, errors.New("sasl: expected plain, scram-sha-256 or scram-sha-512")
	}
}

// Close implements message.Publisher.
func (p *Publisher) Close() error {
	p.discard()
	return nil
}

func (p *Publisher) discard() {
	if p.client != nil {
		p.client.Close()
		p.client, p.known = nil, false
	}
}

// Publish implements message.Publisher. It returns when all in-sync replicas have all messages.
//
// Publish fails with a [feed.Refused] that names a message larger than the topic allows. After any other error some messages may
// be stored, the first ones of each event stream.
func (p *Publisher) Publish(topic string, messages ...*message.Message) error {
	if len(messages) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(messages[0].Context(), answerTimeout)
	defer cancel()
	if p.client == nil {
		if err := p.connect(ctx, topic); err != nil {
			p.discard()
			return err
		}
	}
	records, refused := make([]*kgo.Record, 0, len(messages)), (*feed.Refused)(nil)
	for _, m := range messages {
		r := record(topic, m)
		if n := size(r); n > int(p.most) {
			refused = &feed.Refused{ID: m.UUID,
				Err: fmt.Errorf("the topic %s takes messages of %d bytes at most (max.message.bytes), not of %d", topic, p.most, n)}
			break // later messages must not overtake it
		}
		records = append(records, r)
	}
	err := p.produce(ctx, records)
	if err != nil || refused != nil { // the limit may be raised later
		p.discard()
	}
	switch {
	case err != nil:
		return fmt.Errorf("publish to Kafka: %w", err)
	case refused != nil:
		return refused
	default:
		return nil
	}
}

// produce publishes records, one batch of a partition after the other.
func (p *Publisher) produce(ctx context.Context, records []*kgo.Record) error {
	for len(records) > 0 {
		n, bytes := 0, 0
		for n < len(records) && (n == 0 || p.known && bytes+size(records[n]) <= int(p.most)) {
			bytes += size(records[n])
			n++
		}
		if err := p.flush(ctx, records[:n]); err != nil {
			return err
		}
		p.known, records = true, records[n:]
	}
	return nil
}

// flush publishes records that form one batch per partition. It waits for all of them and returns the first error.
func (p *Publisher) flush(ctx context.Context, records []*kgo.Record) error {
	var first kgo.FirstErrPromise
	for _, r := range records {
		p.client.Produce(ctx, r, first.Promise())
	}
	_ = p.client.Flush(ctx) // the records report an ended context too
	return first.Err()
}

// connect opens a client and reads the topic's largest batch.
func (p *Publisher) connect(ctx context.Context, topic string) (err error) {
	if p.client, err = kgo.NewClient(p.options...); err != nil {
		return fmt.Errorf("create a Kafka client: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := p.client.Ping(ctx); err != nil {
		return fmt.Errorf("cannot reach Kafka: %w", err)
	}
	p.most = defaultMost
	request := kmsg.NewPtrDescribeConfigsRequest()
	resource := kmsg.NewDescribeConfigsRequestResource()
	resource.ResourceType, resource.ResourceName, resource.ConfigNames = kmsg.ConfigResourceTypeTopic, topic, []string{"max.message.bytes"}
	request.Resources = append(request.Resources, resource)
	answer, err := request.RequestWith(ctx, p.client)
	if err != nil {
		return fmt.Errorf("read the limits of topic %s: %w", topic, err)
	}
	for _, r := range answer.Resources {
		if kerr.ErrorForCode(r.ErrorCode) != nil {
			continue // no topic yet, or no permission to read its limits
		}
		for _, c := range r.Configs {
			if c.Value == nil {
				continue
			}
			if most, err := strconv.ParseInt(*c.Value, 10, 32); err == nil && most >= minMost {
				p.most = int32(min(most, greatestMost))
			}
		}
	}
	return nil
}

// record returns the message as a Kafka record.
func record(topic string, m *message.Message) *kgo.Record {
	r := &kgo.Record{Topic: topic, Key: []byte(m.Metadata["subject"]), Value: m.Payload, Headers: make([]kgo.RecordHeader, 0, len(m.Metadata))}
	for name, value := range m.Metadata {
		key := "ce_" + name
		if name == "datacontenttype" {
			key = "content-type"
		}
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: key, Value: []byte(value)})
	}
	return r
}

// size returns an upper bound of a batch of this record alone.
func size(r *kgo.Record) int {
	n := batchOverhead + len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += headerOverhead + len(h.Key) + len(h.Value)
	}
	return n
}
