package pages

import (
	"cmp"
	"net/url"
	"strings"
)

// actorKinds are the kinds of actors: the operation that lists them, the field with the id, the function for the name, and the words for
// an actor without a name.
var actorKinds = map[string]struct{ operation, id, named, nameless string }{
	"user":     {"list-members", "user_id", "%s", "former member"},
	"api_key":  {"list-api-keys", "id", "API key %s", "An API key"},
	"campaign": {"list-campaigns", "id", "Campaign %s", "A campaign"},
	"bot":      {"list-bots", "id", "Bot %s", "A bot"},
	"provider": {nameless: "A provider"},
	"public":   {nameless: "A visitor"},
}

// actor returns a function that returns the name of an actor such as user:<id>. It looks up each needed kind once a request.
func (v *visit) actor() func(string) string {
	if v.names == nil {
		v.names = map[string]map[string]string{}
	}
	return func(actor string) string {
		kind, id, _ := strings.Cut(actor, ":")
		of, known := actorKinds[kind]
		switch {
		case kind == "user" && id == v.who.ID:
			return v.lang.t("You")
		case !known:
			return v.lang.t("The system")
		case of.operation == "":
			return v.lang.t(of.nameless)
		}
		if v.names[kind] == nil {
			v.names[kind] = v.namesOf(kind, of.operation, of.id)
		}
		if name := v.names[kind][id]; name != "" {
			return v.lang.tf(of.named, name)
		}
		return v.lang.t(cmp.Or(v.names[kind][""], of.nameless))
	}
}

// namesOf returns the names of the actors of a kind by id. The id "" has the name to show if the visitor may not list them.
func (v *visit) namesOf(kind, operation, id string) map[string]string {
	names := map[string]string{}
	var vars []string
	if kind == "user" {
		vars = []string{v.who.Workspace.String()}
	}
	var all []map[string]any
	if _, refused := v.ask(operation, request{vars: vars}, &all); refused != nil && kind == "user" {
		names[""] = "A member"
	}
	for _, one := range all {
		names[textOf(one[id])] = cmp.Or(textOf(one["name"]), fullName(one), textOf(one["email"]))
	}
	return names
}

// fullName returns the name of a user or a member.
func fullName(of map[string]any) string {
	return strings.TrimSpace(textOf(of["first_name"]) + " " + textOf(of["last_name"]))
}

// company returns the name of the workspace's oldest company, the title of prints, "" without one.
func (v *visit) company() string {
	var list struct{ Data []map[string]any }
	query := url.Values{"mine": {"true"}, "limit": {"100"}}
	if v.ask("list-companies", request{query: query}, &list); len(list.Data) == 0 {
		return ""
	}
	return textOf(list.Data[len(list.Data)-1]["name"]) // newest first
}
