package esdbserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	"bahi/domain/event"
)

// absurd generates messages with missing, extreme and senseless fields.
type absurd struct{ *rand.Rand }

// fill fills a message and its inner ones to a depth.
func (a absurd) fill(m protoreflect.Message, deep int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case a.IntN(4) == 0 || f.Message() != nil && deep == 0:
		case f.IsMap():
			properties := m.Mutable(f).Map()
			for _, name := range []string{propertyType, propertyContentType, a.text()} {
				if value := pick(a, "", contentJSON, "Done", "BankRowAdded", a.text()); a.IntN(3) > 0 {
					properties.Set(protoreflect.ValueOfString(name).MapKey(), protoreflect.ValueOfString(value))
				}
			}
		case f.IsList():
			list := m.Mutable(f).List()
			for range a.IntN(3) {
				if f.Message() != nil {
					a.fill(list.AppendMutable().Message(), deep-1)
				} else {
					list.Append(a.scalar(f))
				}
			}
		case f.Message() != nil:
			a.fill(m.Mutable(f).Message(), deep-1)
		default:
			m.Set(f, a.scalar(f))
		}
	}
}

func (a absurd) scalar(f protoreflect.FieldDescriptor) protoreflect.Value {
	n := pick(a, 0, 1, math.MaxInt64, math.MaxUint64, a.Uint64(), uint64(a.IntN(20)))
	switch f.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(a.text())
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(pick(a, "", "{}", `"\u0000"`, "\xff-1", "a\x00-1", "$all", "hostile-1", a.text())))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n%2 == 1)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(int32(n)))
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(int64(n))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	default:
		return protoreflect.ValueOfUint64(n)
	}
}

func (a absurd) text() string {
	return pick(a, "", "x", uuid.NewString(), "(", `(a*)*$`, "\x00", "$stats", strings.Repeat("₹", 700))
}

func pick[T any](a absurd, from ...T) T { return from[a.IntN(len(from))] }

// answered reads a call until it ends or pauses, and returns how it ended.
func answered[T any](recv func() (T, error)) codes.Code {
	for {
		if _, err := recv(); err != nil {
			if errors.Is(err, io.EOF) {
				return codes.OK
			}
			return status.Code(err)
		}
	}
}

func TestServerSurvivesAbsurdMessages(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *Config) {
		c.Check = func(stream string, e event.Proposed) error {
			if e.Type == "BankRowAdded" {
				return fmt.Errorf("%s is not for %s", e.Type, stream)
			}
			return nil
		}
	})
	r.put(t, "hostile-1", thing("Done"), thing("Done"))
	expected := []codes.Code{
		codes.OK, codes.InvalidArgument, codes.PermissionDenied, codes.ResourceExhausted,
		codes.DeadlineExceeded, // a subscription
		codes.DataLoss,         // one from beyond the end of the log
		codes.Internal,         // gRPC's own response to an unreadable message
	}
	a := absurd{rand.New(rand.NewPCG(6, 6))}
	seen := map[codes.Code]int{}
	for range 150 {
		ctx, cancel := context.WithTimeout(asOperator(t), 50*time.Millisecond)
		request := &streams.ReadReq{}
		a.fill(request.ProtoReflect(), 6)
		reading, err := r.streams().Read(ctx, request)
		code := status.Code(err)
		if err == nil {
			code = answered(reading.Recv)
		}
		require.Contains(t, expected, code, "%v", request)
		seen[code]++
		cancel()

		appending, err := r.streams().Append(asOperator(t))
		require.NoError(t, err)
		for range 1 + a.IntN(3) {
			piece := &streams.AppendReq{}
			a.fill(piece.ProtoReflect(), 6)
			_ = appending.Send(piece) // the response has the reason
		}
		_, err = appending.CloseAndRecv()
		require.Contains(t, expected, status.Code(err), "%v", err)
		seen[status.Code(err)]++

		batches, err := r.streams().BatchAppend(asOperator(t))
		require.NoError(t, err)
		for range 1 + a.IntN(4) {
			piece := &streams.BatchAppendReq{}
			a.fill(piece.ProtoReflect(), 6)
			_ = batches.Send(piece)
		}
		require.NoError(t, batches.CloseSend())
		require.Equal(t, codes.OK, answered(batches.Recv), "each append has its own response")
	}
	require.NotZero(t, seen[codes.OK])
	require.NotZero(t, seen[codes.InvalidArgument])
	require.Contains(t, r.names(t, readStream("hostile-1", forwards, 1)), "hostile-1@0")
}

func TestRefusalsOfHostileInputAreShortText(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *Config) {
		c.Check = func(stream string, e event.Proposed) error { return fmt.Errorf("%s is not for %s", e.Type, stream) }
	})
	p := proposal1(thing("Done"))
	_, err := appendTo(asOperator(t), r, "bank-\xff", nil, p)
	requireRefused(t, err, codes.InvalidArgument, "Done is not for bank-\uFFFD")
	b := r.batches(t)
	b.send(t, batchOf("bank-\xff", true, thing("Done")))
	require.Equal(t, "Done is not for bank-\uFFFD", b.next(t).GetError().GetMessage())

	long := strings.Repeat("₹", 1<<20)
	p.Id = &shared.UUID{Value: &shared.UUID_String_{String_: long}}
	_, err = appendTo(asOperator(t), r, "orders-1", nil, p)
	requireRefused(t, err, codes.InvalidArgument, "an event's id is a UUID")
	require.Less(t, len(err.Error()), 2*maxText)
	b.send(t, batchOf(long, true, thing("Done")))
	require.Less(t, len(b.next(t).GetError().GetMessage()), 2*maxText)
}

