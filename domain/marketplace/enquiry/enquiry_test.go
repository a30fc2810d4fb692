package enquiry_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/marketplace/enquiry"
	"bahi/domain/patch"
	"bahi/internal/test/eventtest"
)

var mill = uuid.MustParse("0195e8a0-7c1e-7000-8000-0000000000aa")

func personal(text string) event.Personal { return enquiry.Buyers.Personal("b", text) }

var sent = enquiry.Sent{Company: mill, Source: "web", Buyer: "b", Name: personal("Asha"), Email: personal("asha@example.org")}

func TestAnEnquiryIsPutInOrder(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, enquiry.Kind)
	full := sent
	full.Source, full.Phone, full.Message = "shop_2", personal("+919812345678"), personal("<b>How many?</b>")
	none.Case("texts are trimmed, folded and sealed").
		When(enquiry.Send{To: mill, Buyer: "b", Name: " Asha ", Email: "ASHA@example.org", Phone: patch.Set("98123 45678"),
			Message: patch.Set(" <b>How many?</b>\n"), Source: patch.Set(" Shop_2 ")}).
		Then(full)
	none.Case("optional fields may be empty").
		When(enquiry.Send{To: mill, Buyer: "b", Name: "Asha", Email: "asha@example.org", Phone: patch.Set(" "), Message: patch.Clear[string](),
			Source: patch.Set("")}).Then(sent)
	spam := sent
	spam.Spam = true
	none.Case("only programs fill in a hidden field").
		When(enquiry.Send{To: mill, Buyer: "b", Name: "Asha", Email: "asha@example.org", Website: patch.Set("https://spam.example")}).Then(spam)
	unread := sent
	unread.Phone = personal("98123 / shop")
	none.Case("a phone that cannot be read is kept as a text").
		When(enquiry.Send{To: mill, Buyer: "b", Name: "Asha", Email: "asha@example.org",
			Phone: patch.Set("\u202a98123 / shop\u202c ")}).Then(unread)
	_, err := enquiry.Send{Name: " ", Email: "x", Phone: patch.Set("1\x00"), Message: patch.Set("a\u202eb"), Quantity: new(int64),
		Source: patch.Set("a b")}.Decide(enquiry.State{})
	for _, field := range []string{"user_name", "user_email", "user_phone", "message", "quantity", "source_platform"} {
		require.ErrorContains(t, err, field+": ")
	}
	_, err = enquiry.Send{Name: "A", Email: "a@example.org", Message: patch.Set(strings.Repeat("é", 5001))}.Decide(enquiry.State{})
	require.ErrorContains(t, err, "message: at most 5000 characters")
}

func TestAStatusMovesAsTheCompanyGetsOn(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, enquiry.Kind, sent)
	all := []string{enquiry.Pending, enquiry.Contacted, enquiry.Qualified, enquiry.Converted, enquiry.Lost}
	may := map[string]string{
		enquiry.Pending: "contacted qualified converted lost", enquiry.Contacted: "qualified converted lost",
		enquiry.Qualified: "contacted converted lost",
		enquiry.Lost:      "contacted qualified", enquiry.Converted: "",
	}
	for _, from := range all {
		at := given
		if from != enquiry.Pending {
			at = given.And(enquiry.StatusChanged{From: enquiry.Pending, To: from})
		}
		for _, to := range all {
			c := at.Case(from + " to " + to).When(enquiry.Edit{Status: patch.Set(to)})
			switch {
			case from == to:
				c.ThenNothing()
			case strings.Contains(may[from], to):
				c.Then(enquiry.StatusChanged{From: from, To: to})
			default:
				c.ThenFails(fault.New(fault.Conflict, "Status cannot change from "+from+" to "+to))
			}
		}
	}
	given.Case("notes are sealed for the buyer too").When(enquiry.Edit{Notes: patch.Set(" called ")}).Then(
		enquiry.NotesWritten{Notes: personal("called")})
	given.Case("no notes are none").When(enquiry.Edit{Notes: patch.Set(" ")}).ThenNothing()
	given.And(enquiry.NotesWritten{Notes: personal("called")}).Case("null empties them").When(
		enquiry.Edit{Notes: patch.Clear[string]()}).Then(enquiry.NotesWritten{})
	given.Case("nothing is sealed for an erased buyer").When(enquiry.Edit{Notes: patch.Set("called"), Erased: true}).
		ThenFails(fault.New(fault.Conflict, "The buyer was erased: notes can no longer be stored"))
	given.Case("they have a maximum length").When(enquiry.Edit{Notes: patch.Set(strings.Repeat("a", 5001))}).
		ThenFails(fault.Fields(fault.Field{Field: "notes", Message: "at most 5000 characters"}))
	eventtest.Given(t, enquiry.Kind).Case("no enquiry").When(enquiry.Edit{Status: patch.Set(enquiry.Lost)}).ThenFails(enquiry.ErrNotFound)
}

