// Kafka itself is not on this machine. kfake is franz-go's broker for tests: it speaks Kafka's protocol over TCP, checks the sequences of
// idempotent producers and stores its topics in a folder.
package kafka_test

import (
	"context"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/cloudevents/sdk-go/v2/binding/spec"
	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"bahi/eventstore/esdbserver"
	"bahi/internal/test/feedtest"
	"bahi/providers/feed"
	"bahi/providers/feed/kafka"
)

const (
	topic      = "bahi.events"
	partitions = 4
)

func start(t *testing.T, options ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(partitions, topic)}, options...)...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func address(c *kfake.Cluster) string { return "kafka://" + strings.Join(c.ListenAddrs(), ",") }

func open(t *testing.T, address string) *kafka.Publisher {
	t.Helper()
	p, err := kafka.Open(address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// byStream returns the ids of messages by stream, in their order.
func byStream(messages []*message.Message) map[string][]string {
	all := map[string][]string{}
	for _, m := range messages {
		all[m.Metadata["subject"]] = append(all[m.Metadata["subject"]], m.UUID)
	}
	return all
}

// kept returns the topic's records once there are count of them.
func kept(t *testing.T, c *kfake.Cluster, count int) (records []*kgo.Record) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for len(records) < count {
		fetched := client.PollFetches(ctx)
		require.NoError(t, fetched.Err())
		records = append(records, fetched.Records()...)
	}
	return records
}

// idsByStream returns the ids of records by stream. Of a repeated record the first counts.
func idsByStream(records []*kgo.Record) map[string][]string {
	all, seen := map[string][]string{}, map[string]bool{}
	for _, r := range records {
		if id := header(r, "ce_id"); !seen[id] {
			seen[id] = true
			all[string(r.Key)] = append(all[string(r.Key)], id)
		}
	}
	return all
}

func header(r *kgo.Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

func TestRecordIsACloudEventWithTheExactPayload(t *testing.T) {
	t.Parallel()
	c := start(t)
	m := feedtest.Message(t, "bank-12", `{ "amount": 1250.50,  "id": 9007199254740993 }`)
	m.Metadata["reason"] = "50 % zurück an \"Asha\""
	require.NoError(t, open(t, address(c)).Publish(topic, m))
	got := kept(t, c, 1)[0]
	require.Equal(t, "bank-12", string(got.Key))
	require.Equal(t, `{ "amount": 1250.50,  "id": 9007199254740993 }`, string(got.Value))
	require.Equal(t, "application/json", header(got, "content-type"))

	// As in CloudEvents' Go SDK: which header is which attribute, and its format.
	version := spec.WithPrefix("ce_").Version("1.0")
	e := cloudevents.New()
	for _, h := range got.Headers {
		name, isAttribute := strings.CutPrefix(h.Key, "ce_")
		switch a := version.Attribute(h.Key); {
		case a != nil:
			require.NoError(t, a.Set(e.Context, string(h.Value)), h.Key)
		case isAttribute:
			e.SetExtension(name, string(h.Value))
		}
	}
	require.NoError(t, e.SetData(header(got, "content-type"), got.Value))
	require.NoError(t, e.Validate())
	require.Equal(t, m.UUID, e.ID())
	require.Equal(t, "bank-12", e.Subject())
	require.Equal(t, time.Date(2026, 11, 21, 21, 0, 0, 1000, time.UTC), e.Time())
	require.Equal(t, "50 % zurück an \"Asha\"", e.Extensions()["reason"])
}

func TestStreamStaysInOrderInOnePartition(t *testing.T) {
	t.Parallel()
	c := start(t)
	all := feedtest.Messages(t, 2000)
	p := open(t, address(c))
	require.NoError(t, p.Publish(topic, all[:900]...))
	require.NoError(t, p.Publish(topic, all[900:]...))
	records := kept(t, c, len(all))
	require.Len(t, records, len(all))
	require.Equal(t, byStream(all), idsByStream(records))
	partition := map[string]int32{}
	for _, r := range records {
		if _, known := partition[string(r.Key)]; !known {
			partition[string(r.Key)] = r.Partition
		}
		require.Equal(t, partition[string(r.Key)], r.Partition)
	}
}

func TestNothingOvertakesATooLargeMessage(t *testing.T) {
	t.Parallel()
	c := start(t)
	setLimit(t, c, "4000")
	all := feedtest.Messages(t, 30)
	all[4] = feedtest.Message(t, "bank-1", `"`+strings.Repeat("x", 4000)+`"`)
	p := open(t, address(c))
	for range 2 {
		refused := (*feed.Refused)(nil)
		require.ErrorAs(t, p.Publish(topic, all...), &refused)
		require.Equal(t, all[4].UUID, refused.ID)
		require.ErrorContains(t, refused, "takes messages of 4000 bytes at most (max.message.bytes)")
		require.Equal(t, byStream(all[:4]), idsByStream(kept(t, c, 4)))
	}
	setLimit(t, c, "8000")
	require.NoError(t, p.Publish(topic, all...), "the new limit is known without a restart")
	require.Equal(t, byStream(all), idsByStream(kept(t, c, 8+30)))
}

// setLimit sets the topic's max.message.bytes.
func setLimit(t *testing.T, c *kfake.Cluster, bytes string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	require.NoError(t, err)
	defer client.Close()
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	config.Name, config.Value = "max.message.bytes", &bytes
	resource.Configs = append(resource.Configs, config)
	request.Resources = append(request.Resources, resource)
	answer, err := request.RequestWith(t.Context(), client)
	require.NoError(t, err)
	require.NoError(t, kerr.ErrorForCode(answer.Resources[0].ErrorCode))
}

func TestBatchIsRepeatedInOrderAfterABrokersError(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]int16{
		"it is not the leader": kerr.NotLeaderForPartition.Code, "it takes no writes": kerr.PolicyViolation.Code,
		"its topic has shrunk": kerr.MessageTooLarge.Code, "it has lost records": kerr.OutOfOrderSequenceNumber.Code,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t)
			p := open(t, address(c))
			all := feedtest.Messages(t, 3000)
			for _, m := range all { // so that several batches of a partition are in progress
				m.Payload = []byte(`"` + strings.Repeat("x", 8000) + `"`)
			}
			require.NoError(t, p.Publish(topic, all[:1000]...))
			failed := 0
			c.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
				request, answer := r.(*kmsg.ProduceRequest), r.ResponseKind().(*kmsg.ProduceResponse)
				failed++
				for _, t := range request.Topics {
					told := kmsg.NewProduceResponseTopic()
					told.Topic, told.TopicID = t.Topic, t.TopicID
					for _, p := range t.Partitions {
						partition := kmsg.NewProduceResponseTopicPartition()
						partition.Partition, partition.ErrorCode = p.Partition, code
						told.Partitions = append(told.Partitions, partition)
					}
					answer.Topics = append(answer.Topics, told)
				}
				return answer, nil, true // and only once: the next request gets the normal response
			})
			done := 1000
			for done < len(all) {
				if err := p.Publish(topic, all[done:done+1000]...); err != nil {
					require.NotErrorAs(t, err, new(*feed.Refused))
					continue
				}
				done += 1000
			}
			require.Positive(t, failed)
			require.Equal(t, byStream(all), idsByStream(kept(t, c, len(all))))
		})
	}
}

