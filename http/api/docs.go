package api

import (
	"embed"
	"encoding/json"
	"net/http"
	"reflect"
)

// docs has the page: Swagger UI (Apache-2.0), from its npm package swagger-ui-dist 5.35.0.
//
//go:embed docs
var docs embed.FS

// docsPolicy lets the page load from this server only, and run no inline script. Swagger UI sets styles by script, which do
// not count as inline styles, and has its icons as data.
const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// serveDocs serves the document and its page.
func (a *API) serveDocs() {
	a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Problem](), true, "")
	a.page("/openapi.json", "application/openapi+json", a.spec)
	for _, file := range []struct{ path, name, kind string }{
		{"/docs", "index.html", "text/html"},
		{"/docs/start.js", "start.js", "text/javascript"},
		{"/docs/swagger-ui-bundle.js", "swagger-ui-bundle.js", "text/javascript"},
		{"/docs/swagger-ui.css", "swagger-ui.css", "text/css"},
		{"/docs/LICENSE", "LICENSE", "text/plain"},
	} {
		a.page(file.path, file.kind+"; charset=utf-8", func() []byte {
			content, err := docs.ReadFile("docs/" + file.name)
			if err != nil {
				panic(err)
			}
			return content
		})
	}
}

// Page serves a path that is no operation, by GET, to everybody.
func (a *API) Page(path string, handler http.Handler) {
	a.pages[path] = true
	a.router.Path(path).Methods(http.MethodGet).Handler(handler)
}

func (a *API) page(path, kind string, content func() []byte) {
	a.Page(path, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", kind)
		h.Set("Content-Security-Policy", docsPolicy)
		h.Set("Referrer-Policy", "no-referrer")
		_, _ = w.Write(content())
	}))
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
