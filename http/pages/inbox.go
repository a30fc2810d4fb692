package pages

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	inboxPath     = Path + "/inbox"
	peopleShown   = 30
	messagesShown = 30
)

// inboxPage is the content of the inbox: the list of conversations, and one of them.
type inboxPage struct {
	Kept         url.Values // query that filters the list
	People       []map[string]any
	Open         string // id of the contact whose conversation is open
	Newer, Older string // addresses
	Talk         *talk  // nil: none is open
}

// filter returns the query that filters the list. A form keeps it in its page's address.
func (v *visit) filter() url.Values {
	query := v.r.URL.Query()
	if here, err := url.Parse(v.r.PostForm.Get("here")); v.r.Method != http.MethodGet && err == nil {
		query = here.Query()
	}
	maps.DeleteFunc(query, func(name string, values []string) bool {
		return values[0] == "" || !slices.Contains([]string{"q", "status", "page"}, name)
	})
	return query
}

// withQuery returns an address with a query, if there is one.
func withQuery(address string, query url.Values) string {
	if len(query) == 0 {
		return address
	}
	if strings.Contains(address, "?") {
		return address + "&" + query.Encode()
	}
	return address + "?" + query.Encode()
}

// people returns the conversations, newest first. A search also finds contacts without a conversation.
func (v *visit) people(open string) inboxPage {
	kept := v.filter()
	number, _ := strconv.Atoi(kept.Get("page")) // 0 without one
	number = max(number, 1)
	query := url.Values{"sort": {"recent"}, "search": {kept.Get("q")}, "status": {kept.Get("status")}}
	people, _, refused := v.paged("list-messaging-contacts", request{query: query}, number, peopleShown)
	v.require(refused)
	full := len(people) == peopleShown
	silent := func(c map[string]any) bool { return c["lastMessageAt"] == nil }
	if i := slices.IndexFunc(people, silent); i >= 0 && kept.Get("q") == "" {
		people, full = people[:i], false
	}
	shown := inboxPage{Kept: kept, People: people, Open: open}
	shown.Newer, shown.Older = turned(inboxPath, kept, number, full)
	return shown
}

// talk is a conversation with a contact.
type talk struct {
	*visit

	Contact  map[string]any
	Messages []map[string]any
	ReadTo   string // id of the contact's newest message, if unread
	Earlier  string // address
	Past     bool   // the newest messages are not shown
	Channels []choice
	Fields   []field // of a message
	Ready    []ready
	Closed   bool     // only a template can be sent
	In       []string // names of the lists that have the contact
	Wrong    []string
}

// ready is a template that a channel can send.
type ready struct {
	Template map[string]any
	Fields   []field
	Open     bool
}

// attempt is a refused form.
type attempt struct {
	message  map[string]any
	template string // id
	faults   map[string]string
	wrong    []string
	closed   bool
	status   int
}

// showTalk shows a conversation, with the forms of a refused attempt.
func (v *visit) showTalk(tried attempt) page {
	id := v.r.PathValue("contact")
	c, shown := v.one("get-messaging-contact", id), v.people(id)
	t := &talk{visit: v, Contact: c, Wrong: tried.wrong, Closed: tried.closed}
	shown.Talk = t
	messages := v.messages(t, id)
	if v.permissions()["messaging:write"] && !t.Past {
		v.writing(t, messages, tried)
	}
	return page{template: "inbox", title: cmp.Or(textOf(c["name"]), v.lang.t("Erased contact")), status: tried.status, body: shown}
}

// messages adds a part of the conversation, and returns it as the API does.
func (v *visit) messages(t *talk, id string) []map[string]any {
	query := url.Values{"limit": {strconv.Itoa(messagesShown + 1)}}
	if before := v.r.URL.Query().Get("before"); before != "" {
		query.Set("before", before)
		t.Past = true
	}
	var all []map[string]any
	v.read("list-messages", request{vars: []string{id}, query: query}, &all)
	if len(all) > messagesShown {
		all = all[:messagesShown]
		t.Earlier = withQuery(withQuery(pagePath("inbox", id), v.filter()), url.Values{"before": {textOf(all[messagesShown-1]["id"])}})
	}
	t.Messages = slices.Clone(all)
	slices.Reverse(t.Messages)
	heard := func(m map[string]any) bool { return m["direction"] == "in" && m["type"] != "reaction" }
	if newest := slices.IndexFunc(all, heard); newest >= 0 && nonzero(t.Contact["unread"]) != nil && !t.Past {
		t.ReadTo = textOf(all[newest]["id"])
	}
	return all
}

