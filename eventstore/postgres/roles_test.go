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

// The test binary is also the node of the test of many processes: it follows the log, and if it is a
// writer, sixteen clients append to it. What it does and sees it tells on its standard output, a line
// at a time, before it goes on; so a kill -9 loses nothing that was answered.
//
//	ok <stream> <position> <revision> <ids>    an append that was answered
//	no <ids>                                   one that was refused: it must never be there
//	saw <after> <last> <sum>                   a follower's account of what it was given
//	wrong <text>                               something that must not be
//
// On its standard input it is told "stop", and later "until <position>": there it ends.
const (
	roleVariable = "BAHI_TEST_ROLE"
	urlVariable  = "BAHI_TEST_URL"
	seedVariable = "BAHI_TEST_SEED"
	clients      = 16
)

type role struct {
	store *Store
	seed  uint64
	stop  chan struct{} // writers append no more
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
	for { // it may be started in the middle of trouble
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
	return errors.New("nobody is there any more")
}

func (r *role) sayf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	os.Stdout.Write(fmt.Appendf(nil, format+"\n", args...)) // in one piece, as long as it is short
}

// digest tells events apart in all that a reader sees.
func digest(e event.Stored) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, e.Position, e.Stream, e.Revision, e.ID, e.Type, string(e.Data), string(e.Meta), e.At.UnixMicro())
	return h.Sum64()
}

// follow checks that the log goes on without a gap, whatever happens to connections.
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
				break // its connection was taken away, or the end is known now
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

// untilKnown is cancelled when the end becomes known: who is there waits for nothing more.
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

// write appends until it is told to stop: streams of its own, streams that all append to, repetitions.
func (r *role) write(ctx context.Context, chance *rand.Rand) {
	type done struct {
		request  eventstore.Request
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
		request := eventstore.Request{Stream: "own-" + uuid.NewString(), Expected: eventstore.NoStream, Events: makes(1 + chance.IntN(3))}
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
			now, err := r.store.Append(ctx, before.request.Stream, before.request.Expected, before.request.Events...)
			var conflict *eventstore.WrongRevision
			now.Replayed = false
			if errors.As(err, &conflict) || err == nil && now != before.appended {
				r.sayf("wrong repetition %v: %v, then %v %v", before.request.Stream, before.appended, now, err)
			}
			continue
		}
		within, cancel := context.WithTimeout(ctx, limit)
		appended, err := r.store.Append(within, request.Stream, request.Expected, request.Events...)
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
		case errors.Is(err, eventstore.ErrInDoubt): // that is no answer
		default:
			r.sayf("no %s", strings.Join(ids, ","))
			if errors.Is(err, eventstore.ErrUnavailable) {
				<-time.After(5 * time.Millisecond) // as a client would
			}
		}
	}
}
