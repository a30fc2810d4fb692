package company

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"bahi/domain/fault"
	"bahi/domain/person"
)

// formats normalise the fields with a special form, by JSON name. Their argument is not empty.
var formats = map[string]func(field, text string) (string, error){
	"domain": Domain, "website": website, "country": country,
}

// formatsFor returns the formats, with the accepted kinds of GSTINs.
func formatsFor(anyGSTIN bool) map[string]func(field, text string) (string, error) {
	all := maps.Clone(formats)
	all["gstin"] = func(field, text string) (string, error) { return gstin(anyGSTIN, field, text) }
	return all
}

// website parses a web address, with or without its scheme.
func website(field, text string) (string, error) {
	full := text
	if !strings.Contains(text, "://") {
		full = "https://" + text
	}
	u, err := url.Parse(full)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || strings.ContainsFunc(text, unicode.IsSpace) {
		return "", fault.Wrong(field, "expected a web address, as in https://example.org")
	}
	if _, err := Domain(field, u.Host); err != nil {
		return "", fault.Wrong(field, "expected a web address, as in https://example.org")
	}
	return full, nil
}

// The characters of a GSTIN, in the order of their values.
const gstinDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

var gstinForm = regexp.MustCompile(`^[0-9]{2}[A-Z]{5}[0-9]{4}[A-Z][1-9A-Z][0-9A-Z]{2}$`)

// gstin parses a number of the Goods and Services Tax. The state must exist, and the check character must be correct (CONTRACT.md 8.1).
// Unless anyType is true, the 14th character must be Z: only special registrations have another one.
func gstin(anyType bool, field, text string) (string, error) {
	text = strings.ToUpper(strings.ReplaceAll(text, " ", ""))
	if !gstinForm.MatchString(text) || !anyType && text[13] != 'Z' {
		return "", fault.Wrong(field, "expected a GSTIN, as in 27AAPFU0939F1ZV")
	}
	if state := text[:2]; (state < "01" || state > "38") && state != "97" && state != "99" {
		return "", fault.Wrong(field, "no state has the code "+state)
	}
	if text[14] != checkCharacter(text[:14]) {
		return "", fault.Wrong(field, "the check character is wrong: one of the others is mistyped")
	}
	return text, nil
}

// checkCharacter returns the last character of a GSTIN from the others.
func checkCharacter(text string) byte {
	sum, base := 0, len(gstinDigits)
	for i := range len(text) {
		product := strings.IndexByte(gstinDigits, text[i]) * (1 + i%2)
		sum += product/base + product%base
	}
	return gstinDigits[(base-sum%base)%base]
}

const india = "India"

// country gives India one spelling.
func country(_, text string) (string, error) {
	if slices.Contains([]string{"in", "ind", "india", "भारत"}, person.Folded(text)) {
		return india, nil
	}
	return text, nil
}

var (
	pincodeForm  = regexp.MustCompile(`^[1-9][0-9]{5}$`)
	postcodeForm = regexp.MustCompile(`^.{3,12}$`)
)

// pincode parses a postal code of the country; "": India (CONTRACT.md 8.2).
func pincode(text, country string) (string, error) {
	if country != "" && country != india {
		if !postcodeForm.MatchString(text) {
			return "", fault.Wrong("pincode", "3 to 12 characters")
		}
		return text, nil
	}
	text = strings.ReplaceAll(text, " ", "")
	if !pincodeForm.MatchString(text) {
		return "", fault.Wrong("pincode", "expected six digits, the first of them not 0")
	}
	return text, nil
}
