// Package messaginghttp has the operations of the messaging area.
package messaginghttp

import (
	"context"
	"io"
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
	Campaign      CampaignsConfig
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

// Register registers all operations of the area.
func (r *Routes) Register() {
	r.Channels()
	r.Chat()
	r.Templates()
	r.Stream()
	r.WebChat()
	r.Import()
	r.Contacts()
	r.ContactLists()
	r.Bots()
	r.BotKnowledge()
	r.BotWebhooks()
	r.BotTrials()
	r.Campaigns()
}
