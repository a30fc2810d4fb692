package marketplacehttp

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/marketplacecmd"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/marketplace/enquiry"
	"bahi/domain/wording"
	"bahi/http/api"
	"bahi/readmodels/marketplaceview"
)

const (
	enquiries = "/api/v1/enquiries"

	generalEnquiries = "enquiry_general"
)

// ByEnquiry names an enquiry.
type ByEnquiry struct {
	ID string `path:"enquiry_id" doc:"The enquiry's id"`
}

func (in ByEnquiry) id() (uuid.UUID, error) { return idOr(in.ID, enquiry.ErrNotFound) }

// EnquiryQuery are the parameters of the list.
type EnquiryQuery struct {
	CompanyID api.Optional[uuid.UUID] `query:"company_id" doc:"ID of one of the caller's companies; absent: all"`
	Status    string                  `query:"status" enum:"pending,contacted,qualified,converted,lost" doc:"Only this status"`
	Source    string                  `query:"source_platform" maxLength:"50" doc:"Only enquiries from this platform"`
	Spam      bool                    `query:"spam" doc:"true: only enquiries recognised as spam"`
}

func enquiryOp(id, method, path, summary string) api.Op {
	return closed(api.Op{ID: id, Method: method, Path: enquiries + path, Summary: summary, Limit: generalEnquiries,
		Reads: []string{"enquiries"}})
}

// enquiryAnswer is the response to a buyer.
type enquiryAnswer struct {
	marketplaceview.SentEnquiry

	Warnings []fault.Field `json:"warnings,omitempty" doc:"Invalid values. They are stored, but not used"`
}

// enquiries registers the operations on enquiries.
func (r *Routes) enquiries() {
	api.Handle(r.API, open(api.Op{
		ID: "create-enquiry", Method: "POST", Path: enquiries,
		Summary: "Send an enquiry to a company. Bahi notifies the company by mail, by chat and in its CRM.",
		Limit:   "enquiry_create", FieldErrorStatus: http.StatusBadRequest, Unstored: "Failed to create enquiry",
		Errors: []int{http.StatusBadRequest},
	}), func(ctx context.Context, in *struct{ Body enquiry.Send }) (*api.Tagged[enquiryAnswer], error) {
		out, err := marketplacecmd.SendEnquiry(ctx, r.Commands, api.Request(ctx), in.Body)
		if err == nil {
			out.State, err = commands.Reveal(ctx, r.Commands, out.State)
		}
		return api.WriteResult(ctx, out, err, func(out marketplacecmd.EnquiryOutcome) enquiryAnswer {
			return enquiryAnswer{SentEnquiry: sentShown(out), Warnings: wording.Unread("user_phone", out.State.Phone.Shown())}
		})
	})
	api.Handle(r.API, enquiryOp("list-enquiries", "GET", "", "List the enquiries to the caller's companies, newest first"),
		func(ctx context.Context, in *struct {
			api.Pages
			EnquiryQuery
		}) (*api.Body[api.PageOf[marketplaceview.Enquiry]], error) {
			f := marketplaceview.EnquiryFilter{Company: in.CompanyID.Value, Status: in.Status, Source: in.Source, Spam: in.Spam}
			of := api.Caller(ctx).Workspace
			if in.CompanyID.Set {
				var err error
				if of, err = marketplacecmd.WorkspaceOf(ctx, r.Commands, api.Request(ctx), in.CompanyID.Value, enquiry.ErrNotYours); err != nil {
					return nil, err
				}
			}
			rows, total, err := r.Views.Enquiries(ctx, api.At(ctx), of, in.Get(), f)
			return api.Paginated(in.Get(), rows, total, err)
		})
	r.followEnquiries()
	r.verifyChat()
	api.Handle(r.API, enquiryOp("get-enquiry", "GET", "/{enquiry_id}", "Read an enquiry"), func(ctx context.Context, in *struct {
		ByEnquiry
		Spam bool `query:"spam" doc:"true: the enquiry is recognised as spam"`
	}) (*api.Tagged[marketplaceview.Enquiry], error) {
		id, err := in.id()
		if err != nil {
			return nil, err
		}
		e, err := r.Views.Enquiry(ctx, api.At(ctx), api.Caller(ctx).Workspace, id, in.Spam)
		return api.WithETag(e, e.Revision, err)
	})
	api.Handle(r.API, enquiryOp("get-enquiry-history", "GET", "/{enquiry_id}/history",
		"List the status changes of an enquiry, oldest first"),
		func(ctx context.Context, in *ByEnquiry) (*api.Body[[]marketplaceview.Move], error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			moves, err := r.Views.EnquiryHistory(ctx, api.At(ctx), api.Caller(ctx).Workspace, id)
			if err == nil && len(moves) == 0 {
				err = enquiry.ErrNotFound
			}
			return api.Answer(moves, err)
		})
	op := enquiryOp("edit-enquiry", "PATCH", "/{enquiry_id}", "Change an enquiry's status or notes")
	op.Reads = nil
	api.Handle(r.API, op, func(ctx context.Context, in *struct {
		ByEnquiry
		Body enquiry.Edit
	}) (*api.Tagged[marketplaceview.Enquiry], error) {
		id, err := in.id()
		if err != nil {
			return nil, err
		}
		out, err := marketplacecmd.EditEnquiry(ctx, r.Commands, api.Request(ctx), id, in.Body)
		if err == nil {
			out.State, err = commands.Reveal(ctx, r.Commands, out.State)
		}
		var notified commands.Loaded[enquiry.Notifications]
		if err == nil {
			notified, err = commands.Load(ctx, r.Commands.Fresh(), enquiry.NotificationKind, out.ID)
		}
		return api.WriteResult(ctx, out, err,
			func(out marketplacecmd.EnquiryOutcome) marketplaceview.Enquiry {
				return enquiryShown(out, notified.State)
			})
	})
}

