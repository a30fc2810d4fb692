package webhooks_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands/inbox"
	"bahi/eventstore"
	"bahi/http/opshttp"
	"bahi/internal/test/apitest"
)

func TestCallIsRecordedThenAcknowledgedThenHandled(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	a := r.send("1 hello").Status(200)
	require.Empty(t, a.Text)
	calls := r.list("")
	require.Len(t, calls, 1)
	require.Equal(t, []any{"receive-test", "waiting", true}, []any{calls[0].Endpoint, calls[0].Verdict, calls[0].HasBody})
	require.Empty(t, r.made(), "the answer waits for no effect")

	r.work()
	handled := r.until("handled", 1)[0]
	require.Equal(t, "noted 1", *handled.Effect)
	require.NotNil(t, handled.SettledAt)
	require.Nil(t, handled.Error)
	require.Equal(t, map[string]int{"1": 1}, r.made())
	require.InDelta(t, 1, r.count("bahi_webhook_received_total"), 0)
}

func TestCallWithoutAnIdIsKnownByItsBody(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	for range 3 {
		r.send(" no id").Status(200)
	}
	r.send(" no id either").Status(200)
	r.send("").Status(200)
	r.send("").Status(200)
	require.Len(t, r.list(""), 3)
}

// A burst of repeated calls in any order ends in the effects of the distinct ones.
func TestBurstHasTheEffectsOfTheDistinctCalls(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.work()
	burst(t, r, 200, 3)
}

// burst sends calls so many times each, in any order, and looks at their effects.
func burst(t *testing.T, r *fixture, distinct, times int) {
	t.Helper()
	const senders = 16
	bodies := make([]string, 0, distinct*times)
	want := map[string]int{}
	for i := range distinct {
		want[fmt.Sprint(i)] = 1
		for range times {
			bodies = append(bodies, fmt.Sprintf("%d hello", i))
		}
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(bodies), func(i, j int) { bodies[i], bodies[j] = bodies[j], bodies[i] }) // an order
	var sending sync.WaitGroup
	for s := range senders {
		sending.Go(func() {
			for i := s; i < len(bodies); i += senders {
				r.send(bodies[i]).Status(200)
			}
		})
	}
	sending.Wait()
	r.until("handled", distinct)
	require.Equal(t, want, r.made())
	require.InDelta(t, distinct, r.count("bahi_webhook_received_total"), 0)
	require.InDelta(t, distinct*(times-1), r.count("bahi_webhook_repeated_total"), 0)
}

func TestForgedCallIsRefusedCountedAndNotRecorded(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	stranger := apitest.New(t, r.url, "")
	stranger.POST(path, "1 hello").Problem(401, "Webhook proof missing or wrong")
	stranger.With("X-Secret", secret+"x").POST(path, "1 hello").Problem(401, "Webhook proof missing or wrong")
	stranger.With("X-Secret", secret[1:]).POST(path, strings.Repeat("[", 100_000)).Problem(401, "Webhook proof missing or wrong")
	require.InDelta(t, 3, r.count("bahi_webhook_refused_total"), 0)
	stranger.POST(path, "1 hello").Problem(429, "Too many requests")
	require.Empty(t, r.list(""))
	r.send("1 hello").Status(200)
	for i := range 10 {
		require.Empty(t, r.send(fmt.Sprint(i)).Status(200).Header("RateLimit"), "proven calls are not limited")
	}
}

func TestHandshakesWithAChosenTokenAreLimited(t *testing.T) {
	t.Parallel()
	stranger := apitest.New(t, newFixture(t).url, "")
	for range 3 {
		stranger.GET(path + "?crc_token=abc").Status(200).Body(`"signed"`)
	}
	stranger.GET(path+"?crc_token=abc").Problem(429, "Too many requests")
	stranger.GET(path + "?hub.challenge=1").Status(200)
}

func TestBodyIsEncryptedAndOpenToOperatorsOnly(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.send("1 payal for Asha").Status(200)
	r.send("2 \xff\x00").Status(200)
	var stored []byte
	require.NoError(t, r.pool.QueryRow(t.Context(), `select string_agg(body, '') from inbox.call`).Scan(&stored))
	require.False(t, bytes.Contains(stored, []byte("Asha")))

	var texts, encoded []string
	for _, c := range r.list("") {
		var full opshttp.WebhookBody
		r.operator.GET("/ops/webhooks/" + c.ID.String()).Status(200).JSON(&full)
		if full.Body != nil {
			texts = append(texts, *full.Body)
		} else {
			encoded = append(encoded, *full.BodyBase64)
		}
	}
	require.Equal(t, []string{"1 payal for Asha"}, texts)
	require.Equal(t, []string{"MiD/AA=="}, encoded)
	apitest.New(t, r.url, "").GET("/ops/webhooks").Problem(401, "Not authenticated")
	r.operator.GET("/ops/webhooks/"+uuid.NewString()).Problem(404, "Webhook call not found")
	r.operator.GET("/ops/webhooks/x").Problem(422, "Validation error")
	r.operator.GET("/ops/webhooks?verdict=bad").Problem(422, "Validation error")
}

