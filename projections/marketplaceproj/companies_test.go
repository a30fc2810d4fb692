package marketplaceproj_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/marketplace/company"
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
		tables.Rows(`select gram, size from gram where word = 'rao' order by gram collate "C"`))
}
