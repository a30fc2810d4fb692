package ledgerhttp_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/readmodels/ledgerview"
)

// review is a workspace with a client and a draft of two entries.
type review struct {
	clerk  *apitest.Client
	client int64
	draft  ledgerview.OrderDraft
	path   string
}

func openReview(t *testing.T, text string) review {
	t.Helper()
	o := apptest.Share(t)
	r := review{clerk: o.Clerk(o.Home)}
	r.client = made(r.clerk, "/client", `{"name":"Ramesh Jewellers"}`)
	id, _, err := ledgercmd.ReceiveDraft(t.Context(), commands.Request{Workspace: uuid.MustParse(o.Home)}, o.Sys.Books,
		ledgercmd.Message{ID: uuid.NewString(), From: asha, Text: text, At: time.Now().Add(-25 * time.Hour)})
	require.NoError(t, err)
	r.path = "/order-drafts/" + id
	r.clerk.GET(r.path).Status(200).JSON(&r.draft)
	return r
}

func (r review) entry(i int) string { return fmt.Sprint(r.path, "/entries/", r.draft.Entries[i].ID) }

func TestDraftIsReviewedAndConverted(t *testing.T) {
	t.Parallel()
	r := openReview(t, "party: ramesh jewelers\npayal 250 gm 4 pcs\nring 5")
	first := r.clerk.GET(r.path).Status(200)
	require.Equal(t, `"0"`, first.Header("ETag"))
	first.Contains(`"client_id":null,"date":null,"delivery_date":null,"notes":null`, `"slip_number":null,"parser":"rules","confidence":0.95`,
		fmt.Sprintf(`"client_proposals":[{"client_id":%d,"name":"Ramesh Jewellers","confidence":0.833}]`, r.client))
	require.Regexp(t, `"created_at":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d",`, first.Text)

	r.clerk.POST(r.path+"/convert", nil).Problem(409, "Order draft is not ready").Contains(`"field":"entries[0].client_id"`,
		`"field":"entries[0].slip_number"`, `"field":"entries[1].client_id"`, `"field":"entries[1].slip_number"`)
	r.clerk.PUT(r.entry(1), `{"item_name": "toe ring", "weight": 5.5, "quantity": null, "slip_number": "A-1"}`).Status(200).
		Contains(`"item_name":"toe ring","weight":5.5,"quantity":null,"client_id":null,"client_name":"ramesh jewelers","slip_number":"A-1"`)
	edited := r.clerk.PUT(r.path, fmt.Sprintf(`{"client_id": %d, "date": "2025-03-01", "delivery_date": "2025-03-09", "notes": " by Holi ", `+
		`"phone_number": "+91 98123 45670"}`, r.client)).Status(200)
	require.Equal(t, `"2"`, edited.Header("ETag"))
	read := r.clerk.GET(r.path).Status(200)
	require.JSONEq(t, edited.Text, read.Text, "a write answers what a read does")
	read.Contains(`"phone_number":"+919812345670"`, `"notes":"by Holi"`, `"client_name":"Ramesh Jewellers"`)
	r.clerk.PUT(r.path, read.Text).Status(200).Contains(`"revision":2`)
	unread := r.clerk.PUT(r.path, `{"phone_number": "ask at the shop"}`).Status(200).Contains(`"phone_number":"ask at the shop"`,
		`"warnings":["phone_number \"ask at the shop\" is not a readable telephone number: it is stored as a text, and not used"]`)
	require.JSONEq(t, unread.Text, r.clerk.GET(r.path).Status(200).Text)
	r.clerk.PUT(r.path, unread.Text).Status(200).Contains(`"revision":3`)

	r.clerk.POST(r.path+"/recalculate_slip_numbers", nil).Status(200).Contains(`"slip_number":"1"`)
	r.clerk.With("Bahi-Dry-Run", "true").POST(r.path+"/convert", nil).Status(200).Contains(`"orders":[{"client_id":`,
		`"client_name":"Ramesh Jewellers"`)
	converted := r.clerk.POST(r.path+"/convert", `{"delivery_date": "2025-03-10"}`).Status(200)
	converted.Contains(fmt.Sprintf(`"draft_id":%d`, r.draft.ID), `"slip_number":"1","date":"2025-03-01","delivery_date":"2025-03-10"`,
		`"status":"open"`, `"pending_weight":255.5`,
		`"item_name":"payal","weight":250,"making_charge":0,"quantity":4}`)
	r.clerk.PUT(r.entry(0), `{"weight": 1}`).Problem(404, "Order draft not found")
	require.Equal(t, "[]\n", r.clerk.GET("/order-drafts").Status(200).Text)

	var became struct{ Orders []ledgerview.ClientOrder }
	picked(converted, &became)
	r.clerk.GET(fmt.Sprint("/client-order/", became.Orders[0].ID)).Status(200).Contains(`"revision":0`, `"quantity":4`)
}

func TestADraftIsFoundByItsSlipAndHasTheWorkspacesEntriesAlone(t *testing.T) {
	t.Parallel()
	r := openReview(t, "payal 250 gm slip 1\nring 5 gm slip 2\nchain 20 gm slip 3")
	require.Contains(t, r.clerk.GET("/order-drafts?slip_number=2").Status(200).Text, `"slip_number":"3"`)
	require.Equal(t, "[]", r.clerk.GET("/order-drafts?slip_number=4").Status(200).Text[:2])
	stranger := openReview(t, "ring 5 gm")
	stranger.clerk.PUT(stranger.entry(0), `{"client_id": 999999999}`).Problem(422, "Validation error").Contains(`"field":"client_id"`)
	stranger.clerk.PUT(stranger.path+"/entries/"+fmt.Sprint(r.draft.Entries[0].ID), `{"weight": 1}`).
		Problem(404, "Order draft entry not found")
	r.clerk.PUT(r.path, fmt.Sprintf(`{"client_id": %d}`, r.client)).Status(200)
	r.clerk.DELETE(fmt.Sprint("/client/", r.client)).Status(204)
	r.clerk.POST(r.path+"/convert", nil).Problem(409, "Order draft is not ready").
		Contains(`"field":"entries[0].client_id"`, `"field":"entries[1].client_id"`, `"field":"entries[2].client_id"`)
}
