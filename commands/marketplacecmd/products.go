package marketplacecmd

import (
	"context"
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

// errNoCompany refuses a request with the id of a missing company.
var errNoCompany = fault.Wrong("company_id", "there is no such company")

// Seller returns the request for one of the caller's companies.
func Seller(ctx context.Context, h *commands.Handler, req commands.Request, id uuid.UUID) (commands.Request, error) {
	if err := existing(ctx, h.Fresh(), id, errNoCompany); err != nil {
		return req, err
	}
	return enterCompany(ctx, h, req, id.String())
}

// AddProduct creates a product of a company.
func AddProduct(ctx context.Context, h *commands.Handler, req commands.Request, c product.Add) (commands.Outcome[product.State], error) {
	req, err := Seller(ctx, h, req, c.Company)
	if err != nil {
		_, wrong := c.Decide(product.State{})
		return commands.Outcome[product.State]{Revision: -1}, fault.Join(err, wrong)
	}
	key := product.SKUClaim(c.Company, product.SKUKey(c.SKU.Value))
	return commands.Do(ctx, h, req, product.Kind, func(ctx context.Context, tx *commands.Tx) error {
		if err := existing(ctx, tx, c.Company, errNoCompany); err != nil {
			return err
		}
		_, err := skus.DecideNew(ctx, tx, key, newID, func(string) event.Command[product.State] { return c })
		return err
	})
}

// existing returns gone if a company was deleted, or never existed.
func existing(ctx context.Context, from commands.Source, id uuid.UUID, gone error) error {
	l, err := commands.Load(ctx, from, company.Kind, id.String())
	if err == nil && l.State.Name == "" {
		err = gone
	}
	return err
}

// EditProduct changes the fields of a product that the command has.
func EditProduct(ctx context.Context, h *commands.Handler, req commands.Request, id uuid.UUID,
	c product.Edit) (commands.Outcome[product.State], error) {
	return change(ctx, h, req, id, c, func(of uuid.UUID) *string {
		if !c.SKU.Present() {
			return nil
		}
		return new(product.SKUClaim(of, product.SKUKey(c.SKU.Value)))
	})
}

// DeleteProduct deletes a product and releases its SKU.
func DeleteProduct(ctx context.Context, h *commands.Handler, req commands.Request, id uuid.UUID) (commands.Outcome[product.State], error) {
	return change(ctx, h, req, id, product.Delete{}, func(uuid.UUID) *string { return new("") })
}

// change runs a command on a product of an existing company. sku returns the name of the SKU's claim after the command, nil if the SKU does
// not change.
func change(
	ctx context.Context, h *commands.Handler, req commands.Request, id uuid.UUID, c event.Command[product.State],
	sku func(of uuid.UUID) *string,
) (commands.Outcome[product.State], error) {
	none := commands.Outcome[product.State]{ID: id.String(), Revision: -1}
	if out, done, err := commands.PreviousOutcome(ctx, h, req, product.Kind); done || err != nil {
		return out, err
	}
	l, err := commands.Load(ctx, h.Fresh(), product.Kind, id.String())
	if err == nil && l.Revision < 0 {
		if err = begin(ctx, h, req, id); err == nil {
			l, err = commands.Load(ctx, h.Fresh(), product.Kind, id.String())
		}
	}
	if err != nil {
		return none, err
	}
	foreign := func(s product.State) error {
		if s.Company == uuid.Nil {
			return nil
		}
		return product.ErrNotYours
	}
	if req, err = enter(ctx, h, req, product.Kind, id.String(), foreign); err != nil {
		return none, err
	}
	return commands.Do(ctx, h, req, product.Kind, func(ctx context.Context, tx *commands.Tx) error {
		if err := existing(ctx, tx, l.State.Company, product.ErrNotFound); err != nil { // a company's products are deleted with it
			return err
		}
		return skus.Decide(ctx, tx, id.String(), sku(l.State.Company), c)
	})
}

// LoadProduct returns a product's state, even of a product without a stream of its own.
func LoadProduct(ctx context.Context, h *commands.Handler, id uuid.UUID) (product.State, error) {
	return productOf(ctx, h.Fresh(), id.String())
}

// productOf is [LoadProduct] from any source.
func productOf(ctx context.Context, from commands.Source, id string) (product.State, error) {
	l, err := commands.Load(ctx, from, product.Kind, id)
	if err != nil || l.Revision >= 0 {
		return l.State, err
	}
	of, err := uuid.Parse(id)
	if err != nil {
		return l.State, fmt.Errorf("load a product: %w", err)
	}
	in, nth := product.BatchOf(of)
	batch, err := commands.Load(ctx, from, product.Batches, in.String())
	if err != nil || nth < 0 || nth >= len(batch.State.Products) {
		return product.State{}, err
	}
	return product.State{Company: batch.State.Company, Item: batch.State.Products[nth], ImportedAt: batch.CreatedAt}, nil
}

// begin creates the own streams of imported products. Each first event's id is derived from the product's id, so a repeated call changes
// nothing.
func begin(ctx context.Context, h *commands.Handler, req commands.Request, ids ...uuid.UUID) error {
	type begun struct {
		commands.Loaded[product.Batch]

		meta event.Meta
	}
	batches := map[uuid.UUID]begun{}
	var appends []eventstore.Transaction
	for _, id := range ids {
		in, nth := product.BatchOf(id)
		batch, seen := batches[in]
		if !seen {
			var err error
			batch.Loaded, err = commands.Load(ctx, h.Fresh(), product.Batches, in.String())
			if err == nil && batch.Revision >= 0 {
				batch.meta, err = h.FollowUpMeta(ctx, product.Batches.Stream(in.String()))
			}
			if err != nil {
				return err
			}
			batches[in] = batch
		}
		switch {
		case nth < 0 || nth >= len(batch.State.Products):
			continue
		case batch.Workspace != req.Workspace && !req.Actor.Permissions.Operator:
			return product.ErrNotYours
		}
		added := product.Added{Company: batch.State.Company, Item: batch.State.Products[nth], ImportedAt: batch.CreatedAt}
		e, err := product.Kind.Encode(uuid.NewSHA1(uuid.NameSpaceOID, id[:]), added, batch.meta)
		if err != nil {
			return err
		}
		appends = append(appends, eventstore.To(product.Kind.Stream(id.String()), eventstore.NoStream, e))
	}
	for _, r := range h.AppendEach(ctx, appends) {
		if _, begun := errors.AsType[*eventstore.WrongRevision](r.Err); r.Err != nil && !begun {
			return r.Err
		}
	}
	return nil
}
