package marketplacehttp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands/messagingcmd"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
	"bahi/readmodels/marketplaceview"
	"bahi/readmodels/messagingview"
	"bahi/readmodels/opsview"
)

const enquiries = "/api/v1/enquiries"

func enquiryAt(id any) string { return fmt.Sprintf("%s/%s", enquiries, id) }

// buyerOf returns a company's own buyer address: tests that share a system erase their buyers.
func buyerOf(company any) string { return fmt.Sprintf("asha.%v@example.org", company) }

func asking(company any, more string) string {
	return fmt.Sprintf(`{"to_company_id":%q,"user_name":"Asha Rao","user_email":%q%s}`, company, buyerOf(company), more)
}

func asked(t *testing.T, c *apitest.Client, company any, more string) (made marketplaceview.SentEnquiry) {
	t.Helper()
	c.POST(enquiries, asking(company, more)).Status(201).JSON(&made)
	return made
}

// pageOf is a list of enquiries.
type pageOf struct {
	Items      []marketplaceview.Enquiry `json:"items"`
	Total      int64                     `json:"total"`
	Page       int                       `json:"page"`
	PageSize   int                       `json:"page_size"`
	TotalPages int64                     `json:"total_pages"`
}

func listed(t *testing.T, c *apitest.Client, query string) (p pageOf) {
	t.Helper()
	c.GET(enquiries + query).Status(200).JSON(&p)
	return p
}

func TestABuyerAsksAndTheCompanyAnswers(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, foreign, stranger := seller(o, o.Home), seller(o, o.Abroad), o.Anonymous()
	mill, shop := founded(t, c, `{"name":"`+unique()+`"}`), founded(t, c, `{"name":"`+unique()+`"}`)
	var hook marketplaceview.Product
	c.POST(catalog, `{"name":"Hook","price_amount":1,"company_id":"`+mill.ID.String()+`"}`).Status(201).JSON(&hook)

	a := stranger.With("Idempotency-Key", "ask").POST(enquiries, asking(mill.ID, `,"message":"<b>How many?</b>","quantity":3,`+
		`"source_platform":"Shop_1","user_phone":"98123 45678","product_id":"`+hook.ID.String()+`"`)).Status(201)
	made := apitest.Read[marketplaceview.SentEnquiry](a)
	a.Contains(`"message":"<b>How many?</b>"`, `"source_platform":"shop_1"`, `"user_phone":"+919812345678"`,
		`"status":"pending","crm_lead_id":null`)
	for _, member := range []string{"notes", "notifications", "spam"} {
		require.NotContains(t, a.Text, member)
	}
	second := asked(t, stranger, shop.ID, "")

	p := listed(t, c, "")
	require.Equal(t, []any{int64(2), 1, 50, int64(1)}, []any{p.Total, p.Page, p.PageSize, p.TotalPages})
	require.Equal(t, []uuid.UUID{second.ID, made.ID}, []uuid.UUID{p.Items[0].ID, p.Items[1].ID})
	for query, want := range map[string]int64{
		"?company_id=" + mill.ID.String(): 1, "?status=pending&page_size=1&page=2": 2, "?status=lost": 0, "?source_platform=SHOP_1": 1,
		"?source_platform=x": 0, "?spam=true": 0, "?page=9": 2,
	} {
		require.Equal(t, want, listed(t, c, query).Total, query)
	}
	for _, id := range []string{mill.ID.String(), uuid.NewString()} {
		foreign.GET(enquiries+"?company_id="+id).Problem(403, "Not enough permissions to access this company's enquiries")
	}
	for _, id := range []any{uuid.New(), "x"} {
		c.GET(enquiryAt(id)).Problem(404, "Enquiry not found")
	}
	moved := c.With("Bahi-Reason", "phone").PATCH(enquiryAt(made.ID), `{"status":"qualified","notes":"called"}`).Status(200)
	moved.Contains(`"status":"qualified"`, `"notes":"called"`, `"revision":2`)
	moves := apitest.Read[[]marketplaceview.Move](c.GET(enquiryAt(made.ID) + "/history").Status(200))
	require.Len(t, moves, 2)
	require.Equal(t, []any{(*string)(nil), "pending", "public", "pending", "qualified", "phone"},
		[]any{moves[0].From, moves[0].To, moves[0].Actor, *moves[1].From, moves[1].To, *moves[1].Reason})

	c.DELETE(of(mill.ID)).Status(204)
	c.GET(enquiryAt(made.ID)).Status(200)
	require.Equal(t, int64(1), listed(t, c, "?company_id="+mill.ID.String()).Total)
	c.PATCH(enquiryAt(made.ID), `{"status":"lost"}`).Problem(409, "The company was deleted")
	stranger.POST(enquiries, asking(mill.ID, "")).Problem(400, "Company not found")
	require.Equal(t, a.Text, stranger.With("Idempotency-Key", "ask").POST(enquiries, asking(mill.ID, `,"message":"<b>How many?</b>",`+
		`"quantity":3,"source_platform":"Shop_1","user_phone":"98123 45678","product_id":"`+hook.ID.String()+`"`)).Status(201).Text)
}

