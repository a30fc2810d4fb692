package opsview_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/postgres"
	"bahi/internal/test/logtest"
	"bahi/readmodels/opsview"
)

// eventLog is a log and its events.
type eventLog struct {
	t      *testing.T
	pool   *pgxpool.Pool
	store  *postgres.Store
	events []opsview.Event // by position, from 1
}

func startEventLog(t *testing.T) *eventLog {
	t.Helper()
	pool, store := logtest.Open(t)
	return &eventLog{t: t, pool: pool, store: store}
}

var workspaces = [2]uuid.UUID{uuid.MustParse("aaaaaaaa-1111-4111-8111-111111111111"),
	uuid.MustParse("bbbbbbbb-1111-4111-8111-111111111111")}

// write appends an event and returns its position.
func (d *eventLog) write(stream, kind, actor string) event.Position {
	d.t.Helper()
	return d.writeIn(workspaces[0], stream, kind, actor)
}

func (d *eventLog) writeIn(workspace uuid.UUID, stream, kind, actor string) event.Position {
	d.t.Helper()
	meta := fmt.Sprintf(`{"schema":1,"workspace":%q,"actor":%q,"occurred_at":"2025-03-01T00:00:00Z"}`, workspace, actor)
	done, err := d.store.Append(d.t.Context(),
		eventstore.To(stream, eventstore.Any, event.Proposed{ID: uuid.New(), Type: kind, Data: []byte(`{}`), Meta: []byte(meta)}))
	require.NoError(d.t, err)
	d.events = append(d.events, opsview.Event{Position: done.Position, Stream: stream, Type: kind, At: done.At,
		Meta: event.Meta{Actor: actor, Workspace: workspace}})
	return done.Position
}

func positions(events []opsview.Event) (all []event.Position) {
	for _, e := range events {
		all = append(all, e.Position)
	}
	return all
}

func TestContinuedSearchFindsEveryEventOnce(t *testing.T) {
	t.Parallel()
	d := startEventLog(t)
	streams, kinds, actors := []string{"bank-1", "bank-2", "bankrow-1", "user-a"}, []string{"Opened", "Renamed", "Closed"},
		[]string{"user:a", "user:b"}
	for i := range 120 {
		d.writeIn(workspaces[i*3%2], streams[i*7%4], kinds[i*5%3], actors[i*11%2])
	}
	moment := func(r *rapid.T, name string) *time.Time {
		nth := rapid.IntRange(-1, len(d.events)-1).Draw(r, name)
		if nth < 0 {
			return nil
		}
		return &d.events[nth].At
	}
	rapid.Check(t, func(r *rapid.T) {
		f := opsview.Filter{
			Stream:    rapid.SampledFrom(append(streams, "", "", "bank-9")).Draw(r, "stream"),
			Category:  rapid.SampledFrom([]string{"", "bank", "bankrow", "ban"}).Draw(r, "category"),
			Type:      rapid.SampledFrom(append(kinds, "", "", "Lost")).Draw(r, "type"),
			Actor:     rapid.SampledFrom(append(actors, "", "", "user:c")).Draw(r, "actor"),
			Workspace: rapid.SampledFrom([]*uuid.UUID{nil, &workspaces[0], &workspaces[1], new(uuid.New())}).Draw(r, "workspace"),
			From:      moment(r, "from"), To: moment(r, "to"),
			After: event.Position(rapid.IntRange(0, 130).Draw(r, "after")), Before: event.Position(rapid.IntRange(0, 130).Draw(r, "before")),
		}
		v := &opsview.Events{DB: d.pool, Window: rapid.IntRange(1, 40).Draw(r, "window"), Windows: rapid.IntRange(1, 3).Draw(r, "windows")}
		var want []event.Position
		for _, e := range d.events {
			category, _ := event.SplitStream(e.Stream)
			if (f.Stream == "" || f.Stream == e.Stream) && (f.Category == "" || f.Category == category) && (f.Type == "" || f.Type == e.Type) &&
				(f.Actor == "" || f.Actor == e.Meta.Actor) && (f.From == nil || !e.At.Before(*f.From)) && (f.To == nil || !e.At.After(*f.To)) &&
				(f.Workspace == nil || *f.Workspace == e.Meta.Workspace) && e.Position > f.After && (f.Before == 0 || e.Position < f.Before) {
				want = append(want, e.Position)
			}
		}
		size := rapid.IntRange(1, 30).Draw(r, "size")
		var onward, back []event.Position
		for f := f; ; {
			found, err := v.Onward(context.Background(), f, size)
			require.NoError(r, err)
			require.LessOrEqual(r, len(found.Events), size)
			onward = append(onward, positions(found.Events)...)
			if !found.More {
				break
			}
			require.Greater(r, found.To, f.After, "a continued search advances")
			f.After = found.To
		}
		require.Equal(r, want, onward)
		for {
			found, err := v.Search(context.Background(), f, size)
			require.NoError(r, err)
			require.LessOrEqual(r, len(found.Events), size)
			back = append(back, positions(found.Events)...)
			if !found.More {
				break
			}
			require.True(r, f.Before == 0 || found.From < f.Before, "a continued search advances")
			f.Before = found.From
		}
		slices.Reverse(want)
		require.Equal(r, want, back)
	})
}

func TestSearchIsLimitedAndReportsHowFarItCame(t *testing.T) {
	t.Parallel()
	d := startEventLog(t)
	d.write("bank-1", "Rare", "user:a")
	for range 49 {
		d.write("bank-2", "Common", "user:a")
	}
	v := &opsview.Events{DB: d.pool, Window: 10, Windows: 2}
	found, err := v.Search(t.Context(), opsview.Filter{Type: "Rare"}, 5)
	require.NoError(t, err)
	require.Empty(t, found.Events)
	require.Equal(t, opsview.Found{Events: []opsview.Event{}, From: 31, To: 50, More: true},
		opsview.Found{Events: []opsview.Event{}, From: found.From, To: found.To, More: found.More})
	for looks := 1; found.More; looks++ {
		require.Less(t, looks, 4)
		found, err = v.Search(t.Context(), opsview.Filter{Type: "Rare", Before: found.From}, 5)
		require.NoError(t, err)
	}
	require.Equal(t, []event.Position{1}, positions(found.Events))
	require.EqualValues(t, 1, found.From)
}

func TestHeadHasItsTime(t *testing.T) {
	t.Parallel()
	d := startEventLog(t)
	v := &opsview.Events{DB: d.pool}
	head, recorded, err := v.Head(t.Context())
	require.NoError(t, err)
	require.Zero(t, head)
	require.True(t, recorded.IsZero())
	last := d.write("bank-1", "Opened", "user:a")
	head, recorded, err = v.Head(t.Context())
	require.NoError(t, err)
	require.Equal(t, last, head)
	require.WithinDuration(t, d.events[0].At, recorded, 0)
}

func TestEventWithForeignMetadataIsShown(t *testing.T) {
	t.Parallel()
	d := startEventLog(t)
	_, err := d.store.Append(t.Context(),
		eventstore.To("orders-1", eventstore.NoStream,
			event.Proposed{ID: uuid.New(), Type: "OrderPlaced", Data: []byte(`[]`), Meta: []byte(`["theirs"]`)}))
	require.NoError(t, err)
	found, err := (&opsview.Events{DB: d.pool}).Search(t.Context(), opsview.Filter{}, 5)
	require.NoError(t, err)
	require.Len(t, found.Events, 1)
	require.Equal(t, event.Meta{}, found.Events[0].Meta)
	require.JSONEq(t, `["theirs"]`, string(found.Events[0].MetaText))
}
