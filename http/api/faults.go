package api

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"bahi/commands"
	"bahi/domain/fault"
)

// A 422 lists every fault of a request (CONTRACT.md 0.8). They come from three sources: headers and query, the body, and the rules of the
// domain. [call.wrong] collects the first two; [call.rules] adds the third.

// noted collects faults of fields. It returns any other error, which ends the request.
func (c *call) noted(err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Kind != fault.Invalid || f.Code != "" || len(f.Fields) == 0 {
		return err
	}
	c.wrong = append(c.wrong, f.Fields...)
	return nil
}

// decode fills the input with body and file. It returns the faults of the request, or nil.
func (c *call) decode(in reflect.Value, try func(context.Context) error) error {
	o := c.op
	if o.file != nil {
		in.FieldByIndex(o.file).Set(reflect.ValueOf(c.file))
	}
	if o.body != nil {
		if err := c.noted(c.decodeBody(in)); err != nil {
			return err
		}
	}
	if c.wrong == nil {
		return nil
	}
	return fault.Fields(append(c.wrong, c.rules(try)...)...)
}

// decodeBody fills the input's Body.
func (c *call) decodeBody(in reflect.Value) (err error) {
	b := c.op.body
	switch {
	case len(c.body) > 0:
		c.unsure, err = b.decode(c.body, in.FieldByIndex(b.index))
	case b.required:
		err = errNoBody
	}
	return err
}

// others returns the faults of headers and body. It is for a request with a path or query that huma has refused.
func (c *call) others() []fault.Field {
	if c.op.body != nil && c.body != nil {
		_ = c.noted(c.decodeBody(reflect.New(c.op.input).Elem())) // the response is huma's refusal in any case
	}
	return c.wrong
}

// rules returns the faults that the operation's rules find in the readable part of the request. It runs the operation without a write. It
// drops a fault if the same field, or a field in or around it, was unreadable, because the rule has seen an empty value. It also drops the
// fault of an absent field if the object has an unknown field, which may be the same field misspelt.
func (c *call) rules(try func(context.Context) error) (found []fault.Field) {
	if !c.op.tried() || len(c.wrong) >= maxWrong {
		return nil
	}
	defer func() {
		if p := recover(); p != nil { // the earlier faults are still reported
			c.panicked(p)
		}
	}()
	c.request.DryRun, c.request.Key = c.op.DryRun, ""
	ctx, cancel := context.WithTimeout(c.withRequest(commands.Trial(c.ctx)), c.within())
	defer cancel()
	f, ok := errors.AsType[*fault.Error](try(ctx))
	c.wrote, c.replayed = 0, false
	if !ok || !f.Listed() && f.Kind != fault.Malformed {
		return nil
	}
	for _, field := range f.Fields {
		if !c.unread(field.Field) {
			found = append(found, field)
		}
	}
	return found
}

// tried reports whether the rules are tried on a request with faults.
func (o *operation) tried() bool {
	return o.DryRun || o.write() && o.file == nil && !o.Operator && !o.Untried
}

// unread reports whether the field, or a field in or around it, was unreadable.
func (c *call) unread(field string) bool {
	return slices.ContainsFunc(c.wrong, func(known fault.Field) bool {
		return known.Message != unknownField && (known.Field == wholeBody || fault.Within(known.Field, field) || fault.Within(field, known.Field))
	}) || slices.ContainsFunc(c.unsure, func(absent string) bool { return fault.Within(field, absent) })
}
