package pages

import (
	"net/url"
	"slices"
	"strings"
)

// messagingResources are the resources of messaging.
var messagingResources = []*resource{
	{
		word: "contacts", title: "Contacts", button: "Add a contact", about: "The people to whom you write.",
		list: "list-messaging-contacts", get: "get-messaging-contact", create: "add-messaging-contact",
		edit: "edit-messaging-contact", remove: "delete-messaging-contact",
		columns: []string{"name", "phone", "email", "optIn", "status", "listIds", "lastMessageAt"},
		actions: []action{{
			operation: "import-messaging-contacts", button: "Import a file", shows: true,
			about: "A CSV or Excel file with a row of names: name, phone, email, opt in, and the evidence of the consent.",
		}},
		links: func(d *desk, _ map[string]any) []choice {
			return []choice{{Value: pagePath("inbox", d.id), Text: "Conversation"}}
		},
	},
	{
		word: "lists", title: "Contact lists", button: "Make a list", about: "Campaigns go to the contacts of a list.",
		list: "list-contact-lists", create: "create-contact-list", without: []string{"contactIds"},
		columns: []string{"name", "contactCount", "createdAt"}, leads: Path + "/list/contacts?listId=",
	},
	{
		word: "templates", title: "Message templates", about: "Texts that the network has approved. Campaigns send them.",
		list: "list-templates", columns: []string{"name", "language", "category", "status", "channelId"},
	},
	{
		word: "channels", title: "Channels", button: "Add a channel", about: "Networks over which you write, and the chat on your own site.",
		list: "list-channels", get: "get-channel", create: "create-channel", edit: "edit-channel", remove: "delete-channel",
		columns: []string{"name", "type", "status", "incoming"}, without: []string{"channelKey"},
		kinds: map[string][]string{
			"chat": {
				"name", "apiKey", "settings.dialect", "settings.senderId", "settings.accountId", "settings.appName", "settings.appSecret",
				"settings.baseUrl",
			},
			"gmail":    {"name", "accessToken", "settings.userId", "settings.clientId", "settings.clientSecret", "settings.refreshToken"},
			"telegram": {"name", "apiKey", "settings.senderId"},
			"twitter": {
				"name", "accessToken", "settings.userId", "settings.clientId", "settings.clientSecret", "settings.consumerSecret",
				"settings.refreshToken",
			},
			"web": {"name", "settings.allowedOrigins"},
		},
		note: func(c map[string]any) string { return textOf(c["lastError"]) },
		parts: []*resource{
			{word: "usage", title: "Usage", list: "get-channel-usage", columns: []string{"day", "replies"}, flat: true},
		},
	},
	{
		word: "bots", title: "Bots", button: "Create a bot", about: "They answer your customers by themselves.",
		list: "list-bots", get: "get-bot", create: "create-bot", edit: "edit-bot", remove: "delete-bot",
		columns: []string{"name", "active", "channelIds", "fileCount", "urlCount"}, fixed: url.Values{"scope": {"workspace"}},
		each: []action{{
			operation: "try-bot", button: "Try it", shows: true,
			about: "Ask as a customer would. Nothing is sent; webhooks are only simulated unless you choose to call them.",
		}},
		parts: []*resource{
			{
				word: "files", title: "Files", button: "Upload a file", about: "The bot answers from what they say.",
				list: "list-bot-files", create: "add-bot-file", remove: "delete-bot-file",
				columns: []string{"fileName", "status", "size", "chunkCount", "error"}, stream: "stream-bot-knowledge", events: "knowledge",
			},
			{
				word: "pages", title: "Pages of a site", button: "Add a page", about: "The bot answers from what they say.",
				list: "list-bot-urls", create: "add-bot-url", remove: "delete-bot-url",
				columns: []string{"url", "title", "status", "lastFetchedAt", "error"}, stream: "stream-bot-knowledge", events: "knowledge",
				each: []action{{operation: "refresh-bot-url", button: "Read it again"}},
			},
			{
				word: "tools", title: "Tools", about: "What the bot may do beside answering.",
				list: "list-bot-tools", fixed: url.Values{"available": {"true"}}, columns: []string{"name", "description", "attached"},
				each: []action{
					{
						operation: "attach-bot-tool", button: "Let the bot use it", when: func(t map[string]any) bool { return t["attached"] != true },
						body: func(t map[string]any) any { return map[string]any{"toolId": t["id"]} },
					},
					{operation: "remove-bot-tool", button: "Take it away", when: func(t map[string]any) bool { return t["attached"] == true }},
				},
			},
			{
				word: "webhooks", title: "Webhooks", button: "Add a webhook", about: "Your own system, which the bot asks.", shows: true,
				list: "list-bot-webhooks", create: "create-bot-webhook", edit: "edit-bot-webhook",
				columns: []string{"name", "url", "method", "active"},
			},
			{
				word: "calls", title: "Calls", about: "What the bot has called.", list: "list-bot-calls", flat: true,
				columns: []string{"at", "kind", "name", "contactId", "httpStatus", "durationMs", "error"},
			},
			{
				word: "usage", title: "Usage", list: "get-bot-usage", flat: true,
				columns: []string{"day", "messages", "tokens", "calls", "handovers"},
			},
		},
	},
	campaigns,
}

