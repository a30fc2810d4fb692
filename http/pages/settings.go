package pages

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"bahi/domain/fault"
	"bahi/http/api"
)

const settings = Path + "/settings"

// settingsRoutes registers the pages on the visitor and on the workspace.
func (p *Pages) settingsRoutes() {
	p.member("GET "+settings, (*visit).self)
	p.member("POST "+settings, (*visit).editSelf)
	p.member("GET "+settings+"/members", (*visit).members)
	p.member("POST "+settings+"/members", (*visit).invite)
	p.member("POST "+settings+"/invitations/{id}", (*visit).withdraw)
	p.member("GET "+settings+"/members/{id}", (*visit).memberPage)
	p.member("POST "+settings+"/members/{id}", (*visit).editMember)
	p.member("GET "+settings+"/keys", (*visit).keys)
	p.member("POST "+settings+"/keys", (*visit).makeKey)
	p.member("POST "+settings+"/keys/{id}", (*visit).revokeKey)
	p.member("GET "+settings+"/company", (*visit).companyPage)
	p.member("POST "+settings+"/company", (*visit).saveCompany)
	p.member("GET "+settings+"/books", (*visit).booksLock)
	p.member("POST "+settings+"/books", (*visit).setBooksLock)
}

var settingsParts = []place{
	{Name: "You", Link: settings},
	{Name: "Members", Link: settings + "/members", needs: "marketplace:read"},
	{Name: "API keys", Link: settings + "/keys", needs: "marketplace:read"},
	{Name: "Company", Link: settings + "/company", needs: "marketplace:read"},
	{Name: "Books lock", Link: settings + "/books", needs: "ledger:read"},
}

// settingsPage is the content of a page of settings. Part says which one it is, and Of has what only that one shows.
type settingsPage struct {
	Part  string
	Parts []place
	Of    any
}

func (v *visit) settings(part, title string, status int, of any) (page, error) {
	shown, may := settingsPage{Part: part, Of: of}, v.permissions()
	for _, p := range settingsParts {
		if p.needs == "" || may[p.needs] {
			p.Here = p.Link == v.r.URL.Path || p.Link != settings && strings.HasPrefix(v.r.URL.Path, p.Link)
			shown.Parts = append(shown.Parts, p)
		}
	}
	return page{template: "settings", title: title, status: status, body: shown}, nil
}

// asked is a field of a form, and what is said below it.
type asked struct{ name, about string }

// ask returns the schema of an object with the fields, in their order.
func (s *schema) ask(fields ...asked) *schema {
	picked := *s
	picked.Properties = nil
	for _, f := range fields {
		for _, p := range s.Properties {
			if p.Name == f.name {
				own := *p.schema
				own.Description = f.about
				picked.Properties = append(picked.Properties, property{p.Name, &own})
			}
		}
	}
	return &picked
}

// filled is a form as it is drawn.
type filled struct {
	Fields        []field
	Wrong         []string     // faults that no field shows
	Theirs        []difference // what another person changed, beside what this one wrote
	Key, Revision string
}

// rejected is a form that an operation refused. It is nil for a form that nobody has sent.
type rejected struct {
	body map[string]any
	key  string
	*problem
}

func (p *rejected) status() int {
	if p == nil {
		return 0
	}
	return p.Status
}

// fill draws a form with the values of now, or with those of the form that was refused.
func (v *visit) fill(s *schema, now map[string]any, revision string, sent *rejected) filled {
	f := filled{Revision: revision}
	if sent == nil {
		f.Fields = s.fields("", now, nil, 0)
		return f
	}
	faults := sent.faults()
	f.Key, f.Fields = sent.key, s.fields("", sent.body, faults, 0)
	if f.Wrong = misplaced(f.Fields, faults); len(faults) == 0 {
		f.Wrong = []string{sent.Detail}
	}
	if sent.Status == http.StatusPreconditionFailed {
		f.Key, f.Theirs = "", v.lang.apart(s, now, sent.body)
	}
	return f
}

