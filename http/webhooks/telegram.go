package webhooks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"bahi/commands/inbox"
	"bahi/commands/messagingcmd"
	"bahi/providers/chat"
	"bahi/providers/lenient"
)

// telegramUpdate is an update of a bot.
type telegramUpdate struct {
	ID      int64            `json:"update_id"`
	Message *telegramMessage `json:"message"`
	Edited  *telegramMessage `json:"edited_message"`
	Post    *telegramMessage `json:"channel_post"`
}

type telegramMessage struct {
	ID      int64          `json:"message_id"`
	Date    lenient.Moment `json:"date"`
	Changed lenient.Moment `json:"edit_date"`
	Chat    struct {
		ID   int64  `json:"id"`
		Type string `json:"type"`
	} `json:"chat"`
	From struct {
		First    string `json:"first_name"`
		Last     string `json:"last_name"`
		Username string `json:"username"`
	} `json:"from"`
	Text     string         `json:"text"`
	Caption  string         `json:"caption"`
	Photo    []telegramFile `json:"photo"`
	Document *telegramFile  `json:"document"`
	Voice    *telegramFile  `json:"voice"`
	Video    *telegramFile  `json:"video"`
}

type telegramFile struct {
	ID       string `json:"file_id"`
	MimeType string `json:"mime_type"`
}

// telegramKey returns the update's id.
func telegramKey(_ string, body []byte) string {
	var u telegramUpdate
	if json.Unmarshal(body, &u) != nil || u.ID == 0 {
		return ""
	}
	return strconv.FormatInt(u.ID, 10)
}

func (k *Conversations) proveTelegram(r *http.Request, _ netip.Addr, _ []byte) (about string, err error) {
	about = lastOf(r)
	want, err := k.HookToken(r.Context(), about)
	if err == nil && !chat.Equal(r.Header.Get("X-Telegram-Bot-Api-Secret-Token"), want) {
		err = ErrUnverified
	}
	return about, err
}

// lastOf returns the last element of a path, the channel.
func lastOf(r *http.Request) string { return r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:] }

// telegram records the messages of private chats.
func (k *Conversations) telegram(ctx context.Context, c inbox.Call) (inbox.Outcome, error) {
	var u telegramUpdate
	o := &outcome{made: make([]string, 1)}
	of, _ := strconv.ParseInt(c.ResourceID, 10, 64) // the proof has found it
	wrong := lenient.Read(c.Body, &u)
	m := cmp.Or(u.Edited, u.Message, u.Post)
	switch {
	case m != nil && m.Chat.ID != 0 && m.Chat.Type != "private":
		o.Reason = reasonGroup
		return o.Outcome, nil
	case wrong != "":
		return o.Outcome, inbox.Unreadable(errors.New(wrong))
	case m == nil || m.ID == 0:
		return o.Outcome, nil
	}
	var (
		made    = "message changed"
		subject string
		err     error
	)
	if u.Edited != nil {
		subject, err = k.Revise(ctx, of, m.name(), cmp.Or(m.Text, m.Caption), moment(cmp.Or(m.Changed.Time, m.Date.Time), c))
	} else {
		made, subject, err = k.received(ctx, m.arrival(of, c))
	}
	if err := o.part(0, "message", made, err, subject); err != nil {
		return o.Outcome, err
	}
	return k.end(o, c)
}

// arrival returns a message to a channel.
func (m *telegramMessage) arrival(of int64, c inbox.Call) messagingcmd.InboundMessage {
	a := messagingcmd.InboundMessage{
		Sender: messagingcmd.Sender{UserID: strconv.FormatInt(m.Chat.ID, 10), Name: strings.TrimSpace(m.From.First + " " + m.From.Last),
			Username: m.From.Username, Social: true},
		Channel: of, Type: "text", Text: cmp.Or(m.Text, m.Caption), ProviderID: m.name(), SentAt: moment(m.Date.Time, c).At,
		ArrivedAt: c.ReceivedAt,
	}
	for kind, f := range map[string]*telegramFile{"file": m.Document, "audio": m.Voice, "video": m.Video} {
		if f != nil {
			a.Type, a.Ref, a.RefType = kind, f.ID, f.MimeType
		}
	}
	if len(m.Photo) > 0 { // the last is the largest
		a.Type, a.Ref, a.RefType = "image", m.Photo[len(m.Photo)-1].ID, "image/jpeg"
	}
	return a
}

// name returns an id of a message that is unique in all chats. The network's ids are unique in a chat.
func (m *telegramMessage) name() string {
	return strconv.FormatInt(m.Chat.ID, 10) + ":" + strconv.FormatInt(m.ID, 10)
}
