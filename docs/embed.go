// Package docs has the guides, as the pages below /docs show them.
package docs

import "embed"

// Guides are the Markdown files of this folder.
//
//go:embed *.md
var Guides embed.FS
