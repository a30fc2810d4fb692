package app

import (
	"bahi/readmodels"
	"bahi/readmodels/accessview"
	"bahi/readmodels/ledgerview"
	"bahi/readmodels/marketplaceview"
	"bahi/readmodels/messagingview"
)

// Views are the read models of the areas, each under the area's name. A test checks that each returns only rows of the caller's workspace.
type Views struct {
	Access    *accessview.Views
	Ledger    *ledgerview.Views
	Messaging *messagingview.Views

	Marketplace *marketplaceview.Views
}

// NewViews returns the views of a reader.
func NewViews(r *readmodels.Reader) Views {
	return Views{
		Access: &accessview.Views{Reader: r}, Ledger: &ledgerview.Views{Reader: r}, Messaging: &messagingview.Views{Reader: r},
		Marketplace: &marketplaceview.Views{Reader: r},
	}
}
