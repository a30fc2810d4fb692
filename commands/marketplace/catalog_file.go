package marketplace

import (
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/shopspring/decimal"

	"bahi/commands/spreadsheet"
	"bahi/domain/fault"
	"bahi/domain/marketplace/product"
	"bahi/domain/patch"
)

// Columns are the names of a catalog file's columns, in the order of a template.
var Columns = []string{
	"name", "description", "category", "sub_category", "price", "price_currency", "moq", "origin_country", "importer_name", "importer_address", "images",
}

// priceAmount is the price in the hundredth part of the currency, which price is in units of.
const priceAmount = "price_amount"

// columnOf has the columns by the names that files have for them (CONTRACT.md 7.2).
var columnOf = spreadsheet.Named(map[string]string{
	"name": "productname title", "description": "desc", "category": "", "sub_category": "", priceAmount: "paise pricepaise priceinpaise priceamountpaise",
	"price": "rupees " + inRupees("price") + inRupees("mrp") + inRupees("rate"), "price_currency": "currency", "moq": "minorder minimumorderquantity minorderquantity",
	"origin_country": "country coo countryoforigin", "importer_name": "", "importer_address": "", "images": "image imageurl imageurls",
})

// inRupees returns the names of a column that may also name its currency, as Price (Rs) and Rate in INR do. A sign such as ₹ is no part of a name.
func inRupees(name string) (names string) {
	for _, currency := range []string{"", "rs", "inr", "rupee", "rupees", "inrs", "ininr", "inrupees"} {
		names += name + currency + " "
	}
	return names
}

// CatalogFile is what a file has.
type CatalogFile struct {
	Items  []product.Item         // of the rows that are in order
	Errors []spreadsheet.RowError // of the others
}

// ReadCatalog reads a file of products. It refuses a file that is no spreadsheet, or whose first row does not name the columns that are needed.
func ReadCatalog(ctx context.Context, file *io.SectionReader) (found CatalogFile, err error) {
	var columns []string // nil: the row of names is to come
	err = spreadsheet.Read(ctx, file, func(r spreadsheet.Row) (err error) {
		if columns == nil {
			columns, err = header(r)
			return err
		}
		item, err := itemOf(r, columns)
		if wrong, refused := errors.AsType[*fault.Error](err); refused {
			found.Errors = append(found.Errors, spreadsheet.RowError{Row: r.Number, Error: spreadsheet.InOneLine(wrong), Source: slices.Clone(r.Cells)})
			return nil
		}
		found.Items = append(found.Items, item)
		return err
	})
	if err == nil && columns == nil {
		err = spreadsheet.ErrFormat
	}
	return found, err
}

// header returns the columns of the row of names, empty for unknown ones.
func header(r spreadsheet.Row) ([]string, error) {
	columns, seen, err := spreadsheet.Header(r, columnOf)
	if err == nil && (!seen["name"] || !seen["price"] && !seen[priceAmount]) {
		err = r.Lacks(columns, "The first row must name the columns name, and price or price_amount")
	}
	return columns, err
}

// itemOf returns the product of a row in order, or all that is wrong with it.
func itemOf(r spreadsheet.Row, columns []string) (item product.Item, err error) {
	cells, err := r.By(columns)
	if err != nil {
		return item, err
	}
	for _, f := range patch.Texts(&item.Details) {
		if cells[f.Name] != "" {
			*f.Field = patch.Set(cells[f.Name])
		}
	}
	item.Name = cells["name"]
	if images := cells["images"]; images != "" {
		item.Images = patch.Set(strings.FieldsFunc(images, func(c rune) bool { return c == '|' || c == ',' || c == '\n' || c == '\r' }))
	}
	var wrongMOQ, wrongPrice error
	if text := cells["moq"]; text != "" {
		var n int64
		if n, wrongMOQ = whole("moq", text); wrongMOQ == nil {
			item.MOQ = patch.Set(n)
		}
	}
	item.Price, wrongPrice = price(cells["price"], cells[priceAmount])
	tidied, err := item.Tidied()
	return tidied, fault.Join(err, wrongMOQ, wrongPrice)
}

// price returns a price in the hundredth part of the currency. Where both columns have one, they are the same.
func price(units, hundredths string) (int64, error) {
	if units == "" && hundredths == "" {
		return 0, fault.Fields(fault.Field{Field: "price", Message: "is required"})
	}
	var amount, other int64
	var err error
	if hundredths != "" {
		if amount, err = whole(priceAmount, hundredths); err != nil || units == "" {
			return amount, err
		}
	}
	if other, err = money(units); err != nil || hundredths == "" {
		return other, err
	}
	if other != amount {
		return 0, fault.Fields(fault.Field{Field: "price", Message: "is not " + priceAmount + " divided by 100"})
	}
	return amount, nil
}

// maxDigits bounds numbers: with more, they are no price.
const maxDigits = 15

var (
	wholeForm = regexp.MustCompile(`^-?[0-9]+(\.0*)?$`)
	moneyForm = regexp.MustCompile(`^-?([0-9]+|[0-9]{1,3}(,[0-9]{2,3})*,[0-9]{3})(\.[0-9]*)?$`)
	signs     = regexp.MustCompile(`(?i)^(₹|rs\.?|inr)\s*|\s*/-$`)
)

func whole(field, text string) (int64, error) {
	if !wholeForm.MatchString(text) {
		return 0, fault.Fields(fault.Field{Field: field, Message: "expected a whole number"})
	}
	text, _, _ = strings.Cut(text, ".")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fault.Fields(fault.Field{Field: field, Message: "the number is too large"})
	}
	return n, nil
}

// money takes an amount with at most two places, with the sign of the rupee, and with commas between its thousands or lakhs.
func money(text string) (int64, error) {
	wrong := func(message string) (int64, error) {
		return 0, fault.Fields(fault.Field{Field: "price", Message: message})
	}
	text = strings.TrimSpace(signs.ReplaceAllString(text, ""))
	if !moneyForm.MatchString(text) {
		return wrong("expected an amount, as in 1,250.50")
	}
	text = strings.TrimRight(strings.ReplaceAll(text, ",", ""), ".")
	if len(text) > 3*maxDigits {
		return wrong("the number is too large")
	}
	amount, err := decimal.NewFromString(text)
	if err != nil {
		return wrong("expected an amount, as in 1,250.50")
	}
	hundredths := amount.Shift(2)
	switch {
	case !hundredths.IsInteger():
		return wrong("at most 2 places")
	case hundredths.NumDigits() > maxDigits:
		return wrong("the number is too large")
	}
	return hundredths.IntPart(), nil
}

// Result returns the answer once the items are made.
func (f CatalogFile) Result() spreadsheet.ImportResult {
	return spreadsheet.Result(len(f.Items), f.Errors)
}