func TestWrongEnquiriesAreRefusedWith400(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c := seller(o, o.Home)
	mill, other := founded(t, c, `{"name":"`+unique()+`"}`), founded(t, c, `{"name":"`+unique()+`"}`)
	var hook, hidden marketplaceview.Product
	c.POST(catalog, `{"name":"Hook","price_amount":1,"company_id":"`+other.ID.String()+`"}`).Status(201).JSON(&hook)
	c.POST(catalog, `{"name":"Nail","price_amount":1,"is_active":false,"company_id":"`+mill.ID.String()+`"}`).Status(201).JSON(&hidden)
	o.Anonymous().POST(enquiries, fmt.Sprintf(`{"to_company_id":%q,"user_name":"Ravi","user_email":"x","quantity":0}`,
		uuid.New())).Problem(400, "Validation error",
		"quantity", "must be at least 1", "user_email", "expected an email address", "to_company_id", "there is none with this id")
	o.Anonymous().POST(enquiries, asking(mill.ID,
		`,"user_phone":"\u202aask at the shop\u202c"`)).Status(201).Contains(`"user_phone":"ask at the shop"`,
		`"warnings":[{"field":"user_phone"`)
	o.Anonymous().POST(enquiries, asking(uuid.New(), "")).Problem(400, "Company not found")
	o.Anonymous().POST(enquiries, asking(uuid.New(), fmt.Sprintf(`,"product_id":%q`, uuid.New()))).Problem(400, "Company not found",
		"to_company_id", "there is none with this id", "product_id", "there is none with this id")
	for _, id := range []any{hook.ID, hidden.ID, uuid.New()} {
		o.Anonymous().POST(enquiries, asking(mill.ID, fmt.Sprintf(`,"product_id":%q`, id))).Problem(400, "Product not found")
	}
}

func TestWhatProgramsSendIsNobodysBusiness(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c := seller(o, o.Home)
	mill := founded(t, c, `{"name":"`+unique()+`"}`)
	spam := asked(t, o.Anonymous(), mill.ID, `,"website":"https://spam.example"`)
	c.GET(enquiryAt(spam.ID)).Problem(404, "Enquiry not found")
	c.GET(enquiryAt(spam.ID)+"/history").Problem(404, "Enquiry not found")
	require.Zero(t, listed(t, c, "").Total)
	require.Equal(t, "skipped", listed(t, c, "?spam=true").Items[0].Notifications.Email.Status)
	c.GET(enquiryAt(spam.ID) + "?spam=true").Status(200)
}

// notified waits until all notifications of an enquiry have ended.
func notified(t *testing.T, c *apitest.Client, id uuid.UUID) (e marketplaceview.Enquiry) {
	t.Helper()
	require.Eventually(t, func() bool {
		c.GET(enquiryAt(id)).Status(200).JSON(&e)
		n := e.Notifications
		return n.Chat.Status != "queued" && n.Email.Status != "queued" && n.CRM.Status != "queued"
	}, time.Minute, 5*time.Millisecond)
	return e
}

