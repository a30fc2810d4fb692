package replay

import (
	"slices"

	"bahi/domain/patch"
	"bahi/domain/unit"
)

// order is the state of an order after its events.
type order struct {
	Order

	workspace *workspace
	deleted   bool
}

// takada is the state of a takada after its events.
type takada struct {
	Takada

	deleted bool
}

// piece is an item of an order or a takada.
type piece struct {
	Weight  unit.Grams `json:"weight"`
	Karigar int64      `json:"karigar_id"`
}

func weightOf(items []piece) (sum unit.Grams) {
	for _, item := range items {
		sum += item.Weight
	}
	return sum
}

// order applies an event of an order.
func (b *Books) order(e recorded) string {
	var data struct {
		Client patch.Field[int64]     `json:"client_id"`
		Date   patch.Field[unit.Date] `json:"date"`
		Items  patch.Field[[]piece]   `json:"items"`
	}
	if reason := decoded(e, &data); reason != "" {
		return reason
	}
	o := b.orders[e.id]
	switch {
	case e.Type == "ClientOrderAdded":
		o = &order{Order: Order{ID: e.id}, workspace: e.workspace}
		b.orders[e.id] = o
	case e.Type != "ClientOrderEdited" && e.Type != "ClientOrderDeleted":
		return unknownType
	case o == nil:
		b.rule(false, e, 0, 0, "an order that was never added is changed")
		return ""
	}
	o.Position = e.Position
	o.deleted = o.deleted || e.Type == "ClientOrderDeleted"
	o.Client, o.Date = data.Client.Or(o.Client), data.Date.Or(o.Date)
	if data.Items.Present() {
		o.Weight = weightOf(data.Items.Value)
	}
	return ""
}

// takada applies an event of a takada.
func (b *Books) takada(e recorded) string {
	var data struct {
		Order patch.Field[int64]     `json:"client_order_id"`
		Date  patch.Field[unit.Date] `json:"date"`
		Items patch.Field[[]piece]   `json:"items"`
	}
	if reason := decoded(e, &data); reason != "" {
		return reason
	}
	t := b.takadas[e.id]
	switch {
	case e.Type == "TakadaAdded":
		t = &takada{Takada: Takada{ID: e.id}}
		b.takadas[e.id] = t
	case e.Type != "TakadaEdited" && e.Type != "TakadaDeleted":
		return unknownType
	case t == nil:
		b.rule(false, e, 0, 0, "a takada that was never added is changed")
		return ""
	}
	t.Position = e.Position
	t.deleted = t.deleted || e.Type == "TakadaDeleted"
	t.Order, t.Date = data.Order.Or(t.Order), data.Date.Or(t.Date)
	if data.Items.Present() {
		t.Weight, t.Karigars = weightOf(data.Items.Value), nil
		for _, item := range data.Items.Value {
			if item.Karigar != 0 && !slices.Contains(t.Karigars, item.Karigar) {
				t.Karigars = append(t.Karigars, item.Karigar)
			}
		}
		slices.Sort(t.Karigars)
	}
	return ""
}

// ordered returns the orders and takadas of a workspace that are not deleted, by id. Deleting a client deletes its
// orders, and deleting an order deletes its takadas.
func (b *Books) ordered(w *workspace) (orders []*order, takadas []Takada) {
	for _, o := range b.orders {
		o.Delivered, o.Takadas = 0, 0
		if client := b.accounts[o.Client]; o.workspace == w && !o.deleted && client != nil && !client.deleted {
			orders = append(orders, o)
		}
	}
	slices.SortFunc(orders, func(a, b *order) int { return int(a.ID - b.ID) })
	for _, t := range b.takadas {
		if t.deleted {
			continue
		}
		if _, found := slices.BinarySearchFunc(orders, t.Order, func(o *order, id int64) int { return int(o.ID - id) }); found {
			o := b.orders[t.Order]
			o.Delivered, o.Takadas = o.Delivered+t.Weight, o.Takadas+1
			shown := t.Takada
			shown.Karigars = slices.DeleteFunc(slices.Clone(t.Karigars), func(k int64) bool {
				a := b.accounts[k]
				return a == nil || a.deleted
			})
			takadas = append(takadas, shown)
		}
	}
	slices.SortFunc(takadas, func(a, b Takada) int { return int(a.ID - b.ID) })
	return orders, takadas
}