// writing adds the reply form and the form of the contact's details.
func (v *visit) writing(t *talk, messages []map[string]any, tried attempt) {
	var channels, templates, lists []map[string]any
	most := request{query: url.Values{"limit": {"200"}}}
	for operation, into := range map[string]*[]map[string]any{
		"list-channels": &channels, "list-templates": &templates, "list-contact-lists": &lists,
	} {
		v.ask(operation, most, into) // a refusal only hides the form
	}
	message, file := v.schemaOf("send-message"), v.schemaOf("send-image-file")
	faults := tried.faults
	if tried.template != "" {
		faults = nil
	}
	t.Channels = v.reaching(t.Contact, channels, messages, textOf(tried.message["channelId"]))
	t.Fields = message.without("caption", "channelId", "templateId", "templateParams").fields("", tried.message, faults, 0)
	slices.Reverse(t.Fields) // the text comes before the picture
	for _, f := range file.without("caption", "channelId").fields("", nil, faults, 0) {
		f.Required, f.Hint, f.Focus = false, "", f.Error != ""
		t.Fields = append(t.Fields, f)
	}
	for _, m := range templates {
		if of := plain(m["channelId"]); slices.ContainsFunc(t.Channels, func(c choice) bool { return c.Value == of }) {
			t.Ready = append(t.Ready, v.readyOf(m, tried))
		}
	}
	in := textsOf(t.Contact["listIds"])
	for _, l := range lists {
		if slices.Contains(in, textOf(l["id"])) {
			t.In = append(t.In, textOf(l["name"]))
		}
	}
	drawn := slices.Clone(t.Fields)
	for _, m := range t.Ready {
		drawn = append(drawn, m.Fields...)
	}
	t.Wrong = append(t.Wrong, v.lang.misplaced(drawn, tried.faults)...)
}

// reaching returns the channels that can reach the contact, the newest message's first.
func (v *visit) reaching(c map[string]any, channels, messages []map[string]any, chosen string) (all []choice) {
	last := func(id string) int { // counted from the newest; len(messages) for none
		n := slices.IndexFunc(messages, func(m map[string]any) bool { return plain(m["channelId"]) == id })
		if n < 0 {
			return len(messages)
		}
		return n
	}
	for _, ch := range channels {
		id := plain(ch["id"])
		if last(id) < len(messages) || ch["type"] == "chat" && c["phone"] != nil || ch["type"] == "gmail" && c["email"] != nil {
			all = append(all, choice{id, textOf(ch["name"]), id == chosen})
		}
	}
	slices.SortStableFunc(all, func(x, y choice) int { return last(x.Value) - last(y.Value) })
	return all
}

// readyOf returns a template with the inputs of its values.
func (v *visit) readyOf(m map[string]any, tried attempt) ready {
	id := plain(m["id"])
	r := ready{Template: m, Open: id == tried.template}
	values := inner(tried.message, "templateParams")
	for _, name := range textsOf(m["parameters"]) {
		f := field{Name: "templateParams." + name, Key: name, Scope: "-" + id, Kind: "text", Label: labelOf(name), Required: true}
		if _, err := strconv.Atoi(name); err == nil {
			f.Label = v.lang.tf("Value %s", name)
		}
		if r.Open {
			f.Value, f.Error = textOf(values[name]), tried.faults[f.Name]
		}
		r.Fields = append(r.Fields, f)
	}
	focus(r.Fields)
	return r
}

// reasonOf returns the display text of a code, or the network's own text.
func reasonOf(code, title any) string { return cmp.Or(english["reasons"][textOf(code)], textOf(title)) }