func TestUnreadableCallIsParkedUntilItsReplay(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.work()
	r.send("1 garbage").Status(200)
	parked := r.until("parked", 1)[0]
	require.Equal(t, "no such word", *parked.Error)
	require.InDelta(t, 1, r.count("bahi_webhook_parked"), 0)

	r.operator.POST("/ops/webhooks/"+parked.ID.String()+"/replay", nil).Status(202)
	r.until("parked", 1)
	r.send("2 hello").Status(200)
	handled := r.until("handled", 1)[0]
	r.operator.POST("/ops/webhooks/"+handled.ID.String()+"/replay", nil).Problem(409,
		"The call is handled or queued. Only parked or ignored calls can be replayed.")
	r.operator.POST("/ops/webhooks/"+uuid.NewString()+"/replay", nil).Problem(404, "Webhook call not found")
	require.Equal(t, map[string]int{"2": 1}, r.made())
}

func TestCallWithoutEffectCanBeReplayed(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.work()
	r.send("1 nothing").Status(200)
	ignored := r.until("ignored", 1)[0]
	require.Nil(t, ignored.Effect)
	r.operator.POST("/ops/webhooks/"+ignored.ID.String()+"/replay", nil).Status(202)
	r.until("ignored", 1)
}

func TestBodyOfAStrangerIsForgotten(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.work()
	r.send("1 stranger").Status(200)
	ignored := r.until("ignored", 1)[0]
	require.False(t, ignored.HasBody)
	r.operator.POST("/ops/webhooks/"+ignored.ID.String()+"/replay", nil).Problem(409, "The call's body was removed")
}

func TestFailedCallIsTriedAgainAndParkedAtTheEnd(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.failing("1", errors.New("the database is away"))
	r.work()
	r.send("1 hello").Status(200)
	failed := func(attempts int) {
		t.Helper()
		require.Eventually(t, func() bool {
			call := r.list("")[0]
			return call.Attempts == attempts && call.Error != nil && *call.Error == "the database is away"
		}, time.Minute, 5*time.Millisecond)
	}
	failed(1)
	call := r.list("")[0]
	require.WithinRange(t, *call.DueAt, call.ReceivedAt.Add(3*time.Second), time.Now().Add(3*time.Second), "it rests")
	again := func(attempts int) {
		t.Helper()
		_, err := r.pool.Exec(t.Context(), `update inbox.call set due_at = now(), attempts = $1`, attempts)
		require.NoError(t, err)
	}
	again(1)
	failed(2)
	require.WithinRange(t, *r.list("")[0].DueAt, call.ReceivedAt.Add(9*time.Second), time.Now().Add(9*time.Second), "three times as long")
	again(11)
	require.Nil(t, r.until("parked", 1)[0].DueAt)
	r.failing("1", nil)
	require.NoError(t, r.inbox.Replay(t.Context(), call.ID))
	require.Equal(t, 1, r.until("handled", 1)[0].Attempts)
	require.Equal(t, map[string]int{"1": 1}, r.made())
}

func TestACallThatRestsIsReplayed(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.failing("1", errors.New("the database is away"))
	r.send("1 hello").Status(200)
	id := r.list("")[0].ID
	require.ErrorIs(t, r.inbox.Replay(t.Context(), id), inbox.ErrHandled, "it has not failed yet")
	r.work()
	require.Eventually(t, func() bool { return r.list("")[0].Error != nil }, time.Minute, 5*time.Millisecond)
	_, err := r.pool.Exec(t.Context(), `update inbox.call set due_at = now() + interval '1 day'`)
	require.NoError(t, err)
	r.failing("1", nil)
	r.operator.POST("/ops/webhooks/"+id.String()+"/replay", nil).Status(202)
	r.until("handled", 1)
}

func TestCallThatNoLogTakesIsParkedAtOnce(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.failing("1", fmt.Errorf("store the message: %w", &eventstore.TooLarge{Max: 1_000_000}))
	r.work()
	r.send("1 hello").Status(200)
	require.Contains(t, *r.until("parked", 1)[0].Error, "at most 1000000 bytes are stored at once")
}

// The process ends in the middle of an effect, and gives the call back to another one.
func TestInterruptedCallIsResumed(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	ctx, end := context.WithCancel(t.Context())
	r.during = func(context.Context, string) { end() }
	r.send("1 hello").Status(200)
	r.inbox.Run(ctx)
	require.Empty(t, r.made())
	require.Zero(t, r.until("waiting", 1)[0].Attempts)

	r.during = nil
	r.work()
	r.until("handled", 1)
	require.Equal(t, map[string]int{"1": 1}, r.made())
}

