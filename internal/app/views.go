package app

import (
	"bahi/readmodels"
	accessviews "bahi/readmodels/access"
	ledgerviews "bahi/readmodels/ledger"
	marketplaceviews "bahi/readmodels/marketplace"
	messagingviews "bahi/readmodels/messaging"
)

// Views are the read models of the areas, each under the area's name. A test checks that all of them keep to the asker's workspace.
type Views struct {
	Access    *accessviews.Views
	Ledger    *ledgerviews.Views
	Messaging *messagingviews.Views

	Marketplace *marketplaceviews.Views
}

// NewViews returns the views of a reader.
func NewViews(r *readmodels.Reader) Views {
	return Views{
		Access: &accessviews.Views{Reader: r}, Ledger: &ledgerviews.Views{Reader: r}, Messaging: &messagingviews.Views{Reader: r},
		Marketplace: &marketplaceviews.Views{Reader: r},
	}
}
