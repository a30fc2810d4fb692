package marketplacehttp_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/readmodels/marketplaceview"
)

const companies = "/api/v1/companies"

func of(id any) string { return fmt.Sprintf("%s/%s", companies, id) }

// seller returns a caller with write access to a workspace's marketplace data.
func seller(o *apptest.Server, workspace string) *apitest.Client {
	return o.Bearer(o.Key(workspace, `{"marketplace":"write"}`).Key)
}

func founded(t *testing.T, c *apitest.Client, body string) (made marketplaceview.Company) {
	t.Helper()
	c.POST(companies, body).Status(201).JSON(&made)
	return made
}

// unique returns a word of letters that is unique among tests.
func unique() string {
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' {
			return 'g' + c - '0'
		}
		return c
	}, strings.ReplaceAll(uuid.NewString(), "-", ""))[:20]
}

// page is a list of companies.
type page struct {
	Data  []marketplaceview.Listed `json:"data"`
	Total int64                    `json:"total"`
	Page  int                      `json:"page"`
	Limit int                      `json:"limit"`
}

func TestTheListOfCompaniesCanBeOnesOwn(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c := seller(o, o.Home)
	mine := founded(t, c, `{"name":"Mine"}`)
	founded(t, seller(o, o.Abroad), `{"name":"Theirs"}`)
	own := apitest.Read[page](o.Reader(o.Home).GET(companies + "?mine=true").Status(200))
	require.Equal(t, int64(1), own.Total)
	require.Equal(t, mine.ID, own.Data[0].ID)
	o.Anonymous().GET(companies + "?mine=true").Status(401)
}

func TestACompanyIsReadByItsIDAndItsSlug(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, word := seller(o, o.Home), unique()
	first := founded(t, c, `{"name":"`+word+` Mills","city":"Surat","gstin":"27AAPFU0939F1ZV","unknown":1}`)
	require.Equal(t, word+"-mills", first.Slug)
	second := founded(t, c, `{"name":"`+word+` mills"}`)
	require.Equal(t, word+"-mills-2", second.Slug)
	byID := o.Anonymous().GET(of(first.ID)).Status(200)
	require.Equal(t, `"0"`, byID.Header("ETag"))
	require.Equal(t, byID.Text, o.Anonymous().GET(of(strings.ToUpper(first.ID.String()))).Status(200).Text)
	require.Equal(t, byID.Text, o.Anonymous().GET(of(first.Slug)).Status(200).Text)
	require.Contains(t, byID.Text, `"city":"Surat","state":null`)

	// A change of the name keeps the slug. No other company gets the slug.
	renamed := c.PATCH(of(first.ID), `{"name":"Other"}`).Status(200)
	require.Equal(t, renamed.Text, o.Anonymous().GET(of(first.Slug)).Status(200).Text)
	c.DELETE(of(first.ID)).Status(204)
	require.Equal(t, word+"-mills-3", founded(t, c, `{"name":"`+word+` mills"}`).Slug)
	for _, gone := range []any{first.ID, first.Slug, uuid.New(), "no-such-company", "%20"} {
		o.Anonymous().GET(of(gone)).Problem(404, "Company not found")
	}
	c.DELETE(of(first.ID)).Problem(404, "Company not found")
	c.PATCH(of(first.Slug), `{}`).Problem(404, "Company not found")
}

