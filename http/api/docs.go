package api

import (
	"embed"
	"encoding/json"
	"net/http"
	"reflect"
)

// The page is Swagger UI (Apache-2.0), as its npm package swagger-ui-dist 5.35.0 has it.
//
//go:embed docs
var docs embed.FS

// docsPolicy lets the page load from this server only, and run no script that is written into it.
// Swagger UI sets styles from its script, which is no inline style, and has its icons as data.
const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// serveDocs serves the document, and the page that shows it.
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

// Page serves what is no operation, by GET, to everybody.
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
	if err != nil {
		panic(err)
	}
	return text
}

// OpenAPI returns the document of all that is registered, which must be complete by then.
func (a *API) OpenAPI() []byte { return a.spec() }
