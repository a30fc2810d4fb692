package opshttp_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/http/opshttp"
	"bahi/internal/test/apitest"
	"bahi/readmodels/opsview"
)

// next returns the next progress event of a rebuild: either a build or the end.
func next(t *testing.T, stream *apitest.Stream) (*opsview.Build, *opshttp.End) {
	t.Helper()
	var data json.RawMessage
	name, _ := stream.Next(&data)
	build, end := &opsview.Build{}, &opshttp.End{}
	switch name {
	case "progress":
		require.NoError(t, json.Unmarshal(data, build))
		return build, nil
	case "end":
		require.NoError(t, json.Unmarshal(data, end))
		over, _ := stream.Next(&data)
		require.Empty(t, over, "an event follows the end")
		return nil, end
	}
	t.Fatalf("unexpected event %q", name)
	return nil, nil
}

// until reads on until the build is as required.
func until(t *testing.T, stream *apitest.Stream, wanted func(*opsview.Build) bool) {
	t.Helper()
	for {
		build, end := next(t, stream)
		require.Nil(t, end)
		if wanted(build) {
			return
		}
	}
}

func TestRebuildIsWatchedUntilItIsLive(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	r.log(8)
	r.generation("books", 1, 2, `live = true`)
	r.generation("books", 2, 2, `total = 8`)
	stream := r.operator().Stream("/ops/projections/books/progress")
	build, _ := next(t, stream)
	require.Equal(t, "requested", build.Phase)
	r.set("books", 2, `phase = 'filling', position = 2, rate = 2`)
	until(t, stream, func(b *opsview.Build) bool { return b.Percent == 25 && b.Done == 2 && *b.ETASeconds == 7 })
	build, _ = next(t, stream)
	require.Equal(t, event.Position(2), build.Done, "progress is repeated without a change")
	r.set("books", 2, `phase = 'indexing', position = 8`)
	until(t, stream, func(b *opsview.Build) bool { return b.Phase == "indexing" && b.Percent == 100 })
	r.sql(`update projection.generation set live = generation = 2, keep_until = case generation when 1 then now() end, building = false
		where generation = 1;
		update projection.generation set live = true, building = false where generation = 2`)
	for {
		_, end := next(t, stream)
		if end != nil {
			require.Equal(t, opshttp.End{State: "live", Generation: 2}, *end)
			break
		}
	}
}

func TestRebuildIsWatchedUntilItIsCancelled(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	r.generation("books", 4, 2, `live = true`)
	r.generation("books", 5, 2, `phase = 'filling'`)
	stream := r.operator().Stream("/ops/projections/books/progress")
	next(t, stream)
	r.sql(`delete from projection.generation where generation = 5`)
	r.generation("books", 6, 2, `phase = 'filling'`) // the next build starts at once
	for {
		_, end := next(t, stream)
		if end != nil {
			require.Equal(t, opshttp.End{State: "cancelled", Generation: 4}, *end)
			return
		}
	}
}

func TestWatchWithoutARebuild(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	r.generation("books", 3, 2, `live = true`)
	_, end := next(t, r.operator().Stream("/ops/projections/books/progress"))
	require.Equal(t, opshttp.End{State: "none", Generation: 3}, *end)
}

// drawer has three messages.
type drawer struct{}

func (drawer) Captured(_ context.Context, skip, limit int) ([]opshttp.Message, int, error) {
	all := []opshttp.Message{}
	for _, id := range []string{"c", "b", "a"} {
		all = append(all, opshttp.Message{ID: id, Time: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC), To: "asha@example.com", Subject: "Hello",
			Text: "Open it"})
	}
	all = all[min(skip, len(all)):]
	return all[:min(limit, len(all))], 3, nil
}

func TestOutboxIsListedInPages(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	list := func(query string) (ids string) {
		var page []opshttp.Message
		a := r.operator().GET("/ops/outbox?" + query).Status(200).JSON(&page)
		for _, m := range page {
			ids += m.ID
		}
		return ids + " of " + a.Header("X-Total-Count")
	}
	require.Equal(t, "cba of 3", list("port=mail"))
	require.Equal(t, "cb of 3", list("port=mail&page_size=2"))
	require.Equal(t, "a of 3", list("port=mail&page_size=2&page=2"))
	require.Equal(t, " of 3", list("port=mail&page=1000000000&page_size=1000"))
	require.Equal(t, " of 0", list("port=chat"))
	require.Equal(t, " of 0", list("port=crm"))
	r.operator().GET("/ops/outbox?port=chat").Status(200).Body(`[]`)
	r.operator().GET("/ops/outbox?port=mail&page_size=1").Status(200).
		Body(`[{"id":"c","time":"2026-03-01T10:00:00Z","to":"asha@example.com","subject":"Hello","text":"Open it","at":"0001-01-01T00:00:00Z",` +
			`"status":""}]`)
	for _, query := range []string{"", "?port=fax", "?port=mail&page=0", "?port=mail&page_size=1001", "?port=mail&size=2"} {
		r.operator().GET("/ops/outbox" + query).Status(422)
	}
}
