package http_test

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/http/api"
	"bahi/http/api/ratelimit"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

// These tests send requests to every operation, built from the operation's sample. A new operation is tested in the same way.

// forEverybody are the public operations of SPEC.txt ("Authentication", 8) and CONTRACT.md (D34, D35). The author of a further public
// operation adds it here.
var forEverybody = []string{
	"add-contact", "begin-web-chat", "check-domain", "confirm-company-email", "confirm-password-reset", "create-enquiry", "edit-contact",
	"finish-sign-in-by-provider", "follow-web-chat", "get-catalog-feed", "get-catalog-template", "get-company", "get-contact", "get-product",
	"get-shared-statement",
	"greet-social", "greet-twitter", "list-companies", "list-products", "login", "receive-billing", "receive-gateway-chat",
	"receive-gateway-message", "receive-gateway-receipt", "receive-partner", "receive-social", "receive-telegram", "receive-twitter",
	"refresh", "register", "request-password-reset", "search-companies", "sign-in-by-provider", "undo-email-change", "verify-chat",
	"verify-email", "write-web-chat",
}

// ofEverybodysSight are the writes of public records: a caller of another workspace gets a 403 instead of a 404.
var ofEverybodysSight = []string{"delete-company", "delete-product", "edit-company", "edit-product"}

// ofEverybodysOwn are the lists that have a record in every workspace, besides the lists of the log.
var ofEverybodysOwn = []string{"list-api-keys", "list-workspaces"}

// ofTheCallers are the operations about their callers, which need no permission. An operation with a workspace in its path
// requires a permission in that workspace, which the document does not state.
var ofTheCallers = []string{
	"accept-invitation", "change-password", "get-me", "list-workspaces", "logout", "request-deletion", "update-me", "upload-picture",
}

// ofNoRevision are the writes that ignore If-Match, because no client can have read a revision of the changed record.
var ofNoRevision = []string{"import-messaging-contacts", "import-products", "request-deletion"}

func every(api.Op) bool { return true }

// again signs the owner in once more before an operation that may end the session.
func (s *fixture) again(op api.Op) {
	if slices.Contains(ofTheCallers, op.ID) {
		s.asha.Client = s.Bearer(s.SignIn("asha@example.com", apptest.GoodPassword).Access)
	}
}

// faulty returns the status of a fault of a field.
func faulty(op api.Op) int { return cmp.Or(op.FieldErrorStatus, http.StatusUnprocessableEntity) }

func writes(op api.Op) bool { return op.Method != http.MethodGet }

// read sends a request. If no checkpoint covers the requested events yet, it waits for one and sends the request again.
func (s fixture) read(r request, c *apitest.Client) *apitest.Answer {
	a := r.ask(c)
	if a.Response.StatusCode == http.StatusServiceUnavailable && strings.Contains(a.Text, "is signed within a second or two") {
		s.Signed()
		a = r.ask(c)
	}
	return a
}

// A sample is taken once for each key, and with an unknown field, except where such a field is refused.
func TestEverySampleIsTaken(t *testing.T) {
	t.Parallel()
	s, recorded := startFixture(t), examples{}
	for _, op := range s.ops {
		sample := s.samples[op.ID]
		if sample.Endless {
			continue
		}
		s.again(op)
		want := []int{status(op), http.StatusOK}
		if sample.Refused != 0 {
			want = []int{sample.Refused}
		}
		r, key, keyed := s.things().request(t, op), "", writes(op) && !op.NoKey && sample.Refused == 0
		if keyed {
			key = uuid.NewString()
		}
		a := s.read(r, s.may(op).With("Idempotency-Key", key))
		require.Contains(t, want, a.Response.StatusCode, "%s: %s", op.ID, a.Text)
		recorded.note(op, r, a)
		if keyed {
			s.aRepetitionHasNoEffect(t, op, r, key, a)
		}
		s.unknownFieldsAreTaken(t, op, want...)
	}
	scenarios{s.things(), recorded}.play(t)
	recorded.verify(t)
}

// asked has the ids of requests, by which the events that they wrote are found: what runs in the background writes at any time.
type asked map[string]bool

func (k asked) note(a *apitest.Answer) *apitest.Answer {
	k[a.Header("X-Request-Id")] = true
	return a
}