func TestADomainBelongsToOneCompany(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, foreign := seller(o, o.Home), seller(o, o.Abroad)
	domain := unique() + ".example"
	k := founded(t, c, `{"name":"A","domain":"https://www.`+domain+`/"}`)
	require.Equal(t, domain, *k.Domain)
	taken := foreign.POST(companies, `{"name":"B","domain":"`+strings.ToUpper(domain)+`"}`).Problem(409, "Company domain already registered",
		"domain", "Company domain already registered")
	taken.Contains(`"code":"domain_taken"`, `"id":"`+k.ID.String())
	other := founded(t, foreign, `{"name":"B"}`)
	foreign.PATCH(of(other.ID), `{"domain":"`+domain+`"}`).Problem(409, "Company domain already registered", "domain",
		"Company domain already registered")
	check := func(text string) *apitest.Answer {
		return o.Anonymous().POST(companies+"/check-domain", `{"domain":"`+text+`"}`)
	}
	check("sales@" + domain).Status(200).Body(`{"available":false,"company":{"id":"` + k.ID.String() + `","name":"A"}}`)
	check("shop." + domain).Status(200).Body(`{"available":true,"company":null}`)
	check("x").Problem(422, "Validation error", "domain", "expected a domain, as in example.org")

	// No company owns a mail provider's domain, and a released domain is free.
	for _, name := range []string{"C", "D"} {
		founded(t, c, `{"name":"`+name+`","domain":"gmail.com"}`)
	}
	check("gmail.com").Status(200).Body(`{"available":true,"company":null}`)
	c.DELETE(of(k.ID)).Status(204)
	check(domain).Status(200).Body(`{"available":true,"company":null}`)
	foreign.PATCH(of(other.ID), `{"domain":"`+domain+`"}`).Status(200)
}

func TestACompanyGetsTheDomainOfItsCreatorsMail(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	asha := o.Person(o.Address("asha"))
	_, domain, _ := strings.Cut(o.Address("asha"), "@")
	asha.GET("/api/v1/users/me").Status(200).Contains(`"company_id":null`)
	k := founded(t, asha.Client, `{"name":"Asha"}`)
	require.Equal(t, domain, *k.Domain)
	require.Nil(t, founded(t, asha.Client, `{"name":"Asha"}`).Domain, "an implicit domain that is taken is not an error")
	asha.GET("/api/v1/users/me").Status(200).Contains(`"company_id":"` + k.ID.String())
}

func TestCompaniesAreListedAndFound(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, word, city := seller(o, o.Home), unique(), unique()
	for _, name := range []string{"Golden Necklace", "Silver Anklets", "સોનાની વીંટી"} {
		founded(t, c, fmt.Sprintf(`{"name":"%s %s","category":" %s ","city":"%s"}`, name, word, word, city))
	}
	names := func(query string) string {
		found := apitest.Read[page](o.Anonymous().GET(companies + query).Status(200))
		short := make([]string, len(found.Data))
		for i, k := range found.Data {
			short[i] = strings.TrimSuffix(k.Name, " "+word)
		}
		return strings.Join(short, ",")
	}
	const all = "સોનાની વીંટી,Silver Anklets,Golden Necklace"
	require.Equal(t, all, names("?category="+strings.ToUpper(word)))
	require.Equal(t, all, names("?city="+city+"+&verified=false"))
	require.Equal(t, "Golden Necklace", names("?city="+city+"&limit=2&page=2"))
	require.Empty(t, names("?city="+city+"&verified=true"))
	o.Anonymous().GET(companies + "?page=3&limit=2&city=" + city).Status(200).Body(`{"data":[],"total":3,"page":3,"limit":2}`)
	first := apitest.Read[page](o.Anonymous().GET(companies + "?limit=1&city=" + city).Status(200))
	one := o.Anonymous().GET(companies + "/search?q=" + word + "&limit=1").Status(200)
	one.Body(fmt.Sprintf(`{"data":[{"id":"%s","name":"સોનાની વીંટી %s","slug":"%s","category":"%s","city":"%s","verified":false}],`+
		`"total":3,"page":1,"limit":1}`,
		first.Data[0].ID, word, first.Data[0].Slug, word, city))
	for query, found := range map[string]string{
		"golden+" + word: "Golden Necklace", "goldne+" + word: "Golden Necklace", "neklace+" + word: "Golden Necklace",
		"GOLDEN+" + city: "Golden Necklace",
		"વીંટ+" + word:   "સોનાની વીંટી", "anklet+" + word: "Silver Anklets", "silver+golden+" + word: "", "%25+%26+" + word: all,
		"%2D%2D%2D": "", "\"" + word + "'+|+!&(": all,
	} {
		require.Equal(t, found, names("/search?q="+query), query)
	}
}

