// Package marketplacehttp has the operations of the marketplace area on companies and their catalogs.
package marketplacehttp

import (
	"bahi/commands"
	"bahi/commands/accesscmd/credentials"
	"bahi/domain/actor"
	"bahi/http/api"
	"bahi/readmodels/marketplaceview"
)

// Routes registers the operations.
type Routes struct {
	API      *api.API
	Commands *commands.Handler
	Views    *marketplaceview.Views
	Frontend string // URL of the pages, such as https://example.org

	Log      feed
	Evidence evidence
	Mailed   *credentials.Mailed
	Lookup   lookup // nil: there is none

	AnyGSTIN  bool // GSTINs of special registrations are allowed
	KnownOnly bool // contacts require a credential
}

const area = actor.Marketplace

var tags = []string{"Marketplace"}

// Register registers all operations of the area.
func (r *Routes) Register() {
	r.Companies()
	r.bulk()
	r.feed()
	r.Products()
	r.contacts()
	r.enquiries()
}

// open returns a public operation (CONTRACT.md D34, D35, W3).
func open(op api.Op) api.Op {
	op.Tags, op.Public, op.OptionalAuth = tags, true, true
	return op
}

// closed returns an operation for members of the workspace.
func closed(op api.Op) api.Op {
	op.Tags, op.Area = tags, area
	return op
}
