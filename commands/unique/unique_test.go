package unique_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/unique"
	"bahi/domain/actor"
	"bahi/domain/claims"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/eventstore"
	"bahi/eventstore/postgres"
	"bahi/internal/test/interleavetest"
	"bahi/internal/test/pgtest"
	"bahi/migrations"
)

// shop is a record with a phone that is unique among shops.
type (
	shop struct {
		open  bool
		phone string
	}
	opened struct {
		Phone string `json:"phone"`
	}
	moved struct {
		Phone string `json:"phone"`
	}
	closed struct{}
	open   struct{ phone string }
	move   struct{ phone string }
	end    struct{}
)

func (e opened) Evolve(shop) shop { return shop{true, e.Phone} }
func (e moved) Evolve(s shop) shop {
	s.phone = e.Phone
	return s
}
func (closed) Evolve(shop) shop { return shop{} }

var (
	errBadPhone = fault.New(fault.Invalid, "bad phone")
	errExists   = fault.New(fault.Conflict, "exists")
	errNone     = fault.New(fault.NotFound, "no shop")
)

func (c open) Decide(s shop) ([]event.Event[shop], error) {
	switch {
	case c.phone == "bad":
		return nil, errBadPhone
	case s.open:
		return nil, errExists
	}
	return []event.Event[shop]{opened{c.phone}}, nil
}

func (c move) Decide(s shop) ([]event.Event[shop], error) {
	switch {
	case !s.open:
		return nil, errNone
	case c.phone == s.phone:
		return nil, nil
	}
	return []event.Event[shop]{moved{c.phone}}, nil
}

func (end) Decide(s shop) ([]event.Event[shop], error) {
	if !s.open {
		return nil, errNone
	}
	return []event.Event[shop]{closed{}}, nil
}

type aPhone struct{}

var (
	shops  = event.NewKind("shop", event.Of[opened]("ShopOpened", 1), event.Of[moved]("ShopMoved", 1), event.Of[closed]("ShopClosed", 1))
	phones = claims.New[aPhone]("shopphone", "ShopPhoneClaimed", "ShopPhoneReleased")
	phone  = unique.Field[shop]{
		Records: shops, Claims: phones, Key: func(s shop) string { return s.phone }, Name: "phone", Taken: "Another shop has this phone",
	}
	workspace = uuid.New()
)

type hashes struct{}

func (hashes) HMAC(_ context.Context, name string, parts ...[]byte) ([]byte, error) {
	return fmt.Appendf(nil, "%s%q", name, parts), nil
}
func (hashes) Seal(context.Context, []*event.Sealed) error         { return nil }
func (hashes) OpenPersonal(context.Context, []*event.Sealed) error { return nil }

var errCrash = errors.New("the process is gone")

// frail crashes at the nth append, from 1: before it, or after it.
type frail struct {
	eventstore.Store

	appends       atomic.Int64
	before, after int64
}

func (f *frail) Append(ctx context.Context, t eventstore.Transaction) (eventstore.Appended, error) {
	n := f.appends.Add(1)
	if n == f.before {
		return eventstore.Appended{}, errCrash
	}
	done, err := f.Store.Append(ctx, t)
	if n == f.after && err == nil {
		return eventstore.Appended{}, errCrash
	}
	return done, err
}

// town is a log with one process that represents many: each of its requests may crash on its own.
type town struct {
	t     *testing.T
	log   *postgres.Store
	ids   atomic.Int64
	clock func() time.Time
}

func newTown(t *testing.T) *town {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), pgtest.Template(t, "migrated", migrations.Up))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	log, err := postgres.Open(t.Context(), pool, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(log.Close)
	noon := time.Date(2026, 4, 1, 12, 0, 0, 0, time.UTC)
	return &town{t: t, log: log, clock: func() time.Time { return noon }}
}

// node is a new process that crashes at an append.
func (tn *town) node(before, after int64) *commands.Handler {
	return commands.New(&frail{Store: tn.log, before: before, after: after}, hashes{}, tn.clock)
}

func (tn *town) newID(context.Context) (string, error) {
	return strconv.FormatInt(tn.ids.Add(1), 10), nil
}

func request(key string) commands.Request {
	return commands.Request{
		Actor: actor.Actor{Type: "user", ID: "7"}, Workspace: workspace, Operation: "op", Key: key, Fingerprint: []byte(key),
	}
}

