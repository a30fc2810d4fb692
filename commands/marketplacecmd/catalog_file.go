package marketplacecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"bahi/commands/spreadsheet"
	"bahi/domain/fault"
	"bahi/domain/marketplace/product"
	"bahi/domain/patch"
	"bahi/domain/person"
	"bahi/domain/wording"
)

// Columns are the names of a catalog file's columns, in the order of a template.
var Columns = []string{
	"name", "sku", "description", "category", "sub_category", "price", "price_currency", "moq", "origin_country", "importer_name",
	"importer_address",
	"images", "availability",
}

// priceAmount is the price in hundredths of the currency; price is in whole units.
const priceAmount = "price_amount"

// maxThousands is the maximum number of rows of a file, in thousands.
const maxThousands = 10

// codes are the columns that may have the SKU, best first. Only one column of a file is used.
var codes = []string{"sku", "itemcode", "stylecode"}

// columnOf maps files' column names to columns (CONTRACT.md 7.2).
var columnOf = spreadsheet.Named(map[string]string{
	"name": "product productname nameofproduct productnames title producttitle item itemname nameofitem itemtitle " +
		"नाम नाव పేరు பெயர் ಹೆಸರು പേര് نام " +
		"वस्तु उत्पाद सामान " +
		"आइटम वस्तुकानाम उत्पादकानाम आइटमकानाम " +
		"નામ વસ્તુ ઉત્પાદન આઇટમ આઈટમ " +
		"વસ્તુનુંનામ ઉત્પાદનનુંનામ આઇટમનુંનામ",
	"sku": "skuno skunumber skucode skuid",
	"itemcode": ending("item product article part catalog catalogue", "code", "no", "number") + "code mpn itemid productid " +
		"कोड वस्तुकोड उत्पादकोड आइटमकोड કોડ વસ્તુકોડ ઉત્પાદનકોડ આઇટમકોડ",
	"stylecode":   ending("style design model pattern", "code", "no", "number", "id") + "डिज़ाइननंबर डिजाइननंबर ડિઝાઇનનંબર",
	"description": "desc details productdescription itemdescription विवरण વિગત વર્ણન",
	"category": "productcategory itemcategory श्रेणी कैटेगरी " +
		"વર્ગ શ્રેણી કેટેગરી", "sub_category": "",
	priceAmount: "paise pricepaise priceinpaise priceamountpaise",
	"price": "rupees " + inRupees("price unitprice sellingprice saleprice mrp rate कीमत दाम मूल्य भाव "+
		"किंमत કિંમત ભાવ ధర விலை ಬೆಲೆ വില قیمت"),
	"price_currency": "currency मुद्रा ચલણ",
	"moq": counted("moq minorder minorderqty minorderquantity minimumorder minimumorderqty minimumorderquantity minqty "+
		"minquantity minimumqty minimumquantity") + " न्यूनतममात्रा ન્યૂનતમજથ્થો " +
		"ઓછામાંઓછોજથ્થો",
	"origin_country": "country coo countryoforigin origin madein देश દેશ", "importer_name": "importer", "importer_address": "",
	"images":       "image imageurl imageurls imagelink imagelinks photo photos photourl picture pictures फोटो चित्र ફોટો",
	"availability": "availabilitystatus stockstatus उपलब्धता ઉપલબ્ધતા",
})

// inRupees returns the names with a currency added, such as Price (Rs) and Rate in INR. A sign such as ₹ is not part of a name.
func inRupees(names string) string {
	return ending(names, "", "rs", "inr", "rupee", "rupees", "inrs", "ininr", "inrupees", "रु", "रुपये", "રૂ", "રૂપિયા")
}

// counted returns the names with a unit added, such as MOQ (pcs).
func counted(names string) string {
	return ending(names, "", "pcs", "pc", "pieces", "piece", "nos", "units", "inpcs")
}

// ending returns each of the names with each of the endings.
func ending(names string, ends ...string) (all string) {
	for name := range strings.FieldsSeq(names) {
		for _, end := range ends {
			all += name + end + " "
		}
	}
	return all
}

// CatalogFile is the content of a file.
type CatalogFile struct {
	Items  []Line                 // the valid rows
	Errors []spreadsheet.RowError // errors of the other rows

	Columns *spreadsheet.Columns
}