func TestTheCompanyHearsByMailChatAndCRM(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	owner := o.Person(o.Address("owner"))
	name := unique()
	mill := founded(t, owner.Client, `{"name":"`+name+`","phone":"+919812345111"}`)
	e := notified(t, owner.Client, asked(t, o.Anonymous(), mill.ID, "").ID)
	require.Equal(t, []string{"skipped", "sent", "sent"},
		[]string{e.Notifications.Chat.Status, e.Notifications.Email.Status, e.Notifications.CRM.Status})
	require.Equal(t, "the company's phone has never written", *e.Notifications.Chat.Error)
	require.Equal(t, "sandbox-"+e.ID.String(), *e.CRMLeadID)
	refused := apitest.Read[marketplaceview.SentEnquiry](o.Anonymous().POST(enquiries, `{"to_company_id":"`+mill.ID.String()+
		`","user_name":"Nobody 000","user_email":"n@example.org"}`).Status(201))
	e = notified(t, owner.Client, refused.ID)
	require.Equal(t, []any{"failed", "the crm refused the lead (422)", (*string)(nil)},
		[]any{e.Notifications.CRM.Status, *e.Notifications.CRM.Error, e.CRMLeadID})

	// Its own address counts once a reader has confirmed it, its phone once it has written.
	asks := o.Address("asks")
	owner.PATCH(of(mill.ID), `{"email":"`+strings.ToUpper(asks)+`"}`).Status(200).Contains(`"email":"`+asks, `"email_confirmed":false`)
	require.NotContains(t, o.Anonymous().GET(of(mill.ID)).Status(200).Text, asks)
	_, token := apptest.Link(t, o.Mailed(asks, "Confirm the address of "+name, 1))
	o.Anonymous().POST(companies+"/confirm-email", map[string]string{"token": token[:len(token)-1]}).Problem(400,
		"Invalid or expired confirmation token")
	o.Anonymous().POST(companies+"/confirm-email", map[string]string{"token": token}).Status(200).Body(`{"message":"Email confirmed"}`)
	owner.GET(of(mill.ID)).Status(200).Contains(`"email_confirmed":true`)
	agent := owner.Client
	channel := apitest.Read[messagingview.Channel](agent.POST("/api/channels", `{"name":"Sales","type":"chat"}`).Status(201))
	o.Receives(messagingcmd.InboundMessage{Sender: messagingcmd.Sender{From: "919812345111"}, Channel: channel.ID, Text: "hello"})

	e = notified(t, owner.Client, asked(t, o.Anonymous(), mill.ID, `,"message":"See https://evil.example\r\nBcc: x@example.org",`+
		`"quantity":7,"user_phone":"9812345671"`).ID)
	require.Equal(t, []string{"sent", "sent", "sent"},
		[]string{e.Notifications.Chat.Status, e.Notifications.Email.Status, e.Notifications.CRM.Status})
	require.Zero(t, e.Revision)
	text := o.Mailed(asks, "New enquiry for "+name, 1)
	for _, part := range []string{"Name: Asha Rao", "Email: " + buyerOf(mill.ID), "Phone: +919812345671", "Quantity: 7",
		"https[:]//evil.example", "/enquiries/" + e.ID.String()} {
		require.Contains(t, text, part)
	}
	require.Equal(t, 1, strings.Count(text, "://"), "the only link is ours")
	require.Len(t, o.Mails(o.Address("owner"), "New enquiry for "+name), 2)
	for port, to := range map[string]string{"chat": "+919812345111", "crm": "sandbox"} {
		o.Operator().GET("/ops/outbox?page_size=1000&port="+port).Status(200).Contains(`"enquiry_id":"`+e.ID.String(), to)
	}

	// The buyer is erased; the enquiry stays.
	owner.PATCH(enquiryAt(e.ID), `{"notes":"Asha called"}`).Status(200)
	o.Operator().POST("/ops/erasures", `{"phone":"98123 45671"}`).Status(202).Body(`{"subjects":1}`)
	owner.GET(enquiryAt(e.ID)).Status(200).Contains(`"user_name":null`, `"user_email":null`, `"message":null`, `"notes":null`, `"quantity":7`)
	owner.PATCH(enquiryAt(e.ID), `{"notes":"Asha"}`).Problem(409, "The buyer was erased: notes can no longer be stored")
	owner.PATCH(enquiryAt(e.ID), `{"status":"lost"}`).Status(200)
	require.Empty(t, o.Mails(asks, "New enquiry for "+name))
	require.NotContains(t, o.Operator().GET("/ops/outbox?page_size=1000&port=chat").Status(200).Text, "evil.example")
	o.Anonymous().POST(enquiries, asking(mill.ID, "")).Status(201).Contains(`"user_email":"` + buyerOf(mill.ID) + `"`)
	o.Operator().POST("/ops/erasures", `{"email":"`+asks+`"}`).Status(202).Body(`{"subjects":1}`)
	require.NotContains(t, owner.GET(of(mill.ID)).Status(200).Text, "email")
	o.Operator().POST("/ops/erasures", `{"email":"nobody@`+unique()+`.example"}`).Status(202).Body(`{"subjects":0}`)
}

