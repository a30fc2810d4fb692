package console

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"bahi/domain"
	"bahi/domain/event"
	"bahi/domain/fault"
	ledgers "bahi/domain/ledger"
	"bahi/domain/ledger/book"
	"bahi/http/api"
	views "bahi/readmodels/ops"
)

const (
	eventsOfPage = 50
	mostSteps    = 500 // events of a row's stream that are folded for a diff
)

// search is the search form as it was filled in.
type search struct {
	Stream, Category, Type, Actor    string
	From, To                         string // times of the workshop's clock
	FromPosition, ToPosition, Before string
}

// explored is a page of events.
type explored struct {
	search

	Wrong      map[string]string // by field
	Categories []string
	Types      []string
	Found      views.Found
	Searched   bool // some events were searched
	Whole      bool // everything was searched
	Older      string
}

func (v *visit) events() (page, error) {
	e := explored{Wrong: map[string]string{}}
	e.read(v.r.FormValue)
	for _, t := range domain.Catalogue.All() {
		e.Types = append(e.Types, t.Name)
		if !slices.Contains(e.Categories, t.Category) {
			e.Categories = append(e.Categories, t.Category)
		}
	}
	slices.Sort(e.Types)
	slices.Sort(e.Categories)
	p := page{template: "events", title: "Events"}
	filter := e.filter(v.Zone)
	if len(e.Wrong) > 0 {
		p.status, p.body = api.StatusOf(fault.Invalid), e
		return p, nil
	}
	found, err := v.Events.Search(v.r.Context(), filter, eventsOfPage)
	if err != nil {
		return p, err
	}
	e.Found, e.Searched, e.Whole = found, found.From <= found.To, !found.More
	if found.More {
		e.Older = strconv.FormatUint(uint64(found.From), 10)
	}
	p.body = e
	return p, nil
}

func (s *search) read(value func(string) string) {
	for name, field := range map[string]*string{
		"stream": &s.Stream, "category": &s.Category, "type": &s.Type, "actor": &s.Actor, "from": &s.From, "to": &s.To,
		"from_position": &s.FromPosition, "to_position": &s.ToPosition, "before": &s.Before,
	} {
		*field = strings.TrimSpace(value(name))
	}
}

// filter parses the search form and records its faults.
func (e *explored) filter(zone *time.Location) views.Filter {
	f := views.Filter{Stream: e.Stream, Category: e.Category, Type: e.Type, Actor: e.Actor}
	position := func(field, text string) event.Position {
		n, err := strconv.ParseUint(text, 10, 62)
		if text != "" && err != nil {
			e.Wrong[field] = "expected a position of the log, such as 1200"
		}
		return event.Position(n)
	}
	if from := position("from_position", e.FromPosition); from > 0 {
		f.After = from - 1
	}
	if to := position("to_position", e.ToPosition); e.ToPosition != "" {
		f.Before = to + 1
	}
	if before := position("before", e.Before); before > 0 && (f.Before == 0 || before < f.Before) {
		f.Before = before
	}
	moment := func(field, text string, last bool) *time.Time {
		if text == "" {
			return nil
		}
		t, err := clock(text, zone, last)
		if err != nil {
			e.Wrong[field] = "expected a moment such as 2025-03-31T09:15"
		}
		return &t
	}
	f.From, f.To = moment("from", e.From, false), moment("to", e.To, true)
	return f
}

// clock parses a time from a browser's field. A time without seconds means the whole minute, of which last selects the end.
// which last asks for the end.
func clock(text string, zone *time.Location, last bool) (time.Time, error) {
	if t, err := time.ParseInLocation("2006-01-02T15:04", text, zone); err == nil {
		if last {
			t = t.Add(time.Minute - time.Microsecond)
		}
		return t, nil
	}
	return time.ParseInLocation("2006-01-02T15:04:05", text, zone)
}

// oneEvent is an event with its context.
type oneEvent struct {
	views.Event

	Place    views.Place
	Category string
	StreamID string
	Payload  []piece
	Row      *rowStep
	Account  bool // the stream is an account's, which the ledger page shows
}

// rowStep is the effect of an event on a row of the books.
type rowStep struct {
	Ledger       string
	Account, Row int64
	Change       string // as in "the row was added"
	Changes      []change
}

func (v *visit) event() (page, error) {
	n, err := strconv.ParseUint(v.r.PathValue("position"), 10, 62)
	if err != nil {
		return page{}, views.ErrNoEvent
	}
	e := oneEvent{}
	if e.Event, e.Place, err = v.Events.Event(v.r.Context(), event.Position(n)); err != nil {
		return page{}, err
	}
	e.Category, e.StreamID = event.SplitStream(e.Stream)
	e.Payload = spans(e.Data)
	if l := ledgers.Of(e.Category); l != nil && e.Category == l.Accounts.Category() {
		e.Account = true
	} else if l != nil && e.Category == l.Rows.Category() {
		steps, err := v.Events.Upto(v.r.Context(), e.Stream, e.Revision, mostSteps)
		if err != nil {
			return page{}, err
		}
		if e.Row, err = stepOf(l, e.StreamID, steps); err != nil {
			return page{}, err
		}
	}
	return page{template: "event", title: fmt.Sprintf("%s at %d", e.Type, e.Position), body: e}, nil
}

// stepOf folds a row's stream, and returns what its last event changed; nil if the stream is too long.
func stepOf(l *book.Ledger, id string, steps []views.Event) (*rowStep, error) {
	if len(steps) == 0 || steps[0].Revision != 0 {
		return nil, nil
	}
	row, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return nil, nil //nolint:nilerr // a stream of another program
	}
	var before, after book.Row
	for _, e := range steps {
		meta, err := json.Marshal(e.Meta)
		if err != nil {
			return nil, err
		}
		r, err := l.Rows.Decode(event.Stored{
			Position: e.Position, Stream: e.Stream, Revision: e.Revision, ID: e.ID, Type: e.Type, Data: e.Data, Meta: meta, At: e.At,
		})
		if err != nil {
			return nil, err
		}
		before, after = after, l.Rows.Evolve(after, r)
	}
	return &rowStep{
		Ledger: l.Name, Row: row, Account: after.Account, Change: book.Change(before, after), Changes: changes(rowDocument(before), rowDocument(after)),
	}, nil
}
