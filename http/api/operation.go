package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humamux"

	"bahi/domain/actor"
)

// Op describes an operation and the checks before its handler.
type Op struct {
	ID      string // post-bank-row: the permanent name in logs, metrics and the scope of idempotency keys
	Method  string
	Path    string // as in /bank-ledger/{bank_account_id}
	Summary string // an imperative sentence without its period; the description may follow after ". "
	Tags    []string
	Status  int // status of success; 0: 201 for POST, 204 for DELETE, else 200

	// Access. Public: everybody. Operator: only operators. Area: callers with Level in the area; the default is Read for GET, otherwise
	// Write. None of these: every authenticated caller.
	Public       bool
	OptionalAuth bool // with Public: a credential identifies the caller, and an invalid one is refused
	Operator     bool
	Area         actor.Area
	Level        actor.Level

	// Permission is a text for the document, such as marketplace:write. The handler itself checks the permission.
	Permission string

	FieldErrorStatus int    // status of faults of fields; 0: 422
	Unstored         string // detail of the 500 if the log is unreachable; "": 503 instead

	Errors []int // further statuses of refusals, besides those that follow from the other fields

	Limit string // group of the rate limit
	// Proof: the request has an unguessable token. A valid token works beyond the limit, which others at the address may have reached.
	Proof    bool
	Refusals bool     // the rate limit applies only to requests for which the handler calls Count
	Reads    []string // projections that the handler reads; if any, Bahi-Min-Position is obeyed

	MaxBody     int64          // in bytes; of a form (see File) the bytes of its file; 0: 1 MB
	AnyField    bool           // a form's only file is accepted in any field
	Texts       []Text         // a form's fields beside the file, for the document
	Events      map[string]any // kinds of a [Stream], for the document
	Media       map[string]any // kinds of a [Download], for the document
	EmptyFile   error          // the refusal of an empty file; nil: 422
	StrictBody  bool           // unknown fields of the body are refused, except ReadOnly ones
	ReadOnly    []string       // fields of a read that a write ignores: id, rows.balance
	StrictQuery bool           // unknown and repeated query parameters are refused
	DryRun      bool           // obeys Bahi-Dry-Run; other writes refuse it
	Untried     bool           // its handler also has other effects, so it does not run in a [commands.Trial] for an unreadable request
	NoKey       bool           // ignores Idempotency-Key: a retry would return secrets again, and operators' actions store no keys

	Expensive bool // the handler waits for a turn, see [InTurn], such as an import, or a list without a limit

	Timeout time.Duration // maximum time of the handler; 0: [Config.Timeout]

	StillAllowed func(context.Context) error // for a Public stream: fails if the client may no longer receive it; nil: never fails
}

// write reports whether the operation writes, by its method.
func (o Op) write() bool { return o.Method != http.MethodGet && o.Method != http.MethodHead }

// operation is an Op with the values derived from it.
type operation struct {
	Op

	body   *body        // nil: none, or huma reads it
	raw    bool         // huma reads the body
	schema *huma.Schema // schema of the body, in the document
	input  reflect.Type
	file   []int // index of the input's File; nil: none
	query  map[string]bool
	vars   map[string]string // see variables
}

const defaultMaxBody = 1 << 20

// Handle registers an operation. The handler's input has parameters (`path:"…"`, `query:"…"`) and a field Body. See [Body], [ETag] and
// [Optional] for outputs and parameters. Tests of package http check the operations.
//
// The handler's context has the [Request] for commands; see also [Caller], [Prefers] and [SetWriteHeaders].
func Handle[I, O any](a *API, op Op, handler func(ctx context.Context, in *I) (*O, error)) {
	o := a.add(op, reflect.TypeFor[I]())
	register(a, o, handler)
}