func TestACrowdOfEnquiriesComesAsADigest(t *testing.T) {
	t.Parallel()
	s := apptest.Settings(t, apptest.Database(t))
	s.Outside.MaxNotices = 1
	var leads []string
	crm := worktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leads = append(leads, r.Header.Get("Idempotency-Key"))
		_ = json.NewEncoder(w).Encode(map[string]int{"id": len(leads)})
	}))
	s.Outside.CRMURL, s.Outside.FetchAllow = crm.URL, []string{strings.TrimPrefix(crm.URL, "http://")}
	o := apptest.StartAs(t, s)
	owner := o.Person("owner@example.com")
	mill := founded(t, owner.Client, `{"name":"Mill"}`)
	first := notified(t, owner.Client, asked(t, o.Anonymous(), mill.ID, "").ID)
	second := notified(t, owner.Client, asked(t, o.Anonymous(), mill.ID, "").ID)
	if first.CreatedAt.Hour() != second.CreatedAt.Hour() { // an hour began in between, so one more is allowed
		second = notified(t, owner.Client, asked(t, o.Anonymous(), mill.ID, "").ID)
	}
	require.Equal(t, "too many enquiries within an hour: a digest follows", *second.Notifications.Email.Error)
	require.Equal(t, "sent", second.Notifications.CRM.Status)
	require.Contains(t, leads, second.ID.String())
	require.Eventually(t, func() bool { // it checks whether the hour is over, and waits for its end
		digests := o.Jobs("kind=send_digest")
		return len(digests) == 1 && digests[0].State == "scheduled"
	}, time.Minute, 20*time.Millisecond)

	// A digest does not count enquiries after its hour, however late it is sent: the mail server, or this one, may have been down.
	before, err := o.Sys.Marketplace.CountEnquiries(t.Context(), nil, uuid.MustParse(owner.Workspace), mill.ID,
		first.CreatedAt.Add(-time.Hour),
		10)
	require.NoError(t, err)
	require.Zero(t, before)
}

func TestNewEnquiriesAreFollowed(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c := seller(o, o.Home)
	mill, theirs := founded(t, c, `{"name":"`+unique()+`"}`), founded(t, seller(o, o.Abroad), `{"name":"`+unique()+`"}`)
	var e marketplaceview.Enquiry
	live := c.Stream(enquiries + "/stream")
	asked(t, o.Anonymous(), theirs.ID, "")
	asked(t, o.Anonymous(), mill.ID, `,"website":"x"`)
	first := asked(t, o.Anonymous(), mill.ID, "")
	_, id := live.Next(&e)
	require.Equal(t, first.ID, e.ID)
	second := asked(t, o.Anonymous(), mill.ID, "")
	live.Next(&e)
	require.Equal(t, second.ID, e.ID)
	c.With("Last-Event-ID", id).Stream(enquiries + "/stream").Next(&e)
	require.Equal(t, second.ID, e.ID)
	for _, last := range []string{"x", "-1", "9000000000000000000"} {
		c.With("Last-Event-ID", last).GET(enquiries + "/stream").Status(422)
	}
}

