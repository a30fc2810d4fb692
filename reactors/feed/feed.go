package feed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/projections"
)

const (
	// tryAgain is how long a process waits before it looks whether it may forward, or whether what was in its
	// way is gone.
	tryAgain = 250 * time.Millisecond

	// watchEvery is how soon a feed notices that somebody else has moved its checkpoint.
	watchEvery = time.Second

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

	// Broker takes messages. Publish MUST answer nil only when it keeps all of them, those of one subject in the
	// order in which they were given to it, however often it is called with the same ones again; it MUST heed the
	// context of the first, and come to an end by itself.
	Broker message.Publisher
	// Refused answers the message that an error of Publish is about if the broker will never take that one as
	// it is. Those before it MUST then be kept, and of those behind it none of the same subject.
	Refused func(err error) (id string, refused bool)

	Topic   string // where messages go, in the words of the broker's adapter
	FromNow bool   // without a checkpoint it begins at the head of the log; false: at the beginning
	Program string // version of the program, for who looks at an error
	Log     *slog.Logger
}

// Feed forwards a log to a broker.
type Feed struct {
	config  Config
	conn    *pgx.ConnConfig
	owner   uuid.UUID
	metrics *metrics

	mu     sync.Mutex
	status Status
}

// New makes a feed that does nothing yet.
func New(config Config) *Feed {
	f := &Feed{config: config, conn: config.Pool.Config().ConnConfig.Copy(), owner: uuid.New(), metrics: newMetrics(), status: Status{State: Waiting}}
	// Whatever a crash takes back is forwarded once more, under the same ids.
	f.conn.RuntimeParams["synchronous_commit"] = "off"
	f.conn.RuntimeParams["application_name"] = "bahi feed"
	projections.Noticed(f.conn.RuntimeParams)
	return f
}

// refusal is an event that the broker will never take as it is.
type refusal struct {
	at  event.Stored
	err error
}

func (r *refusal) Error() string {
	return fmt.Sprintf("event %s at position %d: %v", r.at.Type, r.at.Position, r.err)
}

func (r *refusal) Unwrap() error { return r.err }

var errStandby = errors.New("another process forwards")

// Run forwards what is committed until ctx ends.
func (f *Feed) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := f.work(ctx)
		if ctx.Err() != nil {
			return
		}
		f.explain(ctx, err)
		pause(ctx, tryAgain)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// work forwards if no other process does, until something goes wrong. Of all processes the one forwards that has the
// lock, for as long as its connection lasts; the fence on the checkpoint keeps out one that has lost it.
func (f *Feed) work(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, f.conn)
	if err != nil {
		return fmt.Errorf("connect the feed: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it is given up
	var locked bool
	if err := conn.QueryRow(ctx, `select pg_try_advisory_lock(8241004, hashtext($1))`, Name).Scan(&locked); err != nil {
		return err
	}
	if !locked {
		return errStandby
	}
	for {
		err := f.forward(ctx, conn)
		if !errors.Is(err, errMoved) || ctx.Err() != nil {
			return err
		}
		f.config.Log.Info("the feed's checkpoint was moved, and it goes on from there")
	}
}

// forward follows the log from the checkpoint on.
func (f *Feed) forward(ctx context.Context, conn *pgx.Conn) error {
	h, err := f.begin(ctx, conn)
	if h != nil {
		f.set(func(s *Status) { s.Position = h.at })
	}
	if err != nil {
		return err
	}
	skips, err := skipped(ctx, f.config.Store)
	if err != nil {
		return err
	}
	f.set(func(s *Status) { *s = Status{State: Live, Position: h.at, Working: true} })
	reading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go f.watch(reading, stop)
	for batch, err := range f.config.Store.Subscribe(reading, h.at) {
		if err == nil {
			err = f.hand(reading, h, batch, skips)
			f.set(func(s *Status) { s.Position = h.at })
		}
		if errors.Is(context.Cause(reading), errMoved) {
			return errMoved
		}
		if err != nil {
			return err
		}
	}
	return cmp.Or(context.Cause(reading), errors.New("the log ended"))
}

// watch stops the reading when somebody has taken the checkpoint, of which a feed with nothing to do hears otherwise
// only with the next event.
func (f *Feed) watch(ctx context.Context, stop context.CancelCauseFunc) {
	for pause(ctx, watchEvery); ctx.Err() == nil; pause(ctx, watchEvery) {
		var ours bool
		err := f.config.Pool.QueryRow(ctx, `select owner = $2 from reactor.checkpoint where name = $1`, Name, f.owner).Scan(&ours)
		if err == nil && !ours {
			stop(errMoved)
		}
	}
}

// hand forwards a batch and moves the checkpoint behind it, or up to an event that is refused. The checkpoint stands at an event,
// by which it knows the log: that a log has passed over what is its own, behind that event, tells nobody anything.
func (f *Feed) hand(ctx context.Context, h *hold, batch eventstore.Batch, skips map[event.Position]bool) error {
	if len(batch.Events) == 0 {
		return nil
	}
	events := slices.DeleteFunc(slices.Clone(batch.Events), func(e event.Stored) bool { return skips[e.Position] })
	messages := make([]*message.Message, len(events))
	for i, e := range events {
		messages[i] = Message(f.config.Store.ID(), e)
		messages[i].SetContext(ctx)
	}
	refused, err := f.publish(ctx, h, messages)
	if refused > 0 {
		last := &events[refused-1]
		f.metrics.published.Add(float64(refused))
		if err := h.move(ctx, last.Position, &last.ID); err != nil {
			return err
		}
	}
	switch {
	case refused >= 0:
		return &refusal{events[refused], err}
	case err != nil:
		return err
	}
	f.metrics.published.Add(float64(len(messages)))
	last := &batch.Events[len(batch.Events)-1]
	return h.move(ctx, last.Position, &last.ID)
}

// none of the messages is refused.
const none = -1

// publish gives messages to the broker, again and again until it has them, or has those before one that it refuses. A broker
// that does not manage so many in its time is given half of them, and so on, since it would never come to an end otherwise,
// and then ever more.
func (f *Feed) publish(ctx context.Context, h *hold, messages []*message.Message) (refused int, err error) {
	wait := firstWait
	for kept := 0; kept < len(messages); {
		some := messages[kept:min(kept+h.most, len(messages))]
		err := f.config.Broker.Publish(f.config.Topic, some...)
		if err == nil {
			f.recovered()
			kept += len(some)
			wait, h.most = firstWait, min(h.most+h.most/8+1, mostAtOnce)
			continue
		}
		if ctx.Err() != nil {
			return none, ctx.Err()
		}
		f.metrics.failures.Inc()
		if id, is := f.config.Refused(err); is {
			return slices.IndexFunc(messages, func(m *message.Message) bool { return m.UUID == id }), err
		}
		f.waits(err)
		pause(ctx, wait/2+rand.N(wait)) //nolint:gosec // G404: it spreads load, and hides nothing
		if err := h.held(ctx); err != nil {
			return none, err
		}
		wait, h.most = min(2*wait, longestWait), max(1, len(some)/2)
	}
	return none, nil
}
