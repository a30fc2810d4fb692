package app_test

import (
	"reflect"
	"testing"

	"bahi/domain"
	"bahi/domain/event"
	"bahi/internal/app"
)

// A projection with values of a subject must fold the event that ends the subject; otherwise its tables keep the values.
func TestEveryProjectionThatFoldsPersonalFieldsFoldsTheirEnd(t *testing.T) {
	t.Parallel()
	subjects := map[string][]event.SubjectType{}
	for _, k := range domain.Catalogue.Kinds() {
		subjects[k.Category()] = k.Subjects()
	}
	for _, p := range app.AllProjections() {
		ended := map[event.SubjectType]bool{}
		for _, name := range p.Types() {
			of, known := domain.Catalogue.Lookup(name)
			if !known { // of a ledger that does not exist yet
				continue
			}
			if ending, ok := reflect.TypeAssert[event.ErasureTrigger](reflect.Zero(of.Go)); ok {
				category, _ := event.SplitStream(ending.Erases("1").Subject)
				ended[event.SubjectType(category)] = true
			}
		}
		for _, name := range p.Types() {
			of, known := domain.Catalogue.Lookup(name)
			if !known || !event.HoldsSealed(of.Go) {
				continue
			}
			for _, s := range subjects[of.Category] {
				if !ended[s] {
					t.Errorf("projection %s folds %s, which has values of %s, and no event that erases these: its tables would keep them", p.Name, name, s)
				}
			}
		}
	}
}