func TestANotificationIsSentOnce(t *testing.T) {
	t.Parallel()
	failed := enquiry.Notified{Port: enquiry.CRM, Status: enquiry.Failed, Error: "refused"}
	done := enquiry.Notified{Port: enquiry.CRM, Status: enquiry.Done, Lead: "7", To: "sandbox", Text: personal("Asha asks")}
	none := eventtest.Given(t, enquiry.NotificationKind)
	none.Case("it fails").When(enquiry.Note{Notified: failed}).Then(failed)
	none.And(failed).Case("a repetition changes nothing").When(enquiry.Note{Notified: failed}).ThenNothing()
	said := done
	said.Text = event.Personal{}
	none.And(failed).Case("and succeeds after all").When(enquiry.Note{Notified: said, Buyer: "b", Said: "Asha asks"}).Then(done)
	none.And(done).Case("then it is done").When(enquiry.Note{Notified: failed}).ThenNothing()
	none.And(done).Case("the others are not").When(enquiry.Note{Notified: enquiry.Notified{Port: enquiry.Chat, Status: enquiry.Skipped}}).
		Then(enquiry.Notified{Port: enquiry.Chat, Status: enquiry.Skipped})
}

func TestReceiptsSayWhatBecameOfANotificationByChat(t *testing.T) {
	t.Parallel()
	sent := enquiry.Notified{Port: enquiry.Chat, Status: enquiry.Done}
	failed := enquiry.Notified{Port: enquiry.Chat, Status: enquiry.Failed, Error: "unreachable"}
	delivered := enquiry.Notified{Port: enquiry.Chat, Status: enquiry.Done, Delivered: true}
	none := eventtest.Given(t, enquiry.NotificationKind)
	none.Case("before the network's answer").When(enquiry.Note{Notified: failed}).Then(failed)
	none.And(sent).Case("after it").When(enquiry.Note{Notified: failed}).Then(failed)
	none.And(sent, failed).Case("a late response changes nothing").When(enquiry.Note{Notified: sent}).ThenNothing()
	none.And(sent, failed).Case("once more").When(enquiry.Note{Notified: failed}).ThenNothing()
	none.And(sent, failed).Case("it arrives after all").When(enquiry.Note{Notified: delivered}).Then(delivered)
	none.And(sent, delivered).Case("a failure is late").When(enquiry.Note{Notified: failed}).ThenNothing()
	none.And(delivered).Case("read is delivered").When(enquiry.Note{Notified: delivered}).ThenNothing()
}

func TestABuyerWhoAsksAgainIsAnotherSubject(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, enquiry.BuyerKind)
	none.Case("the first time").When(enquiry.EraseBuyer{}).Then(enquiry.BuyerErased{})
	none.And(enquiry.BuyerErased{}).Case("once more").When(enquiry.EraseBuyer{}).Then(enquiry.BuyerErased{Before: 1})
	require.Equal(t, []string{"buyer-h", "buyer-h-1"},
		[]string{enquiry.BuyerErased{}.Erases("h").Subject, enquiry.BuyerErased{Before: 1}.Erases("h").Subject})
}
