package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// formType is the content type of form_v1.
const formType = "application/x-www-form-urlencoded"

// Detect returns the dialect of a body, or [ErrUnreadable].
func Detect(contentType string, body []byte) (Dialect, error) {
	if contentType == formType {
		return FormV1, nil
	}
	var head struct {
		Object  json.RawMessage `json:"object"`
		Entry   json.RawMessage `json:"entry"`
		Type    json.RawMessage `json:"type"`
		Payload json.RawMessage `json:"payload"`
	}
	switch {
	case json.Unmarshal(body, &head) != nil:
	case head.Object != nil || head.Entry != nil:
		return GraphV3, nil
	case head.Type != nil && head.Payload != nil:
		return EnvelopeV2, nil
	}
	return "", ErrUnreadable
}

// Decode returns the events of a body, in their order. An event that this program does not know is of kind [Other]. Decode returns
// [ErrUnreadable] for a body in none of the dialects.
func Decode(contentType string, body []byte) (events []Event, err error) {
	if !utf8.Valid(body) {
		return nil, ErrUnreadable
	}
	dialect, err := Detect(contentType, body)
	if err != nil {
		return nil, err
	}
	switch dialect {
	case FormV1:
		events, err = decodeForm(body)
	case GraphV3:
		events, err = decodeGraph(body)
	case EnvelopeV2:
		events, err = decodeEnvelope(body)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrUnreadable, dialect)
	}
	return events, nil
}

// Key returns the key under which a call is repeated, "" if it has several events or no id.
func Key(contentType string, body []byte) string {
	key, _ := keyed(contentType, body)
	return key
}

// SenderKey is [Key] among the calls about one number, page or app of ours, since several workspaces have an endpoint together.
func SenderKey(contentType string, body []byte) string {
	key, e := keyed(contentType, body)
	if key == "" {
		return ""
	}
	return strings.Join([]string{e.App, e.Sender, key}, " ")
}

func keyed(contentType string, body []byte) (key string, e Event) {
	events, err := Decode(contentType, body)
	if err != nil || len(events) != 1 || events[0].ID == "" {
		return "", e
	}
	e = events[0]
	if slices.Contains([]Kind{Template, Consent, Moved, Revised, Revoked}, e.Kind) { // the same may come about again, with another time in the body
		return "", e
	}
	if e.Kind == Message { // its type does not matter: a repeated message is the same message
		return string(e.Kind) + " " + e.ID, e
	}
	return strings.Join([]string{string(e.Kind), e.Type, e.ID, e.GSID}, " "), e
}

// envelope is envelope_v2. Values that may be text or number are read as they come.
type envelope struct {
	App       string `json:"app"`
	Timestamp moment `json:"timestamp"`
	Type      string `json:"type"`
	Payload   struct {
		ID          text            `json:"id"`
		GSID        text            `json:"gsId"`
		Source      text            `json:"source"`
		Destination text            `json:"destination"`
		Phone       text            `json:"phone"`
		Type        string          `json:"type"`
		Payload     json.RawMessage `json:"payload"`
		Sender      struct {
			Phone  text   `json:"phone"`
			Name   string `json:"name"`
			UserID text   `json:"userId"`
		} `json:"sender"`
	} `json:"payload"`
}

// inner is the payload of an envelope's message or status.
type inner struct {
	Text        string `json:"text"`
	Title       string `json:"title"`
	Caption     string `json:"caption"`
	URL         string `json:"url"`
	ContentType string `json:"contentType"`
	Code        text   `json:"code"`
	Reason      string `json:"reason"`
	TS          moment `json:"ts"`
}

