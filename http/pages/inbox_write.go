package pages

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// reasonOf returns the display text of a code, or the network's own text.
func reasonOf(code, title string) string { return cmp.Or(english["reasons"][code], title) }

// writer returns a function that returns the name of a message's sender.
func (v *visit) writer(contact string) func(string) string {
	actor := v.actor()
	return func(by string) string {
		if by == "contact" {
			return contact
		}
		if id, is := strings.CutPrefix(by, "key:"); is {
			by = "api_key:" + id
		}
		return actor(by)
	}
}

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
			if place, is := strings.CutPrefix(name, "t"+template+"."); is {
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
		return page{redirect: withQuery(after(out, talkPath(id), "answered"), v.filter())}
	}
	body["text"] = text // keeps the text, even with a picture
	tried := attempt{message: body, template: template, status: refused.Status, faults: map[string]string{}}
	tried.closed = refused.Code == "reply_window_closed"
	for path, message := range refused.faults() {
		switch place, isValue := strings.CutPrefix(path, "templateParams."); {
		case isValue:
			path = "t" + template + "." + place
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

// readMessages marks the shown messages as read.
func (v *visit) readMessages() page {
	id, body := v.r.PathValue("contact"), map[string]any{}
	if message := v.r.PostForm.Get("message"); message != "" {
		body["messageId"] = message
	}
	out := v.read("mark-read", request{vars: []string{id}, body: body, key: v.r.PostForm.Get("key")}, nil)
	return page{redirect: withQuery(after(out, talkPath(id), "marked"), v.filter())}
}

// contactEdits are the changes of a contact by the word of their buttons.
var contactEdits = map[string]map[string]any{
	"resolved": {"status": "resolved"}, "reopened": {"status": "open"}, "bot-off": {"replyBot": false}, "bot-on": {"replyBot": true},
}

// editContact resolves a conversation, or starts or stops the bot.
func (v *visit) editContact() page {
	word, id := v.r.PostForm.Get("do"), v.r.PathValue("contact")
	body, known := contactEdits[word]
	if !known {
		return v.deny(errNoPage)
	}
	out, to := v.read("edit-messaging-contact", request{vars: []string{id}, body: body, key: v.r.PostForm.Get("key")}, nil), talkPath(id)
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
			return talkPath(plain(c["id"]))
		}
	}
	return inboxPath
}
