package unique_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/unique"
	"bahi/domain/actor"
	"bahi/domain/claims"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/internal/test/commandtest"
	"bahi/internal/test/interleavetest"
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

func (hashes) ForgetNamed() {}

func (hashes) HMAC(_ context.Context, name string, parts ...[]byte) ([]byte, error) {
	return fmt.Appendf(nil, "%s%q", name, parts), nil
}
func (hashes) Seal(context.Context, []*event.Sealed) error         { return nil }
func (hashes) OpenPersonal(context.Context, []*event.Sealed) error { return nil }

func request(key string) commands.Request {
	return commands.Request{
		Actor: actor.Actor{Type: "user", ID: "7"}, Workspace: workspace, Operation: "op", Key: key, Fingerprint: []byte(key),
	}
}

func taken(id string) *fault.Error {
	number, _ := strconv.ParseInt(id, 10, 64)
	return &fault.Error{
		Kind: fault.Conflict, Detail: phone.Taken, Code: "phone_taken", Fields: []fault.Field{{Field: "phone", Message: phone.Taken, ID: number}},
	}
}

func TestWhatIsRefusedClaimsNothing(t *testing.T) {
	t.Parallel()
	n := interleavetest.NewNode(interleavetest.NewLog())
	h := commands.New(n, hashes{}, func() time.Time { return time.Unix(0, 0).UTC() })
	ids := 0
	newID := func(context.Context) (string, error) {
		ids++
		return strconv.Itoa(ids), nil
	}
	opening := func(req commands.Request, number string) (commands.Outcome[shop], error) {
		return phone.Create(t.Context(), h, req, number, newID, func(string) event.Command[shop] { return open{number} })
	}
	moving := func(req commands.Request) error {
		_, err := phone.Handle(t.Context(), h, req, "1", new("2"), move{"2"})
		return err
	}
	_, err := opening(request(""), "bad")
	require.Equal(t, errBadPhone, err)
	require.Equal(t, errNone, moving(request("")))
	dry := request("")
	dry.DryRun = true
	out, err := opening(dry, "1")
	require.NoError(t, err)
	require.Equal(t, shop{true, "1"}, out.State)
	require.Zero(t, ids)
	require.Empty(t, n.After(0))

	_, err = opening(request(""), "1")
	require.NoError(t, err)
	_, err = opening(dry, "1")
	require.Equal(t, taken("1"), err)
	before := n.After(0)
	other := request("")
	other.Workspace = uuid.New()
	require.Error(t, moving(other))
	stale := request("")
	stale.IfMatch = new(int64(4))
	require.Equal(t, commands.ErrStale, moving(stale))
	require.Equal(t, before, n.After(0))
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
func newSuite(t *testing.T) *commandtest.Suite[*commands.Handler] {
	t.Helper()
	s := &commandtest.Suite[*commands.Handler]{Log: interleavetest.NewLog(), Start: startShops, Broken: twice}
	command := func(name string, do func(context.Context, *commands.Handler, commands.Request) (commands.Outcome[shop], error)) {
		run := func(ctx context.Context, h *commands.Handler, dryRun bool) (any, error) {
			req := request("")
			req.DryRun = dryRun
			out, err := commandtest.Outcome(do(ctx, h, req))
			return fmt.Sprintf("%+v", out), err
		}
		s.Commands = append(s.Commands, commandtest.Command[*commands.Handler]{Name: name, Do: run})
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
