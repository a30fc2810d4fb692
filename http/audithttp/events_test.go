package audithttp_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/tlog"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

func TestCheckpointsAreSignedInSecondsAndAtShutdown(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	first := o.Signed()
	keys := o.PublicKeys()
	c, by, err := keys.Open([]byte(first.Note))
	require.NoError(t, err)
	require.Len(t, by, 1)
	require.Equal(t, first.Size, c.Size)
	require.Equal(t, tlog.Origin(o.Sys.Store.ID()), c.Origin)
	require.Equal(t, first.Note, o.Operator().GET("/audit/checkpoint?format=tlog-checkpoint").Status(200).Text)
	apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "1"))
	head := o.Head()
	o.Stop()
	o = apptest.StartOn(t, o.Database)
	last := o.Signed()
	require.EqualValues(t, head, last.Position, "the last checkpoint covers everything written before the shutdown")
	_, _, err = keys.Open([]byte(last.Note))
	require.NoError(t, err, "a restart keeps the key")
	all := apitest.Read[[]apptest.AuditCheckpoint](o.Operator().GET("/audit/checkpoints").Status(200))
	// a slow machine signs more checkpoints, before the first and between
	sizes := apptest.Each(all, func(c apptest.AuditCheckpoint) uint64 { return c.Size })
	require.Contains(t, sizes, first.Size)
	require.True(t, slices.IsSorted(sizes))
	require.Equal(t, last.Size, sizes[len(sizes)-1])
	page := o.Operator().GET("/audit/checkpoints?limit=1").Status(200)
	require.Equal(t, fmt.Sprintf(`</audit/checkpoints?after=%d&limit=1>; rel="next"`, all[0].Number), page.Header("Link"))
	require.Empty(t, o.Operator().GET(fmt.Sprintf("/audit/checkpoints?after=%d", all[len(all)-1].Number)).Status(200).Header("Link"))
}

func TestProofsVerifyAndRequestsOutsideTheTreeAreRefused(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	op := o.Operator()
	op.GET("/audit/proof/inclusion?position=1").Problem(503, "Nothing has been signed yet: a checkpoint is signed within a second or two of "+
		"the first event")
	clerk := o.Clerk(apptest.Home)
	apptest.Open(clerk, "HDFC")
	first := o.Signed()
	for range 5 {
		apptest.Open(clerk, "SBI")
	}
	last := o.Signed()
	keys := o.PublicKeys()
	file := op.GET("/audit/proof/inclusion?position=1&format=tlog-proof").Status(200)
	require.Equal(t, "text/plain; charset=utf-8", file.Header("Content-Type"))
	require.Equal(t, `attachment; filename=event-1.tlog-proof`, file.Header("Content-Disposition"))
	read, err := tlog.ParseProofs([]byte(file.Text))
	require.NoError(t, err)
	_, _, err = keys.Verify(read[0])
	require.NoError(t, err)

	for path, field := range map[string]string{
		"inclusion?position=1000000": "position", "inclusion?position=1&size=1000000": "size", "inclusion?position=1&size=0": "size",
		fmt.Sprintf("inclusion?position=%d&size=%d&format=tlog-proof", last.Size, first.Size): "position",
	} {
		op.GET("/audit/proof/" + path).Status(422).Contains(field)
	}
}

func TestRowProofVerifiesOfflineForReadersOfTheRow(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(o.Home)
	account := apptest.Open(clerk, "HDFC")
	row := apptest.Posted(clerk.POST(apptest.Ledger(account, "/rows"),
		apptest.Bulk(apptest.Deposit("2025-03-01", "1"), apptest.Deposit("2025-03-02", "2"))).Status(201))[0].ID
	clerk.DELETE(apptest.At(account, row)).Status(204)
	path := fmt.Sprintf("%s/row/%d/proof", apptest.Ledger(account), row)
	c := o.Signed()
	require.Contains(t, apptest.Words(t, clerk.GET(apptest.Ledger(account)+"/statement.pdf")),
		"size "+strconv.FormatUint(c.Size, 10)+", root hash "+base64.StdEncoding.EncodeToString(c.Root), "a statement names its checkpoint")
	file := clerk.GET(path).Status(200)
	require.Equal(t, fmt.Sprintf(`attachment; filename=bank-row-%d.tlog-proof`, row), file.Header("Content-Disposition"))
	read, err := tlog.ParseProofs([]byte(file.Text))
	require.NoError(t, err)
	var types []string
	for _, p := range read {
		_, _, err := o.PublicKeys().Verify(p)
		require.NoError(t, err)
		types = append(types, p.Event.Type)
	}
	require.Equal(t, []string{"BankRowAdded", "BankRowDeleted"}, types)
	o.Clerk(o.Abroad).GET(path).Problem(404, "Bank ledger row not found")
	clerk.GET(fmt.Sprintf("%s/row/%d/proof", apptest.Ledger(account), row+100)).Status(404)
}

