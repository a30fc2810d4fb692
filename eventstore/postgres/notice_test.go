package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
)

// dreamy is the patience of a node that hardly ever looks by itself, so that also a slow machine tells what it was told from what it found.
var dreamy = func() patience {
	p := usualPatience
	p.look = 2 * time.Minute
	return p
}()

// In the suite's log somebody else's appends wake whoever was forgotten. Here nobody else appends, and
// an event that was not told of is found only by looking, which these do once in two minutes.
func TestOtherNodesHearOfAppendsAtOnce(t *testing.T) {
	t.Parallel()
	for name, each := range map[string]func(t *testing.T, s *Store, url string){
		"by a node that goes on": func(t *testing.T, s *Store, _ string) {
			must(t, s, "a-1", makes(1)...)
			must(t, s, "a-1", makes(1)...)
			must(t, s, "a-1", makes(1)...)
		},
		"by a node that closes": func(t *testing.T, _ *Store, url string) {
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
			writer, reader := newStore(t, url), newPatientStore(t, url, dreamy)
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
				if time.Since(begun) < dreamy.look/4 {
					prompt++
				}
			}
			require.Greater(t, prompt, times*2/3)
		})
	}
}
