package app_test

import (
	"reflect"
	"testing"

	"bahi/domain"
	"bahi/domain/event"
	"bahi/internal/app"
)

// A projection that shows values of a subject has to hear of the subject's end, or its tables keep them.
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
			if !known { // it is of a ledger that is yet to come
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
					t.Errorf("projection %s folds %s, which has values of %s, and no event that ends them: its tables would keep them", p.Name, name, s)
				}
			}
		}
	}
}
