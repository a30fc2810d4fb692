package feed

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/projections"
)

const (
	// mostAtOnce is how many messages a broker is given at once, unless it is too slow for that.
	mostAtOnce = 4096

	// The time between two attempts at a broker that does not take events doubles from the first to the longest.
	firstWait   = 250 * time.Millisecond
	longestWait = 10 * time.Second
)

// Config is what a Feed is made of.
type Config struct {
	Store eventstore.Store
	Gaps  bool          // are between the log's positions, so that nobody can tell how many events are left
	Pool  *pgxpool.Pool // whose database has the checkpoint

	// Broker takes messages. Publish MUST return nil only when it keeps all of them, those of one subject in the
	// order in which they were given to it, however often it is called with the same ones again; it MUST heed the
	// context of the first, and come to an end by itself.
	Broker message.Publisher
	// Refused returns the message that an error of Publish is about if the broker will never take that one as
	// it is. Those before it MUST then be kept, and of those behind it none of the same subject.
	Refused func(err error) (id string, refused bool)

	Topic   string // where messages go, in the words of the broker's adapter
	FromNow bool   // without a checkpoint it begins at the head of the log; false: at the beginning
	Program string // version of the program, for who looks at an error
	Log     *slog.Logger

	Silent time.Duration // see [projections.Runner]
}

// Feed forwards a log to a broker.
type Feed struct {
	config  Config
	runner  *projections.Runner
	metrics *metrics
	most    int // messages that the broker is given at once
}

// New makes a feed that does nothing yet.
func New(config Config) *Feed {
	f := &Feed{config: config, runner: projections.NewRunner(config.Store, config.Pool, config.Log), metrics: newMetrics(), most: mostAtOnce}
	f.runner.Program, f.runner.Silent = config.Program, config.Silent
	return f
}

// Run forwards what is committed until ctx ends. Of several processes one forwards.
func (f *Feed) Run(ctx context.Context) error {
	return f.runner.React(ctx, projections.Forward(Name, !f.config.FromNow, f.forward))
}

// forward gives events to the broker, again and again until it has them, or has those before one that it refuses. A broker that does not
// manage so many in its time is given half of them, and so on, since it would never come to an end otherwise, and then ever more.
func (f *Feed) forward(ctx context.Context, events []event.Stored, waits func(error)) (kept int, err error) {
	messages := make([]*message.Message, len(events))
	for i, e := range events {
		messages[i] = Message(f.config.Store.ID(), e)
		messages[i].SetContext(ctx)
	}
	defer func() { f.metrics.published.Add(float64(kept)) }()
	wait, said := firstWait, ""
	for kept < len(messages) {
		some := messages[kept:min(kept+f.most, len(messages))]
		err := f.config.Broker.Publish(f.config.Topic, some...)
		if err == nil {
			if said != "" {
				waits(nil)
			}
			kept += len(some)
			wait, said, f.most = firstWait, "", min(f.most+f.most/8+1, mostAtOnce)
			continue
		}
		if ctx.Err() != nil {
			return kept, ctx.Err()
		}
		f.metrics.failures.Inc()
		if id, is := f.config.Refused(err); is {
			return slices.IndexFunc(messages, func(m *message.Message) bool { return m.UUID == id }), err
		}
		if text := err.Error(); text != said {
			said = text
			waits(err)
		}
		select {
		case <-ctx.Done():
			return kept, ctx.Err()
		case <-time.After(wait/2 + rand.N(wait)): //nolint:gosec // G404: it spreads load, and hides nothing
		}
		wait, f.most = min(2*wait, longestWait), max(1, len(some)/2)
	}
	return kept, nil
}
