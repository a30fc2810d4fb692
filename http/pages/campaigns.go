package pages

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// reach returns the text and the audience of an unsent campaign, nil for another. The API has no dry run of a campaign.
func (d *desk) reach(campaign map[string]any) any {
	if !inStatus("draft", "scheduled", "paused")(campaign) {
		return nil
	}
	text, query := "", url.Values{"limit": {strconv.Itoa(rowsFound)}}
	var templates []map[string]any
	if _, refused := d.ask("list-templates", request{query: query}, &templates); refused != nil {
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
	query.Set("limit", "1")
	if audience := textOf(campaign["audience"]); audience != "all" {
		query.Set("listId", audience)
	}
	all := d.count(query)
	query.Set("optIn", "true")
	return map[string]any{"Text": text, "Contacts": all, "Agree": d.count(query)}
}

// count returns the number of contacts that a query matches.
func (d *desk) count(query url.Values) int {
	out, _ := d.ask("list-messaging-contacts", request{query: query}, nil)
	return totalOf(out)
}

// scripted reports whether a script fetches the page to refresh a part of it.
func (d *desk) scripted() bool { return d.r.Header.Get("Sec-Fetch-Dest") == "empty" }

// widget returns the channel of a chat widget with the address of this server, nil for other channels.
func (d *desk) widget(channel map[string]any) any {
	if channel["channelKey"] == nil {
		return nil
	}
	return map[string]any{"Channel": channel, "Server": strings.TrimSuffix(d.PublicURL, "/")}
}

// tryWidget shows a channel's chat widget as on a website.
func (v *visit) tryWidget() page {
	var channel map[string]any
	v.read("get-channel", request{vars: []string{v.r.PathValue("id")}}, &channel)
	if textOf(channel["channelKey"]) == "" {
		return v.deny(errNoPage)
	}
	public, err := url.Parse(v.PublicURL)
	if err != nil {
		return v.deny(err)
	}
	origin := public.Scheme + "://" + public.Host
	allowed := slices.Contains(textsOf(inner(channel, "settings")["allowedOrigins"]), origin)
	body := map[string]any{"Channel": channel, "Origin": origin, "Allowed": allowed}
	return page{template: "try-widget", title: textOf(channel["name"]), body: body}
}
