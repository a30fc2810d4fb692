package main_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	proofs "bahi/eventstore/audit"
)

// auditCheckpoint is one as clients get it.
type auditCheckpoint struct {
	Number    int64          `json:"number"`
	Size      uint64         `json:"size"`
	Root      []byte         `json:"root"`
	Position  event.Position `json:"position"`
	SignedAt  time.Time      `json:"signed_at"`
	Note      string         `json:"note"`
	Abandoned int64          `json:"abandoned"`
}

// signed waits until what is in the log is signed for.
func (o *office) signed() auditCheckpoint {
	o.t.Helper()
	head := o.head()
	var newest auditCheckpoint
	require.Eventually(o.t, func() bool {
		a := o.operator().GET("/audit/checkpoint")
		if a.Response.StatusCode != http.StatusOK {
			a.Problem(503, "Nothing has been signed yet: a checkpoint is signed within a second or two of the first event")
			return false
		}
		newest = auditCheckpoint{}
		a.JSON(&newest)
		return newest.Position >= event.Position(head)
	}, time.Minute, 20*time.Millisecond)
	return newest
}

// publicKeys are those of the log, as an auditor gets them.
func (o *office) publicKeys() proofs.Keys {
	o.t.Helper()
	keys, err := proofs.ParseKeys(o.operator().GET("/audit/key?format=text").Status(200).Text)
	require.NoError(o.t, err)
	return keys
}

// auditEvent is one as clients get it.
type auditEvent struct {
	Position event.Position  `json:"position"`
	Stream   string          `json:"stream"`
	Revision int64           `json:"revision"`
	ID       string          `json:"id"`
	Type     string          `json:"type"`
	At       time.Time       `json:"recorded_at"`
	Meta     json.RawMessage `json:"metadata"`
	Data     json.RawMessage `json:"data"`
	Leaf     proofs.Hash     `json:"leaf_hash"`
}

func TestACheckpointIsSignedWithinASecondOrTwoAndAtTheEnd(t *testing.T) {
	t.Parallel()
	o := start(t)
	clerk := o.clerk(home)
	account := open(clerk, "HDFC")
	first := o.signed()
	keys := o.publicKeys()
	c, by, err := keys.Open([]byte(first.Note))
	require.NoError(t, err)
	require.Len(t, by, 1)
	require.Equal(t, first.Size, c.Size)
	require.Equal(t, proofs.Origin(o.sys.Store.ID()), c.Origin)
	require.Equal(t, first.Note, o.operator().GET("/audit/checkpoint?format=tlog-checkpoint").Status(200).Text)
	post(clerk, account, deposit("2025-03-01", "1"))
	head := o.head()
	o.stop()
	o = startOn(t, o.database)
	last := o.signed()
	require.EqualValues(t, head, last.Position, "what was written last was signed before the end")
	_, _, err = keys.Open([]byte(last.Note))
	require.NoError(t, err, "the key stays")
	var all []auditCheckpoint
	o.operator().GET("/audit/checkpoints").Status(200).JSON(&all)
	sizes := each(all, func(c auditCheckpoint) uint64 { return c.Size }) // on a slow machine there were others before the first, and between
	require.Contains(t, sizes, first.Size)
	require.True(t, slices.IsSorted(sizes))
	require.Equal(t, last.Size, sizes[len(sizes)-1])
	page := o.operator().GET("/audit/checkpoints?limit=1").Status(200)
	require.Equal(t, fmt.Sprintf(`</audit/checkpoints?after=%d&limit=1>; rel="next"`, all[0].Number), page.Header("Link"))
	require.Empty(t, o.operator().GET(fmt.Sprintf("/audit/checkpoints?after=%d", all[len(all)-1].Number)).Status(200).Header("Link"))
}