// The verdict of one call cannot be written, and so that of its group cannot.
func TestCallThatFailsItsGroupHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	_, err := r.pool.Exec(t.Context(), `
		create function inbox.refuse() returns trigger language plpgsql as $$ begin raise exception 'not this one'; end $$;
		create trigger refuse before update on inbox.call for each row when (new.effect = 'noted 3') execute function inbox.refuse()`)
	require.NoError(t, err)
	for i := range 6 {
		r.send(fmt.Sprintf("%d hello", i)).Status(200)
	}
	r.work()
	r.until("handled", 5)
	require.Eventually(t, func() bool {
		waiting := r.list("?verdict=waiting")
		return len(waiting) == 1 && waiting[0].Error != nil
	}, time.Minute, 5*time.Millisecond)
	require.Contains(t, *r.list("?verdict=waiting")[0].Error, "not this one")
	_, err = r.pool.Exec(t.Context(), `drop trigger refuse on inbox.call`)
	require.NoError(t, err)
	r.until("handled", 6)
}

// A call takes as long as a language model. The calls after it do not wait.
func TestSlowCallHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	r.during = func(_ context.Context, id string) {
		if id == "slow" {
			close(entered)
			<-leave
		}
	}
	r.work()
	r.send("slow hello").Status(200)
	<-entered
	r.send("1 hello").Status(200)
	r.until("handled", 1)
	close(leave)
	r.until("handled", 2)
}

func TestCallIsHandledByOneProcessAtATime(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	var calls atomic.Int32
	r.during = func(_ context.Context, id string) {
		if id == "1" && calls.Add(1) == 1 {
			close(entered)
			<-leave
		}
	}
	r.work()
	r.send("1 hello").Status(200)
	<-entered
	r.workWith(inbox.New(r.inbox.Config))
	for i := 2; i < 10; i++ { // whichever process takes them
		r.send(fmt.Sprintf("%d hello", i)).Status(200)
		r.until("handled", i-1)
	}
	require.EqualValues(t, 1, calls.Load())
	close(leave)
	r.until("handled", 9)
	require.EqualValues(t, 1, calls.Load())
}

// A process is paused for longer than its lease. Another one handles the call, and its verdict stays.
func TestAPausedProcessGivesNoVerdict(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	var calls atomic.Int32
	r.during = func(context.Context, string) {
		if calls.Add(1) == 1 {
			close(entered)
			<-leave
		}
	}
	paused, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.inbox.Run(paused) })
	r.send("1 garbage").Status(200)
	<-entered
	_, err := r.pool.Exec(t.Context(), `update inbox.call set due_at = now()`) // its lease has ended
	require.NoError(t, err)
	r.workWith(inbox.New(r.inbox.Config))
	require.Equal(t, 2, r.until("parked", 1)[0].Attempts)
	require.NoError(t, r.inbox.Replay(t.Context(), r.list("")[0].ID))
	parked := r.until("parked", 1)[0]
	close(leave)
	end()
	running.Wait()
	require.Equal(t, parked, r.list("")[0])
}

func TestOldBodiesAreRemovedAndTheirCallsAreStillKnown(t *testing.T) {
	t.Parallel()
	var (
		mu    sync.Mutex
		later time.Duration
	)
	r := newFixture(t, func(c *inbox.Config) {
		c.Keep = 24 * time.Hour
		c.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return time.Now().Add(later) }
	})
	r.send("1 garbage").Status(200)
	call := r.list("")[0]
	r.work()
	r.until("parked", 1)
	swept, err := r.inbox.Sweep(t.Context())
	require.NoError(t, err)
	require.Zero(t, swept)
	mu.Lock()
	later = 25 * time.Hour
	mu.Unlock()
	_, err = r.inbox.Sweep(t.Context())
	require.NoError(t, err)
	require.False(t, r.list("")[0].HasBody)
	require.ErrorIs(t, r.inbox.Replay(t.Context(), call.ID), inbox.ErrRemoved)
	r.send("1 garbage").Status(200)
	require.Len(t, r.list(""), 1)
}

func TestFullInboxAsksTheProviderToComeAgain(t *testing.T) {
	t.Parallel()
	r := newFixture(t, func(c *inbox.Config) { c.Room = 2 })
	r.send("1 hello").Status(200)
	r.send("2 hello").Status(200)
	a := r.send("3 hello").Problem(503, "Too many calls wait to be handled, try again later")
	require.NotEmpty(t, a.Header("Retry-After"))
	require.Len(t, r.list(""), 2)
}

func TestCallIsNotAcknowledgedIfItCannotBeRecorded(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	_, err := r.pool.Exec(t.Context(), `alter table inbox.call rename to gone`)
	require.NoError(t, err)
	require.Equal(t, http.StatusInternalServerError, r.send("1 hello").Response.StatusCode)
	_, err = r.pool.Exec(t.Context(), `alter table inbox.gone rename to call`)
	require.NoError(t, err)
	r.send("1 hello").Status(200)
	require.Len(t, r.list(""), 1)
}
