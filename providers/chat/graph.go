package chat

import (
	"cmp"
	"errors"
	"fmt"

	"bahi/providers/lenient"
)

// graph is graph_v3.
type graph struct {
	App   text                     `json:"gs_app_id"`
	Entry lenient.List[graphEntry] `json:"entry"`
}

type graphEntry struct {
	ID        text                      `json:"id"`
	Changes   lenient.List[graphChange] `json:"changes"`
	Messaging lenient.List[pageMessage] `json:"messaging"`
}

type graphChange struct {
	Field string `json:"field"`
	Value struct {
		Metadata struct {
			Sender text `json:"phone_number_id"`
		} `json:"metadata"`
		Contacts    lenient.List[graphContact]    `json:"contacts"`
		Messages    lenient.List[graphMessage]    `json:"messages"`
		Statuses    lenient.List[graphStatus]     `json:"statuses"`
		Preferences lenient.List[graphPreference] `json:"user_preferences"`
		Errors      errorList                     `json:"errors"`

		TemplateID text   `json:"message_template_id"`
		Event      string `json:"event"`
	} `json:"value"`
}

type graphContact struct {
	WaID    text `json:"wa_id"`
	UserID  text `json:"user_id"`
	Profile struct {
		Name     string `json:"name"`
		Username string `json:"username"`
	} `json:"profile"`
}

type (
	text   = lenient.Text
	moment = lenient.Moment
)

// graphPreference is a person's choice about marketing messages.
type graphPreference struct {
	WaID      text   `json:"wa_id"`
	UserID    text   `json:"user_id"`
	Value     string `json:"value"`
	Timestamp moment `json:"timestamp"`
}

// pageMessage is a message to a page.
type pageMessage struct {
	Sender    struct{ ID text } `json:"sender"`
	Recipient struct{ ID text } `json:"recipient"`
	Timestamp moment            `json:"timestamp"`
	Message   *struct {
		MID         text   `json:"mid"`
		Text        string `json:"text"`
		Echo        bool   `json:"is_echo"`
		Deleted     bool   `json:"is_deleted"`
		Attachments []struct {
			Type    string `json:"type"`
			Payload struct {
				URL string `json:"url"`
			} `json:"payload"`
		} `json:"attachments"`
	} `json:"message"`
	Edit *struct {
		MID  text   `json:"mid"`
		Text string `json:"text"`
	} `json:"message_edit"`
}

// event returns the event of a person's message. For our own messages, which the network sends back, its kind is [Other].
func (m pageMessage) event() Event {
	e := Event{Kind: Other, At: m.Timestamp.Time, UserID: string(m.Sender.ID), Sender: string(m.Recipient.ID), Page: true}
	if m.Edit != nil && m.Edit.MID != "" {
		e.Kind, e.ID, e.Text = Revised, string(m.Edit.MID), m.Edit.Text
		return e
	}
	if m.Message == nil || m.Message.Echo || m.Message.MID == "" {
		return e
	}
	if m.Message.Deleted {
		e.Kind, e.ID = Revoked, string(m.Message.MID)
		return e
	}
	e.Kind, e.ID, e.Type, e.Text = Message, string(m.Message.MID), "text", m.Message.Text
	for _, a := range m.Message.Attachments {
		if a.Payload.URL != "" {
			e.Type, e.Media = a.Type, &Media{URL: a.Payload.URL}
			break
		}
	}
	return e
}

type graphMessage struct {
	ID         text   `json:"id"`
	From       text   `json:"from"`
	FromUserID text   `json:"from_user_id"`
	Timestamp  moment `json:"timestamp"`
	Type       string `json:"type"`
	Text       body   `json:"text"`
	Reaction   struct {
		Of    text   `json:"message_id"`
		Emoji string `json:"emoji"`
	} `json:"reaction"`
	System struct {
		Type     string `json:"type"`
		WaID     text   `json:"wa_id"`
		Previous text   `json:"previous_user_id"`
		UserID   text   `json:"user_id"`
	} `json:"system"`
	Revoke struct {
		Of text `json:"original_message_id"`
	} `json:"revoke"`
	Edit struct {
		Of      text `json:"original_message_id"`
		Message struct {
			Text body `json:"text"`
		} `json:"message"`
	} `json:"edit"`
	Errors      errorList `json:"errors"`
	Image       *file     `json:"image"`
	Document    *file     `json:"document"`
	Audio       *file     `json:"audio"`
	Video       *file     `json:"video"`
	Button      body      `json:"button"`
	Interactive struct {
		Type        string `json:"type"`
		ButtonReply title  `json:"button_reply"`
		ListReply   title  `json:"list_reply"`
	} `json:"interactive"`
}

