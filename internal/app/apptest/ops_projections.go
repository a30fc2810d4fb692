package apptest

import (
	opsviews "bahi/readmodels/ops"
)

// Projection asks how a projection is.
func (o *Office) Projection(name string) (p opsviews.Projection) {
	o.T.Helper()
	o.Operator().GET("/ops/projections/" + name).Status(200).JSON(&p)
	return p
}

// Order asks for something to be done to the books, and answers how it is then.
func (o *Office) Order(verb, body string) (p opsviews.Projection) {
	o.T.Helper()
	o.Operator().POST("/ops/projections/books/"+verb, body).Status(200).JSON(&p)
	return p
}
