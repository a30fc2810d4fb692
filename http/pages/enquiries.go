package pages

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// enquiryResource are the buyers' enquiries. A reply by chat or mail changes the status pending or lost to contacted.
func enquiryResource() *resource {
	return &resource{
		base: Path, word: "enquiries", title: "Enquiries", list: "list-enquiries", find: (*desk).enquiry,
		stream: "follow-enquiries", events: "enquiry",
		without: []string{"source_platform"}, columns: []string{"buyer", "message", "company", "status", "came"},
		live:    []string{"message", "status", "product", "quantity", "phone", "email", "company", "came", "notes", "who_was_told"},
		history: (*desk).enquiryHistory, watch: func(map[string]any) bool { return false },
		cells: "enquiries",
		links: func(d *desk, e map[string]any) []choice {
			if textOf(e["user_email"]) == "" || !d.permissions()["marketplace:write"] {
				return nil
			}
			subject := d.lang.tf("Your enquiry to %s", d.NameOf("companies", textOf(e["to_company_id"])))
			query := url.Values{"subject": {subject}, "body": {d.lang.tf("Hello %s,", d.buyer(e)) + "\r\n\r\n"}}
			mail := "mailto:" + url.PathEscape(textOf(e["user_email"])) + "?" + strings.ReplaceAll(query.Encode(), "+", "%20")
			return []choice{{Value: mail, Text: "Answer by mail"}}
		},
		each: []action{
			{
				name: "chat", operation: "edit-enquiry", button: "Answer by chat", did: "contacted", body: contacted, to: (*desk).toTalk,
				when: func(e map[string]any) bool { return e["contact"] != nil && unanswered(e) },
			},
			{
				name: "talk", operation: "edit-enquiry", button: "Answer by chat", to: (*desk).toTalk,
				body: func(e map[string]any) any { return map[string]any{"status": e["status"]} },
				when: func(e map[string]any) bool { return e["contact"] != nil && !unanswered(e) },
			},
			{
				name: "mail", operation: "edit-enquiry", button: "I have answered", did: "contacted", body: contacted,
				when: func(e map[string]any) bool { return e["user_email"] != nil && unanswered(e) },
			},
			{operation: "edit-enquiry", button: "Change", did: "enquiry", edit: true},
		},
	}
}

// unanswered reports whether a reply changes the status of an enquiry.
var unanswered = inStatus("pending", "lost")

func contacted(map[string]any) any { return map[string]any{"status": "contacted"} }

// spam returns the query for enquiries marked as spam, which the list hides by default.
func (v *visit) spam() url.Values { return v.chosen("spam") }

func (v *visit) buyer(e map[string]any) string {
	return cmp.Or(textOf(e["user_name"]), v.lang.t("Erased person"))
}

// readEnquiry returns an enquiry.
func (v *visit) readEnquiry(id string) (e map[string]any, refused *problem) {
	_, refused = v.ask("get-enquiry", request{vars: []string{id}, query: v.spam()}, &e)
	return e, refused
}

// enquiry returns the page's enquiry, with the contact of its phone.
func (d *desk) enquiry() (map[string]any, *problem) {
	e, refused := d.readEnquiry(d.id)
	if contact := d.chatWith(textOf(e["user_phone"])); contact != "" {
		e["contact"] = contact
	}
	return e, refused
}

// toTalk redirects to the conversation with the buyer.
func (d *desk) toTalk(map[string]any) string {
	e, refused := d.enquiry()
	if refused != nil {
		return inboxPath
	}
	return withQuery(talkPath(textOf(e["contact"])), url.Values{"enquiry": {d.id}})
}

// Notified returns the notifications of an enquiry with their states.
func (d *desk) Notified(e map[string]any) (all []string) {
	for _, way := range [][2]string{{"email", "Mail to you"}, {"chat", "Chat to you"}, {"crm", "CRM"}} {
		one := inner(inner(e, "notifications"), way[0])
		if state := textOf(one["status"]); state != "" {
			all = append(all, d.lang.t(way[1])+": "+d.lang.t(english["told"][state])+around(" (", textOf(one["error"]), ")"))
		}
	}
	return all
}

// Address returns the address of the record of a list.
func (d *desk) Address(record map[string]any) string {
	return withQuery(d.of.address(d.parent, idOf(record)), d.spam())
}

// enquiryHistory returns the status changes, newest first.
func (d *desk) enquiryHistory(map[string]any) (all []change) {
	var moves []map[string]any
	if _, refused := d.ask("get-enquiry-history", request{vars: []string{d.id}}, &moves); refused != nil {
		if refused.Status != http.StatusNotFound { // spam has no history
			d.deny(refused)
		}
		return nil
	}
	for _, m := range slices.Backward(moves) {
		c := changeOf(m, d.actor)
		if c.Sentence = d.lang.t("The enquiry came."); m["from"] != nil {
			was, is := d.lang.t(wordOf(m["from"])), d.lang.t(wordOf(m["to"]))
			c.Sentence = d.lang.tf("%s: from %s to %s", c.Actor, was, is)
		}
		all = append(all, c)
	}
	return all
}

// chatWith returns the id of the contact with a phone. It returns "" without a contact, or if the visitor may not write to contacts.
func (v *visit) chatWith(phone string) string {
	number := strings.TrimPrefix(phone, "+")
	if number == "" || !v.permissions()["messaging:write"] {
		return ""
	}
	var found []map[string]any
	v.ask("list-messaging-contacts", request{query: url.Values{"search": {number}, "sort": {"recent"}}}, &found)
	for _, c := range found {
		if textOf(c["phone"]) == number {
			return plain(c["id"])
		}
	}
	return ""
}

// greeting returns the beginning of a reply to the enquiry in the address, or "".
func (v *visit) greeting() string {
	id := v.r.URL.Query().Get("enquiry")
	if id == "" || !v.permissions()["marketplace:read"] {
		return ""
	}
	e, refused := v.readEnquiry(id)
	if refused != nil {
		return ""
	}
	text := v.lang.tf("Hello %s,", v.buyer(e)) + " " + v.lang.t("thank you for your enquiry.")
	if message := textOf(e["message"]); message != "" {
		text += "\n\n> " + strings.ReplaceAll(message, "\n", "\n> ") + "\n\n"
	}
	return text
}
