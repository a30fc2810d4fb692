package feedreact

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/projections"
	"bahi/providers/feed"
)

const (
	// maxConcurrent limits the messages in one call of the broker. A slow broker gets fewer.
	maxConcurrent = 4096

	// The delay between attempts doubles from the first to the longest.
	firstWait   = 250 * time.Millisecond
	longestWait = 10 * time.Second
)

// Config has the dependencies of a Feed.
type Config struct {
	Store eventstore.Store
	Pool  *pgxpool.Pool // on the database with the checkpoint

	// Broker receives messages. Publish MUST return nil only if it has stored all of them, each subject's in the given order, and MUST accept
	// repetitions. It MUST end with the context of the first message, and MUST limit its own duration. Its error is a [*feed.Refused] if it
	// will never accept a message. The broker MUST have stored the messages before the refused one, and none of the same subject after it.
	Broker message.Publisher

	Topic   string // the destination, in terms of the broker's adapter
	FromNow bool   // start at the log's head if there is no checkpoint; otherwise at the beginning
	Program string // version of the program, for error reports
	Log     *slog.Logger

	Silent time.Duration // see [projections.Runner]
}

// Feed forwards a log to a broker.
type Feed struct {
	config Config
	runner *projections.Runner
	most   int // messages in one call of the broker

	published, failures prometheus.Counter
}

// New creates a feed.
func New(config Config) *Feed {
	f := &Feed{
		config: config, runner: projections.NewRunner(config.Store, config.Pool, config.Log), most: maxConcurrent,
		published: prometheus.NewCounter(prometheus.CounterOpts{Name: "bahi_feed_published_total",
			Help: "Events forwarded by this process, repetitions included."}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{Name: "bahi_feed_failures_total",
			Help: "Failed attempts of this process to publish events."}),
	}
	f.runner.Program, f.runner.Silent = config.Program, config.Silent
	return f
}

// Run forwards events until ctx ends. Of several processes one forwards.
func (f *Feed) Run(ctx context.Context) error {
	return f.runner.React(ctx, projections.Forward(Name, !f.config.FromNow, f.forward))
}

// forward publishes events until the broker has all events, or all events before a refused one. If the broker times out, forward halves the
// number of messages per call, so a slow broker makes progress.
func (f *Feed) forward(ctx context.Context, events []event.Stored, waits func(error)) (kept int, err error) {
	messages := make([]*message.Message, len(events))
	for i, e := range events {
		messages[i] = Message(f.config.Store.ID(), e)
		messages[i].SetContext(ctx)
	}
	defer func() { f.published.Add(float64(kept)) }()
	wait, said := firstWait, ""
	for kept < len(messages) {
		some := messages[kept:min(kept+f.most, len(messages))]
		err := f.config.Broker.Publish(f.config.Topic, some...)
		if err == nil {
			if said != "" {
				waits(nil)
			}
			kept += len(some)
			wait, said, f.most = firstWait, "", min(f.most+f.most/8+1, maxConcurrent)
			continue
		}
		if ctx.Err() != nil {
			return kept, ctx.Err()
		}
		f.failures.Inc()
		if refused, is := errors.AsType[*feed.Refused](err); is {
			return slices.IndexFunc(messages, func(m *message.Message) bool { return m.UUID == refused.ID }), err
		}
		if text := err.Error(); text != said {
			said = text
			waits(err)
		}
		select {
		case <-ctx.Done():
			return kept, ctx.Err()
		case <-time.After(wait/2 + rand.N(wait)): //nolint:gosec // G404: it only spreads load
		}
		wait, f.most = min(2*wait, longestWait), max(1, len(some)/2)
	}
	return kept, nil
}
