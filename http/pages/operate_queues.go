package pages

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

var workspaceList = operateList{
	word: "workspaces", title: "Workspaces", operation: "list-all-workspaces", size: "page_size",
	about: "Enter a workspace to see its books and to work in them. The log names you.",
	line: func(v *visit, w opsRecord) opsLine {
		line := opsLine{Cells: []opsCell{
			{Label: "Name", Text: w.text("name")}, {Label: "Owner", Text: strings.Trim(w.text("owner_name")+" · "+w.text("owner_email"), " ·")},
			{Label: "Members", Text: unsigned(w["members"], 0)}, {Label: "Since", Moment: w.text("created_at")},
		}}
		if line.Cells[0].Text == "" {
			line.Cells[0].Text = v.lang.t("Without a name") + " · " + w.text("id")[:8]
		}
		if w.text("id") == v.who.Workspace.String() {
			line.Cells[0].Chip, line.Cells[0].Text = "good", line.Cells[0].Text+" · "+v.lang.t("you are here")
		} else {
			line.Forms = []opsForm{{Name: "Enter", Do: "enter", ID: w.text("id"), Address: Path + "/workspace"}}
		}
		return line
	},
}

var companyList = operateList{
	word: "companies", title: "Marks of companies", operation: "list-companies", search: "search-companies", size: "limit",
	about: "Mark a company as verified after you have checked who it is. A change of its name, GSTIN or domain ends the mark.",
	forms: []string{"edit-company"},
	line: func(v *visit, c opsRecord) opsLine {
		mark := opsForm{
			Name: "Mark as verified", Label: "Buyers will see that it is verified.",
			Do: "edit-company", ID: c.text("id"), Field: "value", Value: "true", Reason: true,
		}
		state := opsCell{Label: "Mark"}
		if c["verified"] == true {
			state = opsCell{Label: "Mark", Text: v.lang.t("Verified"), Chip: "good"}
			mark = opsForm{
				Name: "Take the mark back", Label: "Buyers will see no mark any more.",
				Do: "edit-company", ID: c.text("id"), Field: "value", Value: "false", Reason: true, Danger: true,
			}
		}
		return opsLine{
			Cells: []opsCell{
				{Label: "Name", Text: c.text("name"), Link: "/companies/" + url.PathEscape(c.text("slug"))},
				{Label: "Category", Text: c.text("category")}, {Label: "City", Text: c.text("city")}, state,
			},
			Forms: []opsForm{mark},
		}
	},
}

var jobList = operateList{
	word: "jobs", title: "Jobs", operation: "list-jobs", size: "page_size",
	about: "Side effects of events, such as mails. A job that fails is tried again, and given up after its last attempt.",
	forms: []string{"retry-job", "cancel-job"},
	line: func(v *visit, j opsRecord) opsLine {
		state, id := j.text("state"), j.text("id")
		due := opsCell{Label: "Due", Moment: j.text("scheduled_at")}
		if j["finished_at"] != nil {
			due = opsCell{Label: "Ended", Moment: j.text("finished_at")}
		}
		line := opsLine{Cells: []opsCell{
			{Label: "Kind", Text: strings.ReplaceAll(j.text("kind"), "_", " ") + " " + id}, v.stateChip("State", state),
			{Label: "Attempts", Text: v.lang.tf("%s of %s", j.text("attempt"), j.text("max_attempts"))}, due,
			{Label: "About", Text: compact(j["args"]), Code: true},
		}, Note: opsCell{Text: j.text("last_error"), Chip: "bad"}}
		if line.Note.Text == "" {
			line.Note = opsCell{Text: j.text("report")}
		}
		if !slices.Contains([]string{"running", "completed"}, state) {
			line.Forms = append(line.Forms, opsForm{Name: "Run now", Do: "retry-job", ID: id})
		}
		if !slices.Contains([]string{"completed", "cancelled", "discarded"}, state) {
			line.Forms = append(line.Forms, opsForm{
				Name: "Cancel", Label: "It is not tried again. What it would do stays undone.", Do: "cancel-job", ID: id, Danger: true,
			})
		}
		return line
	},
}

var parkedList = operateList{
	word: "parked", title: "Parked", operation: "list-parked",
	about: "Projections and reactors that have stopped at an event which they cannot apply. They are behind the log until they go on.",
	forms: []string{"retry-parked", "skip-parked"},
	line: func(v *visit, p opsRecord) opsLine {
		return v.parkedLine(p, "retry-parked", "skip-parked", p.text("name"))
	},
}

