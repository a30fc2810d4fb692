package api

import (
	"context"
	"net/url"
	"strings"

	"bahi/domain/fault"
)

// saneQuery reports whether a query can be decoded. Huma would treat undecodable parameters as absent, and return another result.
func saneQuery(raw string) bool {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return false
	}
	for name, all := range values {
		if !sane(name + "=" + strings.Join(all, "&")) {
			return false
		}
	}
	return true
}

// strictQuery refuses unknown parameters, and repeated ones, of which huma would use the first.
func (c *call) strictQuery() error {
	raw := c.r.URL.RawQuery
	if raw == "" {
		return nil
	}
	var wrong []fault.Field
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(raw, "&") {
		escaped, value, _ := strings.Cut(pair, "=")
		name, _ := url.QueryUnescape(escaped)
		switch {
		case pair == "":
		case !c.op.query[name]:
			wrong = append(wrong, fault.Field{Field: shortened(name), Message: "unknown parameter"})
		case seen[name]:
			wrong = append(wrong, fault.Field{Field: name, Message: "must be given once"})
		case value == "": // huma would treat an empty value as absent
			wrong = append(wrong, fault.Field{Field: name, Message: "must not be empty"})
		}
		seen[name] = true
		if len(wrong) >= maxWrong {
			break
		}
	}
	if wrong != nil {
		return fault.Fields(wrong...)
	}
	return nil
}

// Query returns the whole query.
func Query(ctx context.Context) url.Values { return callOf(ctx).r.URL.Query() }