func TestProofsOverHTTPHoldAndWhatIsOutsideIsRefused(t *testing.T) {
	t.Parallel()
	o := start(t)
	op := o.operator()
	op.GET("/audit/proof/inclusion?position=1").Problem(503, "Nothing has been signed yet: a checkpoint is signed within a second or two of the first event")
	clerk := o.clerk(home)
	open(clerk, "HDFC")
	first := o.signed()
	for range 5 {
		open(clerk, "SBI")
	}
	last := o.signed()
	keys := o.publicKeys()
	var consistency struct {
		RootFrom proofs.Hash   `json:"root_from"`
		RootTo   proofs.Hash   `json:"root_to"`
		Hashes   []proofs.Hash `json:"hashes"`
	}
	lenient(t, op.GET(fmt.Sprintf("/audit/proof/consistency?from=%d&to=%d", first.Size, last.Size)).Status(200), &consistency)
	require.NoError(t, proofs.VerifyConsistency(first.Size, last.Size, consistency.Hashes, proofs.Hash(first.Root), proofs.Hash(last.Root)))
	for position := uint64(1); position <= last.Size; position++ {
		var inclusion struct {
			Index  uint64        `json:"index"`
			Size   uint64        `json:"size"`
			Leaf   proofs.Hash   `json:"leaf_hash"`
			Hashes []proofs.Hash `json:"hashes"`
			Note   string        `json:"checkpoint"`
		}
		lenient(t, op.GET(fmt.Sprintf("/audit/proof/inclusion?position=%d&size=%d", position, last.Size)).Status(200), &inclusion)
		c, _, err := keys.Open([]byte(inclusion.Note))
		require.NoError(t, err)
		require.NoError(t, proofs.VerifyInclusion(inclusion.Leaf, inclusion.Index, inclusion.Size, inclusion.Hashes, c.Root))
	}
	file := op.GET("/audit/proof/inclusion?position=1&format=tlog-proof").Status(200)
	require.Equal(t, "text/plain; charset=utf-8", file.Header("Content-Type"))
	require.Equal(t, `attachment; filename=event-1.tlog-proof`, file.Header("Content-Disposition"))
	read, err := proofs.ParseProofs([]byte(file.Text))
	require.NoError(t, err)
	_, _, err = keys.Verify(read[0])
	require.NoError(t, err)

	for path, field := range map[string]string{
		"inclusion?position=1000000": "position", "inclusion?position=1&size=1000000": "size", "inclusion?position=1&size=0": "size",
		"inclusion?position=2&size=1": "position", "consistency?from=2&to=1": "from", "consistency?from=1&to=1000000": "to",
		"inclusion?position=1000000&format=tlog-proof": "position", fmt.Sprintf("inclusion?position=%d&size=%d&format=tlog-proof", last.Size, first.Size): "position",
		"inclusion?position=0": "query.position", "inclusion": "query.position", "inclusion?position=1&size=x": "query.size", "inclusion?position=1&format=xml": "query.format",
	} {
		a := op.GET("/audit/proof/" + path)
		require.Equal(t, 422, a.Response.StatusCode, "%s: %s", path, a.Text)
		require.Contains(t, a.Text, strings.TrimPrefix(field, "query."), path)
	}
	o.bearer(o.key(home, `{"audit":"write","ledger":"write"}`).Key).GET("/audit/proof/inclusion?position=1").Problem(403, "Not enough permissions")
}

func TestARowsProofIsForWhoMayReadTheRowAndHoldsOffline(t *testing.T) {
	t.Parallel()
	o := start(t)
	clerk := o.clerk(home)
	account := open(clerk, "HDFC")
	posted := clerk.POST(fmt.Sprintf("/bank-ledger/%d/rows", account), `{"rows":[`+deposit("2025-03-01", "1")+`,`+deposit("2025-03-02", "2")+`]}`).Status(201)
	var rows struct {
		Rows []struct {
			ID int64 `json:"id"`
		} `json:"rows"`
	}
	require.NoError(t, json.Unmarshal([]byte(posted.Text), &rows))
	row := rows.Rows[0].ID
	clerk.DELETE(fmt.Sprintf("%s/row/%d", ledger(account), row)).Status(204)
	path := fmt.Sprintf("%s/row/%d/proof", ledger(account), row)
	o.signed()
	file := clerk.GET(path).Status(200)
	require.Equal(t, fmt.Sprintf(`attachment; filename=bank-row-%d.tlog-proof`, row), file.Header("Content-Disposition"))
	read, err := proofs.ParseProofs([]byte(file.Text))
	require.NoError(t, err)
	var types []string
	for _, p := range read {
		_, _, err := o.publicKeys().Verify(p)
		require.NoError(t, err)
		types = append(types, p.Event.Type)
	}
	require.Equal(t, []string{"BankRowsPosted", "BankRowAdded", "BankRowDeleted"}, types)
	o.person("ravi@example.com").GET(path).Problem(404, "Bank ledger row not found")
	clerk.GET(fmt.Sprintf("%s/row/%d/proof", ledger(account), row+100)).Status(404)
}