type body struct {
	Body string `json:"body"`
	Text string `json:"text"`
}

type title struct {
	Title string `json:"title"`
}

type file struct {
	ID       text   `json:"id"`
	URL      string `json:"url"`
	Link     string `json:"link"`
	MimeType string `json:"mime_type"`
	Caption  string `json:"caption"`
}

type graphStatus struct {
	ID              text   `json:"id"`
	GSID            text   `json:"gs_id"`
	Status          string `json:"status"`
	Timestamp       moment `json:"timestamp"`
	RecipientUserID text   `json:"recipient_user_id"`
	Callback        text   `json:"biz_opaque_callback_data"`

	Errors errorList `json:"errors"`
}

// errorList is a list of errors. An unreadable error costs the message or receipt nothing else.
type errorList = lenient.List[graphError]

// graphError is a fault of one of our messages, of an incoming message that the network withholds, or of the account.
type graphError struct {
	Code  text   `json:"code"`
	Title string `json:"title"`
	Data  struct {
		Details string `json:"details"`
	} `json:"error_data"`
}

// note keeps the first error with a readable member.
func (e *Event) note(errors errorList) {
	for _, part := range errors {
		if first := part.Value; first != (graphError{}) {
			e.Code, e.Title, e.Reason = string(first.Code), first.Title, cmp.Or(first.Data.Details, first.Title)
			return
		}
	}
}

// collected are the events of a body.
type collected struct {
	app    string
	events []Event
}

func (c *collected) add(e Event, place string) {
	e.Place, e.App = place, cmp.Or(e.App, c.app)
	c.events = append(c.events, e)
}

// unreadablePart adds an unreadable part.
func (c *collected) unreadablePart(sender, place, wrong string) {
	if wrong != "" {
		c.add(Event{Kind: Unread, Sender: sender, Delivery: Delivery{Reason: wrong}}, place)
	}
}

// unreadableErrors adds the unreadable errors of a part.
func (c *collected) unreadableErrors(sender, place string, errors errorList) {
	for i, part := range errors {
		c.unreadablePart(sender, fmt.Sprintf("%s.errors[%d]", place, i), part.Wrong)
	}
}

// collect adds the event of each part of a list.
func collect[T any](c *collected, sender, place string, parts lenient.List[T], event func(place string, part T) Event) {
	for i, part := range parts {
		at := fmt.Sprintf("%s[%d]", place, i)
		if c.unreadablePart(sender, at, part.Wrong); part.Wrong != "" {
			continue
		}
		e := event(at, part.Value)
		if e.Kind != Status && InGroup(part.Raw) {
			e.Kind = Group
		}
		e.Sender = cmp.Or(sender, e.Sender)
		c.add(e, at)
	}
}

func decodeGraph(data []byte) ([]Event, error) {
	var in graph
	if wrong := lenient.Read(data, &in); wrong != "" {
		return nil, errors.New(wrong)
	}
	c := &collected{app: string(in.App)}
	for i, entry := range in.Entry {
		place := fmt.Sprintf("entry[%d]", i)
		c.unreadablePart(string(entry.Value.ID), place, entry.Wrong)
		for n, change := range entry.Value.Changes {
			at := fmt.Sprintf("%s.changes[%d]", place, n)
			c.unreadablePart(string(change.Value.Value.Metadata.Sender), at, change.Wrong)
			c.change(string(entry.Value.ID), at+".value", change.Value)
		}
		collect(c, "", place+".messaging", entry.Value.Messaging, func(_ string, m pageMessage) Event { return m.event() })
	}
	return c.events, nil
}

