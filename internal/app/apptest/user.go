package apptest

import (
	"bahi/internal/app"
)

// Visited is a serving process and its data folder, as people meet them.
func Visited(p *Process, data string) *Office {
	return &Office{T: p.t, URL: p.URL, Sys: &app.System{Settings: app.Settings{Data: data}}}
}