// campaigns are messages to many contacts.
var campaigns = &resource{
	base: Path, word: "campaigns", title: "Campaigns", button: "Make a campaign", about: "One message to many contacts.",
	list: "list-campaigns", get: "get-campaign", create: "create-campaign",
	columns: []string{"name", "type", "status", "audience", "scheduledAt", "startedAt"},
	kinds: map[string][]string{
		"broadcast": campaignFields, "survey": campaignFields,
		"drip":    append(campaignFields[:6:6], "steps"),
		"trigger": {"name", "audience", "templateId", "templateParams", "trigger"},
	},
	stream: "watch-campaign", events: "progress",
	live:  []string{"status", "reason", "pausedUntil", "nextRunAt", "completedAt", "stats", "runs"},
	watch: inStatus("scheduled", "active", "paused"),
	note: func(c map[string]any) string {
		if c["status"] == "completed" && c["startedAt"] == nil {
			return "It was cancelled before it began."
		}
		return textOf(c["reason"])
	},
	more: (*desk).reach,
	links: func(_ *desk, c map[string]any) []choice {
		if c["audience"] == "parties" {
			return nil
		}
		list := url.QueryEscape(strings.TrimPrefix(textOf(c["audience"]), "all"))
		return []choice{{Value: Path + "/list/contacts?optIn=false&listId=" + list, Text: "Contacts without consent"}}
	},
	each: []action{
		{
			operation: "send-campaign", button: "Send", about: "It goes out at once, to those of its contacts who have consented.", did: "sent",
			when: inStatus("draft", "scheduled", "paused", "failed"), // a failed one to the recipients that the network refused
			body: func(c map[string]any) any { return map[string]any{"campaignId": c["id"]} },
		},
		{
			operation: "cancel-campaign", button: "Cancel", about: "What was sent stays sent. The rest does not go out.",
			danger: true, did: "cancelled",
			when: inStatus("scheduled", "active", "paused"),
		},
	},
	parts: []*resource{
		{
			word: "recipients", title: "Recipients", list: "list-campaign-recipients", flat: true,
			about:   "Contacts without consent or a phone are skipped. They are only counted.",
			columns: []string{"contactId", "phone", "status", "reason", "at"},
		},
		{
			word: "responses", title: "Responses", list: "list-campaign-responses", flat: true, columns: []string{"contactId", "text", "at"},
		},
	},
}

var campaignFields = []string{"name", "audience", "templateId", "templateParams", "schedule", "scheduledAt", "recurrence"}

// inStatus returns a function that reports whether a record has one of the statuses.
func inStatus(statuses ...string) func(map[string]any) bool { return inStates("status", statuses...) }

// inStates returns a function that reports whether a record has one of the values of a field.
func inStates(name string, states ...string) func(map[string]any) bool {
	return func(record map[string]any) bool { return slices.Contains(states, textOf(record[name])) }
}

// reach returns the text and the audience of an unsent campaign, nil for another and for that of a confirmation. The API has no dry run of
// a campaign.
func (d *desk) reach(campaign map[string]any) any {
	if !inStatus("draft", "scheduled", "paused")(campaign) || campaign["audience"] == "parties" {
		return nil
	}
	text, query := "", url.Values{}
	templates, _, refused := d.paged("list-templates", request{}, 1, rowsFound)
	if refused != nil {
		return nil
	}
	for _, t := range templates {
		if textOf(t["id"]) != textOf(campaign["templateId"]) {
			continue
		}
		text = textOf(t["body"])
		for name, value := range inner(campaign, "templateParams") {
			text = strings.ReplaceAll(text, "{{"+name+"}}", textOf(value))
		}
	}
	if audience := textOf(campaign["audience"]); audience != "all" {
		query.Set("listId", audience)
	}
	_, all, _ := d.paged("list-messaging-contacts", request{query: query}, 1, 1)
	query.Set("optIn", "true")
	_, agree, _ := d.paged("list-messaging-contacts", request{query: query}, 1, 1)
	return map[string]any{"Text": text, "Contacts": all, "Agree": agree}
}

// scripted reports whether a script fetches the page to refresh a part of it.
func (d *desk) scripted() bool { return d.r.Header.Get("Sec-Fetch-Dest") == "empty" }

// tryWidget shows a channel's chat widget as on a website.
func (v *visit) tryWidget() page {
	channel := v.one("get-channel", v.r.PathValue("id"))
	if textOf(channel["channelKey"]) == "" {
		return v.deny(errNoPage)
	}
	allowed := slices.Contains(textsOf(inner(channel, "settings")["allowedOrigins"]), v.site)
	body := map[string]any{"Channel": channel, "Origin": v.site, "Allowed": allowed}
	return page{template: "try-widget", title: textOf(channel["name"]), body: body}
}
