package pages

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"bahi/domain/fault"
	"bahi/domain/ledger/orderdraft"
	"bahi/http/api"
)

// refs are records that a form references by text instead of id, such as the clients of an order. A datalist suggests the texts.
type refs struct {
	List    string   // id of the datalist
	Choices []choice // Value: the id; Text: unique, for people to read and type

	search func(text string) []choice // finds the records with a text; nil: Choices has all records
}

// newRefs returns the references to records. It adds the id to equal names.
func newRefs(list string, records []choice) refs {
	same := map[string]int{}
	for _, c := range records {
		same[folded(c.Text)]++
	}
	r := refs{List: list, Choices: slices.Clone(records)}
	for i, c := range records {
		if same[folded(c.Text)] > 1 {
			r.Choices[i].Text += " · " + c.Value
		}
	}
	slices.SortStableFunc(r.Choices, func(a, b choice) int { return strings.Compare(folded(a.Text), folded(b.Text)) })
	return r
}

// refsOf returns the references to the accounts of a kind, or to contacts. An empty kind means all kinds: the kind is in each id, as in
// karigar/1, and in each name.
func (v *visit) refsOf(kind string) refs {
	if kind == "contact" {
		return v.contactRefs()
	}
	var accounts []choice
	for _, k := range kinds {
		if kind != "" && kind != k.Value {
			continue
		}
		var all []map[string]any
		v.read("list-"+k.Value+"s", request{}, &all)
		for _, a := range all {
			one := choice{Value: plain(a["id"]), Text: textOf(a["name"])}
			if kind == "" {
				one = choice{Value: k.Value + "/" + one.Value, Text: v.accountText(one.Text, k.Value)}
			}
			accounts = append(accounts, one)
		}
	}
	return newRefs(cmp.Or(kind, "account")+"s", accounts)
}

// contactRefs returns the references to contacts. The newest are suggested.
func (v *visit) contactRefs() refs {
	named := func(text string) (found []choice) {
		all, _, _ := v.paged("list-messaging-contacts", request{query: url.Values{"search": {text}}}, 1, rowsFound)
		for _, c := range all {
			found = append(found, choice{Value: plain(c["id"]), Text: strings.Trim(textOf(c["name"])+" · "+textOf(c["phone"]), " ·")})
		}
		return found
	}
	return refs{List: "contacts", Choices: named(""), search: func(text string) []choice {
		parts := strings.Split(text, " · ")
		return named(strings.TrimSpace(parts[len(parts)-1]))
	}}
}

// folded returns a name in the form for comparison.
func folded(name string) string { return strings.ToLower(strings.Join(strings.Fields(name), " ")) }

// Text returns the text of an id, "" for an id without a record.
func (r refs) Text(id string) string {
	if i := slices.IndexFunc(r.Choices, func(c choice) bool { return c.Value == id }); i >= 0 {
		return r.Choices[i].Text
	}
	return ""
}

const maxSuggestions = 3

// find returns the id of the record with a text, or a message for the user. The name before the last dot suffices if it is unique.
func (r refs) find(l language, text string) (id, wrong string) {
	name := folded(text)
	switch {
	case name == "":
		return "", l.t("Type a name.")
	case r.search != nil:
		if r.Choices = r.search(text); len(r.Choices) == 0 {
			return "", l.t("No contact has this name or phone.")
		} else if len(r.Choices) == 1 {
			return r.Choices[0].Value, ""
		}
	}
	var same, like []choice
	names := make([]orderdraft.Client, len(r.Choices))
	for i, c := range r.Choices {
		other := folded(c.Text)
		names[i].ID = int64(i)
		names[i].Name, _, _ = strings.Cut(other, " · ")
		switch {
		case other == name:
			return c.Value, ""
		case strings.HasPrefix(other, name+" · "):
			same = append(same, c)
		case strings.Contains(other, name):
			like = append(like, c)
		}
	}
	for _, p := range orderdraft.Propose(name, names) {
		if c := r.Choices[p.ClientID]; !slices.Contains(like, c) {
			like = append(like, c)
		}
	}
	switch {
	case len(same) == 1:
		return same[0].Value, ""
	case len(same) > 1:
		return "", l.tf("Several have this name. Is it %s?", suggestions(same))
	case r.search != nil:
		return "", l.tf("Several have this name. Is it %s?", suggestions(r.Choices))
	case len(like) > 0:
		return "", l.tf("No account has this name. Is it %s?", suggestions(like))
	default:
		return "", l.t("No account has this name. Choose one of the list, or open the account first.")
	}
}

func suggestions(of []choice) string {
	var texts []string
	for _, c := range of[:min(len(of), maxSuggestions)] {
		texts = append(texts, c.Text)
	}
	return strings.Join(texts, " / ")
}

// references are the references of a form by the key of the field, such as client_id.
type references map[string]refs

// schema returns the schema of the form: texts in place of ids, at any depth.
func (all references) schema(s *schema) *schema {
	if s == nil {
		return nil
	}
	form := *s
	form.Items, form.Properties = all.schema(s.Items), slices.Clone(s.Properties)
	for i, p := range form.Properties {
		inner := all.schema(p.schema)
		if r, is := all[p.Name]; is {
			inner.Kind, inner.List, inner.Description = "text", r.List, ""
		}
		form.Properties[i].schema = inner
	}
	return &form
}