// events asks for all pages of a search.
func (o *office) auditEvents(token, query string) (all []auditEvent) {
	o.t.Helper()
	for path := "/audit/events?" + query; path != ""; {
		a := o.bearer(token).GET(path).Status(200)
		var page []auditEvent
		a.JSON(&page)
		all = append(all, page...)
		link := a.Header("Link")
		path, _, _ = strings.Cut(strings.TrimPrefix(link, "<"), ">")
	}
	return all
}

func TestAuditorsSeeTheirWorkspaceAndOperatorsAll(t *testing.T) {
	t.Parallel()
	o := start(t)
	asha, ravi := o.person("asha@example.com"), o.person("ravi@example.com")
	account := open(asha.Client, "HDFC")
	post(asha.Client, account, deposit("2025-03-01", "12.50"))
	open(ravi.Client, "SBI")
	key := o.key(asha.workspace, `{"audit":"read"}`).Key
	mine := o.auditEvents(key, "limit=3")
	require.NotEmpty(t, mine)
	for _, e := range mine {
		require.Contains(t, string(e.Meta), asha.workspace)
	}
	text, err := json.Marshal(mine)
	require.NoError(t, err)
	require.Contains(t, string(text), "asha@example.com", "who may see it sees it in clear")
	require.NotContains(t, string(text), "ravi@example.com")
	all := o.auditEvents(testOperatorKey, "limit=7")
	require.Len(t, all, len(slices.Collect(o.events(0))))
	at := 0
	for stored, err := range o.sys.Store.ReadAll(t.Context(), 0, eventstore.Forwards) {
		require.NoError(t, err)
		require.Equal(t, proofs.LeafHash(stored), all[at].Leaf)
		require.Equal(t, stored.Position, all[at].Position)
		at++
	}
	text, err = json.Marshal(all)
	require.NoError(t, err)
	require.NotContains(t, string(text), "asha@example.com", "other people's are sealed to who looks at everybody")
	require.Equal(t, mine, o.auditEvents(testOperatorKey, "workspace="+asha.workspace))

	for query, want := range map[string]int{
		"type=BankRowAdded": 1, "category=bankrow": 1, "stream=bank-" + strconv.FormatInt(account, 10): 1, "actor=" + url.QueryEscape("user:"+asha.User.ID) + "&category=bank": 1,
		"type=Nothing": 0, "from_time=2100-01-01T00:00:00Z": 0, "to_time=2000-01-01T00:00:00Z": 0,
		fmt.Sprintf("from_position=%d", o.head()+1): 0,
	} {
		require.Len(t, o.auditEvents(key, query), want, query)
	}
	o.bearer(key).GET(fmt.Sprintf("/audit/events?from_position=%d", o.head()+2)).Problem(422, "The log does not reach that position yet")
	o.bearer(key).GET("/audit/events?from_time=2025-01-02T00:00:00Z&to_time=2025-01-01T00:00:00Z").Problem(422, "Validation error", "from_time", "must not be after to_time")
	for _, query := range []string{"from_time=yesterday", "limit=0", "limit=1001", "from_position=-1", "colour=red", "stream=a&stream=b", "workspace=x"} {
		a := o.bearer(key).GET("/audit/events?" + query)
		require.Contains(t, []int{400, 422}, a.Response.StatusCode, "%s: %s", query, a.Text)
	}
	o.bearer(key).GET("/audit/events?workspace="+ravi.workspace).Problem(404, "Workspace not found")
	o.bearer(key).With("Bahi-Min-Position", strconv.FormatInt(o.head()+1000, 10)).GET("/audit/events").Status(422)
	o.bearer(o.key(asha.workspace, `{"ledger":"write"}`).Key).GET("/audit/events").Problem(403, "Not enough permissions")
}

// following is a stream of server-sent events.
type following struct {
	t     *testing.T
	lines *bufio.Scanner
}