// change adds the events of a change.
func (c *collected) change(account, place string, change graphChange) {
	names, users, ids := map[string]string{}, map[string]string{}, map[string]string{}
	v := change.Value
	sender, known := string(v.Metadata.Sender), len(c.events)
	for i, part := range v.Contacts {
		c.unreadablePart(sender, fmt.Sprintf("%s.contacts[%d]", place, i), part.Wrong)
		k := part.Value
		for _, id := range []text{k.WaID, k.UserID} {
			names[string(id)], users[string(id)] = k.Profile.Name, k.Profile.Username
		}
		ids[string(k.WaID)] = string(k.UserID)
	}
	collect(c, sender, place+".messages", v.Messages, func(at string, m graphMessage) Event {
		c.unreadableErrors(sender, at, m.Errors)
		e := m.event()
		e.UserID = cmp.Or(e.UserID, ids[string(m.From)])
		e.Name, e.Username = cmp.Or(names[e.UserID], names[string(m.From)]), cmp.Or(users[e.UserID], users[string(m.From)])
		return e
	})
	collect(c, sender, place+".statuses", v.Statuses, func(at string, s graphStatus) Event {
		c.unreadableErrors(sender, at, s.Errors)
		return s.event()
	})
	for i, part := range v.Preferences {
		c.unreadablePart(sender, fmt.Sprintf("%s.user_preferences[%d]", place, i), part.Wrong)
		if p := part.Value; part.Wrong == "" && (p.Value == "stop" || p.Value == "resume") {
			e := Event{Kind: Consent, Type: p.Value, UserID: string(p.UserID), At: p.Timestamp.Time, Sender: sender}
			e.name(string(p.WaID))
			c.add(e, fmt.Sprintf("%s.user_preferences[%d]", place, i))
		}
	}
	if v.TemplateID != "" && v.Event != "" {
		c.add(Event{Kind: Template, ID: string(v.TemplateID), Type: v.Event, Sender: account}, place)
	}
	if len(c.events) == known && sender != "" { // its account is known, whatever the rest
		c.unreadableErrors(sender, place, v.Errors)
		e := Event{Kind: Other, Sender: sender}
		if e.note(v.Errors); e.Code != "" {
			e.Kind = Failure
		}
		c.add(e, place)
	}
}

func (m graphMessage) event() Event {
	e := Event{
		Kind: Message, ID: string(m.ID), UserID: string(m.FromUserID), Type: m.Type, At: m.Timestamp.Time, Reacts: string(m.Reaction.Of),
		Text: cmp.Or(m.Text.Body, m.Reaction.Emoji, m.Button.Text, m.Interactive.ButtonReply.Title, m.Interactive.ListReply.Title),
	}
	e.name(string(m.From))
	e.note(m.Errors)
	switch m.Type {
	case "document":
		e.Type = "file"
	case "button":
		e.Type = "button_reply"
	case "interactive":
		e.Type = m.Interactive.Type
	case "revoke":
		e.Kind, e.ID = Revoked, string(m.Revoke.Of)
	case "edit":
		e.Kind, e.ID, e.Text = Revised, string(m.Edit.Of), m.Edit.Message.Text.Body
	case "system":
		e.Kind = Other
		switch m.System.Type {
		case "user_changed_number":
			e.Kind, e.Before, e.UserID = Moved, cmp.Or(e.From, e.UserID), string(m.System.UserID)
			e.name(string(m.System.WaID))
		case "user_changed_user_id":
			e.Kind, e.Before, e.From, e.UserID = Moved, string(m.System.Previous), "", string(m.System.UserID)
		}
	}
	for _, f := range []*file{m.Image, m.Document, m.Audio, m.Video} {
		if f != nil {
			e.Media, e.Text = &Media{URL: cmp.Or(f.URL, f.Link), ID: string(f.ID), ContentType: f.MimeType}, cmp.Or(e.Text, f.Caption)
		}
	}
	return e
}

func (s graphStatus) event() Event {
	e := Event{Kind: Status, ID: string(s.ID), Type: s.Status, At: s.Timestamp.Time, UserID: string(s.RecipientUserID),
		Delivery: Delivery{GSID: string(s.GSID), Callback: string(s.Callback)}}
	e.note(s.Errors)
	return e
}