// sentShown returns an enquiry after a command, for the buyer.
func sentShown(out marketplacecmd.EnquiryOutcome) marketplaceview.SentEnquiry {
	s := out.State
	id, _ := uuid.Parse(out.ID) // the command has accepted the id
	return marketplaceview.SentEnquiry{
		ID: id, ToCompanyID: s.Company, ProductID: s.Product, Message: s.Message.Shown(), Quantity: s.Quantity, UserName: s.Name.Shown(),
		UserEmail: s.Email.Shown(),
		UserPhone: s.Phone.Shown(), SourcePlatform: s.Source, Status: s.Status, CreatedAt: out.CreatedAt, UpdatedAt: out.At,
		Revision: out.Revision,
	}
}

// enquiryShown returns an enquiry after a command, for the company.
func enquiryShown(out marketplacecmd.EnquiryOutcome, notified enquiry.Notifications) marketplaceview.Enquiry {
	e := marketplaceview.Enquiry{SentEnquiry: sentShown(out), Notes: out.State.Notes.Shown()}
	if notified.Lead != "" {
		e.CRMLeadID = &notified.Lead
	}
	for port, into := range map[enquiry.Port]*marketplaceview.Notification{
		enquiry.Chat: &e.Notifications.Chat, enquiry.Email: &e.Notifications.Email, enquiry.CRM: &e.Notifications.CRM,
	} {
		o, ended := notified.Of[port]
		switch {
		case ended:
			into.Status, into.At = o.Status, o.At
		case out.State.Spam:
			into.Status, into.At = enquiry.Skipped, out.CreatedAt
		default:
			into.Status, into.At = enquiry.Queued, out.CreatedAt
		}
		if o.Error != "" {
			into.Error = &o.Error
		}
	}
	return e
}

// feed delivers new events.
type feed interface {
	Head(ctx context.Context) (event.Position, error)
	// Follow calls take with the events after a position as they are appended.
	Follow(ctx context.Context, after event.Position, take func([]event.Stored) error) error
}
