package pages

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	enquiriesPath  = Path + "/enquiries"
	enquiriesShown = 30
)

// enquiryRoutes registers the questions of buyers.
func (p *Pages) enquiryRoutes() {
	p.member("GET "+enquiriesPath, (*visit).enquiries)
	p.member("GET "+enquiriesPath+"/{enquiry}", (*visit).enquiry)
	p.member("POST "+enquiriesPath+"/{enquiry}", (*visit).editEnquiry)
}

var enquiryStatuses = []string{"pending", "contacted", "qualified", "converted", "lost"}

// enquiriesPage is the content of the list of enquiries.
type enquiriesPage struct {
	Statuses, Companies []choice
	Spam                bool
	Enquiries           []enquiryLine
	Newer, Older        string // addresses
}

// enquiryLine is an enquiry as a list shows it.
type enquiryLine struct {
	Link, Name, Company, Status, At, Message string
	Pending                                  bool
}

func (v *visit) enquiries() (page, error) {
	asked := v.r.URL.Query()
	query := url.Values{"page_size": {strconv.Itoa(enquiriesShown)}}
	for _, name := range []string{"status", "company_id", "spam", "page"} {
		if value := asked.Get(name); value != "" {
			query.Set(name, value)
		}
	}
	var found struct {
		Items []map[string]any `json:"items"`
		Page  int              `json:"page"`
		Pages int              `json:"total_pages"`
	}
	if _, err := v.call("list-enquiries", request{query: query}, &found); err != nil {
		return page{}, err
	}
	shown := enquiriesPage{Statuses: choicesOf(enquiryStatuses, asked.Get("status")), Spam: asked.Get("spam") == "true"}
	company, known := v.companyNames(), []string{}
	if chosen := asked.Get("company_id"); chosen != "" {
		known = append(known, chosen)
	}
	for _, e := range found.Items {
		of := textOf(e["to_company_id"])
		line := enquiryLine{
			Link: v.enquiryLink(textOf(e["id"])), Name: v.buyer(e), Company: company(of), Status: statusWord(e["status"]),
			At: textOf(e["created_at"]), Message: textOf(e["message"]), Pending: e["status"] == "pending",
		}
		shown.Enquiries = append(shown.Enquiries, line)
		if !slices.Contains(known, of) {
			known = append(known, of)
		}
	}
	if len(known) == 1 && asked.Get("company_id") == "" {
		known = nil // there is nothing to choose
	}
	for _, id := range known {
		shown.Companies = append(shown.Companies, choice{id, company(id), id == asked.Get("company_id")})
	}
	turned := func(to int) string {
		query.Set("page", strconv.Itoa(to))
		query.Del("page_size")
		return withQuery(enquiriesPath, query)
	}
	if found.Page > 1 {
		shown.Newer = turned(found.Page - 1)
	}
	if found.Page < found.Pages {
		shown.Older = turned(found.Page + 1)
	}
	return page{template: "enquiries", title: "Enquiries", body: shown}, nil
}

// enquiryLink returns the address of an enquiry. One that a program sent is shown only to those who ask for such.
func (v *visit) enquiryLink(id string) string {
	link := enquiriesPath + "/" + url.PathEscape(id)
	if v.spam() {
		link += "?spam=true"
	}
	return link
}

func (v *visit) spam() bool {
	here, _ := url.Parse(v.r.PostForm.Get("here")) // nil for an address that is none
	return v.r.URL.Query().Get("spam") == "true" || here != nil && here.Query().Get("spam") == "true"
}

func (v *visit) buyer(e map[string]any) string {
	return cmp.Or(textOf(e["user_name"]), v.lang.t("Erased person"))
}

// companyNames returns a function for the names of companies, which are looked up once.
func (v *visit) companyNames() func(string) string {
	names := map[string]string{}
	return func(id string) string {
		if names[id] == "" {
			var c map[string]any
			_, _ = v.call("get-company", request{vars: []string{id}}, &c) // without it, it was deleted
			names[id] = cmp.Or(textOf(c["name"]), v.lang.t("deleted company"))
		}
		return names[id]
	}
}

// enquiryPage is the content of the page of an enquiry.
type enquiryPage struct {
	enquiryLine

	ID, Email, Phone, Product, Quantity, Source, Notes string
	Post, Chat, Mail                                   string // addresses; Chat and Mail: how to answer
	Form                                               filled
	Told                                               []difference
	History                                            []change
}

func (v *visit) enquiry() (page, error) { return v.showEnquiry(nil) }

// readEnquiry returns an enquiry by the id in the path.
func (v *visit) readEnquiry(id string) (e map[string]any, err error) {
	in := request{vars: []string{id}}
	if v.spam() {
		in.query = url.Values{"spam": {"true"}}
	}
	_, err = v.call("get-enquiry", in, &e)
	return e, err
}

