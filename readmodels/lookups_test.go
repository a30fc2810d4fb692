package readmodels_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"bahi/readmodels"
)

// Lookups of many callers go together; what is wrong with one is that one's alone.
func TestManyCallersGetTheirOwnAnswers(t *testing.T) {
	t.Parallel()
	const all = 40
	s := built(t, all)
	s.add(t, "twice")
	s.add(t, "twice")
	s.build(t)
	var callers sync.WaitGroup
	for i := range 600 {
		callers.Go(func() {
			ctx := t.Context()
			switch i % 7 {
			case 0:
				if _, err := find(ctx, s.reader, fmt.Sprint("none", i)); !errors.Is(err, errNoName) {
					t.Errorf("found what is not there: %v", err)
				}
			case 1:
				_, err := readmodels.Row(ctx, s.reader, errNoName, pgx.RowTo[int], `select 1 / (position - position) from names.name limit 1`)
				if err == nil {
					t.Error("divided by zero")
				}
			case 2:
				gone, cancel := context.WithCancel(ctx)
				cancel()
				if _, err := find(gone, s.reader, "n1"); err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			case 3:
				if _, err := find(ctx, s.reader, "twice"); !errors.Is(err, pgx.ErrTooManyRows) {
					t.Errorf("what is there twice was found once: %v", err)
				}
			case 4:
				before := int64(i % all)
				found, err := readmodels.RowsBatched(ctx, s.reader, pgx.RowTo[int64], `select position from names.name where position <= $1`, before)
				slices.Sort(found)
				if err != nil || int64(len(found)) != before || before > 0 && found[before-1] != before {
					t.Errorf("the first %d are %d: %v", before, found, err)
				}
			default:
				at, err := find(ctx, s.reader, fmt.Sprint("n", i%all))
				if err != nil || at != int64(i%all+1) {
					t.Errorf("n%d is at %d: %v", i%all, at, err)
				}
			}
		})
	}
	callers.Wait()
}
