package gateway

import "encoding/json"

// graph is graph_v3.
type graph struct {
	App   text `json:"gs_app_id"`
	Entry []struct {
		ID      text `json:"id"`
		Changes []struct {
			Field string `json:"field"`
			Value struct {
				Metadata struct {
					Sender text `json:"phone_number_id"`
				} `json:"metadata"`
				Contacts []struct {
					WaID    text `json:"wa_id"`
					UserID  text `json:"user_id"`
					Profile struct {
						Name     string `json:"name"`
						Username string `json:"username"`
					} `json:"profile"`
				} `json:"contacts"`
				Messages    []graphMessage    `json:"messages"`
				Statuses    []graphStatus     `json:"statuses"`
				Preferences []graphPreference `json:"user_preferences"`

				Errors []graphError `json:"errors"`

				TemplateID text   `json:"message_template_id"`
				Event      string `json:"event"`
			} `json:"value"`
		} `json:"changes"`
		Messaging []pageMessage `json:"messaging"`
	} `json:"entry"`
}

// graphPreference is what a person told the network about messages that advertise.
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

// event returns the message of a person. Our own, which comes back, is none.
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
	Errors      []graphError `json:"errors"`
	Image       *file        `json:"image"`
	Document    *file        `json:"document"`
	Audio       *file        `json:"audio"`
	Video       *file        `json:"video"`
	Button      body         `json:"button"`
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
	RecipientID     text   `json:"recipient_id"`
	RecipientUserID text   `json:"recipient_user_id"`
	Callback        string `json:"biz_opaque_callback_data"`

	Errors []graphError `json:"errors"`
}

// graphError says what is wrong: with a message of ours, with one that came in and that the network does not pass on, or with the account.
type graphError struct {
	Code  text   `json:"code"`
	Title string `json:"title"`
	Data  struct {
		Details string `json:"details"`
	} `json:"error_data"`
}

// note keeps the first error.
func (e *Event) note(errors []graphError) {
	if len(errors) > 0 {
		e.Code, e.Title, e.Reason = string(errors[0].Code), errors[0].Title, first(errors[0].Data.Details, errors[0].Title)
	}
}

func decodeGraph(data []byte) (events []Event, err error) {
	var in graph
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, err
	}
	for _, entry := range in.Entry {
		for _, change := range entry.Changes {
			names, users, ids := map[string]string{}, map[string]string{}, map[string]string{}
			for _, c := range change.Value.Contacts {
				for _, id := range []text{c.WaID, c.UserID} {
					names[string(id)], users[string(id)] = c.Profile.Name, c.Profile.Username
				}
				ids[string(c.WaID)] = string(c.UserID)
			}
			known := len(events)
			of := func(e Event) {
				e.Sender, e.App = string(change.Value.Metadata.Sender), string(in.App)
				events = append(events, e)
			}
			for _, m := range change.Value.Messages {
				e := m.event()
				e.UserID = first(e.UserID, ids[string(m.From)])
				e.Name, e.Username = first(names[e.UserID], names[string(m.From)]), first(users[e.UserID], users[string(m.From)])
				of(e)
			}
			for _, s := range change.Value.Statuses {
				of(s.event())
			}
			for _, p := range change.Value.Preferences {
				if p.Value == "stop" || p.Value == "resume" {
					of(Event{Kind: Consent, Type: p.Value, From: digits(string(p.WaID)), UserID: string(p.UserID), At: p.Timestamp.Time})
				}
			}
			if change.Value.TemplateID != "" && change.Value.Event != "" {
				events = append(events, Event{Kind: Template, ID: string(change.Value.TemplateID), Type: change.Value.Event, Sender: string(entry.ID), App: string(in.App)})
			}
			if len(events) == known && change.Value.Metadata.Sender != "" { // whom it is about is known, whatever it tells
				e := Event{Kind: Other}
				if e.note(change.Value.Errors); e.Code != "" {
					e.Kind = Failure
				}
				of(e)
			}
		}
		for _, m := range entry.Messaging {
			events = append(events, m.event())
		}
	}
	return events, nil
}

func (m graphMessage) event() Event {
	e := Event{
		Kind: Message, ID: string(m.ID), From: digits(string(m.From)), UserID: string(m.FromUserID), Type: m.Type, At: m.Timestamp.Time,
		Text: first(m.Text.Body, m.Reaction.Emoji, m.Button.Text, m.Interactive.ButtonReply.Title, m.Interactive.ListReply.Title),
	}
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
			e.Kind, e.Before, e.From = Moved, e.From, digits(string(m.System.WaID))
		case "user_changed_user_id":
			e.Kind, e.Before, e.From, e.UserID = Moved, string(m.System.Previous), "", string(m.System.UserID)
		}
	}
	for _, f := range []*file{m.Image, m.Document, m.Audio, m.Video} {
		if f != nil {
			e.Media, e.Text = &Media{URL: first(f.URL, f.Link), ID: string(f.ID), ContentType: f.MimeType}, first(e.Text, f.Caption)
		}
	}
	return e
}

func (s graphStatus) event() Event {
	e := Event{Kind: Status, ID: string(s.ID), GSID: string(s.GSID), Type: s.Status, At: s.Timestamp.Time, To: digits(string(s.RecipientID)), UserID: string(s.RecipientUserID), Callback: s.Callback}
	e.note(s.Errors)
	return e
}