// register registers a handler with huma.
func register[I, O any](a *API, o *operation, handler func(ctx context.Context, in *I) (*O, error)) {
	huma.Register(documenter{API: a.huma, op: o}, o.describe(), func(ctx context.Context, in *I) (*O, error) {
		c := callOf(ctx)
		var out *O
		serve := func(ctx context.Context) error {
			work := func() (err error) {
				ctx, cancel := context.WithTimeout(ctx, c.timeout())
				defer cancel()
				out, err = handler(ctx, in)
				return err
			}
			if o.Expensive {
				return InTurn(ctx, work)
			}
			return work()
		}
		err := c.decode(reflect.ValueOf(in).Elem(), serve)
		if err == nil {
			c.request.Fingerprint = c.print.sum()
			err = serve(c.withRequest(ctx))
		}
		if err != nil {
			return nil, c.problem(err)
		}
		return out, nil
	})
	o.finish(a, reflect.TypeFor[I]())
}

func (a *API) add(op Op, input reflect.Type) *operation {
	o := &operation{Op: op, vars: variables(op.Path, input)}
	usual := map[string]int{http.MethodPost: http.StatusCreated, http.MethodDelete: http.StatusNoContent}
	o.Status = cmp.Or(o.Status, usual[op.Method], http.StatusOK)
	o.MaxBody = cmp.Or(o.MaxBody, defaultMaxBody)
	if o.Area != "" && o.Level == "" {
		o.Level = actor.Read
		if o.write() {
			o.Level = actor.Write
		}
	}
	a.metrics.seconds.WithLabelValues(o.ID) // so that they are there before the first request
	a.metrics.requests.WithLabelValues(o.ID, strconv.Itoa(o.Status))
	a.limiter.of(op.Limit)
	a.ops = append(a.ops, o)
	for f := range input.Fields() {
		if f.Type == reflect.TypeFor[File]() {
			o.file = f.Index
		}
	}
	a.showPatches(input, map[reflect.Type]bool{})
	return o
}

// describe returns the operation for huma.
func (o *operation) describe() huma.Operation {
	summary, description, _ := strings.Cut(o.Summary, ". ")
	h := huma.Operation{
		OperationID: o.ID, Method: o.Method, Path: o.Path, Summary: summary, Description: description,
		Tags: o.Tags, DefaultStatus: o.Status,
		MaxBodyBytes:     -1, // [call.read] limits it
		BodyReadTimeout:  -1, // the server's applies
		SkipValidateBody: true,
		Middlewares: huma.Middlewares{func(ctx huma.Context, next func(huma.Context)) {
			r, w := humamux.Unwrap(ctx)
			c, _ := w.(*call)
			c.op, c.r = o, r
			c.run(ctx, next)
		}},
	}
	return h
}

var variableName = regexp.MustCompile(`\{([^}]+)\}`)

// variables maps an input's path parameters to variables of the path, for parameters whose names are not in the path. Each gets the next
// variable that no other parameter has. So operations whose paths have different names of variables can share an input.
func variables(path string, input reflect.Type) map[string]string {
	var asked []string
	vars, taken := map[string]string{}, map[string]bool{}
	for _, f := range reflect.VisibleFields(input) {
		switch tag := f.Tag.Get("path"); {
		case tag == "":
		case strings.Contains(path, "{"+tag+"}"):
			taken[tag] = true
		default:
			asked = append(asked, tag)
		}
	}
	for _, found := range variableName.FindAllStringSubmatch(path, -1) {
		if len(asked) > 0 && !taken[found[1]] {
			vars[asked[0]], asked = found[1], asked[1:]
		}
	}
	if len(asked) > 0 {
		panic(fmt.Sprintf("%s has no variable for the parameter %s", path, asked[0]))
	}
	return vars
}

// called returns the parameters of an operation under the path's names.
func (o *operation) called(parameters []*huma.Param) []*huma.Param {
	all := make([]*huma.Param, len(parameters))
	for i, p := range parameters {
		one := *p
		if p.In == "path" {
			one.Name = cmp.Or(o.vars[p.Name], p.Name)
		}
		all[i] = &one
	}
	return all
}
