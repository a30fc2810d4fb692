package product

import (
	"encoding/binary"

	"github.com/google/uuid"

	"bahi/domain/event"
)

// Batches names what a stream productbatch-<uuid> holds: products that were imported at once. A product's id is made of the batch's and its
// place there, so nothing is written to the product's own stream before somebody changes it.
var Batches = event.NewKind("productbatch",
	event.Of[Imported]("ProductsImported", 1),
)

// The bounds of a batch (CONTRACT.md M10).
const (
	MaxBatch      = 500
	MaxBatchBytes = 512 << 10
)

// Batch is the products that were imported at once.
type Batch struct {
	Company   uuid.UUID
	Products  []Item
	Updated   int
	Unchanged int
}

// Imported records new products of a company, and what became of the other rows of their file. Those had a SKU.
type Imported struct {
	Company   uuid.UUID `json:"company_id"`
	Products  []Item    `json:"products"`
	Updated   int       `json:"updated,omitzero"`   // products that were edited
	Unchanged int       `json:"unchanged,omitzero"` // products that have already what their row says
}

// Evolve begins the batch.
func (e Imported) Evolve(Batch) Batch { return Batch(e) }

// Import makes products of a company. The items are in order already, see [Item.Tidied].
type Import struct {
	Imported

	Always bool // also what changes nothing is recorded: a repetition asks for it
}

// Decide makes them.
func (c Import) Decide(Batch) ([]event.Event[Batch], error) {
	if !c.Always && len(c.Products)+c.Updated == 0 {
		return nil, nil
	}
	return []event.Event[Batch]{c.Imported}, nil
}

// placeBytes are the last bytes of an id, which have the place in the batch, from 1; those of the batch are 0.
const placeBytes = 2

// NewBatchID makes the id of a batch from a unique one.
func NewBatchID(unique uuid.UUID) uuid.UUID {
	clear(unique[len(unique)-placeBytes:])
	return unique
}

// InBatch returns the id of the nth product of a batch, from 0.
func InBatch(batch uuid.UUID, nth int) uuid.UUID {
	binary.BigEndian.PutUint16(batch[len(batch)-placeBytes:], uint16(nth+1))
	return batch
}

// BatchOf returns the batch that a product was imported with, if it was, and its place there.
func BatchOf(id uuid.UUID) (batch uuid.UUID, nth int) {
	return NewBatchID(id), int(binary.BigEndian.Uint16(id[len(id)-placeBytes:])) - 1
}
