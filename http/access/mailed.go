package access

import (
	"fmt"
	"net/http"
	"regexp"
)

// mailed are the pages to which links in mails lead, as long as no frontend has them: each says what its token is for.
var mailed = []struct{ path, title, operation, more string }{
	{"/auth/verify-email", "Confirm your email address", "/api/v1/auth/verify-email", ""},
	{"/auth/reset-password", "Set a new password", "/api/v1/auth/password-reset/confirm", `, "new_password": "…"`},
	{"/auth/undo-email-change", "Take your account back", "/api/v1/auth/email-change/undo", ""},
	{"/invitations/accept", "Join the workspace: sign in with the invited address, and use its access token", "/api/v1/invitations/accept", ""},
	{"/companies/confirm-email", "Confirm the company's address", "/api/v1/companies/confirm-email", ""},
}

// mailedToken matches the tokens of mails. Nothing else of an address is repeated on its page.
var mailedToken = regexp.MustCompile(`^[0-9A-Za-z._-]{1,500}$`)

// Mailed registers these pages.
func (r *Routes) Mailed() {
	for _, page := range mailed {
		r.API.Page(page.path, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			token := request.URL.Query().Get("token")
			if !mailedToken.MatchString(token) {
				token = "…"
			}
			h := w.Header()
			h.Set("Content-Type", "text/plain; charset=utf-8")
			h.Set("X-Content-Type-Options", "nosniff")
			h.Set("Referrer-Policy", "no-referrer") // the address has a token
			h.Set("Cache-Control", "no-store")
			signedIn := ""
			if page.path == "/invitations/accept" {
				signedIn = ` -H "Authorization: Bearer $TOKEN"`
			}
			_, _ = fmt.Fprintf(w, "%s\n\nNothing has happened yet. Your app does it with the token of this page's address, or this command:\n\n"+
				"curl -X POST %s%s%s -H 'Content-Type: application/json' -d '{\"token\": \"%s\"%s}'\n",
				page.title, r.Public, page.operation, signedIn, token, page.more)
		}))
	}
}