func TestAuditorsSeeTheirWorkspaceAndOperatorsAll(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	asha, ravi := o.Person("asha@example.com"), o.Person("ravi@example.com")
	account := apptest.Open(asha.Client, "HDFC")
	apptest.Post(asha.Client, account, apptest.Deposit("2025-03-01", "12.50"))
	apptest.Open(ravi.Client, "SBI")
	key := o.Key(asha.Workspace, `{"audit":"read"}`).Key
	mine := o.AuditEvents(key, "limit=3")
	require.NotEmpty(t, mine)
	for _, e := range mine {
		require.Contains(t, string(e.Meta), asha.Workspace)
	}
	text, err := json.Marshal(mine)
	require.NoError(t, err)
	require.Contains(t, string(text), "asha@example.com", "its own workspace sees it in clear")
	require.NotContains(t, string(text), "ravi@example.com")
	head := o.Head() // later events come from jobs
	all := o.AuditEvents(apptest.OperatorKey, fmt.Sprintf("limit=7&to_position=%d", head))
	require.Equal(t, event.Position(head), all[len(all)-1].Position)
	at := 0
	for stored, err := range o.Sys.Store.ReadAll(t.Context(), 0, eventstore.Forwards) {
		require.NoError(t, err)
		if at == len(all) {
			break
		}
		require.Equal(t, tlog.LeafHash(stored), all[at].Leaf)
		require.Equal(t, stored.Position, all[at].Position)
		at++
	}
	text, err = json.Marshal(all)
	require.NoError(t, err)
	require.NotContains(t, string(text), "asha@example.com", "an operator who sees all workspaces sees it sealed")
	require.Equal(t, mine, o.AuditEvents(apptest.OperatorKey, "workspace="+asha.Workspace))

	for query, want := range map[string]int{
		"type=BankRowAdded": 1, "category=bankrow": 1, "stream=bank-" + strconv.FormatInt(account, 10): 1,
		"actor=" + url.QueryEscape("user:"+asha.User.ID) + "&category=bank": 1,
		"type=Nothing": 0, "from_time=2100-01-01T00:00:00Z": 0, "to_time=2000-01-01T00:00:00Z": 0,
		fmt.Sprintf("from_position=%d", o.Head()+1): 0,
	} {
		require.Len(t, o.AuditEvents(key, query), want, query)
	}
	o.Bearer(key).GET(fmt.Sprintf("/audit/events?from_position=%d", o.Head()+2)).Problem(422, "The log does not reach that position yet")
	o.Bearer(key).GET("/audit/events?from_time=2025-01-02T00:00:00Z&to_time=2025-01-01T00:00:00Z").Problem(422, "Validation error",
		"from_time", "must not be after to_time")
	for _, query := range []string{"from_time=yesterday", "limit=0", "limit=1001", "from_position=-1", "colour=red", "stream=a&stream=b",
		"workspace=x"} {
		a := o.Bearer(key).GET("/audit/events?" + query)
		require.Contains(t, []int{400, 422}, a.Response.StatusCode, "%s: %s", query, a.Text)
	}
	o.Bearer(key).GET("/audit/events?workspace="+ravi.Workspace).Problem(404, "Workspace not found")
	o.Bearer(key).With("Bahi-Min-Position", strconv.FormatInt(o.Head()+1000, 10)).GET("/audit/events").Status(422)
}

func TestEventsAreReadFromTheNewest(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	clerk := o.Clerk(o.Home)
	accounts := []int64{apptest.Open(clerk, "HDFC"), apptest.Open(clerk, "SBI"), apptest.Open(clerk, "Axis")}
	slices.Reverse(accounts)
	read := func(path string) (positions []string, next string) {
		a := o.Operator().GET(path).Status(200)
		var page []apptest.AuditEvent
		apptest.Lenient(t, a, &page)
		for _, e := range page {
			positions = append(positions, e.Stream)
		}
		link, _, _ := strings.Cut(strings.TrimPrefix(a.Header("Link"), "<"), ">")
		return positions, link
	}
	first, next := read("/audit/events?newest_first=true&category=bank&limit=2&workspace=" + o.Home)
	require.Equal(t, []string{fmt.Sprintf("bank-%d", accounts[0]), fmt.Sprintf("bank-%d", accounts[1])}, first)
	require.Contains(t, next, "newest_first=true")
	rest, next := read(next)
	require.Equal(t, []string{fmt.Sprintf("bank-%d", accounts[2])}, rest)
	require.Empty(t, next)
	upto, next := read("/audit/events?to_position=2&limit=2")
	require.Len(t, upto, 2)
	require.Empty(t, next)
	upto, next = read("/audit/events?newest_first=true&to_position=2&limit=1")
	require.Len(t, upto, 1)
	require.Contains(t, next, "to_position=1")
}

func TestEventStreamResumesAfterTheLastEvent(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	clerk, auditor := o.Clerk(o.Home), o.Auditor(o.Home)
	var e, same apptest.AuditEvent
	live := auditor.Stream("/audit/events/stream?category=bank")
	apptest.Open(o.Clerk(o.Abroad), "SBI")
	one := apptest.Open(clerk, "HDFC")
	_, id := live.Next(&e)
	require.Equal(t, fmt.Sprintf("bank-%d", one), e.Stream)
	require.Equal(t, fmt.Sprint(e.Position), id)
	two, three := apptest.Open(clerk, "Axis"), apptest.Open(clerk, "ICICI")
	live.Next(&e)
	require.Equal(t, fmt.Sprintf("bank-%d", two), e.Stream)
	auditor.With("Last-Event-ID", fmt.Sprint(e.Position)).Stream("/audit/events/stream?category=bank").Next(&e)
	require.Equal(t, fmt.Sprintf("bank-%d", three), e.Stream)
	whole := auditor.Stream("/audit/events/stream?category=bank&from_position=1&limit=2")
	whole.Next(&e)
	require.Equal(t, fmt.Sprintf("bank-%d", one), e.Stream)
	whole.Next(&e)
	require.Equal(t, fmt.Sprintf("bank-%d", two), e.Stream)
	name, _ := whole.Next(&same)
	require.Empty(t, name, "the stream ends")
	auditor.Stream(fmt.Sprintf("/audit/events/stream?category=bank&from_position=%d", e.Position)).Next(&same)
	require.Equal(t, e, same)
	auditor.With("Last-Event-ID", "x").GET("/audit/events/stream").Status(422)
	auditor.With("Last-Event-ID", "1000000").GET("/audit/events/stream").Problem(422, "The log does not reach that position yet")
}