const contacts = "/api/v1/contacts"

func contactAt(id any) string { return fmt.Sprintf("%s/%s", contacts, id) }

func contactOf(t *testing.T, c *apitest.Client, company any, more string) (made marketplaceview.Contact) {
	t.Helper()
	c.POST(contacts, fmt.Sprintf(`{"first_name":"Asha","email":"asha@example.org","company_id":%q%s}`, company, more)).Status(201).JSON(&made)
	return made
}

func TestAnybodyNamesAContactAndMembersDecideTheRest(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, foreign, stranger := seller(o, o.Home), seller(o, o.Abroad), o.Anonymous()
	mill, shop := founded(t, c, `{"name":"`+unique()+`"}`), founded(t, c, `{"name":"`+unique()+`"}`)
	theirs := founded(t, foreign, `{"name":"`+unique()+`"}`)
	first := contactOf(t, stranger, mill.ID, `,"is_primary":true,"phone":"98123 45678","last_name":" "`)
	require.Equal(t, []any{true, "+919812345678", (*string)(nil)}, []any{first.IsPrimary, *first.Phone, first.LastName})
	second := contactOf(t, stranger, mill.ID, `,"is_primary":true`)
	require.False(t, second.IsPrimary, "a non-member replaces no primary contact")

	changed := stranger.PATCH(contactAt(first.ID),
		`{"email":"rani@example.org","company_id":"`+shop.ID.String()+`","is_primary":false}`).Status(200)
	changed.Contains(`"email":"rani@example.org"`, `"company_id":"`+mill.ID.String(), `"is_primary":true`,
		`"warnings":[{"field":"company_id"`, `{"field":"is_primary"`)
	require.NotContains(t, c.PATCH(contactAt(second.ID), `{"is_primary":true}`).Status(200).Contains(`"is_primary":true`).Text, "warnings")
	stranger.GET(contactAt(first.ID)).Status(200).Contains(`"is_primary":false`, `"email":"rani@example.org"`)

	c.PATCH(contactAt(second.ID), `{"company_id":"`+theirs.ID.String()+`"}`).Problem(403,
		"Not enough permissions to access this company's contacts")
	c.PATCH(contactAt(second.ID), `{"company_id":"`+uuid.NewString()+`"}`).Problem(422, "Validation error", "company_id",
		"there is no such company")
	c.PATCH(contactAt(second.ID), `{"company_id":"`+shop.ID.String()+`"}`).Status(200).Contains(`"company_id":"`+shop.ID.String(),
		`"is_primary":false`)
	foreign.PATCH(contactAt(second.ID), `{"is_primary":true}`).Status(200).Contains(`"warnings"`)

	var all []marketplaceview.Contact
	require.Equal(t, "1", c.GET(contacts+"?company_id="+mill.ID.String()).Status(200).JSON(&all).Header("X-Total-Count"))
	require.Equal(t, first.ID, all[0].ID)
	require.Equal(t, "1", c.GET(contacts+"?skip=5&limit=1000&company_id="+mill.ID.String()).Status(200).Body("[]").Header("X-Total-Count"))
	for _, id := range []string{theirs.ID.String(), uuid.NewString()} {
		c.GET(contacts+"?company_id="+id).Problem(403, "Not enough permissions to access this company's contacts")
	}
	foreign.DELETE(contactAt(first.ID)).Problem(404, "Contact not found")
	c.DELETE(contactAt(first.ID)).Status(204)
	stranger.GET(contactAt(first.ID)).Problem(404, "Contact not found")
	stranger.PATCH(contactAt(first.ID), `{}`).Problem(404, "Contact not found")
	c.DELETE(contactAt("x")).Problem(404, "Contact not found")
	var alone marketplaceview.Contact
	stranger.POST(contacts, `{"first_name":"A","email":"a@example.org","company_id":null}`).Status(201).JSON(&alone)
	require.Nil(t, alone.CompanyID)
	c.DELETE(contactAt(alone.ID)).Problem(404, "Contact not found")
	o.Operator().DELETE(contactAt(alone.ID)).Status(204)
}

