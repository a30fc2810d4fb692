package marketplaceproj_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/marketplace/company"
	"bahi/domain/marketplace/companycontact"
	"bahi/domain/marketplace/enquiry"
	"bahi/domain/marketplace/product"
	"bahi/domain/patch"
	"bahi/internal/test/projectiontest"
	"bahi/projections/marketplaceproj"
)

const (
	asha = "11111111-1111-4111-8111-111111111111"
	ravi = "22222222-2222-4222-8222-222222222222"
	usha = "33333333-3333-4333-8333-333333333333"
)

var meta = event.Meta{Workspace: uuid.MustParse("aaaaaaaa-1111-4111-8111-111111111111")}

func happened(id string, e event.Event[company.State]) projectiontest.Event {
	return projectiontest.Happened(company.Kind, id, e, meta)
}

func TestCompaniesAreShownUntilTheyAreDeleted(t *testing.T) {
	t.Parallel()
	created := func(id, name, slug string, p company.Profile) projectiontest.Event {
		return happened(id, company.Created{Name: name, Slug: slug, Profile: p, DomainKey: "k" + slug})
	}
	tables := projectiontest.Run(t, marketplaceproj.Companies,
		created(asha, "Asha Mills", "a",
			company.Profile{Category: patch.Set("Cloth"), City: patch.Set("Surat"), Domain: patch.Set("asha.example")}),
		created(ravi, "Ravi", "r", company.Profile{}), created(usha, "Usha", "u", company.Profile{}),
		happened(asha, company.Edited{Profile: company.Profile{City: patch.Clear[string](), Category: patch.Set("ZARI Work")},
			Verified: patch.Set(true)}),
		happened(ravi, company.Edited{Name: patch.Set("Ravi Rao"), DomainKey: patch.Set("")}),
		happened(usha, company.Deleted{}),
	)
	require.Equal(t, []string{
		`(a,"Asha Mills","ZARI Work","zari work",,,asha.example,t,t,"{asha,mills,zari,work}",t,1)`, `(r,"Ravi Rao",,,,,,f,f,"{ravi,rao}",t,1)`,
	}, tables.Rows(`select slug, name, category, category_key, city, city_key, domain, claims_domain, verified, words,
		updated_at > created_at, revision from company order by slug`))
	require.Equal(t, []string{`("  r",4)`, `(" ra",4)`, `("ao ",4)`, `(rao,4)`},
		tables.Rows(`select gram, size from trigram where word = 'rao' order by gram collate "C"`))
}

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
		tables.Rows(`select moved_from, moved_to, ordinal from status_change where enquiry_id = '`+asha+`' order by ordinal`))
	require.Equal(t, []string{`(chat,+91,"Ravi asks",sent)`, `(crm,crm,,sent)`},
		tables.Rows(`select port, recipient, text, status from notice order by port`))
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
	require.Equal(t, []string{`(` + asha + `)`}, tables.Rows(`select contact_id from primary_contact`))
}

func TestACatalogHasWhatItsCompanySells(t *testing.T) {
	t.Parallel()
	item := func(name, category string) product.Item {
		i, err := product.Item{Name: name, Price: 100, Details: product.Details{
			SKU: patch.Set(strings.ToUpper(name)), Category: patch.Set(category), Images: patch.Set([]string{"https://a.example/" + name}),
		}}.Tidied()
		require.NoError(t, err)
		return i
	}
	sold := func(id string, e event.Event[product.State]) projectiontest.Event {
		return projectiontest.Happened(product.Kind, id, e, meta)
	}
	const batch = "00000000-0000-4000-8000-000000000000"
	imported := func(of string, items ...product.Item) projectiontest.Event {
		return projectiontest.Happened(product.Batches, batch, product.Imported{Company: uuid.MustParse(of), Products: items}, meta)
	}
	follow := meta
	follow.FollowUpOf = 5
	id := func(n int) string { return fmt.Sprintf("99999999-0000-4000-8000-%012d", n) }
	first := product.InBatch(uuid.MustParse(batch), 0).String()
	tables := projectiontest.Run(t, marketplaceproj.Products,
		happened(asha, company.Created{Name: "Asha"}), happened(ravi, company.Created{Name: "Ravi"}),
		sold(id(1), product.Added{Company: uuid.MustParse(asha), Item: item("ring", "Gold")}),
		sold(id(2), product.Added{Company: uuid.MustParse(ravi), Item: item("chain", "gold")}),
		imported(asha, item("hook", "Brass"), item("nail", "")),
		projectiontest.Happened(product.Kind, first, product.Added{Company: uuid.MustParse(asha), Item: item("hook", "Brass")}, follow),
		sold(first, product.Edited{
			Name: patch.Set("Hooks"), Details: product.Details{SKU: patch.Set("AB 1"), Category: patch.Set("GOLD"), Images: patch.Set([]string{})},
		}),
		projectiontest.Happened(product.Batches, id(0), product.Imported{Company: uuid.MustParse(asha), Updated: 3}, meta),
		sold(id(3), product.Added{Company: uuid.MustParse(asha), Item: item("gone", "Gold")}), sold(id(3), product.Deleted{}),
		sold(id(4), product.Added{Company: uuid.MustParse(asha), Item: item("hidden", "Gold")}),
		sold(id(4), product.Edited{Details: product.Details{Active: patch.Set(false)}}),
		happened(asha, company.Edited{Name: patch.Set("Asha Mills")}),
		happened(ravi, company.Deleted{}),
		sold(id(5), product.Added{Company: uuid.MustParse(ravi), Item: item("late", "Gold")}),
	)
	require.Equal(t, []string{
		`(1,RING,ring,ring,gold,{https://a.example/ring},t,"{ring,gold}",0)`, `(3,"AB 1","ab 1",Hooks,gold,{},t,"{hooks,gold}",1)`,
		`(4,NAIL,nail,nail,,{https://a.example/nail},t,{nail},0)`, `(6,HIDDEN,hidden,hidden,gold,{https://a.example/hidden},f,"{hidden,gold}",1)`,
	}, tables.Rows(`select ordinal, sku, sku_key, name, category_key, images, is_active, words, revision from product order by ordinal`))
	require.Equal(t, []string{`("Asha Mills",13)`}, tables.Rows(`select company_name, changed from catalog`))
	require.Equal(t, []string{`(0,"",f,1)`, `(0,"",t,3)`, `(0,gold,f,1)`, `(0,gold,t,2)`, `(1,"",f,1)`, `(1,"",t,3)`, `(1,gold,f,1)`,
		`(1,gold,t,2)`},
		tables.Rows(`select left(company_id::text, 1), category_key, is_active, products from tally where products > 0 order by company_id,
			category_key, is_active`))
}
