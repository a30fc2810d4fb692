package product

import (
	"encoding/binary"

	"github.com/google/uuid"

	"bahi/domain/event"
)

// Batches is the kind of the streams productbatch-<uuid>: products that were imported together. A product's id contains the batch's id and
// the product's index in the batch, so the product needs no own stream before its first change.
var Batches = event.NewKind("productbatch",
	event.Of[Imported]("ProductsImported", 1),
)

// Limits of a batch (CONTRACT.md M10).
const (
	MaxBatch      = 500
	MaxBatchBytes = 512 << 10
)

// Batch has the products that were imported together.
type Batch struct {
	Company   uuid.UUID
	Products  []Item
	Updated   int
	Unchanged int
}

// Imported records new products of a company, and the numbers of rows with the SKU of an existing product.
type Imported struct {
	Company   uuid.UUID `json:"company_id"`
	Products  []Item    `json:"products"`
	Updated   int       `json:"updated,omitzero"`   // products that were edited
	Unchanged int       `json:"unchanged,omitzero"` // products that already equal their row
}

// Evolve creates the batch.
func (e Imported) Evolve(Batch) Batch { return Batch(e) }

// Import creates products of a company. The items are normalised already, see [Item.Tidied].
type Import struct {
	Imported

	Always bool // record an import without changes too, so that a retry finds it
}

// Decide creates the products.
func (c Import) Decide(Batch) ([]event.Event[Batch], error) {
	if !c.Always && len(c.Products)+c.Updated == 0 {
		return nil, nil
	}
	return []event.Event[Batch]{c.Imported}, nil
}

// placeBytes is the number of bytes for the index in the batch. They are the last bytes of a product's id. The index starts at 1; the
// batch's own id has 0.
const placeBytes = 2

// NewBatchID returns the id of a batch, derived from a unique id.
func NewBatchID(unique uuid.UUID) uuid.UUID {
	clear(unique[len(unique)-placeBytes:])
	return unique
}

// InBatch returns the id of the nth product of a batch, from 0.
func InBatch(batch uuid.UUID, nth int) uuid.UUID {
	binary.BigEndian.PutUint16(batch[len(batch)-placeBytes:], uint16(nth+1))
	return batch
}

// BatchOf returns the batch of a product and its index there. For a product that was not imported, no such batch exists.
func BatchOf(id uuid.UUID) (batch uuid.UUID, nth int) {
	return NewBatchID(id), int(binary.BigEndian.Uint16(id[len(id)-placeBytes:])) - 1
}
