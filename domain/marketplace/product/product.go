// Package product is the aggregate of an item of a company's catalog. All data of an active product are public.
package product

import (
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"golang.org/x/text/currency"

	"bahi/domain/claims"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/patch"
	"bahi/domain/person"
	"bahi/domain/wording"
)

// Kind is the kind of the streams product-<uuid>. Names never change: old logs have them.
var Kind = event.NewKind("product",
	event.Of[Added]("ProductAdded", 1),
	event.Of[Edited]("ProductEdited", 1),
	event.Of[Deleted]("ProductDeleted", 1),
)

type sku struct{}

// SKUs are the claims of SKUs. Each SKU of a company belongs to one product. The streams are productsku-<id>, see [SKUClaim].
var SKUs = claims.New[sku]("productsku", "ProductSKUClaimed", "ProductSKUReleased")

// Errors that commands return.
var (
	ErrNotFound = fault.New(fault.NotFound, "Product not found")
	ErrNotYours = fault.New(fault.Forbidden, "Not enough permissions to modify this product")
)

// SKUTaken is the error text for a SKU of another product of the company.
const SKUTaken = "Another product of the company has this SKU"

// State is the state for decisions and responses.
type State struct {
	Item

	Company    uuid.UUID // uuid.Nil: there is no product
	ImportedAt time.Time // when its batch was recorded; zero: it was not imported
}

// SKUClaim returns the name of the claim of the product's SKU, "" if it has none.
func (s State) SKUClaim() string { return SKUClaim(s.Company, SKUKey(s.SKU.Value)) }

// Item is a company's description of a product. Each field is absent or given; fields with a default are given.
type Item struct {
	Details

	Name  string `json:"name"`
	Price int64  `json:"price_amount"` // in hundredths of the currency
}

// Listed is a product in the form of lists.
type Listed struct {
	Item

	ID uuid.UUID
}

// Details has a product's data except the name and the price. An empty text equals null. null in a field with a default restores the
// default.
type Details struct {
	SKU             patch.Field[string]   `json:"sku,omitzero"              maxLength:"200" doc:"1 to 64 characters, unique in the company in any case"`
	Description     patch.Field[string]   `json:"description,omitzero"      maxLength:"5000" doc:"Description of the product"`
	Category        patch.Field[string]   `json:"category,omitzero"         maxLength:"100" doc:"Category"`
	SubCategory     patch.Field[string]   `json:"sub_category,omitzero"     maxLength:"100" doc:"Subcategory"`
	Currency        patch.Field[string]   `json:"price_currency,omitzero"   maxLength:"20" doc:"Currency by ISO 4217; default INR"`
	MOQ             patch.Field[int64]    `json:"moq,omitzero"              minimum:"1" maximum:"1000000000" doc:"Minimum quantity of an order; absent: 1"`
	OriginCountry   patch.Field[string]   `json:"origin_country,omitzero"   maxLength:"100" doc:"Country of origin"`
	ImporterName    patch.Field[string]   `json:"importer_name,omitzero"    maxLength:"200" doc:"Name of the importer"`
	ImporterAddress patch.Field[string]   `json:"importer_address,omitzero" maxLength:"500" doc:"Address of the importer"`
	Images          patch.Field[[]string] `json:"images,omitzero"           nullable:"true" maxItems:"20" doc:"URLs of pictures"`
	Availability    patch.Field[string]   `json:"availability,omitzero"     maxLength:"20" doc:"in stock, out of stock, preorder or discontinued; in stock by default"`
	Active          patch.Field[bool]     `json:"is_active,omitzero"        doc:"true: the product is public; true by default"`
}

// Limits of numbers.
const (
	maxPrice  = 999_999_999_999_999
	maxMOQ    = 1_000_000_000
	maxImages = 20
	maxURL    = 2048
	maxName   = 200
	maxSKU    = 64
)

// Default values.
const (
	defaultCurrency     = "INR"
	defaultMOQ          = 1
	defaultAvailability = "in stock"
)

var availabilities = []string{defaultAvailability, "out of stock", "preorder", "discontinued"}

// Added records a new product.
type Added struct {
	Item

	Company    uuid.UUID `json:"company_id"`
	ImportedAt time.Time `json:"imported_at,omitzero"`
}

