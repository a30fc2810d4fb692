package http_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"image/color"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/ledger/orderdraft"
	"bahi/domain/patch"
	"bahi/http/api"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/worktest"
	"bahi/readmodels/messagingview"
)

// sample is a request that an operation accepts. A name in braces in its path or JSON stands for the value with that name.
type sample struct {
	Body    json.RawMessage   `json:"body"`
	Query   string            `json:"query"`
	Path    map[string]string `json:"path"`    // names of the values of the path's variables, where resources share a variable's name
	Upload  bool              `json:"upload"`  // a picture, instead of a body
	File    string            `json:"file"`    // the text of a file, instead of a body
	Gives   map[string]string `json:"gives"`   // names of values for other samples, with the fields of the response that have the values
	Refused int               `json:"refused"` // status of a sample that cannot be accepted: it would need a mailed token, or a fault
	Endless bool              `json:"endless"` // a stream that ends with its client
}

// samples are the samples of all operations, by id. Each area has its own.
func samples(t *testing.T) map[string]sample {
	t.Helper()
	files, err := filepath.Glob("*/testdata/samples.json")
	require.NoError(t, err)
	all := map[string]sample{}
	for _, file := range files {
		text := worktest.File(t, file)
		var area map[string]sample
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		require.NoError(t, decoder.Decode(&area), file)
		for id, s := range area {
			require.NotContains(t, all, id, file)
			all[id] = s
		}
	}
	return all
}

// variable returns a variable of the path, in braces, by the name of its value.
func (s sample) variable(found string) string {
	return "{" + cmp.Or(s.Path[strings.Trim(found, "{}")], strings.Trim(found, "{}")) + "}"
}

func TestEveryOperationHasASample(t *testing.T) {
	t.Parallel()
	all := samples(t)
	for _, op := range apptest.Share(t).Api(apptest.OperatorKey).Operations() {
		if _, has := all[op.ID]; !has {
			t.Errorf("add a sample of %s to testdata/samples.json in its area's folder", op.ID)
		}
		delete(all, op.ID)
	}
	require.Empty(t, all, "there are no such operations")
}

// fixture is a workspace, its owner, and every operation.
type fixture struct {
	*apptest.Server

	asha    apptest.Person // its owner
	ops     []api.Op
	samples map[string]sample
}

func startFixture(t *testing.T) fixture {
	t.Helper()
	o := apptest.Start(t)
	return fixture{o, o.Person("asha@example.com"), o.Api(apptest.OperatorKey).Operations(), samples(t)}
}

// may returns a client that may request an operation.
func (s fixture) may(op api.Op) *apitest.Client {
	switch {
	case op.Operator && op.DryRun: // it acts in a workspace
		return s.Operator().With("Bahi-Workspace", s.asha.Workspace)
	case op.Operator:
		return s.Operator()
	case op.Public:
		return s.Anonymous()
	default:
		return s.asha.Client
	}
}

// things has values by name. A value is created when a sample names it.
type things struct {
	fixture

	values map[string]string // as JSON
}

func (s fixture) things() *things {
	quoted := func(text string) string { return `"` + text + `"` }
	return &things{s, map[string]string{"workspace_id": quoted(s.asha.Workspace), "name": quoted("books"), "job_id": "1",
		"side": quoted("in"), "template_format": quoted("csv")}}
}

var named = regexp.MustCompile(`\{([A-Za-z_]+)\}`)

