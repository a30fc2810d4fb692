package laws_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/access/claim"
	"bahi/domain/access/plan"
	"bahi/domain/access/user"
	"bahi/domain/claims"
	"bahi/domain/event"
	"bahi/domain/laws"
	"bahi/domain/marketplace/company"
	"bahi/domain/marketplace/product"
	"bahi/domain/messaging/botsource"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/contact"
	"bahi/domain/patch"
)

type streams interface{ Stream(id string) string }

func record(kind streams, id string, data any) logged {
	return logged{stream: kind.Stream(id), data: data, of: home}
}

// decided returns the only event of a command on a claim.
func decided(v claims.Value, key string, c event.Command[claims.State], s claims.State) logged {
	events, err := c.Decide(s)
	if err != nil || len(events) != 1 {
		panic("no event of a claim")
	}
	return record(v, key, events[0])
}

func claimed(v claims.Value, key, holder string) logged {
	return decided(v, key, claims.Claim{Value: v, Holder: holder, Now: time.Now()}, claims.State{})
}

func released(v claims.Value, key, holder string) logged {
	return decided(v, key, claims.Release{Value: v, Holder: holder}, claims.State{Holder: holder})
}

// together returns events as one transaction.
func together(events ...logged) []logged {
	all := slices.Clone(events)
	for i := range all {
		all[i].more = len(all) - 1 - i
	}
	return all
}

var (
	ada, bob   = uuid.NewString(), uuid.NewString()
	mill, shop = uuid.NewString(), uuid.NewString()
	batch      = product.NewBatchID(uuid.New())
)

func sku(text string) product.Item {
	return product.Item{Details: product.Details{SKU: patch.Set(text)}}
}

func skuKey(of, text string) string {
	return product.SKUClaim(uuid.MustParse(of), product.SKUKey(text))
}

// owned is a kind of value: events that give it to two records, and one that takes it from the first.
type owned struct {
	claims              claims.Value
	key                 string
	first, second       string // the records' ids
	gain, regain, loses logged
}

// give returns a value that the same event of a kind of records gives to two of them.
func give(v claims.Value, key string, kind streams, first, second string, gives, takes any) owned {
	return owned{v, key, first, second, record(kind, first, gives), record(kind, second, gives), record(kind, first, takes)}
}

func kinds() map[string]owned {
	of := uuid.MustParse(mill)
	added, imported := product.Added{Company: of, Item: sku("AB")}, product.InBatch(batch, 1).String()
	other := product.Edited{Details: product.Details{SKU: patch.Clear[string]()}}
	bulk := give(product.SKUs, skuKey(mill, "AB"), product.Kind, imported, bob, added, product.Deleted{})
	bulk.gain = record(product.Batches, batch.String(), product.Imported{Company: of, Products: []product.Item{{}, sku("Ab")}})
	return map[string]owned{
		"email":         give(claim.Email, "k", user.Kind, ada, bob, user.Registered{EmailKey: "k"}, user.EmailClaimLost{}),
		"changed email": give(claim.Email, "k", user.Kind, ada, bob, user.EmailChanged{EmailKey: "k"}, user.ErasureBegun{}),
		"identity":      give(claim.Identity, "i", user.Kind, ada, bob, user.IdentityLinked{IdentityKey: "i"}, user.ErasureBegun{}),
		"customer":      give(plan.Customers, "c", plan.Kind, ada, bob, plan.Reported{CustomerKey: "c"}, plan.Reported{}),
		"domain": give(company.Domains, "d", company.Kind, mill, shop, company.Created{DomainKey: "d"},
			company.Edited{DomainKey: patch.Set("")}),
		"SKU":          give(product.SKUs, skuKey(mill, "ab"), product.Kind, ada, bob, added, other),
		"imported SKU": bulk,
		"channel":      give(channel.Identities, "s", channel.Kind, "1", "2", channel.Confirmed{IdentityKey: "s"}, channel.Reported{}),
		"page":         give(botsource.Pages, "p", botsource.Kind, "1", "2", botsource.PageAdded{PageKey: "p"}, botsource.Deleted{}),
		"phone": give(contact.Phones, "t", contact.Kind, "1", "2", contact.Added{PhoneKey: "t"},
			contact.Edited{Phone: patch.Clear[event.Personal]()}),
		"sender": give(contact.Senders, "n", contact.Kind, "1", "2", contact.SenderAdded{Channel: 3, Key: "n"}, contact.Merged{Into: 2}),
	}
}

