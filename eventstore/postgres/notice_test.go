package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
)

// rarelyPolling has the timeouts of a node that hardly polls, so even on a slow machine an event arrives by its notice.
var rarelyPolling = func() timeouts {
	p := defaultTimeouts
	p.look = 2 * time.Minute
	return p
}()

// In the suite's log another append would wake a subscriber that missed a notice. Here no other process appends, and the nodes poll every
// two minutes.
func TestNoticesWakeOtherNodesAtOnce(t *testing.T) {
	t.Parallel()
	for name, each := range map[string]func(t *testing.T, s *Store, url string){
		"from a node that stays open": func(t *testing.T, s *Store, _ string) {
			must(t, s, "a-1", makes(1)...)
			must(t, s, "a-1", makes(1)...)
			must(t, s, "a-1", makes(1)...)
		},
		"from a node that closes": func(t *testing.T, _ *Store, url string) {
			short := newStore(t, url)
			must(t, short, "a-1", makes(1)...)
			must(t, short, "a-1", makes(1)...)
			must(t, short, "a-1", makes(1)...)
			short.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const times = 9
			url := newLog(t)
			writer, reader := newStore(t, url), newStoreWith(t, url, rarelyPolling)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			positions := make(chan event.Position, 3*times)
			go func() {
				for batch, err := range reader.Subscribe(ctx, 0) {
					if err != nil {
						return
					}
					for _, e := range batch.Events {
						positions <- e.Position
					}
				}
			}()
			prompt := 0
			for range times {
				each(t, writer, url)
				begun := time.Now()
				for range 3 {
					<-positions
				}
				if time.Since(begun) < rarelyPolling.look/4 {
					prompt++
				}
			}
			require.Greater(t, prompt, times*2/3)
		})
	}
}
