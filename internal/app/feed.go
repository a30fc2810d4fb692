package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"

	"github.com/ThreeDotsLabs/watermill/message"

	"bahi/domain/event"
	"bahi/http"
	"bahi/providers/feed"
	"bahi/providers/feed/kafka"
	"bahi/providers/feed/nats"
	"bahi/reactors/feedreact"
)

// feedSettings configure the forwarding of events to a broker. The zero value forwards nothing.
type feedSettings struct {
	FeedURL   string `env:"FEED_URL" name:"feed-url" placeholder:"URL" example:"nats://user:password@broker.example.org:4222" help:"Broker that receives all events: nats:// (JetStream) or kafka://. Without it, Bahi has no feed."`
	FeedTopic string `env:"FEED_TOPIC" name:"feed-topic" default:"bahi.events" help:"Kafka's topic, or the prefix of NATS subjects."`
	FeedFrom  string `env:"FEED_FROM" name:"feed-from" default:"beginning" enum:"beginning,now" help:"Start of a new feed: the log's beginning, or now."`
}

const (
	defaultTopic = "bahi.events"
	maxTopic     = 200 // characters; Kafka takes 249
)

// feedTopic matches topics that both NATS and Kafka accept.
var feedTopic = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// forwarding is a feed with its broker.
type forwarding struct {
	*feedreact.Feed

	broker message.Publisher
}

// openFeed returns the feed of the settings, or nil. It connects when it runs.
func (s *System) openFeed() (*forwarding, error) {
	o := s.Settings.Outside
	if o.FeedURL == "" {
		return nil, nil //nolint:nilnil // no feed
	}
	topic, err := o.topic()
	if err != nil {
		return nil, err
	}
	broker, err := o.broker(s.Log)
	if err != nil {
		return nil, err
	}
	return &forwarding{broker: broker, Feed: feedreact.New(feedreact.Config{
		Store: s.Store, Pool: s.Pool, Broker: broker, Refused: refusedMessage, Topic: topic, FromNow: o.FeedFrom == "now", Program: Version,
		Log: s.Log, Silent: s.Settings.TakeOver,
	})}, nil
}

func (f feedSettings) topic() (string, error) {
	topic := cmp.Or(f.FeedTopic, defaultTopic)
	if !feedTopic.MatchString(topic) || len(topic) > maxTopic {
		return "", fmt.Errorf("FEED_TOPIC: expected words of letters, digits, - and _ with dots between, of %d characters at most", maxTopic)
	}
	return topic, nil
}

// broker returns the broker's adapter, which has not connected yet.
func (f feedSettings) broker(log *slog.Logger) (broker message.Publisher, err error) {
	switch scheme, _, _ := strings.Cut(f.FeedURL, "://"); scheme {
	case "nats", "tls":
		broker, err = nats.Open(f.FeedURL, log)
	case "kafka":
		broker, err = kafka.Open(f.FeedURL)
	default:
		err = errors.New("expected an address that begins with nats://, tls:// or kafka://")
	}
	if err != nil {
		return nil, fmt.Errorf("FEED_URL: %w", err)
	}
	return broker, nil
}

// refusedMessage returns the refused message of an adapter's error.
func refusedMessage(err error) (id string, refused bool) {
	if r, is := errors.AsType[*feed.Refused](err); is && r != nil {
		return r.ID, true
	}
	return "", false
}

// run forwards until the context ends.
func (f *forwarding) run(ctx context.Context) error {
	defer f.broker.Close() //nolint:errcheck // nothing depends on it any more
	return f.Run(ctx)
}

// feedReadiness returns the state of the feed, nil without one.
func (s *System) feedReadiness(head event.Position) *http.Feed {
	if s.feed == nil {
		return nil
	}
	now := s.feed.Status()
	return &http.Feed{State: now.State, Position: now.Position, LagEvents: lag(head, now.Position), Error: now.Error}
}
