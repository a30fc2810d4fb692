package pages

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"
)

func workspaceResource() *resource {
	return &resource{
		base: operatePath, word: "workspaces", title: "Workspaces", list: "list-all-workspaces", inline: true,
		about:   "Enter a workspace to see its books and to work in them. The log names you.",
		columns: []string{"name", "owner_name", "owner_email", "members", "created_at", "enter"},
		cells:   "workspaces",
	}
}

func markResource() *resource {
	return &resource{
		base: operatePath, word: "companies", title: "Marks of companies", list: "list-companies", search: "search-companies", inline: true,
		about:   "Mark a company as verified after you have checked who it is. A change of its name, GSTIN or domain ends the mark.",
		columns: []string{"name", "category", "city", "mark"}, without: []string{"category", "city", "verified", "mine"},
		cells: "marks",
		each: []action{
			{
				operation: "edit-company", button: "Mark as verified", about: "Buyers will see that it is verified.", reason: true,
				when:   func(c map[string]any) bool { return c["verified"] != true },
				starts: func(_ *desk, _ map[string]any) map[string]any { return map[string]any{"verified": true} },
			},
			{
				operation: "edit-company", button: "Take the mark back", about: "Buyers will see no mark any more.", reason: true,
				when:   func(c map[string]any) bool { return c["verified"] == true },
				starts: func(_ *desk, _ map[string]any) map[string]any { return map[string]any{"verified": false} }, danger: true,
			},
		},
	}
}

func jobResource() *resource {
	return &resource{
		base: operatePath, word: "jobs", title: "Jobs", list: "list-jobs", inline: true,
		about:   "Side effects of events, such as mails. A job that fails is tried again, and given up after its last attempt.",
		columns: []string{"kind", "state", "attempts", "scheduled_at", "finished_at", "args", "last_error", "report"},
		cells:   "jobs",
		each: []action{
			{
				operation: "retry-job", button: "Run now",
				when: inStates("state", "available", "pending", "scheduled", "retryable", "cancelled", "discarded"),
			},
			{
				operation: "cancel-job", button: "Cancel", about: "It is not tried again. What it would do stays undone.",
				danger: true, when: inStates("state", "available", "pending", "scheduled", "running", "retryable"),
			},
		},
	}
}

func parkedResource() *resource {
	return &resource{
		base: operatePath, word: "parked", title: "Parked", list: "list-parked", inline: true,
		about:   "Projections and reactors that have stopped at an event which they cannot apply. They are behind the log until they go on.",
		columns: []string{"name", "kind", "event", "stream", "since", "error", "program"},
		cells:   "parked",
		each: []action{
			{operation: "retry-parked", button: "Try again"},
			skip("skip-parked", func(p map[string]any) any { return p["position"] }),
		},
	}
}

// skip returns the action that skips the event at a position.
func skip(operation string, position func(map[string]any) any) action {
	return action{
		operation: operation, button: "Skip the event", about: "It goes on without this event. The log keeps who skipped it, and why.",
		danger: true, fields: []string{"reason"},
		when:   func(r map[string]any) bool { at := textOf(position(r)); return at != "" && at != "0" },
		starts: func(_ *desk, r map[string]any) map[string]any { return map[string]any{"position": position(r)} },
	}
}

func webhookResource() *resource {
	return &resource{
		base: operatePath, word: "webhooks", title: "Webhooks", list: "list-webhooks", get: "get-webhook", inline: true,
		about:   "Calls of providers, and what has followed from each.",
		columns: []string{"endpoint", "received_at", "verdict", "effect", "reason", "error"},
		live:    []string{"received_at", "verdict", "effect", "reason", "settled_at", "error", "body"},
		cells:   "webhooks",
		each: []action{{
			operation: "replay-webhook", button: "Handle again",
			when: func(c map[string]any) bool {
				return inStates("verdict", "parked", "ignored")(c) && c["has_body"] == true
			},
		}},
	}
}

func outboxResource() *resource {
	return &resource{
		base: operatePath, word: "outbox", title: "Outbox", list: "list-outbox", flat: true, first: "port",
		about:   "Messages that are not sent as no provider is configured: mails need SMTP_URL. Their links open accounts, so keep them secret.",
		columns: []string{"time", "to", "subject", "status", "error", "text"},
		cells:   "outbox",
	}
}

func eventResource() *resource {
	return &resource{
		base: operatePath, word: "events", title: "Events", list: "list-events", find: (*desk).event,
		about: "All that has happened, the newest first. A search looks at a part of the log at a time.",
		fixed: url.Values{"newest_first": {"true"}}, without: []string{"from_position"},
		columns: []string{"type", "position", "stream", "recorded_at", "actor", "reason"},
		live: []string{
			"position", "stream", "revision", "recorded_at", "actor", "reason", "workspace", "signed", "payload", "metadata",
		},
		cells: "events",
		links: func(d *desk, _ map[string]any) []choice {
			return []choice{{Value: operatePath + "/events?to_position=" + d.id, Text: "The log up to here"}}
		},
	}
}

// event returns the event of the page.
func (d *desk) event() (map[string]any, *problem) {
	rows, _, refused := d.rows(url.Values{"from_position": {d.id}, "to_position": {d.id}}, 1, 1)
	switch {
	case refused != nil && refused.Status != http.StatusUnprocessableEntity:
		return nil, refused
	case len(rows) != 1:
		return nil, errNoPage
	}
	return rows[0], nil
}

// Proof returns the event's inclusion proof, nil if no checkpoint has the event yet.
func (d *desk) Proof(event map[string]any) (proof map[string]any) {
	d.ask("prove-inclusion", request{query: url.Values{"position": {textOf(event["position"])}}}, &proof)
	return proof
}

// Content returns the body of a webhook call, "" if it was removed.
func (d *desk) Content(call map[string]any) string {
	if raw, err := base64.StdEncoding.DecodeString(textOf(call["body_base64"])); err == nil && len(raw) > 0 {
		return strings.ToValidUTF8(string(raw), string(utf8.RuneError))
	}
	return textOf(call["body"])
}

// inner returns the object in a field, nil if there is none.
func inner(record map[string]any, name string) map[string]any {
	object, _ := record[name].(map[string]any)
	return object
}

// compact returns a JSON value as one line, "" for an empty one.
func compact(value any) string {
	text, err := json.Marshal(value)
	if err != nil || string(text) == "{}" || value == nil {
		return ""
	}
	return string(text)
}

// indent returns JSON with a line for each value. It returns any other text unchanged.
func indent(text []byte) string {
	var out bytes.Buffer
	if json.Indent(&out, text, "", "  ") != nil {
		return string(text)
	}
	return out.String()
}