// wrote returns the types of the events behind a position that these requests wrote.
func (k asked) wrote(t *testing.T, s fixture, after int64) (types []string) {
	t.Helper()
	for e := range s.Events(after) {
		var meta event.Meta
		require.NoError(t, json.Unmarshal(e.Meta, &meta))
		if k[meta.RequestID] {
			types = append(types, e.Type)
		}
	}
	return types
}

// listedAnswers returns the statuses that the document has for each operation.
func listedAnswers(t *testing.T) map[string][]string {
	t.Helper()
	listed := map[string][]string{}
	for _, operations := range readDocument(t).Paths {
		for _, op := range operations {
			listed[op.OperationID] = slices.Collect(maps.Keys(op.Responses))
		}
	}
	return listed
}

func TestOnlyWhatIsForEverybodyIsOpen(t *testing.T) {
	t.Parallel()
	s := startFixture(t)
	var open []string
	for _, op := range s.ops {
		if op.Public {
			open = append(open, op.ID)
			require.Empty(t, op.Area, op.ID)
		}
	}
	slices.Sort(open)
	require.Equal(t, forEverybody, open)
	requests := s.things().requests(t, every)
	known := s.Key(s.asha.Workspace, `{"ledger":"read"}`).Key
	s.Anonymous().With("Authorization", "bearer "+known).GET("/banks").Status(200)
	headers := map[string]string{
		"no header": "", "no key": "Bearer", "a password": "Basic " + base64.StdEncoding.EncodeToString([]byte("a:b")), "no scheme": known,
		"another secret": "Bearer " + known[:len(known)-1], "an expired token": "Bearer " + s.Expired(s.asha.Access),
	}
	before, refused, listed := s.Head(), asked{}, listedAnswers(t)
	for what, header := range headers {
		for _, op := range s.ops {
			a := requests[op.ID].ask(s.Anonymous().With("Authorization", header, "Bahi-Workspace", s.asha.Workspace))
			require.Contains(t, listed[op.ID], strconv.Itoa(a.Response.StatusCode), "the document of %s, %s", op.ID, what)
			if op.Public && !op.OptionalAuth {
				require.NotEqual(t, 500, a.Response.StatusCode, "%s, %s: %s", op.ID, what, a.Text)
				require.NotContains(t, a.Text, "Not authenticated", "%s, %s", op.ID, what)
				continue
			}
			if op.OptionalAuth && header == "" { // apitest sends no credential then
				require.Equal(t, status(op), a.Response.StatusCode, "%s: %s", op.ID, a.Text)
				continue
			}
			require.Equal(t, 401, a.Response.StatusCode, "%s, %s: %s", op.ID, what, a.Text)
			refused.note(a).Problem(401, "Not authenticated")
			require.Equal(t, "Bearer", a.Header("Www-Authenticate"))
		}
	}
	require.Empty(t, refused.wrote(t, s, before))
	s.asha.GET("/banks").Status(200)
}

// TestWhatEveryOperationRefuses sends refused requests to one system, which therefore does not change. The writes that ignore If-Match have
// effects, so they are last.
func TestWhatEveryOperationRefuses(t *testing.T) {
	t.Parallel()
	s := startFixture(t)
	requests := s.things().requests(t, every)
	s.anotherWorkspaceIsNotThere(t, requests)
	s.aKeyWithoutTheAreaOpensNothing(t, requests)
	s.aBodyThatIsNoJSONOrHasWrongTypesIsRefused(t, requests)
	s.aBodyWithUnknownFieldsOrOfAnySizeIsRefused(t, requests)
	s.aFileAboveTheLimitIsRefused(t, requests)
	s.aDryRunChangesNothing(t, requests)
	s.aWriteThatNamesAnotherRevisionIsRefused(t, requests)
}

