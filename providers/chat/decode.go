package chat

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"bahi/domain/messaging/network"
	"bahi/providers/lenient"
)

// formType is the content type of forms.
const formType = "application/x-www-form-urlencoded"

// The aggregator's dialects (CONTRACT.md 3.2).
const (
	envelopeV2 = "envelope_v2" // {"type", "payload"}
	graphV3    = "graph_v3"    // {"object", "entry"}, the network's own form
	formV1     = "form_v1"     // a form, MessageSid and Body
)

// dialectOf returns the dialect of a body, "" for an unknown one.
func dialectOf(contentType string, body []byte) string {
	if contentType == formType {
		return formV1
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
		return graphV3
	case head.Type != nil && head.Payload != nil:
		return envelopeV2
	}
	return ""
}

// Decode returns the events of a body, in order. An event of an unknown type has kind [Other], an unreadable part kind [Unread]. Decode
// returns [ErrUnreadable] for a body in none of the dialects.
func Decode(contentType string, body []byte) (events []Event, err error) {
	dialect := dialectOf(contentType, body)
	switch dialect {
	case formV1:
		events, err = decodeForm(body)
	case graphV3:
		events, err = decodeGraph(body)
	case envelopeV2:
		events, err = decodeEnvelope(body)
	default:
		return nil, ErrUnreadable
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrUnreadable, dialect, err)
	}
	return events, nil
}

// Key returns the key that identifies a call's repetitions, "" if it has several events or no id.
func Key(contentType string, body []byte) string {
	key, _ := keyed(contentType, body)
	return key
}

// SenderKey is [Key] within the calls about one of our numbers, pages or apps, because several workspaces share an endpoint.
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
	// the same change may recur, with another time in the body
	if slices.Contains([]Kind{Template, Consent, Moved, Revised, Revoked, Unread}, e.Kind) {
		return "", e
	}
	if e.Kind == Message || e.Kind == Group { // the type does not matter: a repeated message is the same message
		return string(e.Kind) + " " + e.ID, e
	}
	return strings.Join([]string{string(e.Kind), e.Type, e.ID, e.GSID}, " "), e
}

// envelope is envelope_v2. Fields may be text or number.
type envelope struct {
	App       string         `json:"app"`
	Timestamp lenient.Moment `json:"timestamp"`
	Type      string         `json:"type"`
	Payload   struct {
		ID      lenient.Text    `json:"id"`
		GSID    lenient.Text    `json:"gsId"`
		Source  lenient.Text    `json:"source"`
		Phone   lenient.Text    `json:"phone"`
		Type    string          `json:"type"`
		Payload json.RawMessage `json:"payload"`
		Sender  struct {
			Phone  lenient.Text `json:"phone"`
			Name   string       `json:"name"`
			UserID lenient.Text `json:"userId"`
		} `json:"sender"`
		Context struct {
			ID lenient.Text `json:"id"`
		} `json:"context"`
	} `json:"payload"`
}

// inner is the payload of an envelope's message or status.
type inner struct {
	Text        string         `json:"text"`
	Title       string         `json:"title"`
	Caption     string         `json:"caption"`
	Emoji       string         `json:"emoji"`
	ID          lenient.Text   `json:"id"`
	URL         string         `json:"url"`
	ContentType string         `json:"contentType"`
	Code        lenient.Text   `json:"code"`
	Reason      string         `json:"reason"`
	TS          lenient.Moment `json:"ts"`
}

// known are the supported types of messages and statuses.
var known = []string{
	"text", "image", "file", "audio", "video", "reaction", "button_reply", "list_reply", "enqueued", "sent", "failed", "delivered", "read",
}