// texts returns a record with texts in place of ids.
func (all references) texts(record map[string]any) map[string]any {
	named, _ := all.replace(record, "", func(r refs, id any, _ string) (any, bool) {
		text := r.Text(plain(id))
		return text, text != ""
	}).(map[string]any)
	return named
}

// replace returns a copy of a value with the references replaced. It omits those for which the function returns false.
func (all references) replace(value any, path string, by func(r refs, value any, path string) (any, bool)) any {
	switch value := value.(type) {
	case map[string]any:
		changed := maps.Clone(value)
		for _, key := range slices.Sorted(maps.Keys(value)) { // faults are found in one order
			r, is := all[key]
			if one := value[key]; !is || one == nil {
				changed[key] = all.replace(one, below(path, key), by)
			} else if other, kept := by(r, one, below(path, key)); kept {
				changed[key] = other
			} else {
				delete(changed, key)
			}
		}
		return changed
	case []any:
		changed := make([]any, len(value))
		for i, one := range value {
			changed[i] = all.replace(one, fmt.Sprintf("%s[%d]", path, i), by)
		}
		return changed
	default:
		return value
	}
}

// askNaming runs an operation on a body with texts in place of ids. If a text matches no record, it writes nothing, and the problem has
// the faults of the texts and of the operation.
func (v *visit) askNaming(operation string, all references, in request, into any) (api.Response, *problem) {
	var wrong []fault.Field
	in.body = all.replace(in.body, "", func(r refs, text any, path string) (any, bool) {
		id, fails := r.find(v.lang, textOf(text))
		if fails != "" {
			wrong = append(wrong, fault.Field{Field: path, Message: fails})
		}
		return json.Number(id[strings.IndexByte(id, '/')+1:]), fails == ""
	})
	if len(wrong) == 0 {
		return v.ask(operation, in, into)
	}
	in.dry = true
	out, refused := v.ask(operation, in, nil)
	if refused != nil {
		for _, f := range refused.Errors {
			if !slices.ContainsFunc(wrong, func(w fault.Field) bool { return w.Field == f.Field }) {
				wrong = append(wrong, f)
			}
		}
	}
	return out, &problem{Detail: v.lang.t("Some names are not known."), Status: http.StatusUnprocessableEntity, Errors: wrong}
}

// actorKinds are the kinds of actors: the operation that lists them, the field with the id, the function for the name, and the words for
// an actor without a name.
var actorKinds = map[string]struct{ operation, id, named, nameless string }{
	"user":     {"list-members", "user_id", "%s", "former member"},
	"api_key":  {"list-api-keys", "id", "API key %s", "An API key"},
	"key":      {"list-api-keys", "id", "API key %s", "An API key"},
	"campaign": {"list-campaigns", "id", "Campaign %s", "A campaign"},
	"bot":      {"list-bots", "id", "Bot %s", "A bot"},
	"provider": {nameless: "A provider"},
	"public":   {nameless: "A visitor"},
}

// Actor returns the name of an actor such as user:<id>.
func (v *visit) Actor(actor string) string {
	kind, id, _ := strings.Cut(actor, ":")
	of, known := actorKinds[kind]
	switch {
	case kind == "user" && id == v.who.ID:
		return v.lang.t("You")
	case !known:
		return v.lang.t("The system")
	}
	all := v.actors(kind)
	for _, c := range all {
		if c.Value == id && c.Text != "" {
			return v.lang.tf(of.named, c.Text)
		}
	}
	if all == nil && kind == "user" {
		return v.lang.t("A member")
	}
	return v.lang.t(of.nameless)
}

// actors returns the ids and names of the actors of a kind, nil if the visitor may not list them. It looks them up once a request.
func (v *visit) actors(kind string) []choice {
	of := actorKinds[kind]
	if known, is := v.names[kind]; is || of.operation == "" {
		return known
	}
	var vars []string
	if kind == "user" {
		vars = []string{v.who.Workspace.String()}
	}
	var all []map[string]any
	v.names[kind] = nil
	if _, refused := v.ask(of.operation, request{vars: vars}, &all); refused == nil {
		v.names[kind] = []choice{}
	}
	for _, one := range all {
		name := cmp.Or(textOf(one["name"]), fullName(one), textOf(one["email"]))
		v.names[kind] = append(v.names[kind], choice{Value: textOf(one[of.id]), Text: name})
	}
	return v.names[kind]
}

// fullName returns the name of a user or a member.
func fullName(of map[string]any) string {
	return strings.TrimSpace(textOf(of["first_name"]) + " " + textOf(of["last_name"]))
}

// Company returns the name of the workspace's oldest company, the title of prints, "" without one.
func (v *visit) Company() string {
	all, _, _ := v.paged("list-companies", request{query: url.Values{"mine": {"true"}}}, 1, rowsFound)
	if len(all) == 0 {
		return ""
	}
	return textOf(all[len(all)-1]["name"]) // newest first
}
