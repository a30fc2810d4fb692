package apptest

import (
	"bahi/http/pages/browsertest"
)

// Browse opens a tab that is signed in.
func (o *Office) Browse() *browsertest.Page {
	o.T.Helper()
	p := browsertest.Open(o.T, o.URL)
	p.Go("/console/")
	p.Type("#key", OperatorKey)
	p.Submit("main button")
	return p
}
