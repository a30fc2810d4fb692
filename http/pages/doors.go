package pages

import (
	"maps"
	"net/http"
)

// door is a page with one form, for unauthenticated visitors or for a mail's link. Only its button has an effect, because mail scanners
// follow links.
type door struct {
	Path, operation      string
	Title, About, Button string
	Then                 string // text shown after success
	signedIn             bool   // requires a signed-in user
	mails                bool   // it sends a mail
}

const acceptPath = "/invitations/accept"

// doors are all such pages. Paths outside /app are links in Bahi's mails.
var doors = []door{
	{
		Path: Path + "/register", operation: "register", Title: "Register", Button: "Register", mails: true,
		About: "Your account has books of its own. A mail asks you to confirm your address.",
		Then:  "Look into your mails: a link there confirms your address.",
	},
	{
		Path: Path + "/forgot", operation: "request-password-reset", Title: "Forgot password", Button: "Send the mail", mails: true,
		About: "A mail brings you a link to set a new password. It also confirms your address.",
		Then:  "If there is an account of this address, a mail is on its way.",
	},
	{
		Path: "/auth/verify-email", operation: "verify-email", Title: "Confirm your address", Button: "Confirm",
		About: "The button confirms that this address is yours.", Then: "Your address is confirmed. Sign in now.",
	},
	{
		Path: "/auth/reset-password", operation: "confirm-password-reset", Title: "New password", Button: "Set the password",
		About: "All devices that are signed in are signed out.", Then: "The password is set. Sign in now.",
	},
	{
		Path: "/auth/undo-email-change", operation: "undo-email-change", Title: "Take back the change of address", Button: "Take back",
		About: "The account gets its former address back, and all devices are signed out.", Then: "The account has its former address again.",
	},
	{
		Path: acceptPath, operation: "accept-invitation", Title: "Join the workspace", Button: "Join", signedIn: true,
		About: "You will see the books that you were invited to, as far as the invitation says.",
		Then:  "You have joined. The workspace is chosen.",
	},
	{
		Path: "/companies/confirm-email", operation: "confirm-company-email", Title: "Confirm the company's address", Button: "Confirm",
		About: "The button confirms that enquiries may be sent to this address.", Then: "The address is confirmed.",
	},
}

// doorPage is the content of a page with one form.
type doorPage struct {
	door

	Token  string // of the mail
	Fields []field
	Wrong  []string
	Key    string
	Kept   bool // mails are stored in the data folder
	Done   bool
}

func (v *visit) door(d door) page {
	if d.signedIn && v.who.Type == "" {
		return page{redirect: v.signInPath()}
	}
	schema := v.schemaOf(d.operation)
	shown := doorPage{door: d, Token: v.r.URL.Query().Get("token"), Kept: d.mails && v.MailsKept}
	drawn, body, faults, status := schema.without("token"), map[string]any{}, map[string]string(nil), 0
	if v.r.Method == http.MethodPost {
		body = drawn.read(v.r.PostForm, false)
		sent := maps.Clone(body)
		if shown.Token = v.r.PostForm.Get("mailed"); shown.Token != "" {
			sent["token"] = shown.Token
		}
		var answer map[string]any
		_, refused := v.ask(d.operation, request{body: sent, key: v.r.PostForm.Get("key")}, &answer)
		switch {
		case refused == nil && d.signedIn:
			return v.enterWorkspace(textOf(answer["workspace_id"]), true)
		case refused == nil:
			shown.Done = true
			return page{template: "door", title: d.Title, body: shown}
		}
		shown.Wrong = general(refused)
		faults, status, shown.Key = refused.faults(), refused.Status, v.r.PostForm.Get("key")
	}
	shown.Fields = drawn.fields("", body, faults, 0)
	if faults["token"] != "" {
		shown.Wrong = append(shown.Wrong, v.lang.t("This link is not complete. Open the link in the mail again."))
		delete(faults, "token")
	}
	shown.Wrong = append(shown.Wrong, v.lang.misplaced(shown.Fields, faults)...)
	return page{template: "door", title: d.Title, status: status, body: shown}
}
