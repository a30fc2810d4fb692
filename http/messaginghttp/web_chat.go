package messaginghttp

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"bahi/commands"
	"bahi/commands/messagingcmd"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/messaging/message"
	"bahi/http/api"
	"bahi/readmodels/messagingview"
)

// The paths of the widget and of its calls.
const (
	widgetPath  = "/widget.js"
	webChatPath = "/api/web-chat/"
)

// ByWidget names a channel by its key in a page.
type ByWidget struct {
	Key string `path:"channelKey" maxLength:"64" doc:"The web channel's channelKey"`
}

// webChatSession is the credential of a visitor.
type webChatSession struct {
	Token string `json:"token" doc:"Bearer token of the visitor, valid for 90 days"`
}

// visitorMessage has the data of a message that a visitor sees.
type visitorMessage struct {
	ID        string    `json:"id" doc:"ID of the message"`
	Direction string    `json:"direction" enum:"in,out" doc:"in: from the visitor"`
	Type      string    `json:"type" doc:"Type of the message"`
	Text      *string   `json:"text" doc:"Text; null: none"`
	MediaURL  *string   `json:"mediaUrl" doc:"URL of the file; null: none"`
	At        time.Time `json:"at" doc:"Time of the message"`
	By        string    `json:"by" enum:"visitor,person,bot" doc:"Sender: visitor, person of the company, or bot"`
}

// webChat registers the operations that the chat widget calls from other pages. A visitor's token is no access token (CONTRACT.md W3).
func (r *Routes) webChat() {
	op := func(id, method, path, summary string) api.Op {
		return api.Op{
			ID: id, Method: method, Path: webChatPath + "{channelKey}" + path, Summary: summary, Tags: tags, Public: true, Limit: "web_chat",
			Errors: []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound}, MaxBody: 64 << 10,
		}
	}
	begin := op("begin-web-chat", "POST", "/sessions", "Start a conversation from the chat widget")
	begin.NoKey = true
	api.Handle(r.API, begin, func(ctx context.Context, in *ByWidget) (*api.Body[webChatSession], error) {
		request, _ := api.Sender(ctx)
		if _, err := r.Visitors.Page(ctx, in.Key, request.Header.Get("Origin")); err != nil {
			return nil, err
		}
		if err := api.Count(ctx, "web_chat_session"); err != nil {
			return nil, err
		}
		return api.Answer(webChatSession{r.Visitors.Begin(in.Key)}, nil)
	})
	write := op("write-web-chat", "POST", "/messages", "Send a message from the chat widget. Bahi refuses files.")
	write.StrictBody = true
	api.Handle(r.API, write, func(ctx context.Context, in *struct {
		ByWidget
		Body message.FromVisitor
	}) (*api.Body[visitorMessage], error) {
		v, err := r.visitor(ctx, in.Key)
		if err != nil {
			return nil, err
		}
		if err := api.CountFor(ctx, "web_chat_message", v.ID.String()); err != nil {
			return nil, err
		}
		out, err := r.Visitors.Write(ctx, api.Request(ctx), v, in.Body)
		return api.Reply(ctx, out, err, func(out commands.Outcome[message.State]) visitorMessage {
			text, _ := in.Body.Said()
			return visitorMessage{ID: message.Name(out.ID), Direction: "in", Type: "text", Text: &text, At: out.State.At.At, By: "visitor"}
		})
	})
	follow := op("follow-web-chat", "GET", "/stream", "Stream a visitor's conversation. "+
		"The stream begins with the whole conversation; Last-Event-ID resumes it.")
	follow.StillAllowed = func(ctx context.Context) error {
		request, _ := api.Sender(ctx)
		_, err := r.visitor(ctx, keyOf(request))
		return err
	}
	api.Stream(r.API, follow, map[string]any{"message": visitorMessage{}}, func(ctx context.Context, in *struct {
		ByWidget
		Last string `header:"Last-Event-ID" doc:"ID of the last received event"`
	}) (api.Source, error) {
		v, err := r.visitor(ctx, in.Key)
		if err != nil {
			return nil, err
		}
		last, err := strconv.ParseUint(in.Last, 10, 63)
		if err != nil && in.Last != "" {
			return nil, errLastEvent
		}
		return func(ctx context.Context, send func(api.Event) error) error {
			return r.converse(ctx, v, event.Position(last), send)
		}, nil
	})
	r.API.AllowOriginsBelow(webChatPath, func(request *http.Request, origin string) bool {
		_, err := r.Visitors.Page(request.Context(), keyOf(request), origin)
		return err == nil
	})
	r.API.Page(widgetPath, serveWidget())
}