func TestADeletedCompanysContactsAreItsMembers(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c := seller(o, o.Home)
	mill := founded(t, c, `{"name":"`+unique()+`"}`)
	asha := contactOf(t, c, mill.ID, "")
	c.DELETE(of(mill.ID)).Status(204)
	o.Anonymous().GET(contactAt(asha.ID)).Problem(404, "Contact not found")
	o.Anonymous().PATCH(contactAt(asha.ID), `{"phone":null}`).Problem(404, "Contact not found")
	o.Anonymous().POST(contacts, `{"first_name":"A","email":"a@example.org","company_id":"`+mill.ID.String()+`"}`).Problem(400,
		"Company not found")
	c.GET(contactAt(asha.ID)).Status(200)
	c.GET(contacts + "?company_id=" + mill.ID.String()).Status(200).Contains(asha.ID.String())
	c.PATCH(contactAt(asha.ID), `{"phone":null}`).Problem(409, "The company was deleted")
	c.DELETE(contactAt(asha.ID)).Status(204)
}

func TestACompanyIsToldOfAStrangersChange(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	owner := o.Person(o.Address("owner"))
	name := unique()
	mill := founded(t, owner.Client, `{"name":"`+name+`"}`)
	asha := contactOf(t, owner.Client, mill.ID, "")
	owner.PATCH(contactAt(asha.ID), `{"phone":"+919812345678"}`).Status(200)
	for range 2 {
		o.Anonymous().PATCH(contactAt(asha.ID), `{"email":"rani@example.org"}`).Status(200)
	}
	subject := "A contact of " + name + " was changed"
	text := o.Mailed(o.Address("owner"), subject, 1)
	require.Contains(t, text, "/contacts/"+asha.ID.String())
	require.NotContains(t, text, "rani")
	o.WaitJobs("notify_contact_change")
	require.Len(t, o.Mails(o.Address("owner"), subject), 1)
}

func TestContactsMayBeForKnownCallersAlone(t *testing.T) {
	t.Parallel()
	s := apptest.Settings(t, apptest.Database(t))
	s.Outside.ContactsKnown, s.Outside.AnyGSTIN, s.Outside.ScrubInterval = true, true, time.Hour
	o := apptest.StartAs(t, s)
	c := seller(o, o.Home)
	mill := founded(t, c, `{"name":"Mill","gstin":"27AAPFU0939F1C6"}`)
	asha, rani := contactOf(t, c, mill.ID, ""), contactOf(t, c, mill.ID, "")
	o.Anonymous().GET(contactAt(asha.ID)).Problem(401, "Not authenticated")
	o.Anonymous().PATCH(contactAt(asha.ID), `{}`).Problem(401, "Not authenticated")
	o.Anonymous().POST(contacts, `{"first_name":"A","email":"a@example.org"}`).Problem(401, "Not authenticated")
	seller(o, o.Abroad).GET(contactAt(asha.ID)).Status(200)

	// The first deletion triggers the rewrite of the tables, the next one waits for its turn.
	c.DELETE(contactAt(asha.ID)).Status(204)
	some := func(state string) func() bool {
		return func() bool { return len(o.Jobs("kind=scrub_tables&state="+state)) > 0 }
	}
	require.Eventually(t, some("completed"), time.Minute, 5*time.Millisecond)
	c.DELETE(contactAt(rani.ID)).Status(204)
	require.Eventually(t, some("scheduled"), time.Minute, 5*time.Millisecond)
	before := len(o.Jobs("kind=scrub_tables&state=completed"))
	// An operator's erasure does not wait.
	buyer := contactOf(t, c, mill.ID, "")
	o.Operator().POST("/ops/erasures", `{"email":"asha@example.org"}`).Status(202).Body(`{"subjects":1}`)
	c.GET(contactAt(buyer.ID)).Problem(404, "Contact not found")
	require.Eventually(t, func() bool { return len(o.Jobs("kind=scrub_tables&state=completed")) > before }, time.Minute, 5*time.Millisecond)
}