// ReadCatalog reads a file of products. If accept is set, it uses headers that only resemble a column. It refuses a file that is not a
// spreadsheet, and one without the required columns in its first rows.
func ReadCatalog(ctx context.Context, file *io.SectionReader, accept bool) (found CatalogFile, err error) {
	titles, rows := titles{accept: accept}, map[string]int{} // rows by SKU
	unread, err := spreadsheet.Read(ctx, file, maxThousands, func(r spreadsheet.Row) (err error) {
		if found.Columns == nil {
			found.Columns, err = titles.header(r)
			return err
		}
		line, err := lineOf(r, found.Columns)
		source := func(err *fault.Error, why string) spreadsheet.RowError {
			return spreadsheet.RowError{Row: r.Number, Error: why + found.Columns.Named(err), Source: slices.Clone(r.Cells)}
		}
		if err == nil && line.key != "" {
			if first := rows[line.key]; first != 0 {
				err = fault.Wrong("sku", fmt.Sprintf("rows %d and %d have the same", first, r.Number))
			} else {
				rows[line.key] = r.Number
			}
		}
		if wrong, refused := errors.AsType[*fault.Error](err); refused {
			found.Errors = append(found.Errors, source(wrong, ""))
			return nil
		}
		if lacks, refused := errors.AsType[*fault.Error](line.lacks); refused {
			line.New = new(source(lacks, "no product has this SKU, and for a new one: "))
		}
		found.Items = append(found.Items, line)
		return err
	})
	if found.Columns == nil {
		return found, cmp.Or(err, titles.Refusal, error(spreadsheet.ErrFormat))
	}
	found.Columns.Ignored = append(found.Columns.Ignored, unread...)
	return found, err
}

// titles are the rows up to the header row.
type titles struct {
	spreadsheet.Titles

	accept bool
}

// header returns the columns of a row, nil if it is a title.
func (t *titles) header(r spreadsheet.Row) (*spreadsheet.Columns, error) {
	inRupees := r
	inRupees.Cells = slices.Clone(r.Cells)
	best, where := len(codes), -1 // rank and index of the SKU's column
	for i, header := range r.Cells {
		nth := slices.Index(codes, spreadsheet.Known(columnOf, header))
		switch {
		case spreadsheet.ForeignMoney(header) != "": // without its sign, Price ($) would be a price in rupees
			inRupees.Cells[i] = "?"
		case nth >= best:
			inRupees.Cells[i] = "?"
		case nth >= 0 && where >= 0:
			inRupees.Cells[where] = "?"
			fallthrough
		case nth >= 0:
			best, where = nth, i
		}
	}
	fields, seen, err := spreadsheet.Header(inRupees, columnOf)
	if err != nil {
		return nil, err
	}
	delete(seen, "")
	if where >= 0 {
		fields[where] = codes[0]
	}
	if t.accept || where >= 0 || seen["name"] && (seen["price"] || seen[priceAmount]) {
		columns := r.Columns(slices.Clone(fields), resembling, t.accept)
		if columns.Has("name") && (columns.Has("price") || columns.Has(priceAmount)) || columns.Has("sku") && changes(columns) {
			return columns, nil
		}
	}
	return nil, t.Add(len(seen), r.Lacks(fields, "The first row must name the columns name, and price or price_amount"))
}

// changes reports whether a file may change existing products, such as a list of SKUs and prices: it has no unused column that resembles a
// name or a price.
func changes(c *spreadsheet.Columns) bool {
	return len(c.Used) > 1 && !slices.ContainsFunc(c.Guessed, func(g spreadsheet.Column) bool {
		return !c.Has(g.Field) && slices.Contains([]string{"name", "price", priceAmount}, g.Field)
	})
}

// taxes are words of headers such as HSN code, whose values many products share.
var taxes = []string{"hsn", "hs", "sac", "gst", "tax", "hsncode", "bar", "pin"}

// resembling returns the field that a header resembles, none for a price in another currency.
func resembling(header string) string {
	field := spreadsheet.Guess(columnOf, header)
	switch {
	case (field == "price" || field == priceAmount) && spreadsheet.ForeignMoney(header) != "":
		return ""
	case !slices.Contains(codes, field):
		return field
	case slices.ContainsFunc(wording.Words(header), func(word string) bool { return slices.Contains(taxes, word) }):
		return ""
	}
	return codes[0]
}

// rounded matches a long code that a spreadsheet has saved as a number: 8.90123E+12.
var rounded = regexp.MustCompile(`^[0-9](\.[0-9]+)?[eE]\+[0-9]+$`)

// totals are names of rows with a sum.
var totals = spreadsheet.Named(map[string]string{
	"total": "grandtotal subtotal nettotal grosstotal totalamount totals sum " +
		"कुल योग कुलयोग जोड़ કુલ સરવાળો કુલસરવાળો",
})