func (tn *town) open(h *commands.Handler, key, number string) (commands.Outcome[shop], error) {
	return phone.Create(tn.t.Context(), h, request(key), number, tn.newID, func(string) event.Command[shop] { return open{number} })
}

func (tn *town) move(h *commands.Handler, id, number string) (commands.Outcome[shop], error) {
	return phone.Handle(tn.t.Context(), h, request(""), id, &number, move{number})
}

func (tn *town) close(h *commands.Handler, id string) (commands.Outcome[shop], error) {
	return phone.Handle(tn.t.Context(), h, request(""), id, new(""), end{})
}

// holders reads the whole log and checks that at no position two shops have one phone. It returns the current shops by phone.
func (tn *town) holders() map[string]string {
	tn.t.Helper()
	states, has := map[string]shop{}, map[string]string{}
	for stored, err := range tn.log.ReadAll(tn.t.Context(), 0, eventstore.Forwards) {
		require.NoError(tn.t, err)
		category, id := event.SplitStream(stored.Stream)
		if category != shops.Category() {
			continue
		}
		r, err := shops.Decode(stored)
		require.NoError(tn.t, err)
		before := states[id]
		after := shops.Evolve(before, r)
		if has[before.phone] == id {
			delete(has, before.phone)
		}
		if states[id] = after; after.phone != "" {
			require.NotContains(tn.t, has, after.phone, "position %d: shop %s has a phone of shop %s", stored.Position, id, has[after.phone])
			has[after.phone] = id
		}
	}
	return has
}

func taken(id string) *fault.Error {
	number, _ := strconv.ParseInt(id, 10, 64)
	return &fault.Error{
		Kind: fault.Conflict, Detail: phone.Taken, Code: "phone_taken", Fields: []fault.Field{{Field: "phone", Message: phone.Taken, ID: number}},
	}
}