func (s fixture) anotherWorkspaceIsNotThere(t *testing.T, requests map[string]request) {
	t.Helper()
	ravi := s.Person("ravi@example.com")
	key := s.Bearer(s.Key(ravi.Workspace, `{"ledger":"write","messaging":"write","marketplace":"write","audit":"write"}`).Key)
	before, strange, listed := s.Head(), asked{}, listedAnswers(t)
	for _, op := range s.ops {
		r := requests[op.ID]
		if op.Public {
			if op.OptionalAuth {
				require.Contains(t, listed[op.ID], "404", op.ID)
			}
			continue
		}
		for _, c := range []*apitest.Client{ravi.Client, key} {
			strange.note(r.ask(c.With("Bahi-Workspace", s.asha.Workspace))).Problem(404, "Workspace not found")
			switch {
			case op.Operator:
				strange.note(r.ask(c)).Problem(403, "Not enough permissions")
			case slices.Contains(ofEverybodysSight, op.ID):
				require.Equal(t, 403, strange.note(r.ask(c)).Response.StatusCode, op.ID)
			case strings.Contains(op.Path, "{"):
				require.Equal(t, 404, strange.note(r.ask(c)).Response.StatusCode, op.ID)
			case !writes(op) && op.Area != "audit" && !s.samples[op.ID].Endless && !slices.Contains(ofEverybodysOwn, op.ID):
				if a := strange.note(r.ask(c)); strings.HasPrefix(a.Text, "[") {
					a.Status(200).Body(`[]`)
				}
			}
		}
	}
	for _, typ := range strange.wrote(t, s, before) { // a row that is refused may have taken the last of the numbers that were reserved
		require.Equal(t, "NumbersReserved", typ)
	}
}

func TestWhoMayReadMayNotWrite(t *testing.T) {
	t.Parallel()
	s := startFixture(t)
	ravi := s.Person("ravi@example.com")
	const read = `{"ledger":"read","messaging":"read","marketplace":"read","audit":"read"}`
	s.asha.Join(s.Server, ravi, read)
	key := s.Bearer(s.Key(s.asha.Workspace, read).Key)
	requests := s.things().requests(t, every)
	s.Signed()
	signIn := func() *apitest.Client {
		return s.Bearer(s.SignIn("ravi@example.com", apptest.GoodPassword).Access).With("Bahi-Workspace", s.asha.Workspace)
	}
	member := signIn()
	for _, op := range s.ops {
		if slices.Contains(ofTheCallers, op.ID) { // the one before it may have ended the session
			member = signIn()
		}
		before, refused := s.Head(), asked{}
		for _, reader := range []*apitest.Client{member, key} {
			r := requests[op.ID]
			switch {
			case op.Public:
			case s.samples[op.ID].Endless && !op.Operator: // its area's own tests read it
			case slices.Contains(ofTheCallers, op.ID):
				if reader == member {
					require.Empty(t, op.Area, op.ID)
					a := r.ask(reader)
					require.NotContains(t, []int{401, 403, 404, 500}, a.Response.StatusCode, "%s: %s", op.ID, a.Text)
				}
			case !op.Operator && !writes(op):
				a := s.read(r, reader)
				require.Equal(t, 200, a.Response.StatusCode, "%s: %s", op.ID, a.Text)
			default:
				refused.note(r.ask(reader)).Problem(403, "Not enough permissions")
				if r.body != "" && op.Area != "" {
					refused.note(r.with("{").ask(reader)).Problem(403, "Not enough permissions") // before the body is read
				}
				require.Empty(t, refused.wrote(t, s, before), op.ID)
			}
		}
	}
}

func (s fixture) aKeyWithoutTheAreaOpensNothing(t *testing.T, requests map[string]request) {
	t.Helper()
	areas := []string{"ledger", "messaging", "marketplace", "audit"}
	keys := map[string]*apitest.Client{} // by permission
	key := func(permissions map[string]string) *apitest.Client {
		text, err := json.Marshal(permissions)
		require.NoError(t, err)
		if keys[string(text)] == nil {
			keys[string(text)] = s.Bearer(s.Key(s.asha.Workspace, string(text)).Key)
		}
		return keys[string(text)]
	}
	for _, op := range s.ops {
		if op.Public {
			continue
		}
		others := map[string]string{}
		for _, other := range areas {
			// an operation with a workspace in its path requires a permission for the marketplace there
			if other != string(op.Area) && (op.Area != "" || other != "marketplace") {
				others[other] = "write"
			}
		}
		before, refused := s.Head(), asked{}
		require.Equal(t, 403, refused.note(requests[op.ID].ask(key(others))).Response.StatusCode, op.ID)
		if op.Area != "" && op.Area != "audit" {
			none := key(map[string]string{string(op.Area): "none", "audit": "read"})
			refused.note(requests[op.ID].ask(none)).Problem(403, "Not enough permissions")
		}
		require.Empty(t, refused.wrote(t, s, before), op.ID)
	}
}

