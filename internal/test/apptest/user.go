package apptest

import (
	"bahi/internal/app"
)

// Visited returns a running server and its data folder as a Server.
func Visited(p *Process, data string) *Server {
	return &Server{T: p.t, URL: p.URL, Sys: &app.System{Settings: app.Settings{Data: data}}}
}