func TestUniqueValues(t *testing.T) {
	t.Parallel()
	const twice, unclaimed = "two records never have the same value", "a record claims the value that it has"
	for name, k := range kinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mine, its := claimed(k.claims, k.key, k.first), claimed(k.claims, k.key, k.second)
			free := released(k.claims, k.key, k.first)
			begun := together(k.gain, mine)
			after := func(events ...logged) []logged { return append(slices.Clone(begun), together(events...)...) }
			for _, lawful := range [][]logged{
				begun, {mine, k.gain}, after(mine), {mine, free}, // the record may come later, or never
				{mine, its}, {mine, its, k.regain},
				after(k.loses, free), after(free, k.loses),
				after(k.regain, its, k.loses), after(its, k.regain, k.loses), after(k.loses, k.regain, its),
				append(after(k.loses), together(its, k.regain)...), // the claim of a record that is gone stays
				append(after(k.loses, free), together(its, k.regain)...),
			} {
				require.Empty(t, check(t, lawful))
			}
			for law, logs := range map[string][][]logged{
				twice:                               {after(k.regain, its), after(k.regain)},
				unclaimed:                           {{k.gain}, {its, k.gain}, after(free), after(its)},
				"a claim is released by its holder": {{free}, {its, free}, {mine, its, free}},
			} {
				for _, log := range logs {
					require.Contains(t, check(t, log), law)
				}
			}
		})
	}
}

func TestASlugIsNeverGivenUp(t *testing.T) {
	t.Parallel()
	const law = "a slug belongs to one company for good"
	mine, its := claimed(company.Slugs, "s", mill), claimed(company.Slugs, "s", shop)
	first, second := record(company.Kind, mill, company.Created{Slug: "asha"}), record(company.Kind, shop, company.Created{Slug: "asha"})
	deleted := record(company.Kind, mill, company.Deleted{})
	require.Empty(t, check(t, append(together(first, mine), deleted)))
	for _, log := range [][]logged{
		append(together(first, mine), released(company.Slugs, "s", mill)), append(together(first, mine), deleted, its), {first, deleted, second},
	} {
		require.Equal(t, []string{law}, check(t, log))
	}
}

func TestAValueIsLostWithWhatGaveIt(t *testing.T) {
	t.Parallel()
	email := func(key string) []logged {
		return together(record(user.Kind, ada, user.EmailChanged{EmailKey: key}), claimed(claim.Email, key, ada))
	}
	linked := func(id, key string) []logged {
		return together(record(user.Kind, id, user.IdentityLinked{IdentityKey: key}), claimed(claim.Identity, key, id))
	}
	log := slices.Concat(
		together(record(user.Kind, ada, user.Registered{EmailKey: "a"}), claimed(claim.Email, "a", ada)), linked(ada, "before"),
		email("b"), linked(ada, "since"), email("c"), linked(ada, "later"),
		together(record(user.Kind, ada, user.EmailRestored{Change: 0, EmailKey: "a"}), released(claim.Email, "c", ada)),
	)
	require.Empty(t, check(t, slices.Concat(log, linked(bob, "since"), linked(bob, "later"))), "an identity that was linked since is free")
	require.NotEmpty(t, check(t, slices.Concat(log, linked(bob, "before"))))

	spelt := together(record(contact.Kind, "1", contact.SenderAdded{Key: "t"}), claimed(contact.Phones, "t", "1"))
	added := together(record(contact.Kind, "2", contact.Added{PhoneKey: "t"}), claimed(contact.Phones, "t", "2"))
	require.Empty(t, check(t, slices.Concat(spelt, added)), "a further spelling gives way to a phone")
	require.NotEmpty(t, check(t, slices.Concat(added, spelt)))

	replaced := together(record(channel.Kind, "1", channel.Confirmed{IdentityKey: "s"}), record(channel.Kind, "1", channel.Reported{}))
	require.Empty(t, check(t, replaced), "what a transaction gives and takes needs no claim")
	for _, category := range []string{claim.Email.Category(), user.Kind.Category(), product.Batches.Category(), contact.Senders.Category()} {
		require.True(t, laws.Reads(category), category)
	}
}