func (o *office) follow(token, path, last string) *following {
	o.t.Helper()
	request, err := http.NewRequestWithContext(o.t.Context(), http.MethodGet, o.url+path, nil)
	require.NoError(o.t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	if last != "" {
		request.Header.Set("Last-Event-ID", last)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(o.t, err)
	o.t.Cleanup(func() { response.Body.Close() })
	require.Equal(o.t, 200, response.StatusCode)
	return &following{o.t.(*testing.T), bufio.NewScanner(response.Body)}
}

// next answers the id and the data of the next event.
func (f *following) next() (id string, e auditEvent) {
	f.t.Helper()
	for f.lines.Scan() {
		if after, ok := strings.CutPrefix(f.lines.Text(), "id: "); ok {
			id = after
		}
		if after, ok := strings.CutPrefix(f.lines.Text(), "data: "); ok {
			require.NoError(f.t, json.Unmarshal([]byte(after), &e))
			return id, e
		}
	}
	require.NoError(f.t, f.lines.Err())
	require.Fail(f.t, "the stream ended")
	return "", e
}

func TestEventsAreFollowedFromWhereTheClientWas(t *testing.T) {
	t.Parallel()
	o := start(t)
	asha, ravi := o.person("asha@example.com"), o.person("ravi@example.com")
	key := o.key(asha.workspace, `{"audit":"read"}`).Key
	live := o.follow(key, "/audit/events/stream?category=bank", "")
	open(ravi.Client, "SBI")
	one := open(asha.Client, "HDFC")
	id, e := live.next()
	require.Equal(t, fmt.Sprintf("bank-%d", one), e.Stream)
	require.Equal(t, fmt.Sprint(e.Position), id)
	two, three := open(asha.Client, "Axis"), open(asha.Client, "ICICI")
	_, e = live.next()
	require.Equal(t, fmt.Sprintf("bank-%d", two), e.Stream)
	again := o.follow(key, "/audit/events/stream?category=bank", fmt.Sprint(e.Position))
	_, e = again.next()
	require.Equal(t, fmt.Sprintf("bank-%d", three), e.Stream)
	whole := o.follow(key, "/audit/events/stream?category=bank&from_position=1&limit=2", "")
	_, e = whole.next()
	require.Equal(t, fmt.Sprintf("bank-%d", one), e.Stream)
	_, e = whole.next()
	require.Equal(t, fmt.Sprintf("bank-%d", two), e.Stream)
	for whole.lines.Scan() {
		require.Empty(t, whole.lines.Text(), "it ends")
	}
	_, same := o.follow(key, fmt.Sprintf("/audit/events/stream?category=bank&from_position=%d", e.Position), "").next()
	require.Equal(t, e, same)
	o.bearer(key).With("Last-Event-ID", "x").GET("/audit/events/stream").Status(422)
	o.bearer(key).With("Last-Event-ID", "100000").GET("/audit/events/stream").Problem(422, "The log does not reach that position yet")
}

func TestAStatementNamesItsCheckpoint(t *testing.T) {
	t.Parallel()
	o := start(t)
	clerk := o.clerk(home)
	account := open(clerk, "HDFC")
	post(clerk, account, deposit("2025-03-01", "12.50"))
	c := o.signed()
	text := words(t, clerk.GET(ledger(account)+"/statement.pdf"))
	if text != "" {
		require.Contains(t, text, "size "+strconv.FormatUint(c.Size, 10)+", root hash "+base64.StdEncoding.EncodeToString(c.Root))
	}
}

func TestTheLogIsSignedAndProvedWhereverItIs(t *testing.T) {
	t.Parallel()
	o := start(t)
	clerk := o.clerk(home)
	account := open(clerk, "HDFC")
	row := post(clerk, account, deposit("2025-03-01", "12.5"))
	o.signed()
	events := o.auditEvents(testOperatorKey, "limit=3")
	require.NotEmpty(t, events)
	for _, e := range events {
		read, err := proofs.ParseProofs([]byte(o.operator().GET(fmt.Sprintf("/audit/proof/inclusion?position=%d&format=tlog-proof", e.Position)).Status(200).Text))
		require.NoError(t, err)
		_, _, err = o.publicKeys().Verify(read[0])
		require.NoError(t, err)
		require.Equal(t, e.Leaf, proofs.LeafHash(read[0].Event))
	}
	read, err := proofs.ParseProofs([]byte(clerk.GET(fmt.Sprintf("%s/row/%d/proof", ledger(account), row.ID)).Status(200).Text))
	require.NoError(t, err)
	require.Equal(t, "BankRowAdded", read[0].Event.Type)
	cmd := command(t, t.TempDir(), "audit", "verify", "--store")
	cmd.Env = append(cmd.Env, "DATABASE_URL="+o.database, "EVENTSTORE_URL="+o.sys.Settings.EventStore)
	out, wrong, status := execute(t, cmd)
	require.Equal(t, 0, status, "%s%s", out, wrong)
	o.stop()
	startOn(t, o.database).signed()
}