// value returns the value with a name. It runs the sample that creates the value.
func (w *things) value(t *testing.T, name string) string {
	t.Helper()
	if name == "unique" {
		return `"` + uuid.NewString() + `"`
	}
	if name == "digits" {
		return fmt.Sprintf("%06d", uuid.New().ID()%1_000_000)
	}
	if value, made := w.values[name]; made {
		return value
	}
	if name == "user_id" { // a member beside the owner
		ravi := w.Person(uuid.NewString() + "@example.com")
		w.asha.Join(w.Server, ravi, `{"ledger":"read"}`)
		w.values[name] = `"` + ravi.User.ID + `"`
		return w.values[name]
	}
	if name == "draft_id" || name == "ready_draft_id" { // it comes by chat
		req := commands.Request{Workspace: uuid.MustParse(w.asha.Workspace)}
		id, _, err := ledgercmd.ReceiveDraft(t.Context(), req, w.Sys.Books,
			ledgercmd.Message{ID: uuid.NewString(), From: "919812345678", Text: "slip 7\npayal 250 gm"})
		require.NoError(t, err)
		w.values[name] = id
		if name == "ready_draft_id" {
			client, err := strconv.ParseInt(w.value(t, "client_id"), 10, 64)
			require.NoError(t, err)
			draft, err := strconv.ParseInt(id, 10, 64)
			require.NoError(t, err)
			_, err = ledgercmd.EditDraft(t.Context(), req, w.Sys.Books, draft, orderdraft.Edit{Client: patch.Set(client)})
			require.NoError(t, err)
		}
		return id
	}
	if name == "giving_id" || name == "taking_id" || name == "paired_id" { // rows of a transfer
		var made struct {
			Rows []struct {
				Row struct{ ID int64 }
			}
		}
		body := `{"from":` + w.value(t, "bank_id") + `,"to":` + w.value(t, "client_id") + `,"amount":5,"date":"2025-03-01"}`
		require.NoError(t, json.Unmarshal([]byte(w.asha.POST("/books/transfers", body).Status(201).Text), &made))
		giving, taking := strconv.FormatInt(made.Rows[0].Row.ID, 10), strconv.FormatInt(made.Rows[1].Row.ID, 10)
		if name == "paired_id" {
			w.values[name] = giving
			return giving
		}
		w.asha.POST("/books/transfers/unpair", `{"row":`+giving+`}`).Status(200)
		w.values["giving_id"], w.values["taking_id"] = giving, taking
		return w.values[name]
	}
	if strings.HasSuffix(name, "_template_id") || name == "template_channel_id" { // a network has them
		w.asha.POST("/api/channels", `{"name":"Sandbox","type":"chat"}`).Status(201)
		for _, one := range apitest.Read[[]messagingview.Template](w.asha.GET("/api/chat/templates").Status(200)) {
			w.values[one.Name+"_template_id"] = strconv.FormatInt(one.ID, 10)
			w.values["template_channel_id"] = strconv.FormatInt(one.ChannelID, 10)
		}
		return w.values[name]
	}
	if name == "through" { // the only closed period
		w.asha.POST("/books/periods", `{"through":"2020-03-31"}`)
		w.values[name] = `"2020-03-31"`
		return w.values[name]
	}
	giver := slices.IndexFunc(w.ops, func(op api.Op) bool { return w.samples[op.ID].Gives[name] != "" })
	require.GreaterOrEqual(t, giver, 0, "no sample gives {%s}", name)
	op := w.ops[giver]
	var made map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(w.request(t, op).ask(w.may(op)).Status(status(op)).Text), &made), op.ID)
	for name, field := range w.samples[op.ID].Gives {
		require.Contains(t, made, field, op.ID)
		w.values[name] = string(made[field])
	}
	return w.values[name]
}

// request is the sample of an operation, with its values.
type request struct {
	method, path, body, contentType string
}

func (w *things) request(t *testing.T, op api.Op) request {
	t.Helper()
	s := w.samples[op.ID]
	plain := func(text string) string {
		return named.ReplaceAllStringFunc(text, func(found string) string { return strings.Trim(w.value(t, strings.Trim(found, "{}")), `"`) })
	}
	whole := regexp.MustCompile(`"\{([a-z_]+)\}"`)
	body := whole.ReplaceAllStringFunc(string(s.Body), func(found string) string { return w.value(t, strings.Trim(found, `"{}`)) })
	r := request{method: op.Method, path: plain(named.ReplaceAllStringFunc(op.Path, s.variable)), body: plain(body),
		contentType: "application/json"}
	if s.Query != "" {
		r.path += "?" + plain(s.Query)
	}
	if s.Upload {
		form, contentType := apptest.Form(t, "image/png", apptest.Painted(t, color.White, 8, 8))
		r.body, r.contentType = string(form), contentType
	}
	if s.File != "" {
		form, contentType := apptest.Form(t, "text/csv", []byte(s.File))
		r.body, r.contentType = string(form), contentType
	}
	return r
}

// requests returns the requests of the wanted operations.
func (w *things) requests(t *testing.T, wanted func(api.Op) bool) map[string]request {
	t.Helper()
	all := map[string]request{}
	for _, op := range w.ops {
		if wanted(op) {
			all[op.ID] = w.request(t, op)
		}
	}
	require.Eventually(t, func() bool { // the log does not grow any more
		return !strings.Contains(w.asha.GET("/api/v1/enquiries").Status(200).Text, `"status":"queued"`)
	}, time.Minute, 5*time.Millisecond)
	return all
}

// ask sends it. For a stream that only the client ends, it requests only the head.
func (r request) ask(c *apitest.Client) *apitest.Answer {
	if r.body == "" {
		return c.Do(r.method, r.path, nil)
	}
	return c.With("Content-Type", r.contentType).Do(r.method, r.path, r.body)
}

// with is the request with another body.
func (r request) with(body string) request {
	r.body = body
	return r
}

// strange is the request with an unknown field in its body.
func (r request) strange() request {
	return r.with(strings.Replace(`{"no_such_field":1,`+strings.TrimPrefix(r.body, "{"), ",}", "}", 1))
}
