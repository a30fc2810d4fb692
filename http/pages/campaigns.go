package pages

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// campaignReach is the text of a campaign and the number of its recipients.
type campaignReach struct {
	Text            string // of the template, with its values
	Contacts, Agree int
	Draft           bool
}

// reach returns the text and the audience of an unsent campaign. The API has no dry run of a campaign.
func (d *desk) reach(campaign map[string]any) any {
	r := campaignReach{Draft: inStatus("draft", "scheduled", "paused")(campaign)}
	if !r.Draft {
		return r
	}
	var templates []map[string]any
	if _, refused := d.ask("list-templates", request{query: url.Values{"limit": {strconv.Itoa(rowsFound)}}}, &templates); refused != nil {
		return r
	}
	for _, t := range templates {
		if textOf(t["id"]) != textOf(campaign["templateId"]) {
			continue
		}
		r.Text = textOf(t["body"])
		for name, value := range inner(campaign, "templateParams") {
			r.Text = strings.ReplaceAll(r.Text, "{{"+name+"}}", textOf(value))
		}
	}
	query := url.Values{"limit": {"1"}}
	if audience := textOf(campaign["audience"]); audience != "all" {
		query.Set("listId", audience)
	}
	r.Contacts = d.count(query)
	query.Set("optIn", "true")
	r.Agree = d.count(query)
	return r
}

// count returns the number of contacts that a query matches.
func (d *desk) count(query url.Values) int {
	out, _ := d.ask("list-messaging-contacts", request{query: query}, nil)
	return totalOf(out)
}

// scripted reports whether a script fetches the page to refresh a part of it.
func (d *desk) scripted() bool { return d.r.Header.Get("Sec-Fetch-Dest") == "empty" }

// widgetPage is the content of the page with a channel's chat widget.
type widgetPage struct{ Snippet, Try string }

// widget returns the HTML element that embeds a channel's chat widget.
func (d *desk) widget(channel map[string]any) any {
	key := textOf(channel["channelKey"])
	if key == "" {
		return nil
	}
	return widgetPage{
		`<script src="` + strings.TrimSuffix(d.PublicURL, "/") + `/widget.js" data-channel="` + key + `" async></script>`,
		d.of.address("", d.id) + "/try",
	}
}

// tryPage is the content of the test page of a channel's chat widget.
type tryPage struct {
	Key, Origin, Name, Back string
	Allowed                 bool
}

// tryWidget shows a channel's chat widget as on a website.
func (v *visit) tryWidget() page {
	var channel map[string]any
	id := v.r.PathValue("id")
	v.read("get-channel", request{vars: []string{id}}, &channel)
	b := tryPage{Key: textOf(channel["channelKey"]), Name: textOf(channel["name"]), Back: Path + "/list/channels/" + url.PathEscape(id)}
	if b.Key == "" {
		return v.deny(errNoPage)
	}
	public, err := url.Parse(v.PublicURL)
	if err != nil {
		return v.deny(err)
	}
	b.Origin = public.Scheme + "://" + public.Host
	b.Allowed = slices.Contains(textsOf(inner(channel, "settings")["allowedOrigins"]), b.Origin)
	return page{template: "try-widget", title: b.Name, body: b}
}