var errLastEvent = fault.Wrong("Last-Event-ID", "expected the id of an event")

// keyOf returns the channel key in the path of a request.
func keyOf(r *http.Request) string {
	key, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, webChatPath), "/")
	return key
}

// visitor returns the visitor of a request.
func (r *Routes) visitor(ctx context.Context, key string) (messagingcmd.Visitor, error) {
	request, _ := api.Sender(ctx)
	token, _ := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
	return r.Visitors.Enter(ctx, key, request.Header.Get("Origin"), token)
}

// converse sends a visitor's conversation: first the messages after a position, then new ones. The visitor's first message creates a
// contact.
func (r *Routes) converse(ctx context.Context, v messagingcmd.Visitor, last event.Position, send func(api.Event) error) error {
	head, err := r.Live.log.Head(ctx)
	if err != nil {
		return err
	}
	contact, err := r.Visitors.Contact(ctx, v)
	if err != nil {
		return err
	}
	sendRows := func(rows []messagingview.Message, known event.Position) error {
		for i, m := range rows {
			e := api.Event{Data: forVisitor(m)}
			switch {
			case known != 0:
				e.ID = strconv.FormatUint(uint64(m.Position), 10)
			case i == len(rows)-1: // only the last row gets the head's position, because rows are not in the order of positions
				e.ID = strconv.FormatUint(uint64(head), 10)
			}
			if err := send(e); err != nil {
				return err
			}
		}
		return nil
	}
	if contact != 0 {
		rows, err := r.Views.Messages(ctx, api.At(ctx).After(head), v.Workspace, contact, 0, maxConcurrent)
		if err != nil {
			return err
		}
		if err := link(ctx, r.Files, rows); err != nil {
			return err
		}
		rows = slices.DeleteFunc(rows, func(m messagingview.Message) bool { return m.ChannelID != v.Channel || m.Position <= last })
		slices.Reverse(rows)
		if err := sendRows(rows, 0); err != nil {
			return err
		}
	}
	return r.Live.follow(ctx, v.Workspace, head, func(parts []part) error {
		for _, p := range parts {
			var theirs []messagingview.Message
			for _, m := range p.rows {
				if m.ChannelID != v.Channel || m.Began <= p.seen && m.EditedAt == nil { // a change of status is not sent
					continue
				}
				if contact == 0 && m.Direction == "in" {
					if contact, err = r.Visitors.Contact(ctx, v); err != nil {
						return err
					}
				}
				if m.Contact == contact {
					theirs = append(theirs, m.Message)
				}
			}
			if err := sendRows(theirs, p.seen); err != nil {
				return err
			}
		}
		return nil
	})
}

// forVisitor returns a message without the company's data, such as the author and the status.
func forVisitor(m messagingview.Message) visitorMessage {
	by := "person"
	switch {
	case m.Direction == "in":
		by = "visitor"
	case strings.HasPrefix(m.By, "bot:"):
		by = "bot"
	}
	return visitorMessage{ID: m.ID, Direction: m.Direction, Type: m.Type, Text: m.Text, MediaURL: m.MediaURL, At: m.At, By: by}
}

//go:embed widget.js
var widget []byte

// serveWidget serves the script to pages of all origins. The script has no secret, and the operations that it calls check the origin.
func serveWidget() http.HandlerFunc {
	sum := sha256.Sum256(widget)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/javascript; charset=utf-8")
		h.Set("Cache-Control", "public, max-age=3600")
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Cross-Origin-Resource-Policy", "cross-origin")
		h.Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(widget)
	}
}