// parkedLine returns the line of a follower that has stopped, with the forms that run two operations.
func (v *visit) parkedLine(p opsRecord, retry, skip, id string) opsLine {
	position := plain(p["position"])
	line := opsLine{
		Cells: []opsCell{
			{Label: "Name", Text: p.text("name")}, v.stateChip("Kind", p.text("kind")),
			{Label: "Event", Text: position + " " + p.text("type"), Link: operatePath + "/events/" + position},
			{Label: "Stream", Text: p.text("stream"), Link: operatePath + "/events?stream=" + url.QueryEscape(p.text("stream"))},
			{Label: "Since", Moment: p.text("since")}, {Label: "Program", Text: p.text("program")},
		},
		Note: opsCell{Text: p.text("error"), Chip: "bad"}, Forms: []opsForm{{Name: "Try again", Do: retry, ID: id}},
	}
	if p.text("kind") != "reactor" {
		line.Cells[0].Link = operatePath + "/projections/" + url.PathEscape(p.text("name"))
	}
	if position != "0" {
		line.Forms = append(line.Forms, opsForm{
			Name: "Skip the event", Label: "It goes on without this event. The log keeps who skipped it, and why.",
			Do: skip, ID: id, Position: position, Reason: true, Danger: true,
		})
	}
	return line
}

var webhookList = operateList{
	word: "webhooks", title: "Webhooks", operation: "list-webhooks", size: "page_size",
	about: "Calls of providers, and what has followed from each.", forms: []string{"replay-webhook"},
	line: func(v *visit, c opsRecord) opsLine {
		line := opsLine{Cells: v.webhookCells(c), Note: opsCell{Text: c.text("error"), Chip: "bad"}}
		line.Cells[0].Link = operatePath + "/webhooks/" + c.text("id")
		line.Forms = replay(c)
		return line
	},
}

func (v *visit) webhookCells(c opsRecord) []opsCell {
	return []opsCell{
		{Label: "Received", Moment: c.text("received_at")}, {Label: "Endpoint", Text: c.text("endpoint")},
		v.stateChip("Verdict", c.text("verdict")),
		{Label: "Effect", Text: strings.TrimSpace(c.text("effect") + " " + c.text("reason"))},
	}
}

// replay returns the form that handles a call again, if that may have another effect.
func replay(c opsRecord) []opsForm {
	if verdict := c.text("verdict"); verdict != "parked" && verdict != "ignored" || c["has_body"] != true {
		return nil
	}
	return []opsForm{{Name: "Handle again", Do: "replay-webhook", ID: c.text("id"), Address: operatePath + "/webhooks"}}
}

// webhook shows a call with its body.
func (v *visit) webhook() (page, error) {
	var c opsRecord
	if _, err := v.call("get-webhook", request{vars: []string{v.r.PathValue("id")}}, &c); err != nil {
		if refused := refusal(err); refused != nil && refused.Status == http.StatusUnprocessableEntity {
			err = errNoPage
		}
		return page{}, err
	}
	b := operatePage{Up: up("webhooks", "Webhooks"), Facts: v.webhookCells(c), Forms: replay(c)}
	if c["settled_at"] != nil {
		b.Facts = append(b.Facts, opsCell{Label: "Settled", Moment: c.text("settled_at")})
	}
	if text := c.text("error"); text != "" {
		b.Facts = append(b.Facts, opsCell{Label: "Error", Text: text})
	}
	body := c.text("body")
	if raw, err := base64.StdEncoding.DecodeString(c.text("body_base64")); err == nil && len(raw) > 0 {
		body = strings.ToValidUTF8(string(raw), string(utf8.RuneError))
	}
	if body == "" {
		b.Label = v.lang.t("Its body was removed.")
	} else {
		b.Texts = []opsCell{{Label: "Body", Text: indent([]byte(body))}}
	}
	return page{template: "operate", title: "Call of a provider", body: b}, nil
}

var outboxList = operateList{
	word: "outbox", title: "Outbox", operation: "list-outbox", size: "page_size", query: url.Values{"port": {"mail"}},
	about: "Messages that are not sent as no provider is configured: mails need SMTP_URL. Their links open accounts, so keep them secret.",
	line: func(v *visit, m opsRecord) opsLine {
		line := opsLine{Cells: []opsCell{
			{Label: "Time", Moment: m.text("time")}, {Label: "To", Text: m.text("to")}, {Label: "Subject", Text: m.text("subject")},
			v.stateChip("Status", m.text("status")),
		}, Note: opsCell{Text: m.text("error"), Chip: "bad"}, Text: m.text("text")}
		if m.text("status") == "kept" {
			line.Cells[3].Text = v.lang.t("Not sent")
		}
		return line
	},
}

// up returns the link to the list above a page.
func up(word, title string) []choice { return []choice{{Value: operatePath + "/" + word, Text: title}} }

// compact returns a JSON value as one line, "" for an empty one.
func compact(value any) string {
	text, err := json.Marshal(value)
	if err != nil || string(text) == "{}" || value == nil {
		return ""
	}
	return string(text)
}

// indent returns JSON with a line for each value, and other texts as they are.
func indent(text []byte) string {
	var out bytes.Buffer
	if json.Indent(&out, text, "", "  ") != nil {
		return string(text)
	}
	return out.String()
}