func (s fixture) aWriteThatNamesAnotherRevisionIsRefused(t *testing.T, requests map[string]request) {
	t.Helper()
	var found []string
	for _, op := range s.ops {
		if !writes(op) || !op.Operator && (op.NoKey || s.samples[op.ID].Refused != 0) {
			continue
		}
		before, refused := s.Head(), asked{}
		a := requests[op.ID].ask(s.may(op).With("If-Match", `"999999"`))
		if a.Response.StatusCode != http.StatusPreconditionFailed {
			found = append(found, op.ID)
			continue
		}
		refused.note(a).Problem(412, "It was changed since you read it")
		require.Empty(t, refused.wrote(t, s, before), op.ID)
	}
	slices.Sort(found)
	require.Equal(t, ofNoRevision, found)
}

func (s fixture) aDryRunChangesNothing(t *testing.T, requests map[string]request) {
	t.Helper()
	before, dry := s.Head(), asked{}
	for _, op := range s.ops {
		if !writes(op) {
			continue
		}
		a := dry.note(requests[op.ID].ask(s.may(op).With("Bahi-Dry-Run", "true")))
		if op.DryRun {
			require.Equal(t, cmp.Or(s.samples[op.ID].Refused, 200), a.Response.StatusCode, "%s: %s", op.ID, a.Text)
			continue
		}
		a.Problem(422, "Validation error", "Bahi-Dry-Run", "this operation has no dry run")
		require.Contains(t, a.Text, `"code":"dry_run_unsupported"`, op.ID)
	}
	require.Empty(t, dry.wrote(t, s, before))
}

func (s fixture) aBodyThatIsNoJSONOrHasWrongTypesIsRefused(t *testing.T, requests map[string]request) {
	t.Helper()
	before, refused := s.Head(), asked{}
	for _, op := range s.ops {
		r := requests[op.ID]
		if len(s.samples[op.ID].Body) == 0 {
			continue
		}
		require.Equal(t, 400, refused.note(r.with("{").ask(s.may(op))).Response.StatusCode, op.ID)
		refused.note(r.with("[]").ask(s.may(op))).Problem(faulty(op), "Validation error")
		var good map[string]any
		require.NoError(t, json.Unmarshal([]byte(r.body), &good))
		for field := range good {
			bad := maps.Clone(good)
			bad[field] = map[string]any{"a": []int{1}}
			if _, object := good[field].(map[string]any); object { // this object may have unknown fields
				bad[field] = []int{1}
			}
			text, err := json.Marshal(bad)
			require.NoError(t, err)
			if op.ID == "verify-chat" { // it returns 200 with the refusal in the body
				continue
			}
			a := refused.note(r.with(string(text)).ask(s.may(op))).Status(faulty(op))
			require.Contains(t, a.Text, `"field":"`+field, op.ID)
		}
		text := r
		text.contentType = "text/plain"
		require.Equal(t, 415, refused.note(text.ask(s.may(op))).Response.StatusCode, op.ID)
	}
	require.Empty(t, refused.wrote(t, s, before))
}

func TestEachLimitCountsItsOperations(t *testing.T) {
	t.Parallel()
	with := apptest.Settings(t, apptest.Database(t))
	o := apptest.StartAs(t, with)
	asha := o.Person("asha@example.com")
	s := fixture{o, asha, o.Api(apptest.OperatorKey).Operations(), samples(t)}
	requests := s.things().requests(t, every) // while no other node mails
	limited := with
	limited.Data = t.TempDir()
	limited.Outside.Limits = api.Limits{}
	for group := range api.DefaultLimits() {
		limited.Outside.Limits[group] = ratelimit.Limit{Requests: 1, Per: time.Hour}
	}
	two := apptest.StartAs(t, limited)
	used := map[string]bool{}
	for _, op := range s.ops {
		r := requests[op.ID]
		if op.Operator || s.samples[op.ID].Endless {
			continue
		}
		require.NotEmpty(t, op.Limit, "%s needs a limit", op.ID)
		s.again(op)
		client := s.may(op).At(two.URL)
		counted := op.Limit
		if op.Public { // by address, not by user
			counted += " of strangers"
		}
		if !used[counted] {
			used[counted] = true
			require.NotEqual(t, http.StatusTooManyRequests, r.with("{").ask(client).Response.StatusCode, op.ID)
			s.again(op)
			client = s.may(op).At(two.URL)
		}
		a := r.ask(client).Problem(429, "Too many requests")
		require.Contains(t, a.Header("RateLimit-Policy"), `"`+op.Limit+`"`, op.ID)
	}
}
