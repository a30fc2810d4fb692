package marketplacecmd

import (
	"context"
	"errors"

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

// BuyerHash returns the id of the stream of a buyer's address.
func BuyerHash(ctx context.Context, h *commands.Handler, address string) (string, error) {
	return h.Hash(ctx, string(enquiry.Buyers), []byte(address))
}

// SendEnquiry sends an enquiry to a company, in the company's workspace.
func SendEnquiry(ctx context.Context, h *commands.Handler, req commands.Request, c enquiry.Send) (EnquiryOutcome, error) {
	none := EnquiryOutcome{Revision: -1}
	to, err := commands.LoadCached(ctx, h, company.Kind, c.To.String(), func(s company.State) bool { return s.Name != "" })
	if err != nil {
		return none, err
	}
	req = req.In(to.Workspace)
	if out, done, err := commands.PreviousOutcome(ctx, h, req, enquiry.Kind); done || err != nil {
		return out, err
	}
	// Faults of the enquiry itself are reported first, all together.
	refused := func(unknown *fault.Error) (EnquiryOutcome, error) {
		if _, wrong := c.Decide(enquiry.State{}); wrong != nil {
			return none, fault.Join(wrong, fault.Fields(unknown.Fields...))
		}
		return none, unknown
	}
	if to.State.Name == "" {
		return refused(unknownID("to_company_id", "Company not found"))
	}
	if c.Product != nil {
		sold, err := offers(ctx, h, c.To, *c.Product)
		if err != nil {
			return none, err
		}
		if !sold {
			return refused(unknownID("product_id", "Product not found"))
		}
	}
	address, err := person.Email("user_email", c.Email)
	if err != nil {
		_, err = c.Decide(enquiry.State{})
		return none, err
	}
	hash, err := BuyerHash(ctx, h, address)
	if err != nil {
		return none, err
	}
	for range buyerTries {
		buyer, err := commands.Load(ctx, h.Fresh(), enquiry.BuyerKind, hash)
		if err != nil {
			return none, err
		}
		c.Buyer = enquiry.Subject(hash, buyer.State.Erased)
		out, err := commands.Create(ctx, h, req, enquiry.Kind, newID, c)
		if !errors.Is(err, event.ErrErased) {
			return out, err
		}
	}
	return none, commands.ErrBusy
}

// unknownID refuses an id in the body with SPEC.txt's text.
func unknownID(field, detail string) *fault.Error {
	return &fault.Error{Kind: fault.Malformed, Detail: detail, Fields: []fault.Field{{Field: field, Message: "there is none with this id"}}}
}

// offers reports whether a company sells an active product.
func offers(ctx context.Context, h *commands.Handler, of, id uuid.UUID) (bool, error) {
	p, err := LoadProduct(ctx, h, id)
	return err == nil && p.Company == of && p.Active.Value, err
}

// EditEnquiry changes the status and the notes of an enquiry to the caller's company.
func EditEnquiry(ctx context.Context, h *commands.Handler, req commands.Request, id uuid.UUID, c enquiry.Edit) (EnquiryOutcome, error) {
	none := EnquiryOutcome{Revision: -1}
	l, err := commands.Load(ctx, h.Fresh(), enquiry.Kind, id.String())
	if err != nil {
		return none, err
	}
	if l.Workspace == req.Workspace && l.State.Status != "" {
		of, err := commands.Load(ctx, h.Fresh(), company.Kind, l.State.Company.String())
		if err == nil && of.State.Name == "" {
			err = ErrCompanyGone
		}
		if err != nil {
			return none, err
		}
	}
	out, err := commands.Handle(ctx, h, req, enquiry.Kind, id.String(), c)
	if errors.Is(err, event.ErrErased) {
		c.Erased = true
		return commands.Handle(ctx, h, req, enquiry.Kind, id.String(), c)
	}
	return out, err
}
