package accessproj

import (
	"context"
	_ "embed"

	"bahi/domain"
	"bahi/domain/event"
	"bahi/projections"
)

//go:embed endings.sql
var endingsDDL string

// PendingErasures has the due times of erasures in all areas. It folds every type of event that triggers an erasure, so each further type
// increases its version.
var PendingErasures = projections.Define("endings", 1+len(ending()), endingsDDL, projections.Apply(ending(), endings))

// ending lists the types of events that trigger an erasure.
func ending() []string { return domain.Catalogue.NamesOf(domain.Catalogue.Endings()...) }

func endings(_ context.Context, b *projections.Batch, events []event.Recorded[any]) error {
	for _, e := range events {
		ending, ok := e.Data.(event.ErasureTrigger)
		if !ok {
			continue
		}
		end := ending.Erases(e.StreamID())
		if end.At.IsZero() {
			end.At = e.At
		}
		b.Exec(`insert into pending_erasure as e (subject, due, listed) values ($1, $2, $3)
			on conflict (subject) do update set due = least(e.due, excluded.due)`, end.Subject, end.At, !end.Unlisted)
	}
	return nil
}
