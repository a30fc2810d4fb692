package messagingcmd

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/fault"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/message"
)

// Visitors handles anonymous visitors of pages with the chat widget. A visitor has a random id and a signed token of it. The first message
// creates the visitor's contact.
type Visitors struct {
	*Messages

	Widgets widgets
	Key     []byte                            // signs tokens; the same on all nodes
	Origin  func(text string) (string, error) // returns an origin in the form of browsers
	Own     string                            // address of this server

	mu    sync.Mutex
	pages map[string]widget // recently used ones by key
}

// widget is a channel in the form for pages.
type widget struct {
	Visitor

	origins []string
	until   time.Time
}

// widgetFresh is the time for which a removed origin may still get responses. A new origin gets responses immediately.
const widgetFresh = 2 * time.Second

// widgets finds the channel of a page.
type widgets interface {
	// ChannelKeyed returns the channel with a key and its workspace, or [channel.ErrNotFound].
	ChannelKeyed(ctx context.Context, key string) (id int64, workspace uuid.UUID, err error)
}

// Visitor is a visitor of a page.
type Visitor struct {
	ID        uuid.UUID
	Channel   int64
	Workspace uuid.UUID
}

// Errors that commands return.
var (
	errOriginNotAllowed = fault.New(fault.Forbidden, "The page may not show this chat")
	errNoSession        = fault.New(fault.Unauthorized, "The session is unknown or has expired")
)

// sessionLifetime is the time for which a visitor's conversation can be resumed.
const sessionLifetime = 90 * 24 * time.Hour

// Page returns the channel of a page's widget, as a visitor without an id. It returns [channel.ErrNotFound] for an
// unknown key, and [errOriginNotAllowed] if the channel does not allow the page's origin. Browsers send no origin when a page of this
// server reads.
func (f *Visitors) Page(ctx context.Context, key, origin string) (Visitor, error) {
	if origin == "" {
		origin, _ = f.Origin(f.Own)
	}
	f.mu.Lock()
	w, known := f.pages[key]
	f.mu.Unlock()
	if known && f.Commands.Now().Before(w.until) && slices.Contains(w.origins, origin) {
		return w.Visitor, nil
	}
	w, err := f.widget(ctx, key)
	switch {
	case err != nil:
		return Visitor{}, err
	case !slices.Contains(w.origins, origin):
		return Visitor{}, errOriginNotAllowed
	}
	return w.Visitor, nil
}

// widget reads the channel with a key. It caches only existing channels, so that guessed keys do not fill the memory.
func (f *Visitors) widget(ctx context.Context, key string) (w widget, err error) {
	if w.Channel, w.Workspace, err = f.Widgets.ChannelKeyed(ctx, key); err != nil {
		return w, err
	}
	l, err := commands.Load(ctx, f.Commands.Fresh(), channel.Kind, strconv.FormatInt(w.Channel, 10))
	if err != nil {
		return w, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if l.State.Key != key { // deleted since
		delete(f.pages, key)
		return w, channel.ErrNotFound
	}
	for _, allowed := range l.State.Settings.AllowedOrigins {
		if written, err := f.Origin(allowed); err == nil {
			w.origins = append(w.origins, written)
		}
	}
	w.until = f.Commands.Now().Add(widgetFresh)
	if f.pages == nil {
		f.pages = map[string]widget{}
	}
	f.pages[key] = w
	return w, nil
}

// Begin returns the token of a new visitor of a channel.
func (f *Visitors) Begin(key string) string {
	id := uuid.New()
	body := binary.BigEndian.AppendUint64(id[:], uint64(f.Commands.Now().Add(sessionLifetime).Unix())) // after 1970
	return base64.RawURLEncoding.EncodeToString(append(body, f.sign(key, body)...))
}

func (f *Visitors) sign(key string, body []byte) []byte {
	m := hmac.New(sha256.New, f.Key)
	m.Write(append([]byte(key), 0)) // keys have no NUL
	m.Write(body)
	return m.Sum(nil)
}

// Enter returns the visitor of a token on a page, or [errNoSession].
func (f *Visitors) Enter(ctx context.Context, key, origin, token string) (Visitor, error) {
	v, err := f.Page(ctx, key, origin)
	if err != nil {
		return v, err
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(token)
	const signed = 16 + 8
	if err != nil || len(text) != signed+sha256.Size || !hmac.Equal(f.sign(key, text[:signed]), text[signed:]) ||
		f.Commands.Now().Unix() >= int64(binary.BigEndian.Uint64(text[16:signed])) { // Bahi signed it
		return v, errNoSession
	}
	v.ID = uuid.UUID(text[:16])
	return v, nil
}

// Contact returns the contact of a visitor, or 0 before the first message.
func (f *Visitors) Contact(ctx context.Context, v Visitor) (int64, error) {
	s, err := f.at(ctx, v.Workspace, v.Channel, v.ID.String())
	if err != nil {
		return 0, err
	}
	id, _, err := claimed(ctx, f.Commands, contact.Senders, contact.Kind, s.Key, sentBy)
	return id, err
}

// Write stores a visitor's message like any incoming message. The request's key stores it once.
func (f *Visitors) Write(ctx context.Context, req commands.Request, v Visitor, b message.FromVisitor) (commands.Outcome[message.State],
	error) {
	text, err := b.Said()
	if err != nil {
		return commands.Outcome[message.State]{Revision: -1}, err
	}
	named := req.Key
	if named == "" {
		named = uuid.NewString()
	}
	return f.Receive(ctx, InboundMessage{
		Sender: Sender{UserID: v.ID.String(), Name: "Visitor " + strings.ToUpper(v.ID.String()[:4])}, Channel: v.Channel, Text: text,
		ProviderID: v.ID.String() + " " + named, SentAt: f.Commands.Now().Truncate(time.Microsecond), Print: req.Fingerprint,
	})
}
