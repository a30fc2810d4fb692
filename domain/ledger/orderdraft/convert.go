package orderdraft

import (
	"cmp"
	"fmt"
	"slices"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/order"
	"bahi/domain/unit"
)

// Convert converts a draft to client orders, one for each client and slip number.
type Convert struct {
	Date     *unit.Date `json:"date,omitempty" doc:"Date of the orders; absent: the draft's, else today"`
	Delivery *unit.Date `json:"delivery_date,omitempty" doc:"Agreed date of delivery; absent: the draft's"`

	Today      unit.Date      `json:"-"`
	FirstOrder int64          `json:"-"` // id of the first order; the ids are consecutive; 0: none is assigned, in a dry run
	FirstItem  int64          `json:"-"`
	Found      Warnings       `json:"-"`
	Gone       map[int64]bool `json:"-"` // deleted clients
	Reveal     Reveal         `json:"-"`
}

// Warnings returns the warnings about an order's slip.
type Warnings func(o order.Order) []order.Warning

// Decide plans the orders. It returns [errNotReady] with the missing fields of each entry.
func (c Convert) Decide(s State) ([]event.Event[State], error) {
	orders, err := c.Plan(s)
	if err != nil {
		return nil, err
	}
	item := c.FirstItem
	for i := range orders {
		if c.Found != nil {
			orders[i].Warnings = c.Found(orders[i].Order)
		}
		if c.FirstOrder == 0 {
			continue
		}
		orders[i].ID = c.FirstOrder + int64(i)
		for k := range orders[i].Items {
			orders[i].Items[k].ID = item
			item++
		}
	}
	return []event.Event[State]{Converted{Orders: orders}}, nil
}

// Plan returns the orders of a draft without ids.
func (c Convert) Plan(s State) (orders []Ordered, err error) {
	switch {
	case !s.Open():
		return nil, ErrNotFound
	case len(s.Entries) == 0:
		return nil, ErrEmpty
	}
	s, err = c.Reveal.of(s)
	if err != nil {
		return nil, err
	}
	date, delivery := cmp.Or(c.Date, s.Details.Date, &c.Today), cmp.Or(c.Delivery, s.Details.Delivery)
	wrong := checkDates(date, delivery, c.Today)
	var lacking []fault.Field
	for i, e := range s.Entries {
		lacking = append(lacking, e.lacks(i)...)
		if e.ClientID != nil && c.Gone[*e.ClientID] {
			lacking = append(lacking, e.noClient(i))
		}
	}
	switch {
	case len(wrong) > 0:
		return nil, fault.Fields(append(wrong, lacking...)...)
	case len(lacking) > 0:
		return nil, notReady(lacking)
	}
	for _, e := range s.Entries {
		slip := book.Text(*e.Slip)
		at := slices.IndexFunc(orders, func(o Ordered) bool {
			return o.Client == *e.ClientID && order.NormalisedSlip(o.Slip) == order.NormalisedSlip(&slip)
		})
		if at < 0 {
			at = len(orders)
			orders = append(orders, Ordered{Order: order.Order{Client: *e.ClientID, Slip: &slip, Date: *date, Delivery: delivery}})
		}
		item := order.Item{Name: book.Text(text(e.Item)), Weight: *e.Weight}
		if e.Quantity != nil {
			item.Quantity = *e.Quantity
		}
		orders[at].Items = append(orders[at].Items, item)
	}
	return orders, nil
}

// lacks returns the faults of fields that an order requires and the entry lacks.
func (e Entry) lacks(place int) (lacking []fault.Field) {
	for _, field := range []struct {
		name string
		has  bool
	}{
		{"item_name", text(e.Item) != ""}, {"weight", e.Weight != nil && *e.Weight > 0}, {"client_id", e.ClientID != nil},
		{"slip_number", e.Slip != nil},
	} {
		if !field.has {
			lacking = append(lacking, fault.Field{Field: fmt.Sprintf("entries[%d].%s", place, field.name), Message: "is required", ID: e.ID})
		}
	}
	return lacking
}

func notReady(lacking []fault.Field) error {
	return &fault.Error{Kind: errNotReady.Kind, Detail: errNotReady.Detail, Fields: lacking}
}

// noClient returns the fault of an entry with a deleted client.
func (e Entry) noClient(place int) fault.Field {
	return fault.Field{Field: fmt.Sprintf("entries[%d].client_id", place), Message: "there is no such client", ID: e.ID}
}
