package pages

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"net/http"
	"sync"
	"text/template"

	"bahi/domain/fault"
)

// verifyPath is the verifier's path. It is public: auditors have no account, and the page shows no data.
const verifyPath = "/verify"

// verifyFiles are the page's files, and those that scripts/verifier.sh builds. A program that was built by go build alone lacks the latter.
//
//go:embed verify
var verifyFiles embed.FS

// The built files.
const (
	verifierFile = "verify/bahi-verify.wasm.gz"
	supportFile  = "verify/wasm_exec.js"
)

// verifier is the page that verifies archives and proofs in the browser, in a single file: it can be saved and opened without a server,
// and its policy allows no connections.
type verifier struct {
	page   []byte
	policy string
}

// verifierPage is not of html/template: the page has no texts of users, and the policy covers its exact bytes.
var verifierPage = template.Must(template.ParseFS(verifyFiles, "verify/page.html"))

// newVerifier assembles the page. Program is cmd/bahi-verify for a browser, gzipped; support is Go's runtime support for it.
func newVerifier(program, support []byte) (*verifier, error) {
	style, _ := verifyFiles.ReadFile("verify/page.css") // embedded, so it exists
	script, _ := verifyFiles.ReadFile("verify/page.js")
	script = bytes.Join([][]byte{support, script}, []byte("\n"))
	v := &verifier{policy: "default-src 'none'; script-src " + digest(script) + " 'wasm-unsafe-eval'; style-src " + digest(style) +
		"; img-src data:; base-uri 'none'; form-action 'none'"}
	var text bytes.Buffer
	err := verifierPage.Execute(&text, map[string]string{
		"Policy": v.policy, "Style": string(style), "Script": string(script), "Save": verifyPath + "/bahi-verify.html",
		"Program": base64.StdEncoding.EncodeToString(program),
	})
	v.page = text.Bytes()
	return v, err
}

// digest returns the policy's source for a script or style.
func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// builtVerifier returns the page of this program, or fs.ErrNotExist if the program contains none.
func builtVerifier() (*verifier, error) {
	program, err := fs.ReadFile(verifyFiles, verifierFile)
	support, missing := fs.ReadFile(verifyFiles, supportFile)
	if err = cmp.Or(err, missing); err != nil {
		return nil, err
	}
	return newVerifier(program, support)
}

var errNoVerifier = fault.New(fault.NotFound, "This program was built without the verifier's page. bahi-verify does the same at the shell.")

// verifyRoutes registers the page, which is assembled at the first request.
func (p *Pages) verifyRoutes(build func() (*verifier, error)) {
	build = sync.OnceValues(build)
	serve := func(disposition string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			made, err := build()
			if err != nil {
				p.serve(w, r, false, func(v *visit) page { return v.deny(errNoVerifier) })
				return
			}
			made.serve(w, disposition)
		}
	}
	p.mux.HandleFunc("GET "+verifyPath, serve("inline"))
	p.mux.HandleFunc("GET "+verifyPath+"/bahi-verify.html", serve(`attachment; filename="bahi-verify.html"`))
}

func (v *verifier) serve(w http.ResponseWriter, disposition string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Disposition", disposition)
	h.Set("Content-Security-Policy", v.policy+"; frame-ancestors 'none'")
	_, _ = w.Write(v.page) // the browser may have disconnected
}