// lineOf returns a valid row, or all faults of it.
func lineOf(r spreadsheet.Row, columns *spreadsheet.Columns) (line Line, err error) {
	cells, err := columns.Of(r)
	if err != nil {
		return line, err
	}
	var item product.Item
	for _, f := range patch.Texts(&item.Details) {
		if cells[f.Name] != "" {
			*f.Field = patch.Set(cells[f.Name])
		}
	}
	if item.Name = cells["name"]; spreadsheet.Known(totals, item.Name) != "" {
		return line, spreadsheet.Quoting(fault.Wrong("name", "is the name of a total, not of a product"), cells)
	}
	if images := cells["images"]; images != "" {
		item.Images = patch.Set(strings.FieldsFunc(images, func(c rune) bool { return c == '|' || c == ',' || c == '\n' || c == '\r' }))
	}
	if rounded.MatchString(cells["sku"]) {
		wrong := fault.Wrong("sku", "is a rounded number: format the column as text")
		return line, spreadsheet.Quoting(wrong, cells)
	}
	for _, field := range []string{"name", "sku"} { // typed as 3-12, a code has become 3 December
		if columns.Dated(r, field) {
			wrong := fault.Wrong(field, "is a date: format the column as text")
			return line, spreadsheet.Quoting(wrong, cells)
		}
	}
	var wrongMOQ, wrongPrice error
	if text := cells["moq"]; text != "" {
		var n int64
		if n, wrongMOQ = whole("moq", text); wrongMOQ == nil {
			item.MOQ = patch.Set(n)
		}
	}
	item.Price, wrongPrice = price(cells["price"], cells[priceAmount])
	shown := cmp.Or(columns.Foreign(r, "price"), columns.Foreign(r, priceAmount), spreadsheet.ForeignMoney(cells["price"]))
	if code := cells["price_currency"]; shown != "" && (code == "" || strings.EqualFold(code, "INR")) {
		wrongPrice = fault.Wrong("price", "is in "+shown+", not in rupees")
	}
	line.Item, err = item.Tidied()
	line.lacks = spreadsheet.Quoting(fault.Join(err, wrongMOQ, wrongPrice), cells)
	if line.key = product.SKUKey(item.SKU.Value); line.key == "" {
		return line, line.lacks
	}
	line.Given = &product.Edit{Details: item.Details}
	line.Given.SKU = patch.Field[string]{} // unchanged: the product may have another spelling of it
	if item.Name != "" {
		line.Given.Name = patch.Set(item.Name)
	}
	if cells["price"]+cells[priceAmount] == "" {
		wrongPrice = nil
	} else {
		line.Given.Price = patch.Set(item.Price)
	}
	if line.lacks != nil {
		_, err = line.Given.Decide(product.State{Company: uuid.Max})
	}
	return line, spreadsheet.Quoting(fault.Join(err, wrongMOQ, wrongPrice), cells)
}

// price returns a price in hundredths of the currency. If both columns have one, they must be equal.
func price(units, hundredths string) (int64, error) {
	if units == "" && hundredths == "" {
		return 0, fault.Wrong("price", "is required")
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
		return 0, fault.Wrong("price", "is not "+priceAmount+" divided by 100")
	}
	return amount, nil
}

// maxDigits is the maximum length of a number. A longer number is not a price.
const maxDigits = 15

var (
	// ambiguous is a dot that may separate thousands or decimal places.
	ambiguous = regexp.MustCompile(`\.[0-9]{3}$`)
	wholeForm = regexp.MustCompile(`^-?[0-9]+(\.0*)?$`)
	moneyForm = regexp.MustCompile(`^-?([0-9]+|[0-9]{1,3}(,[0-9]{2,3})*,[0-9]{3})(\.[0-9]*)?$`)
	signs     = regexp.MustCompile(`(?i)^(₹|rs\.?|inr|रु\.?|રૂ\.?)\s*|\s*(/-|₹|rs\.?|inr)$`)
)

const eitherDot = "a dot with three digits behind it may mean thousands: write 1000 or 1000.00"

// numeral returns the text of a number with ASCII digits and without invisible characters.
func numeral(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.Is(unicode.Cf, c) {
			return -1
		}
		return person.Digit(c)
	}, text)
}

func whole(field, text string) (int64, error) {
	text = numeral(text)
	if ambiguous.MatchString(text) {
		return 0, fault.Wrong(field, eitherDot)
	}
	if !wholeForm.MatchString(text) {
		return 0, fault.Wrong(field, "expected a whole number")
	}
	text, _, _ = strings.Cut(text, ".")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fault.Wrong(field, "the number is too large")
	}
	return n, nil
}

// money parses an amount with at most two decimal places. It allows the rupee sign, and commas between thousands or lakhs.
func money(text string) (int64, error) {
	wrong := func(message string) (int64, error) {
		return 0, fault.Wrong("price", message)
	}
	text = strings.TrimSpace(signs.ReplaceAllString(strings.TrimSpace(numeral(text)), ""))
	if ambiguous.MatchString(text) {
		return wrong(eitherDot)
	}
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
	case hundredths.IsNegative():
		return wrong("must not be negative")
	case !hundredths.IsInteger():
		return wrong("at most 2 places")
	case hundredths.NumDigits() > maxDigits:
		return wrong("the number is too large")
	}
	return hundredths.IntPart(), nil
}

// CatalogResult is the result of a file of products.
type CatalogResult struct {
	spreadsheet.ImportResult

	Updated   int `json:"updated"   doc:"Products with the SKU of a row that were changed. Blank cells change nothing"`
	Unchanged int `json:"unchanged" doc:"Products with the SKU of a row and already all its values"`
}

// Result returns the result after the import.
func (f CatalogFile) Result(done Imported) CatalogResult {
	wrong := append(slices.Clip(f.Errors), done.Failed...)
	slices.SortFunc(wrong, func(a, b spreadsheet.RowError) int { return a.Row - b.Row })
	r := CatalogResult{ImportResult: spreadsheet.Result(done.Created, wrong, f.Columns), Updated: done.Updated, Unchanged: done.Unchanged}
	r.Success = r.Success || r.Updated+r.Unchanged > 0
	return r
}
