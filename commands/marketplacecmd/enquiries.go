package marketplacecmd

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/marketplace/company"
	"bahi/domain/marketplace/enquiry"
	"bahi/domain/person"
)

// EnquiryOutcome is the outcome of a command on an enquiry.
type EnquiryOutcome = commands.Outcome[enquiry.State]

// buyerTries is the number of lookups of a buyer while an erasure of the buyer is in progress.
const buyerTries = 3

// buyerHash returns the id of the stream of a buyer's address.
func buyerHash(ctx context.Context, h *commands.Handler, address string) (string, error) {
	return h.Hash(ctx, string(enquiry.Buyers), []byte(address))
}

// SendEnquiry sends an enquiry to a company, in the company's workspace.
func SendEnquiry(ctx context.Context, h *commands.Handler, req commands.Request, c enquiry.Send) (EnquiryOutcome, error) {
	none := EnquiryOutcome{Revision: -1}
	to, err := commands.LoadCached(ctx, h, company.Kind, c.To.String(), func(s company.State) bool { return s.Name != "" })
	if err != nil {
		return none, err
	}
	hash := ""
	if address, err := person.Email("user_email", c.Email); err == nil { // the command refuses an invalid one
		if hash, err = buyerHash(ctx, h, address); err != nil {
			return none, err
		}
	}
	for range buyerTries {
		if hash != "" {
			buyer, err := commands.Load(ctx, h.Fresh(), enquiry.BuyerKind, hash)
			if err != nil {
				return none, err
			}
			c.Buyer = enquiry.Subject(hash, buyer.State.Erased)
		}
		out, err := commands.Do(ctx, h, req.In(to.Workspace), enquiry.Kind, func(ctx context.Context, tx *commands.Tx) error {
			if err := addressed(ctx, tx, c); err != nil {
				return err
			}
			_, err := commands.DecideNew(ctx, tx, enquiry.Kind, newID, func(string) event.Command[enquiry.State] { return c })
			return err
		})
		if !errors.Is(err, event.ErrErased) {
			return out, err
		}
	}
	return none, commands.ErrBusy
}

// addressed refuses an enquiry to a company or about a product that does not exist. The refusal has the enquiry's own faults too.
func addressed(ctx context.Context, tx *commands.Tx, c enquiry.Send) error {
	unknown, err := (*fault.Error)(nil), existing(ctx, tx, c.To, errNoSuchAddressee)
	switch {
	case errors.Is(err, errNoSuchAddressee):
		unknown = errNoSuchAddressee
	case err != nil:
		return err
	}
	if c.Product != nil {
		p, err := productOf(ctx, tx, c.Product.String())
		switch elsewhere := p.Company != c.To; {
		case err != nil:
			return err
		case unknown == nil && (elsewhere || !p.Active.Value):
			unknown = errNoSuchProduct
		case unknown != nil && !p.Active.Value: // of any company
			both := *unknown
			both.Fields = slices.Concat(unknown.Fields, errNoSuchProduct.Fields)
			unknown = &both
		}
	}
	if unknown == nil {
		return nil
	}
	if _, wrong := c.Decide(enquiry.State{}); wrong != nil {
		return fault.Join(wrong, fault.Fields(unknown.Fields...))
	}
	return unknown
}

var (
	errNoSuchAddressee = unknownID("to_company_id", "Company not found")
	errNoSuchProduct   = unknownID("product_id", "Product not found")
)

// unknownID refuses an id in the body with SPEC.txt's text.
func unknownID(field, detail string) *fault.Error {
	return &fault.Error{Kind: fault.Malformed, Detail: detail, Fields: []fault.Field{{Field: field, Message: "there is none with this id"}}}
}

// EditEnquiry changes the status and the notes of an enquiry to the caller's company.
func EditEnquiry(ctx context.Context, h *commands.Handler, req commands.Request, id uuid.UUID, c enquiry.Edit) (EnquiryOutcome, error) {
	edit := func(ctx context.Context, tx *commands.Tx) error {
		l, err := commands.Load(ctx, tx, enquiry.Kind, id.String())
		if err == nil && l.Workspace == req.Workspace && l.State.Status != "" {
			err = existing(ctx, tx, l.State.Company, errCompanyGone)
		}
		if err == nil {
			_, err = commands.Decide(ctx, tx, enquiry.Kind, id.String(), c)
		}
		return err
	}
	out, err := commands.Do(ctx, h, req, enquiry.Kind, edit)
	if errors.Is(err, event.ErrErased) {
		c.Erased = true
		return commands.Do(ctx, h, req, enquiry.Kind, edit)
	}
	return out, err
}