func decodeEnvelope(body []byte) ([]Event, error) {
	var in envelope
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	p := in.Payload
	var content inner
	if json.Unmarshal(p.Payload, &content) != nil {
		content = inner{} // of a kind that this program does not know
	}
	e := Event{Kind: Other, ID: string(p.ID), Type: p.Type, At: in.Timestamp.Time, App: in.App}
	switch in.Type {
	case "message":
		e.Kind, e.From, e.Name, e.UserID = Message, digits(string(p.Source)), p.Sender.Name, string(p.Sender.UserID)
		if e.From == "" {
			e.From = digits(string(p.Sender.Phone))
		}
		e.Text = first(content.Text, content.Caption, content.Title)
		if content.URL != "" {
			e.Media = &Media{URL: content.URL, ContentType: content.ContentType}
		}
	case "message-event":
		e.Kind, e.GSID, e.To = Status, string(p.GSID), digits(string(p.Destination))
		e.Code, e.Reason = string(content.Code), content.Reason
		if content.TS.Time != nil {
			e.At = content.TS.Time
		}
	case "user-event":
		if p.Type == "opted-out" || p.Type == "opted-in" {
			e.Kind, e.From, e.Type = Consent, digits(string(p.Phone)), map[string]string{"opted-out": "stop", "opted-in": "resume"}[p.Type]
		}
	}
	return []Event{e}, nil
}

func decodeForm(body []byte) ([]Event, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	e := Event{
		Kind: Message, ID: form.Get("MessageSid"), Type: "text", From: digits(form.Get("From")), Name: form.Get("ProfileName"), Text: form.Get("Body"),
		Sender: digits(form.Get("To")),
	}
	if status := form.Get("MessageStatus"); status != "" && !form.Has("Body") { // from us to a person
		e.Kind, e.Type, e.From, e.To, e.Sender = Status, status, "", e.Sender, e.From
		e.Code, e.Reason = form.Get("ErrorCode"), form.Get("ErrorMessage")
		if status == "undelivered" {
			e.Type = "failed"
		}
		return []Event{e}, nil
	}
	if !form.Has("From") || !form.Has("Body") && !form.Has("MediaUrl0") {
		e.Kind = Other
	}
	if files, _ := strconv.Atoi(form.Get("NumMedia")); files > 0 {
		e.Media = &Media{URL: form.Get("MediaUrl0"), ContentType: form.Get("MediaContentType0")}
		kind, _, _ := strings.Cut(e.Media.ContentType, "/")
		switch kind {
		case "image", "audio", "video":
			e.Type = kind
		default:
			e.Type = "file"
		}
	}
	return []Event{e}, nil
}

// text is a text that may come as a number.
type text string

// UnmarshalJSON takes a string or a number; anything else is no text.
func (t *text) UnmarshalJSON(data []byte) error {
	var s string
	var n json.Number
	switch {
	case json.Unmarshal(data, &s) == nil:
		*t = text(s)
	case len(data) > 0 && data[0] != '{' && data[0] != '[' && json.Unmarshal(data, &n) == nil:
		*t = text(n)
	}
	return nil
}

// moment is a time as seconds or milliseconds, as a string or a number. Time is nil if it is none of them.
type moment struct{ Time *time.Time }

// Moments outside these seconds are milliseconds, or no times.
const (
	latestSeconds = 100_000_000_000     // the year 5138
	latestMillis  = 100_000_000_000_000 // the same
)

// UnmarshalJSON never fails: an unreadable time is none.
func (m *moment) UnmarshalJSON(data []byte) error {
	m.Time = nil
	n, err := strconv.ParseInt(string(bytes.Trim(bytes.TrimSpace(data), `"`)), 10, 64)
	switch {
	case err != nil || n <= 0 || n >= latestMillis:
	case n < latestSeconds:
		m.Time = new(time.Unix(n, 0).UTC())
	default:
		m.Time = new(time.UnixMilli(n).UTC())
	}
	return nil //nolint:nilerr // see above
}

// digits returns the digits of a phone without what surrounds them.
func digits(phone string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, phone)
}

func first(all ...string) string {
	for _, s := range all {
		if s != "" {
			return s
		}
	}
	return ""
}
