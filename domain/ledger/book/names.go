package book

import (
	"strings"

	"bahi/domain/event"
)

// accountEvents returns the types of an account's events: the one of a type and the one of a metal only if its accounts have one.
func (s Spec[In, Out]) accountEvents() []event.Type[Account] {
	all := []event.Type[Account]{event.Of[AccountOpened](s.Events+"Opened", 1), event.Of[AccountRenamed](s.Events+"Renamed", 1)}
	if s.Types > 0 {
		all = append(all, event.Of[AccountTypeChanged](s.Events+"TypeChanged", 1))
	}
	all = append(all, event.Of[AccountDeleted](s.Events+"Deleted", 1))
	if s.Metal {
		all = append(all, event.Of[AccountMetalChanged](s.Events+"MetalChanged", 1))
	}
	return all
}

// rowEvents returns the types of a row's events. read completes an event that was read.
func (s Spec[In, Out]) rowEvents(read func(event.Event[Row]) (event.Event[Row], error)) []event.Type[Row] {
	row := strings.TrimSuffix(s.Events, "Account") + "Row"
	all := []event.Type[Row]{
		event.Of[RowAdded](row+"Added", 1), event.Of[RowEdited](row+"Edited", 1), event.Of[RowDeleted](row+"Deleted", 1),
		event.Of[RowVoided](row+"Voided", 1), event.Of[RowReversed](row+"Reversed", 1), event.Of[RowPaired](row+"Paired", 1),
		event.Of[RowUnpaired](row+"Unpaired", 1),
	}
	for i := range all {
		all[i] = all[i].Reading(read)
	}
	return all
}