// sendMessage sends a text, a picture from a file or by its address, or a template.
func (v *visit) sendMessage() page {
	form, id := v.r.PostForm, v.r.PathValue("contact")
	body := map[string]any{"channelId": number(form.Get("channelId"), "")}
	text, picture, template := strings.TrimSpace(form.Get("text")), strings.TrimSpace(form.Get("imageUrl")), form.Get("template")
	operation, in := "send-message", request{vars: []string{id}, body: body, key: form.Get("key")}
	files := append(v.files("photo"), v.files("file")...)
	switch {
	case len(files) > 1 || len(files) == 1 && picture != "":
		body["text"], body["imageUrl"] = text, picture
		return v.showTalk(attempt{message: body, status: http.StatusUnprocessableEntity,
			faults: map[string]string{"file": v.lang.t("Choose one picture.")}})
	case len(files) == 1:
		operation, in.files = "send-image-file", files
		files[0].field, body["caption"] = "file", text
	case template != "":
		values := map[string]any{}
		for name := range form {
			if place, is := strings.CutPrefix(name, "templateParams."); is {
				values[place] = form.Get(name)
			}
		}
		body["templateId"], body["templateParams"] = number(template, ""), values
	case picture != "":
		body["imageUrl"] = picture
		if text != "" {
			body["caption"] = text
		}
	case text != "":
		body["text"] = text
	}
	out, refused := v.ask(operation, in, nil)
	if refused != nil && (refused.Status == http.StatusNotFound || refused.Status == http.StatusForbidden) {
		return v.deny(refused)
	}
	if refused == nil {
		return page{redirect: withQuery(after(out, pagePath("inbox", id), "answered"), v.filter())}
	}
	body["text"] = text // keeps the text, even with a picture
	tried := attempt{message: body, template: template, status: refused.Status, faults: map[string]string{}}
	tried.closed = refused.Code == "reply_window_closed"
	for path, message := range refused.faults() {
		switch {
		case path == "caption":
			path = "text"
		case path == "text" && text == "" && picture == "":
			message = v.lang.t("Write a message first.")
		}
		tried.faults[path] = message
	}
	switch {
	case len(files) == 1 && refused.Status == http.StatusBadRequest:
		tried.faults["file"] = v.lang.t("This is no picture. Choose a JPEG, PNG or WebP file.")
	case len(files) == 1 && refused.Status == http.StatusRequestEntityTooLarge:
		tried.faults["file"] = v.lang.t("The picture is too large: at most 16 MB and 6000 pixels a side.")
	case len(tried.faults) == 0:
		tried.wrong = []string{reasonOf(refused.Code, refused.Detail)}
	}
	return v.showTalk(tried)
}

// contactEdits are the changes of a contact by the word of their buttons.
var contactEdits = map[string]map[string]any{
	"resolved": {"status": "resolved"}, "reopened": {"status": "open"}, "bot-off": {"replyBot": false}, "bot-on": {"replyBot": true},
}

// editContact marks the shown messages as read, resolves a conversation, or starts or stops the bot.
func (v *visit) editContact() page {
	word, id, operation := v.r.PostForm.Get("do"), v.r.PathValue("contact"), "edit-messaging-contact"
	body, known := contactEdits[word]
	if word == "marked" {
		operation, body = "mark-read", map[string]any{"messageId": v.r.PostForm.Get("message")}
	} else if !known {
		return v.deny(errNoPage)
	}
	out, to := v.read(operation, request{vars: []string{id}, body: body, key: v.r.PostForm.Get("key")}, nil), pagePath("inbox", id)
	if word == "resolved" {
		to = v.nextUnread(id)
	}
	return page{redirect: withQuery(after(out, to, word), v.filter())}
}

// nextUnread returns the address of the unread conversation after one, or of the list if there is none.
func (v *visit) nextUnread(after string) string {
	var all []map[string]any
	v.read("list-messaging-contacts", request{query: url.Values{"sort": {"recent"}, "limit": {"200"}}}, &all)
	at := slices.IndexFunc(all, func(c map[string]any) bool { return plain(c["id"]) == after })
	for _, c := range slices.Concat(all[at+1:], all[:max(at, 0)]) {
		if plain(c["unread"]) != "0" && c["status"] != "resolved" && plain(c["id"]) != after {
			return pagePath("inbox", c["id"])
		}
	}
	return inboxPath
}
