package marketplaceproj_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/marketplace/company"
	"bahi/domain/marketplace/companycontact"
	"bahi/domain/marketplace/enquiry"
	"bahi/domain/patch"
	"bahi/internal/test/projectiontest"
	"bahi/projections/marketplaceproj"
)

func TestEnquiriesStayWhenTheirBuyerGoes(t *testing.T) {
	t.Parallel()
	sent := func(id, buyer, name string, spam bool) projectiontest.Event {
		return projectiontest.Happened(enquiry.Kind, id, enquiry.Sent{
			Company: uuid.MustParse(usha), Source: "web", Buyer: buyer, Name: enquiry.Buyers.Personal(buyer, name),
			Email: enquiry.Buyers.Personal(buyer, name+"@example.org"), Spam: spam,
		}, meta)
	}
	at := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	notified := func(id string, e enquiry.Notified) projectiontest.Event {
		e.At = at
		return projectiontest.Happened(enquiry.NotificationKind, id, e, meta)
	}
	tables := projectiontest.Run(t, marketplaceproj.Enquiries,
		sent(asha, "h", "Asha", false), sent(ravi, "h-1", "Ravi", true),
		projectiontest.Happened(enquiry.Kind, asha, enquiry.StatusChanged{From: enquiry.Pending, To: enquiry.Lost}, meta),
		projectiontest.Happened(enquiry.Kind, asha, enquiry.NotesWritten{Notes: enquiry.Buyers.Personal("h", "called")}, meta),
		notified(asha, enquiry.Notified{Port: enquiry.CRM, Status: enquiry.Failed, Error: "refused", To: "crm"}),
		notified(asha, enquiry.Notified{Port: enquiry.CRM, Status: enquiry.Done, Lead: "7", To: "crm",
			Text: enquiry.Buyers.Personal("h", "Asha asks")}),
		notified(ravi, enquiry.Notified{Port: enquiry.Chat, Status: enquiry.Done, To: "+91", Text: enquiry.Buyers.Personal("h-1", "Ravi asks")}),
		projectiontest.Happened(enquiry.BuyerKind, "h", enquiry.BuyerErased{}, event.Meta{}),
	)
	require.Equal(t, []string{
		`(h,,,,lost,7,f,sent,queued,2)`, `(h-1,Ravi,Ravi@example.org,,pending,,t,skipped,sent,0)`,
	}, tables.Rows(`select buyer, user_name, user_email, notes, status, crm_lead_id, spam, notifications->'crm'->>'status',
		notifications->'chat'->>'status', revision from enquiry order by buyer`))
	require.Equal(t, []string{`(,pending,0)`, `(pending,lost,1)`},
		tables.Rows(`select moved_from, moved_to, nth from move where enquiry_id = '`+asha+`' order by nth`))
	require.Equal(t, []string{`(chat,+91,"Ravi asks",sent)`, `(crm,crm,,sent)`},
		tables.Rows(`select port, recipient, said, status from notice order by port`))
}

func TestContactsAreShownUntilTheyAreDeletedOrTheirCompanyIs(t *testing.T) {
	t.Parallel()
	happened := func(id string, e event.Event[companycontact.State]) projectiontest.Event {
		return projectiontest.Happened(companycontact.Kind, id, e, meta)
	}
	named := func(id, text string) patch.Field[event.Personal] {
		return companycontact.Subjects.Field(id, patch.Set(text))
	}
	mill, shop := uuid.New(), uuid.New()
	tables := projectiontest.Run(t, marketplaceproj.Contacts,
		happened(asha, companycontact.Added{Company: mill,
			Details: companycontact.Details{FirstName: named(asha, "Asha"), Email: named(asha, "a@example.org"), Phone: named(asha, "+91")}}),
		happened(ravi, companycontact.Added{Details: companycontact.Details{FirstName: named(ravi, "Ravi"),
			Email: named(ravi, "r@example.org")}}),
		happened(usha, companycontact.Added{Company: shop,
			Details: companycontact.Details{FirstName: named(usha, "Usha"), Email: named(usha, "u@example.org")}}),
		happened(asha, companycontact.Edited{Company: shop,
			Details: companycontact.Details{FirstName: named(asha, "Rani"), Phone: patch.Clear[event.Personal]()}}),
		projectiontest.Happened(companycontact.PrimaryKind, shop.String(), companycontact.PrimaryNamed{Contact: uuid.MustParse(usha)}, meta),
		projectiontest.Happened(companycontact.PrimaryKind, shop.String(), companycontact.PrimaryNamed{Contact: uuid.MustParse(asha)}, meta),
		happened(usha, companycontact.Deleted{}),
		projectiontest.Happened(company.Kind, shop.String(), company.Deleted{}, meta),
	)
	require.Equal(t, []string{`(Rani,a@example.org,,t,t,1)`, `(Ravi,r@example.org,,f,f,0)`},
		tables.Rows(`select first_name, email, phone, hidden, company_id is not null, revision from contact order by first_name`))
	require.Equal(t, []string{`(` + asha + `)`}, tables.Rows(`select contact_id from first`))
}