func TestAPhoneIsLookedUpWithoutAMessage(t *testing.T) {
	t.Parallel()
	s := apptest.Settings(t, apptest.Database(t))
	lookup := worktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Phone string }
		_ = json.NewDecoder(r.Body).Decode(&in)
		switch in.Phone {
		case "+919812345678":
			_, _ = w.Write([]byte(`{"is_chat":true}`))
		case "+919812345679":
			_, _ = w.Write([]byte(`{"is_chat":false}`))
		default:
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	s.Outside.ChatLookup, s.Outside.FetchAllow = lookup.URL, []string{strings.TrimPrefix(lookup.URL, "http://")}
	o, shared := apptest.StartAs(t, s), apptest.Share(t)
	check := func(o *apptest.Server, body, want string) {
		o.Anonymous().POST(enquiries+"/verify-chat", body).Status(200).Body(want)
	}
	check(o, `{"phone":"98123 45678"}`, `{"phone":"+919812345678","is_valid":true,"is_chat":true,"error":null}`)
	check(o, `{"phone":"9812345679"}`, `{"phone":"+919812345679","is_valid":true,"is_chat":false,"error":null}`)
	check(o, `{"phone":"9812345670"}`, `{"phone":"+919812345670","is_valid":true,"is_chat":false,"error":"Chat network lookup failed"}`)
	check(shared, `{"phone":"+919812345678"}`, `{"phone":"+919812345678","is_valid":true,"is_chat":false,"error":"Chat network lookup is `+
		`not available"}`)
	for _, none := range []string{`{}`, `{"phone":null}`, `{"phone":7}`, `{"phone":{"a":1}}`, `{"phone":""}`} {
		check(shared, none, `{"phone":null,"is_valid":false,"is_chat":false,"error":"A phone is required"}`)
	}
	check(shared, `{"phone":"12"}`, `{"phone":"12","is_valid":false,"is_chat":false,"error":"This is not a telephone number"}`)
	for _, broken := range []string{"[]", "7"} { // the matrix has those that are no JSON
		shared.Anonymous().POST(enquiries+"/verify-chat", broken).Status(400)
	}
	// Callers may use only their own evidence.
	owner := seller(shared, shared.Home)
	agent := shared.Bearer(shared.Key(shared.Home, `{"messaging":"write"}`).Key)
	channel := apitest.Read[messagingview.Channel](agent.POST("/api/channels", `{"name":"Sales","type":"chat"}`).Status(201))
	shared.Receives(messagingcmd.InboundMessage{Channel: channel.ID, Sender: messagingcmd.Sender{From: "919812345222"}, Text: "hello"})
	owner.POST(enquiries+"/verify-chat", `{"phone":"+919812345222"}`).Status(200).Contains(`"is_chat":true,"error":null`)
	seller(shared, shared.Abroad).POST(enquiries+"/verify-chat", `{"phone":"+919812345222"}`).Status(200).Contains(`"is_chat":false`)
	check(shared, `{"phone":"+919812345222"}`, `{"phone":"+919812345222","is_valid":true,"is_chat":false,"error":"Chat network lookup is `+
		`not available"}`)
}

func TestAnEnquiryThatCannotBeKeptIsA500(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	mill := founded(t, seller(o, o.Home), `{"name":"Mill"}`)
	o.Sql(`revoke all on schema log from public`)
	o.Sql(`alter table log.event rename to event_away`)
	a := o.Anonymous().POST(enquiries, asking(mill.ID, "")).Problem(500, "Failed to create enquiry")
	require.NotEmpty(t, a.Header("Retry-After"))
	o.Sql(`alter table log.event_away rename to event`)
	asked(t, o.Anonymous(), mill.ID, "")
}

