package laws

import (
	"fmt"
	"hash/maphash"
	"reflect"
	"slices"

	"github.com/google/uuid"

	"bahi/domain/access/claim"
	"bahi/domain/access/plan"
	"bahi/domain/access/user"
	"bahi/domain/claims"
	"bahi/domain/event"
	"bahi/domain/marketplace/company"
	"bahi/domain/marketplace/product"
	"bahi/domain/messaging/botsource"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/contact"
)

// values checks that two records never have the same value, and that each record has the claim of its value. A claim may precede the event
// that gives its record the value, and may outlive it.
//
// The events of records contain the names of claims, or the values from which these names derive. Slugs are an exception: their texts and
// their claims are checked separately. A second spelling of a contact's phone is not a value of the contact: another contact may get it as
// its phone.
type values struct {
	claimed map[uint64]value     // by the claim's stream; slugs have a second entry by their text
	records map[uint64][]held    // by the record's stream
	changes map[uint64]int       // number of changes of a user's address
	sellers map[uint64]uuid.UUID // companies of products
	touched []touched            // since the last Commit
}

// value has the record that claims a value and the record that last had it, 0 for none.
type value struct{ claim, has uint64 }

// held is a value of a record. A record may have several listed values. Other values replace each other.
type held struct {
	value  uint64
	listed bool
	change int32 // number of changes of the user's address before it
}

// touched is a value that an event gives to a record. Without a record, it is a value with a changed claim.
type touched struct {
	at            Breach
	value, record uint64
}

// claimants has the category of the records that claim each kind of value.
var claimants = map[string]string{
	claim.Email.Category(): user.Kind.Category(), claim.Identity.Category(): user.Kind.Category(),
	company.Slugs.Category(): company.Kind.Category(), company.Domains.Category(): company.Kind.Category(),
	contact.Phones.Category(): contact.Kind.Category(), contact.Senders.Category(): contact.Kind.Category(),
	channel.Identities.Category(): channel.Kind.Category(), botsource.Pages.Category(): botsource.Kind.Category(),
	product.SKUs.Category(): product.Kind.Category(), plan.Customers.Category(): plan.Kind.Category(),
}

var seed = maphash.MakeSeed()

func hash(stream string) uint64 { return maphash.String(seed, stream) }

// unique checks an event of a claim, or of a record that may have unique values.
func (c *Checker) unique(e event.Recorded[any]) {
	record := hash(e.Stream)
	set := func(of claims.Value, key string) { c.set(record, of, key) }
	switch data := e.Data.(type) {
	case event.Event[claims.State]:
		c.claim(e, data)
	case user.Registered:
		set(claim.Email, data.EmailKey)
	case user.EmailChanged:
		c.changes[record]++
		set(claim.Email, data.EmailKey)
	case user.EmailClaimLost:
		set(claim.Email, "")
	case user.EmailRestored: // the event unlinks identities that were linked later
		c.lose(record, func(h held) bool { return h.listed && int(h.change) > data.Change })
		set(claim.Email, data.EmailKey)
	case user.IdentityLinked:
		c.give(record, claim.Identity, data.IdentityKey, held{listed: true, change: int32(c.changes[record])})
	case plan.Reported:
		set(plan.Customers, data.CustomerKey)
	case company.Created:
		slug := hash("slug " + data.Slug)
		c.law(data.Slug == "" || c.claimed[slug].has == 0, "a slug belongs to one company for good")
		c.claimed[slug] = value{has: record}
		set(company.Domains, data.DomainKey)
	case company.Edited:
		if data.DomainKey.Present() {
			set(company.Domains, data.DomainKey.Value)
		}
	case product.Imported:
		batch, _ := uuid.Parse(e.StreamID())
		for n, item := range data.Products {
			record = hash(product.Kind.Stream(product.InBatch(batch, n).String()))
			set(product.SKUs, product.State{Company: data.Company, Item: item}.SKUClaim())
		}
	case product.Added:
		c.sellers[record] = data.Company
		set(product.SKUs, product.SKUClaim(data.Company, product.SKUKey(data.SKU.Value)))
	case product.Edited:
		if data.SKU.Present() {
			set(product.SKUs, product.SKUClaim(c.sellers[record], product.SKUKey(data.SKU.Value)))
		}
	case channel.Reported:
		set(channel.Identities, data.IdentityKey)
	case channel.Confirmed:
		set(channel.Identities, data.IdentityKey)
	case botsource.PageAdded:
		set(botsource.Pages, data.PageKey)
	case contact.Added:
		set(contact.Phones, data.PhoneKey)
	case contact.Edited:
		if data.Phone.Present() {
			set(contact.Phones, data.PhoneKey)
		}
	case contact.SenderAdded:
		if data.Channel != 0 { // 0: a second spelling of the phone
			c.give(record, contact.Senders, data.Key, held{listed: true})
		}
	case user.ErasureBegun, company.Deleted, product.Deleted, channel.Deleted, botsource.Deleted, contact.Merged, contact.Deleted:
		delete(c.records, record)
	}
}

// claim checks an event of a claim. The first field of each is the record's id.
func (c *Checker) claim(e event.Recorded[any], data event.Event[claims.State]) {
	category, _ := event.SplitStream(e.Stream)
	claimant := hash(event.StreamName(claimants[category], fmt.Sprint(reflect.ValueOf(data).Field(0).Interface())))
	key := hash(e.Stream)
	v, before := value{claimant, c.claimed[key].has}, c.claimed[key].claim
	if data.Evolve(claims.State{}).Holder == "" {
		c.law(before == claimant, "a claim is released by its holder")
		v.claim = 0
	}
	c.law(category != company.Slugs.Category() || before == 0 || before == v.claim, "a slug belongs to one company for good")
	c.claimed[key] = v
	c.touched = append(c.touched, touched{c.at, key, 0})
}

// set replaces a record's last value; no key: no value.
func (c *Checker) set(record uint64, of claims.Value, key string) {
	c.lose(record, func(h held) bool { return !h.listed })
	c.give(record, of, key, held{})
}

func (c *Checker) give(record uint64, of claims.Value, key string, h held) {
	if key != "" {
		h.value = hash(of.Stream(key))
		c.records[record] = append(c.records[record], h)
		c.touched = append(c.touched, touched{c.at, h.value, record})
	}
}

func (c *Checker) lose(record uint64, lost func(held) bool) {
	if c.records[record] = slices.DeleteFunc(c.records[record], lost); len(c.records[record]) == 0 {
		delete(c.records, record)
	}
}

// commitValues checks the values of a transaction. Its events may claim and release values in any order.
func (c *Checker) commitValues() {
	for _, t := range c.touched {
		c.at = t.at
		v := c.claimed[t.value]
		has := func(record uint64) bool {
			return slices.ContainsFunc(c.records[record], func(h held) bool { return h.value == t.value })
		}
		if !has(v.has) {
			v.has = 0
		}
		if has(t.record) {
			c.law(v.has == 0 || v.has == t.record, "two records never have the same value")
			v.has = t.record
		}
		c.law(v.has == 0 || v.has == v.claim, "a record claims the value that it has")
		c.claimed[t.value] = v
	}
	c.touched = c.touched[:0]
}