func TestTooLargeMetadataIsRefused(t *testing.T) {
	t.Parallel()
	r := start(t)
	ctx := metadata.AppendToOutgoingContext(asOperator(t), "padding", strings.Repeat("x", maxHeaders))
	_, err := r.streams().Delete(ctx, &streams.DeleteReq{})
	requireRefused(t, err, codes.Internal, "header list size")
}

// A refused append is read to its end first. Clients without the right to append must not exhaust the memory with that.
func TestFewRefusedAppendsAreReadToTheirEnd(t *testing.T) {
	t.Parallel()
	r := start(t)
	stranger := func() context.Context { return with(t, basic("wrong")) }
	var heard []streams.Streams_AppendClient
	for range maxTurnedAway {
		call, err := r.streams().Append(stranger())
		require.NoError(t, err)
		heard = append(heard, call)
	}
	require.Eventually(t, func() bool { return len(r.turnedAway) == maxTurnedAway }, time.Minute, time.Millisecond)
	more, err := r.streams().Append(stranger())
	require.NoError(t, err)
	requireRefused(t, more.RecvMsg(&streams.AppendResp{}), codes.Unauthenticated, "no such API key")
	batches, err := r.streams().BatchAppend(stranger())
	require.NoError(t, err)
	_, err = batches.Recv()
	requireRefused(t, err, codes.Unauthenticated, "no such API key")
	for _, call := range heard {
		_, err := call.CloseAndRecv()
		requireRefused(t, err, codes.Unauthenticated, "no such API key")
	}
	require.Eventually(t, func() bool { return len(r.turnedAway) == 0 }, time.Minute, time.Millisecond)
}

// gRPC reads a message before it calls a handler, so unauthenticated clients could exhaust the memory with endless messages.
func TestStrangersConnectionIsClosedAtTheLimit(t *testing.T) {
	t.Parallel()
	r := start(t)
	large := &streams.DeleteReq{Options: &streams.DeleteReq_Options{StreamIdentifier: &shared.StreamIdentifier{StreamName: make([]byte,
		maxAppend)}}}
	said := 0
	for code := codes.Unauthenticated; code == codes.Unauthenticated && said <= 2*maxStranger; said += maxAppend {
		_, err := r.streams().Delete(with(t, basic("wrong")), large)
		code = status.Code(err)
		require.Contains(t, []codes.Code{codes.Unauthenticated, codes.Unavailable}, code, "%v", err)
	}
	require.LessOrEqual(t, said, maxStranger+maxAppend)

	require.Eventually(t, func() bool { // the client opens another connection
		_, err := r.streams().Delete(asOperator(t), &streams.DeleteReq{})
		return status.Code(err) == codes.PermissionDenied
	}, time.Minute, 20*time.Millisecond)
	for range maxStranger/maxAppend + 1 {
		_, err := r.streams().Delete(asOperator(t), large)
		requireRefused(t, err, codes.PermissionDenied, "append-only")
	}
}

func TestRevokedKeyGetsNoLaterEvents(t *testing.T) {
	t.Parallel()
	var revoked atomic.Bool
	r := start(t, func(c *Config) {
		c.Authenticate = func(context.Context, string) error {
			if revoked.Load() {
				return ErrUnknownKey
			}
			return nil
		}
	})
	r.again = 0
	call := r.read(t, subscribeAll(nil, nil))
	require.NotNil(t, next(t, call).GetConfirmation())
	require.Equal(t, "caught up", name(next(t, call)))
	r.put(t, "kept-1", thing("Kept"))
	require.Equal(t, "kept-1@0", name(next(t, call)))
	revoked.Store(true)
	r.put(t, "kept-1", thing("Kept"))
	_, err := call.Recv()
	requireRefused(t, err, codes.Unauthenticated, "no such API key")
}

func TestDisconnectedClientsLeaveNothing(t *testing.T) {
	t.Parallel()
	label := "served-" + uuid.NewString()
	var r *running
	pprof.Do(t.Context(), pprof.Labels("test", label), func(context.Context) { r = start(t) })
	head := r.put(t, "kept-1", thing("Kept")).Position
	_, err := r.streams().Delete(asOperator(t), &streams.DeleteReq{})
	require.Error(t, err)
	before := goroutines(t, label)
	require.NotZero(t, before)

	ctx, leave := context.WithCancel(asOperator(t))
	ofStream := readStream("kept-1", forwards, 0)
	ofStream.Options.CountOption = subscribeAll(nil, nil).GetOptions().GetCountOption()
	for range 50 {
		for _, request := range []*streams.ReadReq{subscribeAll(nil, nil), subscribeAll(&head, byType(&expression{Regex: "x"})), ofStream} {
			call, err := r.streams().Read(ctx, request)
			require.NoError(t, err)
			for next(t, call).GetCaughtUp() == nil {
			}
		}
		unfinished, err := r.streams().BatchAppend(ctx)
		require.NoError(t, err)
		require.NoError(t, unfinished.Send(batchOf("new-1", false, thing("Added"))))
		begun, err := r.streams().Append(ctx)
		require.NoError(t, err)
		require.NoError(t, begun.Send(&streams.AppendReq{}))
	}
	require.Greater(t, goroutines(t, label), before+150)
	leave()
	require.Eventually(t, func() bool { return goroutines(t, label) <= before }, time.Minute, 20*time.Millisecond)
	require.Empty(t, r.holds(t, "new-1"))
}

// goroutines counts the goroutines with a pprof label, which a goroutine passes on to those that it starts.
func goroutines(t testing.TB, label string) (count int) {
	t.Helper()
	var text strings.Builder
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&text, 1))
	for _, m := range regexp.MustCompile(`(?m)^(\d+) @.*\n# labels: .*`+label).FindAllStringSubmatch(text.String(), -1) {
		n, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		count += n
	}
	return count
}
