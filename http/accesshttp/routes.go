// Package accesshttp has the operations on people, sessions, API keys and workspaces.
package accesshttp

import (
	"log/slog"
	"time"

	"bahi/commands"
	"bahi/commands/accesscmd"
	"bahi/domain/access/picture"
	"bahi/http/api"
	"bahi/providers/idp"
	"bahi/readmodels/accessview"
)

// Routes registers the operations.
type Routes struct {
	API      *api.API
	Commands *commands.Handler
	Views    *accessview.Views
	Accounts *accesscmd.Accounts
	Entrance api.Workspaces
	Provider *idp.Client // nil: none
	FlowKey  []byte      // seals the cookie of a sign-in by the provider
	Pictures pictures
	Studio   *picture.Studio

	Companies companies
	Frontend  string // address of the pages: https://example.org
	Fragment  bool   // the pages get the access token after #
	Now       func() time.Time
	Log       *slog.Logger
}

var tags = []string{"Marketplace"}

// Register registers all operations of the area.
func (r *Routes) Register() {
	r.Auth()
	r.users()
	r.workspaces()
	r.apiKeys()
	r.plans()
}
