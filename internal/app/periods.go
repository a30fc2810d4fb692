package app

import (
	"context"
	"time"

	"bahi/commands/ledgercmd"
	"bahi/domain/event"
)

// periods returns the commands that close periods of the books.
func (s *System) periods(zone *time.Location) *ledgercmd.Periods {
	return &ledgercmd.Periods{
		Books: s.Books, Khatas: s.Khatas, Reads: s.Ledger, Zone: zone,
		Parked: func(ctx context.Context) (names []string, err error) {
			all, err := s.registry().Parked(ctx)
			for _, p := range all {
				if p.Kind == "projection" {
					names = append(names, p.Name)
				}
			}
			return names, err
		},
		Root: func(ctx context.Context, at event.Position) (uint64, string, error) {
			tree, err := s.Proofs.Tree.At(ctx, at)
			return tree.Size(), tree.Root().String(), err
		},
	}
}