func TestOutageOfTheBrokerIsAnErrorAndLosesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	port := feedtest.Port(t)
	c := start(t, kfake.DataDir(dir), kfake.SyncWrites(), kfake.Ports(port))
	at := address(c)
	p := open(t, at)
	all := feedtest.Messages(t, 400)
	require.NoError(t, p.Publish(topic, all[:200]...))
	c.Close()
	impatient, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	first := all[200].Copy()
	first.SetContext(impatient)
	err := p.Publish(topic, append([]*message.Message{first}, all[201:]...)...)
	require.Error(t, err)
	require.NotErrorAs(t, err, new(*feed.Refused))
	c = start(t, kfake.DataDir(dir), kfake.SyncWrites(), kfake.Ports(port))
	require.Eventually(t, func() bool { return p.Publish(topic, all[200:]...) == nil }, time.Minute, 20*time.Millisecond)
	require.Equal(t, byStream(all), idsByStream(kept(t, c, len(all))))
}

func TestBrokerMayCreateTheTopic(t *testing.T) {
	t.Parallel()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.AllowAutoTopicCreation())
	require.NoError(t, err)
	t.Cleanup(c.Close)
	all := feedtest.Messages(t, 3)
	p := open(t, address(c))
	require.Eventually(t, func() bool { return p.Publish(topic, all...) == nil }, time.Minute, 20*time.Millisecond)
	require.Equal(t, byStream(all), idsByStream(kept(t, c, 3)))
}

func TestUserSignsIn(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		c := start(t, kfake.EnableSASL(), kfake.Superuser(how, "bahi", "geheim"))
		with := func(password string) *kafka.Publisher {
			return open(t, strings.Replace(address(c), "//", "//bahi:"+password+"@", 1)+"?sasl="+strings.ToLower(how))
		}
		require.NoError(t, with("geheim").Publish(topic, feedtest.Messages(t, 1)...), how)
		require.ErrorContains(t, with("wrong").Publish(topic, feedtest.Messages(t, 1)...), "cannot reach Kafka", how)
	}
}

func TestBrokersCertificateIsVerified(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca, err := esdbserver.OpenCA(dir, []string{"127.0.0.1"}, time.Now)
	require.NoError(t, err)
	c := start(t, kfake.TLS(ca.TLS()))
	all := feedtest.Messages(t, 2)
	require.NoError(t, open(t, address(c)+"?ca="+url.QueryEscape(filepath.Join(dir, "ca.crt"))).Publish(topic, all...))
	require.ErrorContains(t, open(t, address(c)+"?tls=true").Publish(topic, all...), "certificate signed by unknown authority")
}

func TestInvalidAddressIsRefused(t *testing.T) {
	t.Parallel()
	for address, why := range map[string]string{
		"kafka://":                         "expected an address",
		"kafka://localhost:9092/topic":     "expected an address",
		"kafka://localhost?user=X":         `unknown option "user"; known are sasl, tls, ca`,
		"kafka://localhost?tls=perhaps":    "tls: expected true or false",
		"kafka://me:you@localhost?sasl=no": "sasl: expected plain, scram-sha-256 or scram-sha-512",
		"kafka://localhost?sasl=no":        "sasl: expected plain, scram-sha-256 or scram-sha-512",
		"kafka://localhost?sasl=plain":     "sasl: the address has no user",
	} {
		_, err := kafka.Open(address)
		require.ErrorContains(t, err, why, address)
	}
	_, err := kafka.Open("kafka://one:9092,two:9092?tls=true")
	require.NoError(t, err)
}