// Edited records the changed fields.
type Edited struct {
	Details

	Name  patch.Field[string] `json:"name,omitzero"`
	Price patch.Field[int64]  `json:"price_amount,omitzero"`
}

// Deleted records that the product was deleted.
type Deleted struct{}

// Evolve creates the product.
func (e Added) Evolve(State) State {
	return State{Company: e.Company, Item: e.Item, ImportedAt: e.ImportedAt}
}

// Evolve sets the changed fields.
func (e Edited) Evolve(s State) State {
	s.Name, s.Price, s.Details = e.Name.Or(s.Name), e.Price.Or(s.Price), s.Details.After(e.Details)
	return s
}

// Evolve deletes the product.
func (Deleted) Evolve(State) State { return State{} }

// After returns the details after a change.
func (d Details) After(change Details) Details {
	patch.Apply(&d, &change)
	d.MOQ, d.Images, d.Active = after(d.MOQ, change.MOQ), after(d.Images, change.Images), after(d.Active, change.Active)
	return d
}

func after[T any](before, change patch.Field[T]) patch.Field[T] {
	if change.Present() {
		return change
	}
	return before
}

// formats normalise the fields with a special form.
var formats = map[string]func(field, text string) (string, error){
	"sku": skuOf, "price_currency": currencyCode, "availability": availability,
}

// skuOf returns a SKU on one line.
func skuOf(field, text string) (string, error) {
	if text = strings.Join(strings.Fields(text), " "); utf8.RuneCountInString(text) > maxSKU {
		return "", fault.Wrong(field, "at most "+strconv.Itoa(maxSKU)+" characters")
	}
	return text, nil
}

// SKUKey returns a SKU in the form for comparison: folded, without format characters. It returns "" for an invalid SKU.
func SKUKey(text string) string {
	text, err := wording.Normalise("sku", text, maxName)
	if err != nil {
		return ""
	}
	text, _ = skuOf("sku", text)
	return person.Folded(wording.Unformatted(text))
}

// SKUClaim returns the name of the claim of a company's SKU, or "" for no SKU. key is the SKU in the form of [SKUKey].
func SKUClaim(of uuid.UUID, key string) string {
	if key == "" {
		return ""
	}
	return uuid.NewSHA1(of, []byte(key)).String()
}

func currencyCode(field, text string) (string, error) {
	unit, err := currency.ParseISO(text)
	if err != nil {
		return "", fault.Wrong(field, "expected a currency of ISO 4217, as in INR")
	}
	return unit.String(), nil
}

func availability(field, text string) (string, error) {
	if folded := person.Folded(text); slices.Contains(availabilities, folded) {
		return folded, nil
	}
	return "", fault.Wrong(field, "expected one of "+strings.Join(availabilities, ", "))
}

// tidied returns a normalised change of details without unchanged fields, or all its faults.
func (d Details) tidied(change Details) (Details, error) {
	change.Currency, change.Availability = restored(change.Currency, defaultCurrency), restored(change.Availability, defaultAvailability)
	change.MOQ, change.Active = restored(change.MOQ, defaultMOQ), restored(change.Active, true)
	faults := []error{wording.TidyAll(&d, &change, formats)}
	if change.MOQ.Present() && (change.MOQ.Value < 1 || change.MOQ.Value > maxMOQ) {
		faults = append(faults, fault.Wrong("moq", "expected 1 to "+strconv.Itoa(maxMOQ)))
	}
	change.MOQ, change.Active = patch.Differing(change.MOQ, d.MOQ.Value), patch.Differing(change.Active, d.Active.Value)
	images, err := change.Images.With(addresses)
	if change.Images = images; images.State == patch.Null {
		change.Images = patch.Set([]string{})
	}
	if slices.Equal(change.Images.Or(d.Images.Value), d.Images.Value) {
		change.Images = patch.Field[[]string]{}
	}
	return change, fault.Join(append(faults, err)...)
}

// restored returns the field with its default in place of null, or of a text that is empty after [wording.Normalise].
func restored[T comparable](f patch.Field[T], value T) patch.Field[T] {
	text, isText := any(f.Value).(string)
	tidied, err := wording.Normalise("", text, len(text))
	if f.State == patch.Null || isText && f.State == patch.Given && err == nil && tidied == "" {
		return patch.Set(value)
	}
	return f
}

