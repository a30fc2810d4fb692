package api

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"

	"bahi/domain/fault"
)

// A 422 lists every fault of a request (CONTRACT.md 0.8). They are found in three places: in headers and
// query, in what the body says, and by the rules of the domain. [call.wrong] collects the first two;
// [call.rules] adds the third.

// noted collects faults of fields. It returns every other error, which ends the request at once.
func (c *call) noted(err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Kind != fault.Invalid || f.Code != "" || len(f.Fields) == 0 {
		return err
	}
	c.wrong = append(c.wrong, f.Fields...)
	return nil
}

// decode fills the input with body and file. It returns the faults of the request, nil when there is none.
func (c *call) decode(in reflect.Value, try func(context.Context) error) error {
	o := c.op
	if o.file != nil {
		in.FieldByIndex(o.file).Set(reflect.ValueOf(c.file))
	}
	if o.body != nil {
		if err := c.noted(o.body.decode(c, in)); err != nil {
			return err
		}
	}
	if c.wrong == nil {
		return nil
	}
	return fault.Fields(append(c.wrong, c.rules(try)...)...)
}

// others returns the faults of headers and body, for a request whose path or query huma has refused.
func (c *call) others() []fault.Field {
	if c.op.body != nil && c.body != nil {
		_ = c.noted(c.op.body.decode(c, reflect.New(c.op.input).Elem())) // huma's refusal is the answer in any case
	}
	return c.wrong
}

// rules returns the faults that the operation's rules find in what could be read of the request. It tries
// the operation as a dry run; one that has no dry run is not tried. A fault is left out where the
// same field could not be read, or a field in or around it: the rule has seen an empty value there. So is
// the fault of an absent field beside an unknown one, which may be the same field misspelt.
func (c *call) rules(try func(context.Context) error) (found []fault.Field) {
	if !c.op.DryRun || len(c.wrong) >= maxWrong {
		return nil
	}
	defer func() {
		if p := recover(); p != nil { // the faults already found are answered all the same
			c.panicked(p)
		}
	}()
	c.request.DryRun, c.request.Key = true, ""
	ctx, cancel := c.timeout(c.withRequest(c.ctx))
	defer cancel()
	f, ok := errors.AsType[*fault.Error](try(ctx))
	if !ok || f.Kind != fault.Invalid {
		return nil
	}
	for _, field := range f.Fields {
		if !c.unread(field.Field) {
			found = append(found, field)
		}
	}
	return found
}

// unread reports whether the field could not be read, or one in it or around it.
func (c *call) unread(field string) bool {
	return slices.ContainsFunc(c.wrong, func(known fault.Field) bool {
		return known.Message != unknownField && (known.Field == wholeBody || nested(known.Field, field) || nested(field, known.Field))
	}) || slices.ContainsFunc(c.unsure, func(absent string) bool { return nested(field, absent) })
}

// nested reports whether the path names the field or one in it.
func nested(path, field string) bool {
	rest, within := strings.CutPrefix(path, field)
	return within && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