// apart returns the fields in which two objects differ.
func (l language) apart(s *schema, theirs, ours map[string]any) (found []difference) {
	for _, p := range s.Properties {
		a, b := theirs[p.Name], ours[p.Name]
		if p.Kind == "group" {
			inner, _ := a.(map[string]any)
			other, _ := b.(map[string]any)
			found = append(found, l.apart(p.schema, inner, other)...)
			continue
		}
		if was, is := p.text(a), p.text(b); was != is {
			if p.Kind == "select" {
				was, is = l.t(field{}.Word(was)), l.t(field{}.Word(is))
			}
			found = append(found, difference{l.t(labelOf(p.Name)), was, is})
		}
	}
	return found
}

// post runs an operation with the form that the visitor sent. It returns the form if the operation refuses it.
func (v *visit) post(operation string, in request, body map[string]any, into any) (api.Response, *rejected, error) {
	if in.body == nil && body != nil {
		in.body = body
	}
	in.key, in.match = v.r.PostForm.Get("key"), v.r.PostForm.Get("revision")
	out, err := v.call(operation, in, into)
	if refused := refusal(err); refused != nil {
		return out, &rejected{body, in.key, refused}, nil
	}
	return out, nil, err
}

// save runs an operation as post does, and leads to an address with a confirmation. Again shows the form that was refused; without it, the
// page of an error does.
func (v *visit) save(operation string, in request, body map[string]any, to, word string, again func(*rejected) (page, error)) (page, error) {
	out, sent, err := v.post(operation, in, body, nil)
	switch {
	case err != nil:
		return page{}, err
	case sent == nil:
		return page{redirect: after(out, to, word)}, nil
	case again == nil:
		return page{}, sent.problem
	}
	return again(sent)
}

// revisionOf returns the revision of what an operation has answered.
func revisionOf(out api.Response) string { return strings.Trim(out.Header.Get("ETag"), `"`) }

// selfPage is the content of the page on the visitor.
type selfPage struct {
	Key, Picture, DeleteAfter string // Key: the name of the API key of a visitor who is no user
	Mail, HasPassword         bool   // Mail: the address is not confirmed yet
	Profile, Password         filled
	Address                   string
	PictureWrong, DeleteWrong []string
	Themes                    []choice
}

// profileFields are those of an account that its user changes.
var profileFields = []asked{
	{name: "first_name"}, {name: "last_name"}, {name: "phone"},
	{name: "email", about: "Another address counts at once. The one before gets a mail that can take the change back."},
}

func (v *visit) self() (page, error) { return v.showSelf("", nil) }

// showSelf shows the page on the visitor, with the form that was refused.
func (v *visit) showSelf(do string, sent *rejected) (page, error) {
	shown := selfPage{Themes: v.themes()}
	if v.who.Type != "user" {
		shown.Key = v.actor()(v.who.String())
		return v.settings("you", "Settings", 0, shown)
	}
	var me map[string]any
	out, err := v.call("get-me", request{}, &me)
	if err != nil {
		return page{}, err
	}
	of := func(name string) *rejected {
		if do == name {
			return sent
		}
		return nil
	}
	profile, err := v.schemaOf("update-me")
	if err != nil {
		return page{}, err
	}
	password, err := v.schemaOf("change-password")
	if err != nil {
		return page{}, err
	}
	shown.Profile = v.fill(profile.ask(profileFields...), me, revisionOf(out), of("profile"))
	shown.Password = v.fill(password, nil, "", of("password"))
	shown.HasPassword, shown.Mail = me["auth_provider"] == "email", me["email_verified"] != true
	shown.Address = textOf(me["email"])
	shown.DeleteAfter, shown.Picture = textOf(me["delete_after"]), strings.TrimPrefix(textOf(me["profile_picture_url"]), v.PublicURL)
	switch {
	case do == "picture":
		shown.PictureWrong = v.fill(&schema{}, nil, "", sent).Wrong
	case do == "deletion":
		shown.DeleteWrong = v.fill(&schema{}, nil, "", sent).Wrong
	}
	return v.settings("you", "Settings", sent.status(), shown)
}