// addresses normalises the addresses of images.
func addresses(images []string) ([]string, error) {
	var faults []error
	if len(images) > maxImages {
		faults = append(faults, fault.Wrong("images", "at most "+strconv.Itoa(maxImages)+" items"))
	}
	tidied := make([]string, 0, len(images))
	for i, image := range images[:min(len(images), maxImages)] {
		field := "images[" + strconv.Itoa(i) + "]"
		image, err := wording.Normalise(field, image, maxURL)
		u, unread := url.Parse(image)
		if err == nil && (unread != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
			strings.ContainsFunc(image, unicode.IsSpace)) {
			err = fault.Wrong(field, "expected a web address, as in https://example.org/a.jpg")
		}
		faults, tidied = append(faults, err), append(tidied, image)
	}
	return tidied, fault.Join(faults...)
}

// named returns a product's normalised name.
func named(text string) (string, error) { return wording.Required("name", text, maxName) }

// priced returns a valid price.
func priced(amount int64) (int64, error) {
	if amount < 0 || amount > maxPrice {
		return 0, fault.Wrong("price_amount", "expected 0 to "+strconv.Itoa(maxPrice))
	}
	return amount, nil
}

// Tidied returns the normalised item with the defaults, or all its faults.
func (i Item) Tidied() (Item, error) {
	for _, f := range []*patch.Field[string]{&i.Currency, &i.Availability} {
		if !f.Present() {
			*f = patch.Clear[string]()
		}
	}
	if !i.MOQ.Present() {
		i.MOQ = patch.Clear[int64]()
	}
	if !i.Active.Present() {
		i.Active = patch.Clear[bool]()
	}
	active := i.Active.State == patch.Null || i.Active.Value
	name, wrongName := named(i.Name)
	price, wrongPrice := priced(i.Price)
	details, err := Details{}.tidied(i.Details)
	details.Active = patch.Set(active) // false differs from absent too
	return Item{Details: details, Name: name, Price: price}, fault.Join(wrongName, wrongPrice, err)
}

// Add creates a product of a company.
type Add struct {
	Details

	Name      string     `json:"name"                 maxLength:"1000" doc:"1 to 200 characters"`
	Price     int64      `json:"price_amount"         minimum:"0" maximum:"999999999999999" doc:"Price in paise, the hundredth part of the currency"`
	CompanyID *uuid.UUID `json:"company_id,omitempty" doc:"ID of one of the caller's companies; required if there are several"`
	Company   uuid.UUID  `json:"-"` // the caller's company
}

// Decide normalises the values.
func (c Add) Decide(State) ([]event.Event[State], error) {
	item, err := Item{Details: c.Details, Name: c.Name, Price: c.Price}.Tidied()
	if err != nil {
		return nil, err
	}
	return []event.Event[State]{Added{Company: c.Company, Item: item}}, nil
}

// Edit changes the given fields of a product.
type Edit struct {
	Details

	Name  patch.Field[string] `json:"name,omitzero"         nullable:"false" maxLength:"1000" doc:"1 to 200 characters"`
	Price patch.Field[int64]  `json:"price_amount,omitzero" nullable:"false" minimum:"0" maximum:"999999999999999" doc:"Price in paise"`
}

// Decide records the fields that differ.
func (c Edit) Decide(s State) ([]event.Event[State], error) {
	if s.Company == uuid.Nil {
		return nil, ErrNotFound
	}
	name, wrongName := c.Name.With(named)
	price, wrongPrice := c.Price.With(priced)
	details, err := s.Details.tidied(c.Details)
	if err := fault.Join(wrongName, wrongPrice, err); err != nil {
		return nil, err
	}
	e := Edited{Details: details, Name: patch.Differing(name, s.Name), Price: patch.Differing(price, s.Price)}
	if reflect.ValueOf(e).IsZero() {
		return nil, nil
	}
	return []event.Event[State]{e}, nil
}

// Delete deletes a product.
type Delete struct{}

// Decide refuses a missing product.
func (Delete) Decide(s State) ([]event.Event[State], error) {
	if s.Company == uuid.Nil {
		return nil, ErrNotFound
	}
	return []event.Event[State]{Deleted{}}, nil
}
