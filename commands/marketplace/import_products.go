package marketplace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"bahi/commands"
	"bahi/commands/spreadsheet"
	"bahi/commands/unique"
	"bahi/domain/claims"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/marketplace/product"
)

// skus lets one product of a company have a SKU. The streams of claims are named after company and SKU without a secret: SKUs are public.
var skus = unique.Field[product.State]{
	Records: product.Kind, Claims: product.SKUs, Key: product.State.SKUClaim, Name: "sku", Taken: product.SKUTaken, Begun: begun,
}

// begun begins the stream of an imported product. Where its batch is not in the log, no batch of that id will be.
func begun(ctx context.Context, h *commands.Handler, req commands.Request, id string) error {
	of, err := uuid.Parse(id)
	if err != nil {
		return fmt.Errorf("a claim names a product: %w", err)
	}
	in, _ := product.BatchOf(of)
	req.IfMatch = new(int64(-1))
	_, err = commands.Handle(ctx, h, req, product.Batches, in.String(), claims.Fence[product.Batch]{})
	if err != nil && !errors.Is(err, commands.ErrStale) {
		return err
	}
	return begin(ctx, h, req, of)
}

// Shelf is what imports ask of the read side.
type Shelf interface {
	// ProductsBySKU returns the products of a company that have the SKUs, in the form of [product.SKUKey], by these. It misses none.
	ProductsBySKU(ctx context.Context, of uuid.UUID, keys []string) (map[string]product.Listed, error)
}

// Line is a row of a file that is in order.
type Line struct {
	product.Item // as a new product

	Given *product.Edit // what the row says of the product that has its SKU; nil: the row has no SKU

	New   *spreadsheet.RowError // why the row makes no new product; nil: it does
	lacks error                 // the same
	key   string                // see [product.SKUKey]
}

// add returns the command that makes the product.
func (l Line) add(of uuid.UUID) product.Add {
	return product.Add{Details: l.Details, Name: l.Name, Price: l.Price, Company: of}
}

// Imported is what became of the rows of a file.
type Imported struct {
	Created, Updated, Unchanged int

	Failed   []spreadsheet.RowError
	Position event.Position // 0: nothing was written
	Replayed bool
}