func decodeEnvelope(body []byte) ([]Event, error) {
	var in envelope
	wrong := lenient.Read(body, &in)
	p := in.Payload
	var content inner
	var odd []Event
	if p.Payload != nil {
		switch fault := lenient.Read(p.Payload, &content); {
		case fault == "" || !slices.Contains(known, p.Type):
		case in.Type == "message-event": // the status is readable without it
			odd = []Event{{Kind: Unread, App: in.App, Place: "payload.payload", Delivery: Delivery{Reason: fault}}}
		default:
			wrong = cmp.Or(wrong, "payload.payload: "+fault)
		}
	}
	if wrong != "" {
		return nil, errors.New(wrong)
	}
	e := Event{Kind: Other, ID: string(p.ID), Type: p.Type, At: in.Timestamp.Time, App: in.App}
	switch in.Type {
	case "message":
		e.Kind, e.Name, e.UserID = Message, p.Sender.Name, string(p.Sender.UserID)
		if p.Type == "reaction" {
			e.Reacts = cmp.Or(string(content.ID), string(p.Context.ID))
		}
		e.name(cmp.Or(string(p.Source), string(p.Sender.Phone)))
		var message struct{ Payload json.RawMessage }
		if _ = json.Unmarshal(body, &message); InGroup(body) || InGroup(message.Payload) {
			e.Kind = Group
		}
		e.Text = cmp.Or(content.Text, content.Caption, content.Title, content.Emoji)
		if content.URL != "" {
			e.Media = &Media{URL: content.URL, ContentType: content.ContentType}
		}
	case "message-event":
		e.Kind, e.GSID = Status, string(p.GSID)
		e.Code, e.Reason = string(content.Code), content.Reason
		if content.TS.Time != nil {
			e.At = content.TS.Time
		}
	case "user-event":
		if p.Type == "opted-out" || p.Type == "opted-in" {
			e.Kind, e.Type = Consent, map[string]string{"opted-out": "stop", "opted-in": "resume"}[p.Type]
			e.name(string(p.Phone))
		}
	}
	return append(odd, e), nil
}

func decodeForm(body []byte) ([]Event, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	get := func(name string) string { return strings.ToValidUTF8(form.Get(name), "\ufffd") }
	e := Event{
		Kind: Message, ID: get("MessageSid"), Type: "text", Name: get("ProfileName"), Text: get("Body"), Sender: network.Digits(form.Get("To")),
	}
	if status := get("MessageStatus"); status != "" && !form.Has("Body") { // from us to a person
		e.Kind, e.Type, e.Sender = Status, status, network.Digits(form.Get("From"))
		e.Code, e.Reason = get("ErrorCode"), get("ErrorMessage")
		if status == "undelivered" {
			e.Type = "failed"
		}
		return []Event{e}, nil
	}
	e.name(get("From"))
	for name := range form {
		if name != "Body" && namesGroup(name, get(name)) {
			e.Kind = Group
		}
	}
	if !form.Has("From") || !form.Has("Body") && !form.Has("MediaUrl0") {
		e.Kind = Other
	}
	if files, _ := strconv.Atoi(form.Get("NumMedia")); files > 0 {
		e.Media = &Media{URL: get("MediaUrl0"), ContentType: get("MediaContentType0")}
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

// name sets the sender's phone, without a prefix such as tel:. If the network gives no phone, name sets the id unchanged.
func (e *Event) name(id string) {
	id = id[strings.LastIndexByte(id, ':')+1:]
	phone, domain, _ := strings.Cut(id, "@")
	if e.From = network.Digits(phone); strings.Trim(phone, "+0123456789-() ") != "" || domain == hidden {
		e.From, e.UserID = "", cmp.Or(e.UserID, id)
	}
}

// hidden is the domain of some gateways' addresses: of people whose phone is hidden.
const hidden = "lid"

// groupAddress matches some gateways' addresses of groups.
var groupAddress = regexp.MustCompile(`^\S+@g\.us$`)

// InGroup reports whether the JSON of a message names a group, in a member such as group_id or is_group, or by its address. InGroup
// does not read the content, which the sender writes.
func InGroup(data []byte) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return false
	}
	content := []string{"payload", "message", "text", "referral", strings.Trim(string(members["type"]), `"`)}
	for name, value := range members {
		if !slices.Contains(content, name) && (namesGroup(name, strings.Trim(string(value), `"`)) || InGroup(value)) {
			return true
		}
	}
	return false
}

// namesGroup reports whether a member of a message names a group.
func namesGroup(name, value string) bool {
	switch name = strings.ToLower(name); {
	case strings.HasSuffix(name, "type"):
		return strings.HasSuffix(strings.ToLower(value), "group")
	case strings.Contains(name, "group"):
		return !slices.Contains([]string{"", "null", "false", "0", "[]", "{}"}, value)
	default:
		return groupAddress.MatchString(value)
	}
}
