package app

import (
	"errors"
	"log/slog"
	"regexp"
	"strings"

	"github.com/ThreeDotsLabs/watermill/message"

	"bahi/domain/event"
	"bahi/http"
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

// openFeed returns the feed of the settings, or nil. It connects when it runs.
func (s *System) openFeed() *feedreact.Feed {
	if s.outside.broker == nil {
		return nil
	}
	return feedreact.New(feedreact.Config{
		Store: s.Store, Pool: s.Pool, Broker: s.outside.broker, Topic: s.outside.topic, FromNow: s.Settings.Outside.FeedFrom == "now",
		Program: Version, Log: s.Log, Silent: s.Settings.TakeOver,
	})
}

// openBroker returns the broker's adapter, which has not connected yet.
func (f feedSettings) openBroker(log *slog.Logger) (message.Publisher, error) {
	switch scheme, _, _ := strings.Cut(f.FeedURL, "://"); scheme {
	case "nats", "tls":
		return nats.Open(f.FeedURL, log)
	case "kafka":
		return kafka.Open(f.FeedURL)
	default:
		return nil, errors.New("expected an address that begins with nats://, tls:// or kafka://")
	}
}

// feedReadiness returns the state of the feed, nil without one.
func (s *System) feedReadiness(head event.Position) *http.Feed {
	if s.feed == nil {
		return nil
	}
	now := s.feed.Status()
	return &http.Feed{State: now.State, Position: now.Position, LagEvents: lag(head, now.Position), Error: now.Error}
}