// One job notifies the companies of enquiries that come together. If the crm refuses one for now, that delays none of the others, and no
// company is notified twice.
func TestAnEnquiryThatWaitsForItsCRMHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s := apptest.Settings(t, apptest.Database(t))
	var (
		mu    sync.Mutex
		calls = map[string]int{}
		down  = true
	)
	crm := worktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		calls[r.Header.Get("Idempotency-Key")]++
		if down && bytes.Contains(body, []byte("slow@example.org")) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]int{"id": len(calls)})
	}))
	s.Outside.CRMURL, s.Outside.FetchAllow = crm.URL, []string{strings.TrimPrefix(crm.URL, "http://")}
	o := apptest.StartAs(t, s)
	owner := o.Person("owner@example.com")
	mill := founded(t, owner.Client, `{"name":"Mill"}`)
	all := make([]marketplaceview.SentEnquiry, 8)
	var sending sync.WaitGroup
	for i := range all {
		sending.Go(func() {
			of := "asha"
			if i == 3 {
				of = "slow"
			}
			o.Anonymous().POST(enquiries, `{"to_company_id":"`+mill.ID.String()+`","user_name":"Asha","user_email":"`+of+
				`@example.org"}`).Status(201).JSON(&all[i])
		})
	}
	sending.Wait()
	for i, e := range all {
		if i == 3 {
			continue
		}
		require.Equal(t, "sent", notified(t, owner.Client, e.ID).Notifications.CRM.Status)
	}
	slow := all[3].ID.String()
	var waiting []int64 // jobs
	require.Eventually(t, func() bool {
		waiting = nil
		for _, j := range o.Jobs("kind=push_lead&state=retryable") {
			waiting = append(waiting, j.ID)
		}
		return len(waiting) == 1
	}, time.Minute, 20*time.Millisecond)
	mu.Lock()
	down = false
	mu.Unlock()
	o.Operator().POST(fmt.Sprintf("/ops/jobs/%d/retry", waiting[0]), nil)
	require.Equal(t, "sent", notified(t, owner.Client, all[3].ID).Notifications.CRM.Status)
	mu.Lock()
	defer mu.Unlock()
	for id, n := range calls {
		require.True(t, n == 1 || id == slow, "%s was notified %d times", id, n)
	}
}

// The crm never accepts the enquiry. The test moves the clock to each try.
func TestANotificationIsTriedEightTimesOverADay(t *testing.T) {
	t.Parallel()
	s := apptest.Settings(t, apptest.Database(t))
	var tries atomic.Int64
	crm := worktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		tries.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	s.Outside.CRMURL, s.Outside.FetchAllow = crm.URL, []string{strings.TrimPrefix(crm.URL, "http://")}
	o := apptest.StartAs(t, s)
	owner := o.Person("owner@example.com")
	e := asked(t, o.Anonymous(), founded(t, owner.Client, `{"name":"Mill"}`).ID, "")
	const most = 8
	var waited time.Duration
	for try := 1; try < most; try++ {
		var failed opsview.Job
		require.Eventually(t, func() bool {
			for _, j := range o.Jobs("kind=push_lead&state=retryable") {
				failed = j
			}
			return failed.Attempt == try
		}, time.Minute, 10*time.Millisecond, "try %d", try)
		require.Equal(t, most, failed.MaxAttempts)
		wait := pgtest.Value[time.Duration](t, o.Sys.Pool, `select scheduled_at - attempted_at from river.river_job where id = $1`,
			failed.ID)
		require.Greater(t, wait, time.Minute, "after try %d", try)
		waited += wait
		owner.GET(enquiryAt(e.ID)).Status(200).Contains(`"crm":{"status":"queued"`)
		o.Operator().POST(fmt.Sprintf("/ops/jobs/%d/retry", failed.ID), nil).Status(200)
		o.Sql(`select pg_notify('river.river_insert', '{"queue":"push_lead"}')`) // River need not look for it
	}
	require.InDelta(t, 24, waited.Hours(), 3) // each wait is a tenth longer or shorter
	crmOf := notified(t, owner.Client, e.ID).Notifications.CRM
	require.Equal(t, []string{"failed", "no try succeeded within a day"}, []string{crmOf.Status, *crmOf.Error})
	require.EqualValues(t, most, tries.Load())
	require.Eventually(t, func() bool { return o.Jobs("kind=push_lead")[0].State == "completed" }, time.Minute, 10*time.Millisecond,
		"no try follows")
}

func TestMain(m *testing.M) { apptest.Main(m) }