// showEnquiry shows an enquiry, with the form of a refused edit.
func (v *visit) showEnquiry(sent *rejected) (page, error) {
	id := v.r.PathValue("enquiry")
	e, err := v.readEnquiry(id)
	if err != nil {
		return page{}, err
	}
	edit, err := v.schemaOf("edit-enquiry")
	if err != nil {
		return page{}, err
	}
	shown := enquiryPage{Form: v.fill(edit.ask(asked{name: "status"}, asked{name: "notes"}), e, plain(e["revision"]), sent)}
	shown.enquiryLine = enquiryLine{
		Link: v.enquiryLink(id), Name: v.buyer(e), Company: v.companyNames()(textOf(e["to_company_id"])), Status: statusWord(e["status"]),
		At: textOf(e["created_at"]), Message: textOf(e["message"]),
	}
	shown.ID, shown.Post = id, enquiriesPath+"/"+url.PathEscape(id)
	shown.Email, shown.Phone, shown.Quantity = textOf(e["user_email"]), textOf(e["user_phone"]), plain(e["quantity"])
	shown.Source, shown.Notes = textOf(e["source_platform"]), textOf(e["notes"])
	if product := textOf(e["product_id"]); product != "" {
		var p map[string]any
		_, _ = v.call("get-product", request{vars: []string{product}}, &p) // without it, it was deleted
		shown.Product = cmp.Or(textOf(p["name"]), v.lang.t("deleted product"))
	}
	if shown.Chat, err = v.chatWith(shown.Phone); err != nil {
		return page{}, err
	}
	if shown.Email != "" {
		subject, greeting := v.lang.tf("Your enquiry to %s", shown.Company), v.lang.tf("Hello %s,", shown.Name)+"\r\n\r\n"
		query := url.Values{"subject": {subject}, "body": {greeting}}
		shown.Mail = "mailto:" + url.PathEscape(shown.Email) + "?" + strings.ReplaceAll(query.Encode(), "+", "%20")
	}
	notified, _ := e["notifications"].(map[string]any)
	for _, way := range [][2]string{{"email", "Mail to you"}, {"chat", "Chat to you"}, {"crm", "CRM"}} {
		one, _ := notified[way[0]].(map[string]any)
		if state := textOf(one["status"]); state != "" {
			shown.Told = append(shown.Told, difference{What: v.lang.t(way[1]), Before: v.lang.t(told[state]), After: textOf(one["error"])})
		}
	}
	if shown.History, err = v.enquiryHistory(id); err != nil {
		return page{}, err
	}
	return page{template: "enquiry", title: shown.Name, status: sent.status(), body: shown}, nil
}

// told has the words for what became of telling the company.
var told = map[string]string{"queued": "waiting", "sent": "sent", "failed": "not sent", "skipped": "not wanted"}

// enquiryHistory returns how the status moved, the newest first.
func (v *visit) enquiryHistory(id string) (all []change, err error) {
	var moves []map[string]any
	_, err = v.call("get-enquiry-history", request{vars: []string{id}}, &moves)
	if refused := refusal(err); refused != nil && refused.Status == http.StatusNotFound {
		return nil, nil // it is spam, which has none
	}
	name := v.actor()
	for _, m := range slices.Backward(moves) {
		c := change{At: textOf(m["at"]), Reason: textOf(m["reason"]), Sentence: v.lang.t("The enquiry came.")}
		if m["from"] != nil {
			was, is := v.lang.t(statusWord(m["from"])), v.lang.t(statusWord(m["to"]))
			c.Sentence = v.lang.tf("%s: from %s to %s", name(textOf(m["actor"])), was, is)
		}
		all = append(all, c)
	}
	return all, err
}

// chatWith returns the id of the contact with a phone, "" for none, or if the visitor may not write to contacts.
func (v *visit) chatWith(phone string) (string, error) {
	number := strings.TrimPrefix(phone, "+")
	if number == "" || !v.permissions()["messaging:write"] {
		return "", nil
	}
	var found []map[string]any
	_, err := v.call("list-messaging-contacts", request{query: url.Values{"search": {number}, "sort": {"recent"}}}, &found)
	if err != nil && refusal(err) == nil {
		return "", err
	}
	for _, c := range found {
		if textOf(c["phone"]) == number {
			return plain(c["id"]), nil
		}
	}
	return "", nil
}

// editEnquiry sets the status or the notes. An answer by chat or by mail sets the status contacted, if it was pending or lost.
func (v *visit) editEnquiry() (page, error) {
	id, do := v.r.PathValue("enquiry"), v.r.PostForm.Get("do")
	e, err := v.readEnquiry(id)
	if err != nil {
		return page{}, err
	}
	to, more := enquiriesPath+"/"+url.PathEscape(id), url.Values{}
	if v.spam() {
		more.Set("spam", "true")
	}
	again, body, word := v.showEnquiry, map[string]any{"status": "contacted"}, "contacted"
	switch do {
	case "edit":
		edit, err := v.schemaOf("edit-enquiry")
		if err != nil {
			return page{}, err
		}
		body, word = edit.read(v.r.PostForm, true), "enquiry"
	case "chat", "mail":
		again = func(sent *rejected) (page, error) {
			sent.body = e
			return v.showEnquiry(sent)
		}
		contact := ""
		if do == "chat" {
			contact, err = v.chatWith(textOf(e["user_phone"]))
		}
		if err != nil {
			return page{}, err
		}
		if contact != "" {
			to, more = talkPath(contact), url.Values{"enquiry": {id}}
		}
		if e["status"] != "pending" && e["status"] != "lost" {
			return page{redirect: withQuery(to, more)}, nil
		}
	default:
		return page{}, errNoPage
	}
	saved, err := v.save("edit-enquiry", request{vars: []string{id}}, body, to, word, again)
	if saved.redirect != "" {
		saved.redirect = withQuery(saved.redirect, more)
	}
	return saved, err
}

// greeting returns the beginning of an answer to the enquiry that the address names, "" for none.
func (v *visit) greeting() string {
	id := v.r.URL.Query().Get("enquiry")
	if id == "" || !v.permissions()["marketplace:read"] {
		return ""
	}
	e, err := v.readEnquiry(id)
	if err != nil {
		return ""
	}
	text := v.lang.tf("Hello %s,", v.buyer(e)) + " " + v.lang.t("thank you for your enquiry.")
	if message := textOf(e["message"]); message != "" {
		text += "\n\n> " + strings.ReplaceAll(message, "\n", "\n> ") + "\n\n"
	}
	return text
}
