package marketplacecmd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/spreadsheet"
	"bahi/commands/unique"
	"bahi/domain/event"
	"bahi/domain/marketplace/product"
)

// skus claims each SKU for one product of a company. A claim's name contains the company and the SKU without a hash, because SKUs are
// public.
var skus = unique.Field[product.State]{
	Records: product.Kind, Claims: product.SKUs, Key: product.State.SKUClaim, Name: "sku", Taken: product.SKUTaken, Load: productOf,
}

// productQueries has the queries of the read side for imports.
type productQueries interface {
	// ProductsBySKU returns all of the company's products with these SKUs, by SKU in the form of [product.SKUKey].
	ProductsBySKU(ctx context.Context, of uuid.UUID, keys []string) (map[string]product.Listed, error)
}

// Line is a valid row of a file.
type Line struct {
	product.Item // as a new product

	Given *product.Edit // change of the product with the row's SKU; nil: the row has no SKU

	New   *spreadsheet.RowError // reason why the row cannot create a product; nil: it can
	lacks error                 // the reason as an error
	key   string                // see [product.SKUKey]
}

// Imported is the result of an import, by row.
type Imported struct {
	Created, Updated, Unchanged int

	Failed   []spreadsheet.RowError
	Position event.Position // 0: nothing was written
	Replayed bool
}

// Import has the lines of a file for a company. Progress is called after each batch with the number of completed lines; it may be nil.
type Import struct {
	Company  uuid.UUID
	Lines    []Line
	Progress func(done int)
}

// ImportProducts creates products of a company, and changes the products with the SKU of a row. Each batch of rows is one transaction. A
// retry with the same key continues where the earlier request stopped.
func ImportProducts(ctx context.Context, h *commands.Handler, req commands.Request, products productQueries, from Import,
) (all Imported, err error) {
	of, lines := from.Company, from.Lines
	if req, err = Seller(ctx, h, req, of); err != nil {
		return all, err
	}
	req.IfMatch = nil // a file has no revision for If-Match
	i := importing{h: h, of: of}
	var keys []string
	for _, line := range lines {
		if line.Given != nil {
			keys = append(keys, line.key)
		}
	}
	if len(keys) > 0 {
		if i.known, err = products.ProductsBySKU(ctx, of, keys); err != nil {
			return all, err
		}
	}
	for _, line := range lines {
		if _, found := i.known[line.key]; line.New != nil && !found {
			i.failed = append(i.failed, *line.New)
		}
	}
	operation, replayed := req.Operation, true
	for nth, done := 0, 0; done < len(lines); nth++ {
		count, err := fits(lines[done:])
		if err != nil {
			return all, err
		}
		req.Operation = fmt.Sprintf("%s/%d", operation, nth)
		out, err := i.batch(ctx, req, lines[done:done+count])
		if err != nil {
			return all, err
		}
		all.Created += len(out.State.Products)
		all.Updated, all.Unchanged = all.Updated+out.State.Updated, all.Unchanged+out.State.Unchanged
		all.Position = max(all.Position, out.Position)
		replayed = replayed && out.Replayed
		if done += count; from.Progress != nil {
			from.Progress(done)
		}
	}
	all.Replayed, all.Failed = replayed && len(lines) > 0, i.failed
	return all, nil
}