func (v *visit) themes() (all []choice) {
	now := cookieOf(v.r, themeCookie)
	for _, c := range []choice{{Value: "auto", Text: "As the system"}, {Value: "light", Text: "Light"}, {Value: "dark", Text: "Dark"}} {
		c.Chosen = c.Value == now
		all = append(all, c)
	}
	return all
}

// editSelf changes the visitor's account.
func (v *visit) editSelf() (page, error) {
	do := v.r.PostForm.Get("do")
	again := func(sent *rejected) (page, error) { return v.showSelf(do, sent) }
	switch do {
	case "profile":
		s, err := v.schemaOf("update-me")
		if err != nil {
			return page{}, err
		}
		body := s.ask(profileFields...).read(v.r.PostForm, true)
		sent := maps.Clone(body)
		if body["email"] == v.r.PostForm.Get("address") { // one that is sent counts, and is mailed to
			delete(sent, "email")
		}
		return v.save("update-me", request{body: sent}, body, settings, do, again)
	case "password":
		s, err := v.schemaOf("change-password")
		if err != nil {
			return page{}, err
		}
		return v.save("change-password", request{}, s.read(v.r.PostForm, false), settings, do, again)
	case "picture":
		chosen := v.files("file")
		if len(chosen) == 0 {
			return again(&rejected{problem: &problem{Status: http.StatusUnprocessableEntity, Detail: v.lang.t("Choose a picture.")}})
		}
		return v.save("upload-picture", request{files: chosen}, nil, settings, do, again)
	case "deletion":
		return v.save("request-deletion", request{}, nil, settings, do, again)
	default:
		return page{}, errNoPage
	}
}

// booksPage is the content of the page on the lock of the books.
type booksPage struct {
	Through string
	Form    filled
	Reason  string
}

func (v *visit) booksLock() (page, error) { return v.showBooksLock(nil) }

func (v *visit) showBooksLock(sent *rejected) (page, error) {
	var now map[string]any
	out, err := v.call("get-books-lock", request{}, &now)
	if err != nil {
		return page{}, err
	}
	s, err := v.schemaOf("set-books-lock")
	if err != nil {
		return page{}, err
	}
	shown := booksPage{Through: textOf(now["locked_through"]), Form: v.fill(s, now, revisionOf(out), sent)}
	if sent != nil {
		shown.Reason = v.r.PostForm.Get("reason")
	}
	return v.settings("books", "Books lock", sent.status(), shown)
}

func (v *visit) setBooksLock() (page, error) {
	body := map[string]any{"locked_through": nil}
	if day := strings.TrimSpace(v.r.PostForm.Get("locked_through")); day != "" {
		body["locked_through"] = day
	}
	in := request{reason: strings.TrimSpace(v.r.PostForm.Get("reason"))}
	return v.save("set-books-lock", in, body, settings+"/books", "lock", v.showBooksLock)
}

var errNoMember = fault.New(fault.NotFound, "This person is no member of the workspace")

// areas are the areas of permissions, in the order in which they are shown.
var areas = []string{"ledger", "messaging", "marketplace", "audit"}

// rights returns permissions in words.
func (v *visit) rights(permissions any) (words []string) {
	of, _ := permissions.(map[string]any)
	if of["operator"] == true {
		return []string{v.lang.t("Everything, as an operator")}
	}
	for _, area := range areas {
		if level := textOf(of[area]); level == "read" || level == "write" {
			words = append(words, v.lang.t(labelOf(area))+": "+v.lang.t(field{}.Word(level)))
		}
	}
	return words
}

// permissionFields returns the schema of permissions without what only operators give.
func permissionFields(of *schema) *schema {
	own := *of
	own.Properties = slices.Clone(of.Properties)
	for i, p := range own.Properties {
		if p.Name == "permissions" {
			own.Properties[i].schema = p.ask(asked{name: areas[0]}, asked{name: areas[1]}, asked{name: areas[2]}, asked{name: areas[3]})
		}
	}
	return &own
}
