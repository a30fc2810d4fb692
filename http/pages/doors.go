package pages

import (
	"maps"
	"net/http"
	"strings"
)

// door is a page with one form, for unauthenticated visitors or for a mail's link. Only its button has an effect, because mail scanners
// follow links.
type door struct {
	path, operation      string
	title, about, button string
	then                 string // text shown after success; "": the API's message
	signedIn             bool   // requires a signed-in user
	mails                bool   // it sends a mail
}

// doors are all such pages. Paths outside /app are links in Bahi's mails.
var doors = []door{
	{
		path: Path + "/register", operation: "register", title: "Register", button: "Register", mails: true,
		about: "Your account has books of its own. A mail asks you to confirm your address.",
		then:  "Look into your mails: a link there confirms your address.",
	},
	{
		path: Path + "/forgot", operation: "request-password-reset", title: "Forgot password", button: "Send the mail", mails: true,
		about: "A mail brings you a link to set a new password. It also confirms your address.",
		then:  "If there is an account of this address, a mail is on its way.",
	},
	{
		path: "/auth/verify-email", operation: "verify-email", title: "Confirm your address", button: "Confirm",
		about: "The button confirms that this address is yours.", then: "Your address is confirmed. Sign in now.",
	},
	{
		path: "/auth/reset-password", operation: "confirm-password-reset", title: "New password", button: "Set the password",
		about: "All devices that are signed in are signed out.", then: "The password is set. Sign in now.",
	},
	{
		path: "/auth/undo-email-change", operation: "undo-email-change", title: "Take back the change of address", button: "Take back",
		about: "The account gets its former address back, and all devices are signed out.", then: "The account has its former address again.",
	},
	{
		path: "/invitations/accept", operation: "accept-invitation", title: "Join the workspace", button: "Join", signedIn: true,
		about: "You will see the books that you were invited to, as far as the invitation says.",
		then:  "You have joined. The workspace is chosen.",
	},
	{
		path: "/companies/confirm-email", operation: "confirm-company-email", title: "Confirm the company's address", button: "Confirm",
		about: "The button confirms that enquiries may be sent to this address.", then: "The address is confirmed.",
	},
}

// doorPage is the content of a page with one form.
type doorPage struct {
	Path, Heading, About, Button, Then string
	Token                              string // of the mail
	Fields                             []field
	Wrong                              []string
	Key                                string
	MailsKept                          bool
}

func (v *visit) door(d door) page {
	if d.signedIn && v.who.Type == "" {
		return page{redirect: v.signInPath()}
	}
	schema := v.schemaOf(d.operation)
	shown := doorPage{Path: d.path, Heading: d.title, About: d.about, Button: d.button, Token: v.r.URL.Query().Get("token"),
		MailsKept: d.mails && v.MailsKept}
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
			return v.joined(textOf(answer["workspace_id"]))
		case refused == nil:
			shown.Then = d.then
			return page{template: "door", title: d.title, body: shown}
		}
		shown.Wrong = general(refused)
		faults, status, shown.Key = refused.faults(), refused.Status, v.r.PostForm.Get("key")
	}
	shown.Fields = drawn.fields("", body, faults, 0)
	for _, text := range misplaced(shown.Fields, faults) {
		shown.Wrong = append(shown.Wrong, strings.TrimPrefix(text, "token: "))
	}
	return page{template: "door", title: d.title, status: status, body: shown}
}
