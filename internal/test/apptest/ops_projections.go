package apptest

import (
	"bahi/readmodels/opsview"
)

// Projection returns the state of a projection.
func (o *Server) Projection(name string) (p opsview.Projection) {
	o.T.Helper()
	o.Operator().GET("/ops/projections/" + name).Status(200).JSON(&p)
	return p
}

// Order sends an operator's order about the books, and returns their state after it.
func (o *Server) Order(verb, body string) (p opsview.Projection) {
	o.T.Helper()
	o.Operator().POST("/ops/projections/books/"+verb, body).Status(200).JSON(&p)
	return p
}