// fits returns how many of the lines fit in the next batch: at least one.
func fits(lines []Line) (count int, err error) {
	bytes := 0
	for _, line := range lines[:min(len(lines), product.MaxBatch)] {
		text, err := json.Marshal(line.Item)
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

// importing is an import in progress.
type importing struct {
	h     *commands.Handler
	of    uuid.UUID
	known map[string]product.Listed // by SKU; may lag behind

	failed []spreadsheet.RowError
}

// batch imports lines in one transaction.
func (i *importing) batch(ctx context.Context, req commands.Request, lines []Line) (commands.Outcome[product.Batch], error) {
	var known []uuid.UUID
	for _, line := range lines {
		if p, found := i.known[line.key]; found && line.Given != nil {
			known = append(known, p.ID)
		}
	}
	if !req.DryRun {
		if err := i.own(ctx, req, known); err != nil {
			return commands.Outcome[product.Batch]{}, err
		}
	}
	var c product.Import
	var failed []spreadsheet.RowError
	out, err := commands.Do(ctx, i.h, req, product.Batches, func(ctx context.Context, tx *commands.Tx) (err error) {
		c, failed, err = i.decide(ctx, tx, req, lines)
		return err
	})
	if err == nil && !out.Replayed {
		i.failed = append(i.failed, failed...)
		out.State = product.Batch(c.Imported)
	}
	return out, err
}

// decide decides on lines, and returns those that create no product.
func (i *importing) decide(ctx context.Context, tx *commands.Tx, req commands.Request, lines []Line) (c product.Import,
	failed []spreadsheet.RowError, err error) {
	if tx.Again() {
		if err := i.look(ctx, req, lines); err != nil {
			return c, nil, err
		}
	}
	type change struct {
		id string // id of the product
		product.Edit
	}
	var (
		changes []change
		claimed []string // claims of new products, "" for one without, in the order of the products
	)
	c = product.Import{Imported: product.Imported{Company: i.of}, Always: req.Key != ""}
	for _, line := range lines {
		_, listed := i.known[line.key]
		if line.Given != nil && line.New != nil && !listed {
			continue
		}
		id, before, err := i.holder(ctx, tx, line)
		switch {
		case err != nil:
			return c, nil, err
		case id == "" && line.New != nil: // the product was deleted meanwhile
			failed = append(failed, *line.New)
			continue
		case id == "":
			c.Products, claimed = append(c.Products, line.Item), append(claimed, product.SKUClaim(i.of, line.key))
			continue
		}
		events, err := line.Given.Decide(before)
		switch {
		case err != nil:
			return c, nil, err
		case len(events) == 0:
			c.Unchanged++
		default:
			c.Updated++
			changes = append(changes, change{id, *line.Given})
		}
	}
	var batch uuid.UUID
	newID := func(context.Context) (string, error) {
		return product.NewBatchID(uuid.Must(uuid.NewV7())).String(), nil
	}
	_, err = commands.DecideNew(ctx, tx, product.Batches, newID, func(id string) event.Command[product.Batch] {
		batch, _ = uuid.Parse(id)
		return c
	})
	if err != nil || req.DryRun {
		return c, failed, err
	}
	for _, change := range changes {
		if _, err := commands.Decide(ctx, tx, product.Kind, change.id, change.Edit); err != nil {
			return c, nil, err
		}
	}
	for n, key := range claimed {
		if err := skus.Give(ctx, tx, key, product.InBatch(batch, n).String()); err != nil {
			return c, nil, err
		}
	}
	return c, failed, nil
}

// holder returns the product with the SKU of a line, an empty id if there is none.
func (i *importing) holder(ctx context.Context, tx *commands.Tx, line Line) (id string, before product.State, err error) {
	key := product.SKUClaim(i.of, line.key)
	if line.Given == nil || key == "" {
		return "", before, nil
	}
	known, listed := i.known[line.key]
	switch {
	case listed && tx.DryRun():
		return known.ID.String(), product.State{Company: i.of, Item: known.Item}, nil
	case listed:
		l, err := commands.Load(ctx, tx, product.Kind, known.ID.String())
		if err != nil || l.State.SKUClaim() == key {
			return known.ID.String(), l.State, err
		}
	case tx.DryRun():
		return "", before, nil
	case !tx.Again():
		commands.Unseen(tx, product.SKUs.Kind, key)
		return "", before, nil
	}
	claim, err := commands.Load(ctx, tx, product.SKUs.Kind, key)
	if err != nil || claim.State.Holder == "" {
		return "", before, err
	}
	before, err = productOf(ctx, tx, claim.State.Holder)
	if err != nil || before.SKUClaim() != key {
		return "", product.State{}, err
	}
	return claim.State.Holder, before, nil
}

// look loads the claims of the lines' SKUs from the log, because the tables may lag or another request may have changed the products.
func (i *importing) look(ctx context.Context, req commands.Request, lines []Line) error {
	holders := make([]uuid.UUID, len(lines))
	err := commands.InParallel(len(lines), func(n int) error {
		if lines[n].Given == nil {
			return nil
		}
		claim, err := commands.Load(ctx, i.h.Fresh(), product.SKUs.Kind, product.SKUClaim(i.of, lines[n].key))
		if err == nil && claim.State.Holder != "" {
			holders[n], err = uuid.Parse(claim.State.Holder)
		}
		return err
	})
	if err != nil {
		return err
	}
	return i.own(ctx, req, slices.DeleteFunc(holders, func(id uuid.UUID) bool { return id == uuid.Nil }))
}

// own gives each product its own stream, and loads the streams.
func (i *importing) own(ctx context.Context, req commands.Request, ids []uuid.UUID) error {
	begun := make([]bool, len(ids))
	load := func(n int) error {
		l, err := commands.Load(ctx, i.h.Fresh(), product.Kind, ids[n].String())
		begun[n] = l.Revision >= 0
		return err
	}
	if err := commands.InParallel(len(ids), load); err != nil {
		return err
	}
	var of []uuid.UUID
	for n, id := range ids {
		if !begun[n] {
			of = append(of, id)
		}
	}
	if err := begin(ctx, i.h, req, of...); err != nil {
		return err
	}
	ids, begun = of, make([]bool, len(of))
	return commands.InParallel(len(of), load)
}
