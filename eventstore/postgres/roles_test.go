package postgres

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/event"
	"bahi/eventstore"
)

// The test binary is also the node of the test with many processes. It follows the log; if it is a writer, sixteen
// clients append to it. It writes each outcome to its standard output, a line at a time, before it continues, so
// that a SIGKILL loses no acknowledged append from the report.
//
//	ok <stream> <position> <revision> <ids>    an append was acknowledged
//	no <ids>                                   an append was refused: it must never be in the log
//	saw <after> <last> <sum>                   a follower's summary of what it was given
//	wrong <text>                               a violation
//
// It reads "stop" from its standard input, and later "until <position>", where it ends.
const (
	roleVariable = "BAHI_TEST_ROLE"
	urlVariable  = "BAHI_TEST_URL"
	seedVariable = "BAHI_TEST_SEED"
	clients      = 16
)

type role struct {
	store *Store
	seed  uint64
	stop  chan struct{} // writers stop appending
	until chan struct{} // closed when last is known
	last  event.Position

	mu sync.Mutex
}

func play(name string) int {
	if err := playRole(name); err != nil {
		fmt.Fprintln(os.Stderr, name, err)
		return 1
	}
	return 0
}

func playRole(name string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	config, err := pgxpool.ParseConfig(os.Getenv(urlVariable))
	if err != nil {
		return err
	}
	config.MaxConns = 4
	config.ConnConfig.RuntimeParams["application_name"] = name
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	r := &role{stop: make(chan struct{}), until: make(chan struct{})}
	if r.seed, err = strconv.ParseUint(os.Getenv(seedVariable), 10, 64); err != nil {
		return err
	}
	var head event.Position
	for { // a fault may be active when it starts
		if r.store, err = Open(ctx, pool, slog.New(slog.DiscardHandler)); err == nil {
			if head, err = r.store.Head(ctx); err == nil {
				break
			}
			r.store.Close()
		}
	}
	defer r.store.Close()

	var all sync.WaitGroup
	for _, after := range []event.Position{0, head} {
		all.Go(func() { r.follow(ctx, after) })
	}
	if name == "writer" {
		for n := range clients {
			all.Go(func() { r.write(ctx, rand.New(rand.NewPCG(r.seed, uint64(n)))) })
		}
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if in.Text() == "stop" {
			close(r.stop)
			continue
		}
		if _, err := fmt.Sscanf(in.Text(), "until %d", &r.last); err != nil {
			return err
		}
		close(r.until)
		all.Wait()
		return nil
	}
	return errors.New("standard input was closed")
}

func (r *role) sayf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	os.Stdout.Write(fmt.Appendf(nil, format+"\n", args...)) // one write, so that short lines stay whole
}

// digest hashes the fields of an event that a reader sees.
func digest(e event.Stored) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, e.Position, e.Stream, e.Revision, e.ID, e.Type, string(e.Data), string(e.Meta), e.At.UnixMicro())
	return h.Sum64()
}

// follow checks that the log continues without a gap, whatever happens to connections.
func (r *role) follow(ctx context.Context, after event.Position) {
	var (
		last = after
		told = after
		sum  uint64
	)
	for !r.ended(last) {
		following, cancel := r.untilKnown(ctx)
		for batch, err := range r.store.Subscribe(following, last) {
			if err != nil {
				break // the connection was lost, or the end is now known
			}
			for _, e := range batch.Events {
				if e.Position != last+1 || !bytes.Equal(e.Data, made(e.ID).Data) {
					r.sayf("wrong after %d comes %d with %s", last, e.Position, e.Data)
					cancel()
					return
				}
				last, sum = e.Position, sum+digest(e)
			}
			if last-told > 500 {
				told = last
				r.sayf("saw %d %d %d", after, last, sum)
			}
			if r.ended(last) {
				break
			}
		}
		cancel()
	}
	r.sayf("saw %d %d %d", after, last, sum)
}

func (r *role) ended(last event.Position) bool {
	select {
	case <-r.until:
		return last >= r.last
	default:
		return false
	}
}

// untilKnown returns a context that is cancelled when the end is known.
func (r *role) untilKnown(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	select {
	case <-r.until:
	default:
		go func() {
			select {
			case <-r.until:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, cancel
}

// write appends until it must stop: to its own streams and to shared streams, with repetitions.
func (r *role) write(ctx context.Context, chance *rand.Rand) {
	type done struct {
		request  eventstore.Write
		appended eventstore.Appended
	}
	var answered []done
	revisions := map[string]int64{}
	for {
		select {
		case <-r.stop:
			return
		default:
		}
		request := eventstore.Write{Stream: "own-" + uuid.NewString(), Expected: eventstore.NoStream, Events: makes(1 + chance.IntN(3))}
		limit := time.Minute
		switch n := chance.IntN(20); {
		case n < 4:
			request.Stream, request.Expected = fmt.Sprint("shared-", chance.IntN(4)), eventstore.Any
		case n < 6:
			request.Stream = fmt.Sprint("shared-", chance.IntN(4))
			request.Expected = eventstore.Expected(revisions[request.Stream])
		case n < 7:
			limit = time.Duration(chance.IntN(3000)) * time.Microsecond
		case n < 9 && len(answered) > 0:
			before := answered[chance.IntN(len(answered))]
			now, err := r.store.Append(ctx, eventstore.To(before.request.Stream, before.request.Expected, before.request.Events...))
			var conflict *eventstore.WrongRevision
			now.Replayed = false
			if errors.As(err, &conflict) || err == nil && now != before.appended {
				r.sayf("wrong repetition %v: %v, then %v %v", before.request.Stream, before.appended, now, err)
			}
			continue
		}
		within, cancel := context.WithTimeout(ctx, limit)
		appended, err := r.store.Append(within, eventstore.To(request.Stream, request.Expected, request.Events...))
		cancel()
		ids := make([]string, len(request.Events))
		for i, e := range request.Events {
			ids[i] = e.ID.String()
		}
		switch {
		case err == nil:
			r.sayf("ok %s %d %d %s", request.Stream, appended.Position, appended.Revision, strings.Join(ids, ","))
			revisions[request.Stream] = appended.Revision
			appended.Replayed = false
			if len(answered) < 1000 {
				answered = append(answered, done{request, appended})
			}
		case errors.Is(err, eventstore.ErrInDoubt): // unknown: report nothing
		default:
			r.sayf("no %s", strings.Join(ids, ","))
			if errors.Is(err, eventstore.ErrUnavailable) {
				<-time.After(5 * time.Millisecond) // as a client would
			}
		}
	}
}
