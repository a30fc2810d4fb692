package api

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/shopspring/decimal"
)

// limits are the document's limits of a value beside its type.
type limits struct {
	minLength, maxLength int // in characters, or items
	oneOf                []string
	least, most          *decimal.Decimal // inclusive
	schema               *huma.Schema     // for the checks that huma does; nil: none
	registry             huma.Registry
}

// newLimits returns nil if the schema has no limits.
func newLimits(registry huma.Registry, n *node, s *huma.Schema) *limits {
	if s == nil {
		return nil
	}
	l := &limits{maxLength: math.MaxInt, registry: registry}
	said := false
	switch n.kind {
	case text:
		if s.MinLength != nil {
			l.minLength, said = *s.MinLength, true
		}
		if s.MaxLength != nil {
			l.maxLength, said = *s.MaxLength, true
		}
		for _, allowed := range s.Enum {
			l.oneOf, said = append(l.oneOf, fmt.Sprint(allowed)), true
		}
		if s.Pattern != "" || s.Format != "" {
			l.schema, said = s, true
		}
	case list:
		if s.MinItems != nil {
			l.minLength, said = *s.MinItems, true
		}
		if s.MaxItems != nil {
			l.maxLength, said = *s.MaxItems, true
		}
	case scalar, ownJSON:
		if s.Minimum != nil {
			least := decimal.NewFromFloat(*s.Minimum)
			l.least, said = &least, true
		}
		if s.Maximum != nil {
			most := decimal.NewFromFloat(*s.Maximum)
			l.most, said = &most, true
		}
		for _, allowed := range s.Enum {
			l.oneOf, said = append(l.oneOf, fmt.Sprint(allowed)), true
		}
		if s.ExclusiveMinimum != nil || s.ExclusiveMaximum != nil {
			panic(fmt.Sprintf("%s: exclusive bounds are not checked; let Decide do it", n.typ))
		}
	default:
	}
	if !said {
		return nil
	}
	return l
}

func (l *limits) text(d *decoder, s string) {
	length := len(s)
	if length > l.maxLength || length < 4*l.minLength {
		length = utf8.RuneCountInString(s)
	}
	switch {
	case length < l.minLength && l.minLength == 1:
		d.fail("must not be empty")
	case length < l.minLength:
		d.fail(fmt.Sprintf("at least %d characters", l.minLength))
	case length > l.maxLength:
		d.fail(fmt.Sprintf("at most %d characters", l.maxLength))
	case l.oneOf != nil && !slices.Contains(l.oneOf, s):
		d.fail("expected one of " + strings.Join(l.oneOf, ", "))
	case l.schema != nil:
		var result huma.ValidateResult
		schema := *l.schema
		schema.Enum, schema.MinLength, schema.MaxLength = nil, nil, nil
		huma.Validate(l.registry, &schema, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, s, &result)
		for _, err := range result.Errors {
			if detail, ok := err.(huma.ErrorDetailer); ok {
				d.fail(detail.ErrorDetail().Message)
			}
		}
	}
}

func (l *limits) count(d *decoder, items int) {
	switch {
	case items < l.minLength:
		d.fail(fmt.Sprintf("at least %d items", l.minLength))
	case items > l.maxLength:
		d.fail(fmt.Sprintf("at most %d items", l.maxLength))
	}
}

// maxItems bounds the kept items of a list; the rest is only counted.
func (n *node) maxItems() int {
	if n.limits == nil {
		return math.MaxInt
	}
	return n.limits.maxLength
}

func (l *limits) number(d *decoder, digits string) {
	if l.oneOf != nil && !slices.Contains(l.oneOf, digits) {
		d.fail("expected one of " + strings.Join(l.oneOf, ", "))
		return
	}
	if l.least == nil && l.most == nil {
		return
	}
	value, err := decimal.NewFromString(digits)
	switch {
	case err != nil:
		d.fail("expected a number")
	case l.least != nil && value.LessThan(*l.least):
		d.fail("must be at least " + l.least.String())
	case l.most != nil && value.GreaterThan(*l.most):
		d.fail("must be at most " + l.most.String())
	}
}