// ImportProducts makes products of a company, and changes those that have the SKU of a row, in batches. The new products of a batch are in
// the log as a whole. A repetition with the same key continues where the earlier request stopped. After each batch progress gets the number
// of lines that are done; it may be nil.
func ImportProducts(
	ctx context.Context, h *commands.Handler, req commands.Request, of uuid.UUID, shelf Shelf, lines []Line, progress func(done int),
) (all Imported, err error) {
	if req, err = Seller(ctx, h, req, of); err != nil {
		return all, err
	}
	i := importing{h: h, of: of}
	var keys []string
	for _, line := range lines {
		if line.Given != nil {
			keys = append(keys, line.key)
		}
	}
	if len(keys) > 0 {
		if i.known, err = shelf.ProductsBySKU(ctx, of, keys); err != nil {
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
		all.Created += len(out.State.Products) + out.State.Apart
		all.Updated, all.Unchanged = all.Updated+out.State.Updated, all.Unchanged+out.State.Unchanged
		all.Position = max(all.Position, out.Position)
		replayed = replayed && out.Replayed
		if done += count; progress != nil {
			progress(done)
		}
	}
	all.Replayed, all.Failed = replayed && len(lines) > 0, i.failed
	return all, nil
}

// fits returns how many of the lines are in the next batch: at least one.
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

// importing is an import under way.
type importing struct {
	h     *commands.Handler
	of    uuid.UUID
	known map[string]product.Listed // by SKU

	failed []spreadsheet.RowError
}

// update is a line that changes a product.
type update struct {
	id   uuid.UUID // of the product; uuid.Nil: it is not known
	line Line
}

// elsewhere is the command of a batch whose id is not that which the claims of its products name.
type elsewhere struct{}

// Decide refuses.
func (elsewhere) Decide(product.Batch) ([]event.Event[product.Batch], error) {
	return nil, commands.ErrStale
}

// batch carries out lines. What became of those that are no new products of the batch is recorded with it, so that a repetition answers the
// same.
func (i *importing) batch(ctx context.Context, req commands.Request, lines []Line) (out commands.Outcome[product.Batch], err error) {
	if out, done, err := commands.Earlier(ctx, i.h, req, product.Batches); done || err != nil {
		return out, err
	}
	var (
		id      = newBatch()
		c       = product.Import{Imported: product.Imported{Company: i.of}}
		plain   []product.Item // new products without a SKU
		claimed []Line         // new products with one, and their claims
		news    []unique.New[product.State]
		changes []update
	)
	for _, line := range lines {
		if line.Given == nil {
			c.Products, plain = append(c.Products, line.Item), append(plain, line.Item)
			continue
		}
		known, found := i.known[line.key]
		if line.New != nil && !found {
			continue
		}
		if !found {
			news = append(news, unique.New[product.State]{
				ID: product.InBatch(id, len(c.Products)).String(), Key: product.SKUClaim(i.of, line.key), Command: line.add(i.of),
			})
			c.Products, claimed = append(c.Products, line.Item), append(claimed, line)
			continue
		}
		events, err := line.Given.Decide(product.State{Company: i.of, Item: known.Item})
		switch {
		case err != nil:
			return out, err
		case len(events) == 0:
			c.Unchanged++
		default:
			changes = append(changes, update{known.ID, line})
		}
	}
	if req.DryRun {
		c.Updated = len(changes)
		return commands.Create(ctx, i.h, req, product.Batches, func(context.Context) (string, error) { return "", nil }, c)
	}
	together := true
	if len(news) > 0 {
		if together, err = skus.ClaimEach(ctx, i.h, req, news); err != nil {
			return out, err
		}
	}
	if err := i.update(ctx, req, changes, &c.Imported); err != nil {
		return out, err
	}
	for range maxTries {
		if !together && len(news) > 0 {
			if err := i.apart(ctx, req, news, claimed, &c.Imported); err != nil {
				return out, err
			}
			id, news, c.Products = newBatch(), nil, plain
		}
		if req.Key == "" && len(c.Products)+c.Apart+c.Updated == 0 { // nothing was written, and without a key no repetition asks for the counts
			return commands.Outcome[product.Batch]{State: product.Batch(c.Imported)}, nil
		}
		req.IfMatch = new(int64(-1))
		out, err = commands.Begin(ctx, i.h, req, product.Batches, func(context.Context) (string, error) { return id.String(), nil },
			func(began string) event.Command[product.Batch] {
				if began != "" && began != id.String() && len(news) > 0 {
					return elsewhere{}
				}
				return c
			})
		if !errors.Is(err, commands.ErrStale) {
			return out, err
		}
		together = false // another request wanted a SKU of the batch, and did not wait for it
	}
	return out, commands.ErrBusy
}

func newBatch() uuid.UUID { return product.NewBatchID(uuid.Must(uuid.NewV7())) }

// loaders is how many products are loaded at once.
const loaders = 16

// update changes products.
func (i *importing) update(ctx context.Context, req commands.Request, changes []update, c *product.Imported) error {
	loaded := make([]commands.Loaded[product.State], len(changes))
	load := func(wanted func(n int) bool) error {
		var all errgroup.Group
		all.SetLimit(loaders)
		for n, change := range changes {
			if wanted(n) {
				all.Go(func() (err error) {
					loaded[n], err = commands.Load(ctx, i.h.Fresh(), product.Kind, change.id.String())
					return err
				})
			}
		}
		return all.Wait()
	}
	if err := load(func(int) bool { return true }); err != nil {
		return err
	}
	var none []uuid.UUID
	for n, l := range loaded {
		if l.Revision < 0 {
			none = append(none, changes[n].id)
		}
	}
	if err := begin(ctx, i.h, req, none...); err != nil {
		return err
	}
	if err := load(func(n int) bool { return loaded[n].Revision < 0 }); err != nil {
		return err
	}
	var (
		ones []commands.One[product.State]
		of   []update
		left []update
	)
	for n, l := range loaded {
		line := changes[n].line
		if l.State.SKUClaim() != product.SKUClaim(i.of, line.key) { // it was deleted, or has another SKU now
			left = append(left, update{line: line})
			continue
		}
		ones = append(ones, commands.One[product.State]{Loaded: l, ID: changes[n].id.String(), Command: line.Given})
		of = append(of, changes[n])
	}
	done, err := commands.HandleEach(ctx, i.h, req.FollowUp(), product.Kind, ones)
	if err != nil {
		return err
	}
	for n, d := range done {
		if d.Changed {
			c.Updated++
		} else {
			left = append(left, of[n])
		}
	}
	return i.each(ctx, req, left, c)
}

// apart makes new products in streams of their own.
func (i *importing) apart(
	ctx context.Context, req commands.Request, news []unique.New[product.State], of []Line, c *product.Imported,
) error {
	done, err := skus.CreateEach(ctx, i.h, req, news)
	if err != nil {
		return err
	}
	var left []update
	for n, d := range done {
		if d.Changed {
			c.Apart++
		} else {
			left = append(left, update{line: of[n]})
		}
	}
	return i.each(ctx, req, left, c)
}

// each carries out lines one by one: others changed their products, or wanted their SKUs.
func (i *importing) each(ctx context.Context, req commands.Request, lines []update, c *product.Imported) error {
	for _, line := range lines {
		if err := i.one(ctx, req.FollowUp(), line, c); err != nil {
			return err
		}
	}
	return nil
}

// one edits a product, or adds one if there is none with the SKU.
func (i *importing) one(ctx context.Context, req commands.Request, to update, c *product.Imported) error {
	for range maxTries {
		if to.id != uuid.Nil {
			edited, err := EditProduct(ctx, i.h, req, to.id, *to.line.Given)
			switch {
			case errors.Is(err, product.ErrNotFound): // it was deleted since
			case err != nil:
				return err
			case edited.Changed:
				c.Updated++
				return nil
			default:
				c.Unchanged++
				return nil
			}
		}
		if to.line.New != nil {
			i.failed = append(i.failed, *to.line.New)
			return nil
		}
		_, err := addProduct(ctx, i.h, req, to.line.add(i.of))
		taken, refused := errors.AsType[*fault.Error](err)
		if !refused || taken.Detail != product.SKUTaken {
			if err == nil {
				c.Apart++
			}
			return err
		}
		to.id, _ = uuid.Parse(fmt.Sprint(taken.Fields[0].ID))
	}
	return commands.ErrBusy
}
