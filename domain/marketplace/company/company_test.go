package company_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/marketplace/company"
	"bahi/domain/patch"
	"bahi/internal/test/eventtest"
)

func set(text string) patch.Field[string] { return patch.Set(text) }

var mill = company.Created{Name: "Asha Mills", Slug: "asha-mills", DomainKey: "k1",
	Profile: company.Profile{Domain: set("asha.example"), City: set("Surat"), Pincode: set("395003")}}

func TestCreate(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, company.Kind)
	given.Case("a name is enough").When(company.Create{Name: " Asha ", Slug: "asha"}).Then(company.Created{Name: "Asha", Slug: "asha"})
	given.Case("values are put in order").When(company.Create{Name: "Asha", Slug: "asha", Profile: company.Profile{
		Domain: set("https://WWW.Äsha.example:8080/x"), GSTIN: set("27aapfu0939f1zv"), Phone: set("98123 45678"), Country: set("IND"),
		Pincode: set("395 003"),
		City:    set("  "), Website: set("asha.example/shop"), Description: set("<b>=1+1</b>"),
	}}).Then(company.Created{Name: "Asha", Slug: "asha", Profile: company.Profile{
		Domain: set("xn--sha-pla.example"), GSTIN: set("27AAPFU0939F1ZV"), Phone: set("+919812345678"), Country: set("India"),
		Pincode: set("395003"),
		Website: set("https://asha.example/shop"), Description: set("<b>=1+1</b>"),
	}})
	given.Case("a phone that cannot be read is kept as a text").When(company.Create{Name: "Asha",
		Profile: company.Profile{Phone: set("\u202a12 to 15\u202c")}}).
		Then(company.Created{Name: "Asha", Profile: company.Profile{Phone: set("12 to 15")}})
	given.Case("all faults are reported").When(company.Create{Name: " ", Profile: company.Profile{
		Description: set("a\x01b"), City: set(strings.Repeat("é", 101)), Website: set("ftp://asha.example"), Domain: set("asha"),
		Pincode: set("012345"),
		GSTIN:   set("27AAPFU0939F1ZW"), Phone: set("1\x002"),
	}}).ThenFails(eventtest.Faults("name", "must not be empty", "phone", "control characters are not allowed", "description",
		"control characters are not allowed",
		"website", "expected a web address, as in https://example.org", "domain", "expected a domain, as in example.org", "city",
		"at most 100 characters",
		"gstin", "the check character is wrong: one of the others is mistyped",
		"pincode", "expected six digits, the first of them not 0"))
	given.Case("postal codes abroad may have any form").When(company.Create{Name: "Asha",
		Profile: company.Profile{Country: set("Nepal"), Pincode: set("AB 1")}}).
		Then(company.Created{Name: "Asha", Profile: company.Profile{Country: set("Nepal"), Pincode: set("AB 1")}})
}

func TestEdit(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, company.Kind, mill)
	given.Case("unchanged values").When(company.Edit{Name: set("Asha Mills"),
		Profile: company.Profile{City: set("Surat "), State: patch.Clear[string](), Phone: set("")}}).ThenNothing()
	given.Case("the given fields").When(company.Edit{Profile: company.Profile{City: patch.Clear[string](), Category: set("Textiles")}}).
		Then(company.Edited{Profile: company.Profile{City: patch.Clear[string](), Category: set("Textiles")}})
	given.Case("the country determines the form of the postal code").When(company.Edit{Profile: company.Profile{Pincode: set("1234")}}).
		ThenFails(eventtest.Faults("pincode", "expected six digits, the first of them not 0"))
	given.And(company.Edited{Profile: company.Profile{Country: set("Nepal"),
		Pincode: set("1234")}}).Case("also where only the country changes").
		When(company.Edit{Profile: company.Profile{Country: patch.Clear[string]()}}).ThenFails(eventtest.Faults("pincode",
		"expected six digits, the first of them not 0"))
	given.Case("a company cannot verify itself").When(company.Edit{Verified: patch.Set(true)}).ThenNothing()
	verified := given.And(company.Edited{Verified: patch.Set(true)})
	given.Case("an operator does").When(company.Edit{Verified: patch.Set(true),
		ByOperator: true}).Then(company.Edited{Verified: patch.Set(true)})
	verified.Case("another name is not verified").When(company.Edit{Name: set("Usha Mills")}).Then(company.Edited{Name: set("Usha Mills"),
		Verified: patch.Set(false)})
	verified.Case("another domain is not either").When(company.Edit{Profile: company.Profile{Domain: set("usha.example")}, DomainKey: "k2"}).
		Then(company.Edited{Profile: company.Profile{Domain: set("usha.example")}, DomainKey: set("k2"), Verified: patch.Set(false)})
	verified.Case("another city stays verified").When(company.Edit{Profile: company.Profile{City: set("Pune")}}).Then(
		company.Edited{Profile: company.Profile{City: set("Pune")}})
	verified.Case("unless an operator verifies it").When(company.Edit{Name: set("Usha Mills"), Verified: patch.Set(true), ByOperator: true}).
		Then(company.Edited{Name: set("Usha Mills")})
	given.Case("no domain").When(company.Edit{Profile: company.Profile{Domain: patch.Clear[string]()}}).
		Then(company.Edited{Profile: company.Profile{Domain: patch.Clear[string]()}, DomainKey: set("")})
}

