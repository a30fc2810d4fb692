package pages

import (
	"cmp"
	"maps"
	"time"
)

// memberLine is a member of the workspace, somebody who is invited to it, or an API key.
type memberLine struct {
	ID, Name, Email, By, At, Until, Ended, Revision string
	Rights                                          []string
	You                                             bool
	permissions                                     map[string]any
}

// membersPage is the content of the page on the members.
type membersPage struct {
	Members, Invited []memberLine
	Form             filled
}

func (v *visit) members() (page, error) { return v.showMembers(nil) }

func (v *visit) showMembers(sent *rejected) (page, error) {
	all, err := v.membersOf()
	if err != nil {
		return page{}, err
	}
	var invited []map[string]any
	if _, err := v.call("list-invitations", request{vars: []string{v.who.Workspace.String()}}, &invited); err != nil {
		return page{}, err
	}
	shown, name := membersPage{Members: all}, v.actor()
	for _, i := range invited {
		shown.Invited = append(shown.Invited, memberLine{
			ID: textOf(i["id"]), Email: textOf(i["email"]), By: name(textOf(i["invited_by"])), Until: textOf(i["expires_at"]),
			Rights: v.rights(i["permissions"]),
		})
	}
	s, err := v.schemaOf("invite-member")
	if err != nil {
		return page{}, err
	}
	start := map[string]any{"permissions": map[string]any{"ledger": "read"}}
	shown.Form = v.fill(permissionFields(s), start, "", sent)
	return v.settings("members", "Members", sent.status(), shown)
}

func (v *visit) membersOf() ([]memberLine, error) {
	var all []map[string]any
	if _, err := v.call("list-members", request{vars: []string{v.who.Workspace.String()}}, &all); err != nil {
		return nil, err
	}
	lines := make([]memberLine, 0, len(all))
	for _, m := range all {
		line := memberLine{
			ID: textOf(m["user_id"]), Name: cmp.Or(fullName(m), textOf(m["email"])), Email: textOf(m["email"]), At: textOf(m["joined_at"]),
			Revision: textOf(m["revision"]), Rights: v.rights(m["permissions"]), You: textOf(m["user_id"]) == v.who.ID,
		}
		line.permissions, _ = m["permissions"].(map[string]any)
		lines = append(lines, line)
	}
	return lines, nil
}

// invite invites somebody by mail.
func (v *visit) invite() (page, error) {
	s, err := v.schemaOf("invite-member")
	if err != nil {
		return page{}, err
	}
	in := request{vars: []string{v.who.Workspace.String()}}
	return v.save("invite-member", in, permissionFields(s).read(v.r.PostForm, false), settings+"/members", "invited", v.showMembers)
}

func (v *visit) withdraw() (page, error) {
	in := request{vars: []string{v.who.Workspace.String(), v.r.PathValue("id")}}
	return v.save("withdraw-invitation", in, nil, settings+"/members", "withdrawn", nil)
}

// memberPageOf is the content of the page on a member.
type memberPageOf struct {
	Member      memberLine
	Form        filled
	RemoveWrong []string
}

func (v *visit) memberPage() (page, error) { return v.showMember("", nil) }

func (v *visit) showMember(do string, sent *rejected) (page, error) {
	all, err := v.membersOf()
	if err != nil {
		return page{}, err
	}
	for _, m := range all {
		if m.ID != v.r.PathValue("id") {
			continue
		}
		s, err := v.schemaOf("change-member")
		if err != nil {
			return page{}, err
		}
		now, shown := map[string]any{}, memberPageOf{Member: m}
		for _, area := range areas {
			now[area] = cmp.Or(textOf(m.permissions[area]), "none")
		}
		change := sent
		if do == "remove" {
			shown.RemoveWrong, change = v.fill(&schema{}, nil, "", sent).Wrong, nil
		}
		shown.Form = v.fill(permissionFields(s), map[string]any{"permissions": now}, m.Revision, change)
		return v.settings("member", "Members", sent.status(), shown)
	}
	return page{}, errNoMember
}

// editMember changes what a member may do, or removes the member.
func (v *visit) editMember() (page, error) {
	in, do := request{vars: []string{v.who.Workspace.String(), v.r.PathValue("id")}}, v.r.PostForm.Get("do")
	again := func(sent *rejected) (page, error) { return v.showMember(do, sent) }
	switch do {
	case "change":
		s, err := v.schemaOf("change-member")
		if err != nil {
			return page{}, err
		}
		return v.save("change-member", in, permissionFields(s).read(v.r.PostForm, false), settings+"/members", "member", again)
	case "remove":
		removed, err := v.save("remove-member", in, nil, settings+"/members", "removed", again)
		if removed.redirect != "" && v.r.PathValue("id") == v.who.ID {
			removed.redirect = Path + "/?done=left" // there may be no way back
		}
		return removed, err
	default:
		return page{}, errNoPage
	}
}

