package api

import (
	"encoding/json"
	"net/http"
	"reflect"
)

// serveDocument serves the OpenAPI document.
func (a *API) serveDocument() {
	a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Problem](), true, "")
	a.Page("/openapi.json", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "application/openapi+json")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		_, _ = w.Write(a.spec())
	}))
}

// Page serves a path that is no operation, by GET, to everybody.
func (a *API) Page(path string, handler http.Handler) {
	a.pages[path] = true
	a.router.Path(path).Methods(http.MethodGet).Handler(handler)
}

func (a *API) encodeSpec() []byte {
	text, err := json.Marshal(a.huma.OpenAPI())
	if err == nil {
		text, err = nullable(text, a.huma.OpenAPI().Components.Schemas)
	}
	if err != nil {
		panic(err)
	}
	return text
}

// OpenAPI returns the document of all operations, which must all be registered by then.
func (a *API) OpenAPI() []byte { return a.spec() }