func TestDelete(t *testing.T) {
	t.Parallel()
	eventtest.Given(t, company.Kind, mill).Case("it ends").When(company.Delete{}).Then(company.Deleted{})
	gone := eventtest.Given(t, company.Kind, mill, company.Deleted{})
	gone.Case("once").When(company.Delete{}).ThenFails(company.ErrNotFound)
	gone.Case("and cannot be edited").When(company.Edit{Name: set("Usha")}).ThenFails(company.ErrNotFound)
}

func TestDomainsAreComparedInOneForm(t *testing.T) {
	t.Parallel()
	for text, domain := range map[string]string{
		"Example.org": "example.org", " https://www.example.org:8443/a?b#c ": "example.org", "asha@example.org": "example.org",
		"http://u:p@example.org": "example.org",
		"www.co":                 "www.co", "www.www.example.org": "example.org", "bücher.example": "xn--bcher-kva.example",
		"xn--bcher-kva.example.": "xn--bcher-kva.example", "example.org:80": "example.org",
	} {
		found, err := company.Domain("domain", text)
		require.NoError(t, err, text)
		require.Equal(t, domain, found, text)
	}
	for _, text := range []string{"", "example", "http://", "127.0.0.1", "[::1]:80", "a..b", ".example.org", "exa mple.org", "-a.org",
		"a_b.org", strings.Repeat("a.", 127) + "org", "\x00.org", "@", "www."} {
		_, err := company.Domain("domain", text)
		require.Error(t, err, "%q", text)
	}
	require.True(t, company.OfMailProvider("gmail.com"))
	require.False(t, company.OfMailProvider("example.org"))
}

func TestGSTINsAreChecked(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, company.Kind)
	number := func(text string) company.Create {
		return company.Create{Name: "A", Profile: company.Profile{GSTIN: set(text)}}
	}
	for _, good := range []string{"27AAPFU0939F1ZV", "24ABCDE1234F1Z6", "29AAACZ9999Q1ZQ", "08FGHIJ5678K2Z0"} {
		given.Case(good).When(number(good)).Then(company.Created{Name: "A", Profile: company.Profile{GSTIN: set(good)}})
		for _, other := range "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ" {
			if byte(other) != good[14] {
				_, err := number(good[:14] + string(other)).Decide(company.State{})
				require.Error(t, err)
			}
		}
	}
	for _, bad := range []string{"00AAPFU0939F1ZV", "39AAPFU0939F1ZV", "27AAPFU0939F1YV", "27AAPFU0939F0ZV", "27AAPFU0939F1Z",
		"भ7AAPFU0939F1ZV"} {
		_, err := number(bad).Decide(company.State{})
		require.ErrorContains(t, err, "gstin", bad)
	}
}

func TestSlugsAreMadeOfNames(t *testing.T) {
	t.Parallel()
	const id = "0195e8a0-7c1e-7000-8000-0123456789ab"
	for name, slug := range map[string]string{
		"Asha & Sons, Ltd.": "asha-and-sons-ltd", "Élodie": "elodie", "Straße": "strasse", "કમલ જ્વેલર્સ": "kamala-jvelarsa",
		"श्री गणेश": "sri-ganesa", "हिंदी 123": "himdi-123", "ক্রোড়": "kroda",
		"黄金": "company-456789ab", "!!!": "company-456789ab", "Search": "search-company", "New": "new-company", "me": "me-company",
		"0195e8a0-7c1e-7000-8000-0123456789ab": "0195e8a0-7c1e-7000-8000-0123456789ab-company",
		strings.Repeat("ab ", 60):              strings.Repeat("ab-", 26) + "ab",
	} {
		require.Equal(t, slug, company.Slug(name, id), name)
	}
	require.Equal(t, []string{"a", "a-2"}, []string{company.Nth("a", 1), company.Nth("a", 2)})
	long := strings.Repeat("ab-", 26) + "ab"
	require.Equal(t, []string{long, strings.Repeat("ab-", 25) + "ab-2", strings.Repeat("ab-", 25) + "a-100"},
		[]string{company.Nth(long, 1), company.Nth(long, 2), company.Nth(long, 100)})
	rapid.Check(t, func(t *rapid.T) {
		slug := company.Slug(rapid.String().Draw(t, "name"), id)
		require.Regexp(t, `^[a-z0-9]+(-[a-z0-9]+)*$`, slug)
		require.LessOrEqual(t, len(slug), 80)
	})
}
