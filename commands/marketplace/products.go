package marketplace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/marketplace/company"
	"bahi/domain/marketplace/product"
	"bahi/eventstore"
)

// errNoCompany refuses a company that a request names and that does not exist.
var errNoCompany = fault.Fields(fault.Field{Field: "company_id", Message: "there is no such company"})

// Seller returns the request as it acts for a company, if that is the caller's.
func Seller(ctx context.Context, h *commands.Handler, req commands.Request, id uuid.UUID) (commands.Request, error) {
	l, err := commands.Load(ctx, h.Fresh(), company.Kind, id.String())
	if err == nil && l.State.Name == "" {
		err = errNoCompany
	}
	if err != nil {
		return req, err
	}
	return enterCompany(ctx, h, req, id.String())
}

// AddProduct makes a product of a company.
func AddProduct(ctx context.Context, h *commands.Handler, req commands.Request, c product.Add) (commands.Outcome[product.State], error) {
	req, err := Seller(ctx, h, req, c.Company)
	if err != nil {
		_, wrong := c.Decide(product.State{})
		return commands.Outcome[product.State]{Revision: -1}, fault.Join(err, wrong)
	}
	return commands.Create(ctx, h, req, product.Kind, newID, c)
}

// ImportProducts makes products of a company, in batches. Each batch is in the log as a whole. The same request with the same key takes up where
// an earlier one stopped. Progress is told how many products are in the log; it may be nil. Items are in order already.
func ImportProducts(
	ctx context.Context, h *commands.Handler, req commands.Request, of uuid.UUID, items []product.Item, progress func(done int),
) (out commands.Outcome[product.Batch], err error) {
	if req, err = Seller(ctx, h, req, of); err != nil {
		return out, err
	}
	operation, replayed := req.Operation, true
	newBatch := func(context.Context) (string, error) {
		return product.NewBatchID(uuid.Must(uuid.NewV7())).String(), nil
	}
	for nth, done := 0, 0; done < len(items); nth++ {
		count, err := fits(items[done:])
		if err != nil {
			return out, err
		}
		req.Operation = fmt.Sprintf("%s/%d", operation, nth)
		c := product.Import{Imported: product.Imported{Company: of, Products: items[done : done+count]}}
		if out, err = commands.Create(ctx, h, req, product.Batches, newBatch, c); err != nil {
			return out, err
		}
		replayed = replayed && out.Replayed
		if done += count; progress != nil {
			progress(done)
		}
	}
	out.Replayed = replayed && len(items) > 0
	return out, nil
}

// fits returns how many of the items are in the next batch: at least one.
func fits(items []product.Item) (count int, err error) {
	bytes := 0
	for _, item := range items[:min(len(items), product.MaxBatch)] {
		text, err := json.Marshal(item)
		if err != nil {
			return 0, fmt.Errorf("measure a product: %w", err)
		}
		if bytes += len(text) + 1; bytes > product.MaxBatchBytes && count > 0 {
			break
		}
		count++
	}
	return count, nil
}

// EditProduct changes what the command names of a product.
func EditProduct(ctx context.Context, h *commands.Handler, req commands.Request, id uuid.UUID, c product.Edit) (commands.Outcome[product.State], error) {
	return change(ctx, h, req, id, c)
}

// DeleteProduct ends a product.
func DeleteProduct(ctx context.Context, h *commands.Handler, req commands.Request, id uuid.UUID) (commands.Outcome[product.State], error) {
	return change(ctx, h, req, id, product.Delete{})
}

// change carries out a command on a product of a company that exists.
func change(ctx context.Context, h *commands.Handler, req commands.Request, id uuid.UUID, c event.Command[product.State]) (commands.Outcome[product.State], error) {
	none := commands.Outcome[product.State]{ID: id.String(), Revision: -1}
	if out, done, err := commands.Earlier(ctx, h, req, product.Kind); done || err != nil {
		return out, err
	}
	if err := begin(ctx, h, req, id); err != nil {
		return none, err
	}
	req, err := enter(ctx, h, req, product.Kind, id.String(), func(s product.State) bool { return s.Company != uuid.Nil }, product.ErrNotYours)
	if err != nil {
		return none, err
	}
	l, err := commands.Load(ctx, h.Fresh(), product.Kind, id.String())
	if err != nil {
		return none, err
	}
	seller, err := commands.Load(ctx, h.Fresh(), company.Kind, l.State.Company.String())
	if err == nil && seller.State.Name == "" { // what it sold is gone with it
		err = product.ErrNotFound
	}
	if err != nil {
		return none, err
	}
	return commands.Handle(ctx, h, req, product.Kind, id.String(), c)
}

// LoadProduct returns a product's state, also of one that has no stream of its own yet.
func LoadProduct(ctx context.Context, h *commands.Handler, id uuid.UUID) (product.State, error) {
	l, err := commands.Load(ctx, h.Fresh(), product.Kind, id.String())
	if err != nil || l.Revision >= 0 {
		return l.State, err
	}
	in, nth := product.BatchOf(id)
	batch, err := commands.Load(ctx, h.Fresh(), product.Batches, in.String())
	if err != nil || nth < 0 || nth >= len(batch.State.Products) {
		return product.State{}, err
	}
	return product.State{Company: batch.State.Company, Item: batch.State.Products[nth], ImportedAt: batch.Began}, nil
}

// begin writes the first event of an imported product's own stream, if it has none. The event's id is made of the product's, so doing it again
// changes nothing.
func begin(ctx context.Context, h *commands.Handler, req commands.Request, id uuid.UUID) error {
	l, err := commands.Load(ctx, h.Fresh(), product.Kind, id.String())
	if err != nil || l.Revision >= 0 {
		return err
	}
	in, nth := product.BatchOf(id)
	batch, err := commands.Load(ctx, h.Fresh(), product.Batches, in.String())
	switch {
	case err != nil || nth < 0 || nth >= len(batch.State.Products):
		return err
	case batch.Workspace != req.Workspace && !req.Actor.Permissions.Operator:
		return product.ErrNotYours
	}
	meta, err := h.MetaOf(ctx, product.Batches.Stream(in.String()))
	if err != nil {
		return err
	}
	added := product.Added{Company: batch.State.Company, Item: batch.State.Products[nth], ImportedAt: batch.Began}
	e, err := product.Kind.Encode(uuid.NewSHA1(uuid.NameSpaceOID, id[:]), added, meta)
	if err != nil {
		return err
	}
	for _, r := range h.AppendEach(ctx, []eventstore.Request{{Stream: product.Kind.Stream(id.String()), Expected: eventstore.NoStream, Events: []event.New{e}}}) {
		if _, begun := errors.AsType[*eventstore.WrongRevision](r.Err); !begun {
			return r.Err
		}
	}
	return nil
}
