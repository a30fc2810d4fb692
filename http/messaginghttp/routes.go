// Package messaginghttp has the operations of the messaging area.
package messaginghttp

import (
	"context"
	"io"
	"slices"
	"time"

	"bahi/commands"
	"bahi/commands/messagingcmd"
	"bahi/commands/messagingcmd/answering"
	"bahi/domain/actor"
	"bahi/domain/messaging/message"
	"bahi/http/api"
	"bahi/readmodels/messagingview"
)

// Routes registers the operations.
type Routes struct {
	API      *api.API
	Commands *commands.Handler
	Views    *messagingview.Views
	Networks *messagingcmd.Channels
	Messages *messagingcmd.Messages
	Flows    *messagingcmd.Bots
	Engine   *answering.Engine
	Zone     *time.Location // time zone of reports by day

	ChatTemplates *messagingcmd.Templates
	Campaigning   *messagingcmd.Campaigns
	Files         Files
	Draw          func(ctx context.Context, upload io.Reader) (*message.Picture, error) // converts an upload to a picture to send
	Live          *MessageBroadcaster
	Visitors      *messagingcmd.Visitors

	Now func() time.Time
}

// Files has the files of conversations.
type Files interface {
	URL(ctx context.Context, key string, lasts time.Duration) (string, error)
}

// The permissions and limits that the area's operations share.
const (
	area  = actor.Messaging
	limit = "messaging_general"
)

var tags = []string{"Messaging"}

// The operations of each kind, below its path.
var (
	botOp         = operations("/api/bots", "bots")
	campaignOp    = operations("/api/campaigns", "campaigns")
	channelOp     = operations("/api/channels", "channels")
	contactOp     = operations("/api/contacts", "messaging_contacts", "messages")
	contactListOp = operations("/api/contact-lists", "messaging_contacts")
)

// operations returns what makes the operations below a path, which read these projections.
func operations(path string, reads ...string) func(id, method, below, summary string) api.Op {
	return func(id, method, below, summary string) api.Op {
		return api.Op{
			ID: id, Method: method, Path: path + below, Summary: summary, Tags: tags, Area: area, Limit: limit, Reads: slices.Clone(reads),
		}
	}
}

// Register registers all operations of the area.
func (r *Routes) Register() {
	r.channels()
	r.chat()
	r.Templates()
	r.Stream()
	r.webChat()
	r.Import()
	r.contacts()
	r.contactLists()
	r.bots()
	r.botKnowledge()
	r.botWebhooks()
	r.botTrials()
	r.campaigns()
}