func TestNoTwoRecordsEverHaveOneValue(t *testing.T) {
	t.Parallel()
	tn := newTown(t)
	var all sync.WaitGroup
	for who := range 8 {
		all.Go(func() {
			pick := rand.New(rand.NewPCG(7, uint64(who)))
			for range 40 {
				h := tn.node(pick.Int64N(9), 0)
				if pick.IntN(2) == 0 {
					h = tn.node(0, pick.Int64N(9))
				}
				number, id := strconv.Itoa(1+pick.IntN(3)), strconv.Itoa(1+pick.IntN(6))
				var err error
				switch pick.IntN(5) {
				case 0, 1:
					_, err = tn.open(h, []string{"", uuid.NewString()}[pick.IntN(2)], number)
				case 2, 3:
					_, err = tn.move(h, id, number)
				default:
					_, err = tn.close(h, id)
				}
				if _, refused := errors.AsType[*fault.Error](err); err != nil && !refused && !errors.Is(err, errCrash) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	holders := tn.holders()
	for _, number := range []string{"1", "2", "3"} { // and each is free, or the conflict names its holder
		out, err := tn.open(tn.node(0, 0), "", number)
		if id, held := holders[number]; held {
			require.Equal(t, taken(id), err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, out.ID, tn.holders()[number])
	}
}

func TestWhatIsRefusedClaimsNothing(t *testing.T) {
	t.Parallel()
	tn := newTown(t)
	h := tn.node(0, 0)
	_, err := tn.open(h, "", "bad")
	require.Equal(t, errBadPhone, err)
	_, err = tn.move(h, "1", "2")
	require.Equal(t, errNone, err)
	dry := request("")
	dry.DryRun = true
	out, err := phone.Create(t.Context(), h, dry, "1", tn.newID, func(string) event.Command[shop] { return open{"1"} })
	require.NoError(t, err)
	require.Equal(t, shop{true, "1"}, out.State)
	require.Zero(t, tn.ids.Load())
	head, err := tn.log.Head(t.Context())
	require.NoError(t, err)
	require.Zero(t, head)

	_, err = tn.open(h, "", "1")
	require.NoError(t, err)
	_, err = phone.Create(t.Context(), h, dry, "1", tn.newID, func(string) event.Command[shop] { return open{"1"} })
	require.Equal(t, taken("1"), err)
	other := request("")
	other.Workspace = uuid.New()
	_, err = phone.Handle(t.Context(), h, other, "1", new("2"), move{"2"})
	require.Error(t, err)
	stale := request("")
	stale.IfMatch = new(int64(4))
	_, err = phone.Handle(t.Context(), h, stale, "1", new("2"), move{"2"})
	require.Equal(t, commands.ErrStale, err)
	require.Equal(t, map[string]string{"1": "1"}, tn.holders())
	free, err := commands.Load(t.Context(), h.Fresh(), phones.Kind, "2")
	require.NoError(t, err)
	require.EqualValues(t, -1, free.Revision)
}

// startShops starts a process that assigns ids to shops.
func startShops(ctx context.Context, n *interleavetest.Node) (*commands.Handler, *commands.Handler, error) {
	h := commands.New(n, hashes{}, func() time.Time { return time.Unix(0, 0).UTC() })
	_, err := h.Numbers(ctx, shops.Category(), 1)
	return h, h, err
}

// twice returns the phones that two shops have at the same time.
func twice(events []event.Stored) (found []string, err error) {
	states, has := map[string]shop{}, map[string]string{}
	for _, stored := range events {
		category, id := event.SplitStream(stored.Stream)
		if category != shops.Category() {
			continue
		}
		e, err := shops.Decode(stored)
		if err != nil {
			return nil, err
		}
		if had := states[id].phone; has[had] == id {
			delete(has, had)
		}
		states[id] = shops.Evolve(states[id], e)
		now := states[id].phone
		if other, ok := has[now]; ok && now != "" {
			found = append(found, fmt.Sprintf("shops %s and %s have the phone %s", other, id, now))
		}
		has[now] = id
	}
	return found, nil
}

// newSuite returns commands of shops. The first two shops have the phones 1 and 2.
func newSuite(t *testing.T) *interleavetest.Suite[*commands.Handler] {
	t.Helper()
	s := &interleavetest.Suite[*commands.Handler]{Log: interleavetest.NewLog(), Start: startShops, Broken: twice}
	command := func(name string, do func(context.Context, *commands.Handler, commands.Request) (commands.Outcome[shop], error)) {
		run := func(ctx context.Context, h *commands.Handler, dryRun bool) (any, error) {
			req := request("")
			req.DryRun = dryRun
			out, err := interleavetest.Outcome(do(ctx, h, req))
			return fmt.Sprintf("%+v", out), err
		}
		s.Commands = append(s.Commands, interleavetest.Command[*commands.Handler]{Name: name, Do: run})
	}
	opens := func(key, number string) {
		command("open "+number+key, func(ctx context.Context, h *commands.Handler, req commands.Request) (commands.Outcome[shop], error) {
			req.Key, req.Fingerprint = key, []byte(key)
			return phone.Create(ctx, h, req, number, h.IDFromSeries(shops.Category(), 1), func(string) event.Command[shop] { return open{number} })
		})
	}
	moves := func(id, number string) {
		command("move "+id+" to "+number, func(ctx context.Context, h *commands.Handler, req commands.Request) (commands.Outcome[shop], error) {
			return phone.Handle(ctx, h, req, id, &number, move{number})
		})
	}
	opens("", "1")
	opens("", "2")
	opens("", "3")
	opens(" with a key", "3")
	moves("2", "1")
	moves("2", "3")
	moves("3", "1")
	moves("3", "3")
	command("close 2", func(ctx context.Context, h *commands.Handler, req commands.Request) (commands.Outcome[shop], error) {
		return phone.Handle(ctx, h, req, "2", new(""), end{})
	})
	h, _, err := startShops(t.Context(), interleavetest.NewNode(s.Log))
	require.NoError(t, err)
	for _, c := range s.Commands[:2] { // the shops 2 and 3: number 1 is taken
		_, err := c.Do(t.Context(), h, false)
		require.NoError(t, err)
	}
	return s
}

// Whatever the order of the steps of two commands, the result equals running them one after the other.
func TestTwoCommandsAreAsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	newSuite(t).Pairs(t)
}

// Whatever the order of the steps of five commands, no two shops have one phone.
func TestFiveCommandsLeaveAPhoneToOneShop(t *testing.T) {
	t.Parallel()
	newSuite(t).Some(t, 5)
}