// keysPage is the content of the page on the API keys.
type keysPage struct {
	Keys, Ended []memberLine
	Form        filled
	New, Name   string // the key that was made; it is shown once
	Late        bool   // the form was sent again, and its key was shown before
}

func (v *visit) keys() (page, error) { return v.showKeys(keysPage{}, nil) }

func (v *visit) showKeys(shown keysPage, sent *rejected) (page, error) {
	var all []map[string]any
	if _, err := v.call("list-api-keys", request{}, &all); err != nil {
		return page{}, err
	}
	name := v.actor()
	for _, k := range all {
		line := memberLine{
			ID: textOf(k["id"]), Name: textOf(k["name"]), By: name(textOf(k["created_by"])), At: textOf(k["created_at"]),
			Until: textOf(k["expires_at"]),
			Ended: textOf(k["revoked_at"]), Rights: v.rights(k["permissions"]),
		}
		until, err := time.Parse(time.RFC3339, line.Until)
		if line.Ended == "" && err == nil && !v.Now().Before(until) {
			line.Ended = line.Until
		}
		if line.Ended != "" {
			shown.Ended = append(shown.Ended, line)
			continue
		}
		shown.Keys = append(shown.Keys, line)
	}
	s, err := v.keySchema()
	if err != nil {
		return page{}, err
	}
	start := map[string]any{"permissions": map[string]any{"ledger": "read"}}
	shown.Form = v.fill(s, start, "", sent)
	return v.settings("keys", "API keys", sent.status(), shown)
}

// keySchema returns the schema of a new key, which ends on a day.
func (v *visit) keySchema() (*schema, error) {
	s, err := v.schemaOf("create-api-key")
	if err != nil {
		return nil, err
	}
	s = permissionFields(s.ask(asked{name: "name", about: "What the key is for"}, asked{name: "permissions"},
		asked{name: "expires_at", about: "From this day on it is refused. Empty: it has no end."}))
	for _, p := range s.Properties {
		if p.Name == "expires_at" {
			p.Kind = "date"
		}
	}
	return s, nil
}

// makeKey makes a key and shows it.
func (v *visit) makeKey() (page, error) {
	s, err := v.keySchema()
	if err != nil {
		return page{}, err
	}
	body := s.read(v.r.PostForm, false)
	asks := maps.Clone(body)
	if day, err := time.ParseInLocation(time.DateOnly, textOf(body["expires_at"]), v.Zone); err == nil {
		asks["expires_at"] = day.Format(time.RFC3339)
	}
	var made map[string]any
	_, sent, err := v.post("create-api-key", request{body: asks}, body, &made)
	switch {
	case err != nil:
		return page{}, err
	case sent != nil:
		return v.showKeys(keysPage{}, sent)
	}
	key := textOf(made["key"])
	return v.showKeys(keysPage{New: key, Name: textOf(made["name"]), Late: key == ""}, nil)
}

func (v *visit) revokeKey() (page, error) {
	return v.save("revoke-api-key", request{vars: []string{v.r.PathValue("id")}}, nil, settings+"/keys", "revoked", nil)
}

// companyPageOf is the content of the page on the workspace's company.
type companyPageOf struct {
	Company map[string]any // nil: there is none
	Form    filled
}

// companyFields are those of a company that its members change.
var companyFields = []asked{
	{name: "name", about: "It is printed on statements and the like."}, {name: "gstin"}, {name: "phone"},
	{name: "email", about: "Enquiries go there, once the link in a mail has confirmed it. Others do not see it."},
	{name: "address_line1"}, {name: "city"}, {name: "pincode"}, {name: "state"}, {name: "country"}, {name: "website"},
	{name: "domain", about: "Such as example.org. One company alone can have it."}, {name: "category"}, {name: "sub_category"},
	{name: "description"},
}

func (v *visit) companyPage() (page, error) { return v.showCompany(nil) }

func (v *visit) showCompany(sent *rejected) (page, error) {
	own := v.ownCompany()
	shown, operation, revision := companyPageOf{}, "create-company", ""
	if own != nil {
		operation = "edit-company"
		out, err := v.call("get-company", request{vars: []string{textOf(own["id"])}}, &shown.Company)
		if err != nil {
			return page{}, err
		}
		revision = revisionOf(out)
	}
	s, err := v.schemaOf(operation)
	if err != nil {
		return page{}, err
	}
	shown.Form = v.fill(s.ask(companyFields...), shown.Company, revision, sent)
	return v.settings("company", "Company", sent.status(), shown)
}

// saveCompany makes the workspace's company, or changes it.
func (v *visit) saveCompany() (page, error) {
	id, operation := v.r.PostForm.Get("id"), "create-company"
	in := request{}
	if id != "" {
		operation, in.vars = "edit-company", []string{id}
	}
	s, err := v.schemaOf(operation)
	if err != nil {
		return page{}, err
	}
	body := s.ask(companyFields...).read(v.r.PostForm, id != "")
	return v.save(operation, in, body, settings+"/company", "company", v.showCompany)
}
