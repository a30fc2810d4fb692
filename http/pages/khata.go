package pages

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"bahi/domain/fault"
)

const khatasShown = 30

// khataUpload is an upload of a khata page, as the API returns it.
type khataUpload map[string]any

// Link returns the address of the upload's page.
func (u khataUpload) Link() string { return Path + "/khata/" + plain(u["upload_id"]) }

// Picture reports whether browsers show the file as a picture.
func (u khataUpload) Picture() bool {
	kind := textOf(u["content_type"])
	return strings.HasPrefix(kind, "image/") && kind != "image/tiff"
}

// read returns the entries of the reading.
func (u khataUpload) read() []map[string]any { return entriesOf(inner(u, "result")["entries"]) }

// khataList lists the uploads. It shows why an upload was refused, and keeps its key.
func (v *visit) khataList(status int, key string, wrong ...string) page {
	number := v.number()
	query := url.Values{"page": {strconv.Itoa(number)}, "page_size": {strconv.Itoa(khatasShown)}}
	var uploads []khataUpload
	out := v.read("list-khata-uploads", request{query: query}, &uploads)
	body := map[string]any{"Uploads": uploads, "Key": key, "Wrong": wrong}
	body["Newer"], body["Older"] = turned(Path+"/khata", nil, number, number*khatasShown < totalOf(out))
	for _, u := range uploads {
		u["actor"] = v.actor(textOf(u["actor"]))
		body["Reading"] = body["Reading"] == true || u["status"] == "processing"
	}
	return page{template: "khatas", title: "Khata pages", status: status, body: body}
}

// uploadKhata uploads a page. Bahi reads the page after the response.
func (v *visit) uploadKhata() page {
	in := request{files: append(v.files("photo"), v.files("file")...), key: v.r.PostForm.Get("key"), prefer: "respond-async"}
	if len(in.files) == 0 {
		return v.khataList(http.StatusUnprocessableEntity, in.key, v.lang.t("Choose a picture or a PDF."))
	}
	in.files = in.files[:1]
	in.files[0].field = "file"
	var upload khataUpload
	out, refused := v.ask("upload-khata-v2", in, &upload)
	switch {
	case refused != nil && refused.Status == http.StatusForbidden:
		return v.deny(refused)
	case refused != nil:
		return v.khataList(refused.Status, in.key, detail(refused))
	}
	return page{redirect: after(out, upload.Link(), "")}
}

// khataPage is the content of the page of an upload.
type khataPage struct {
	Upload   khataUpload
	Rows     []khataRow
	Accounts refs
	Kinds    []choice // of accounts to open
	Preview  *khataPreview
	Wrong    []string
	Key      string
}

// khataPreview is the effect of posting the accepted rows.
type khataPreview struct {
	Accepted, Left int              // entries
	Behind         []string         // entries that are left out
	Accounts       []map[string]any // with their balances before and after
	Wrong          []string
}

func (v *visit) upload() khataUpload {
	u := khataUpload{}
	v.read("get-khata-upload", request{vars: []string{v.r.PathValue("id")}}, &u)
	return u
}

// khata shows an upload: the progress of its reading, the rows to check, or the posted rows.
func (v *visit) khata() page {
	return v.showKhata(khataPage{Upload: v.upload()}, nil, nil, 0)
}

// showKhata shows an upload, with the entries and the faults of a refused form.
func (v *visit) showKhata(shown khataPage, entries []khataEntry, faults map[string]string, status int) page {
	u := shown.Upload
	u["actor"] = v.actor(textOf(u["actor"]))
	read, posted := u["result"] != nil, u["submitted"] == true
	if read || posted {
		shown.Accounts = v.refsOf("")
	}
	if read && !posted {
		if entries == nil {
			entries = entriesRead(u, shown.Accounts)
			shown.Preview = v.previewKhata(u, entries)
		}
		shown.Rows = v.khataRows(u, entries, faults)
		shown.Kinds = slices.Concat(kinds[:len(kinds)-1], polisherKinds)
	}
	return page{template: "khata", title: "Khata page", status: status, body: shown}
}

// polisherKinds are the kinds of a new polisher's account, by the work.
var polisherKinds = []choice{
	{"polisher 0", "Polisher: regular", false}, {"polisher 1", "Polisher: meena", false}, {"polisher 2", "Polisher: rodium", false},
}

// submission returns the request of the accepted entries, and the entry's number for each line of its body.
func submission(upload khataUpload, entries []khataEntry) (in request, of []int) {
	lines := []any{}
	for i, e := range entries {
		if e.Accepted {
			lines, of = append(lines, e.Line), append(of, i)
		}
	}
	in.body = map[string]any{"upload_id": upload["upload_id"], "entries": lines}
	return in, of
}

// previewKhata returns the effect of posting the accepted entries, nil for visitors who may not post.
func (v *visit) previewKhata(upload khataUpload, entries []khataEntry) *khataPreview {
	if !v.permissions()["ledger:write"] {
		return nil
	}
	in, of := submission(upload, entries)
	shown := &khataPreview{Accepted: len(of), Left: len(entries) - len(of)}
	for _, e := range entries {
		if !e.Accepted {
			shown.Behind = append(shown.Behind, v.summary(e))
		}
	}
	if len(of) == 0 {
		return shown
	}
	in.dry = true
	var would struct{ Accounts []map[string]any }
	if _, refused := v.ask("submit-khata", in, &would); refused != nil {
		shown.Wrong = general(refused)
		for _, f := range entryFaults(v.lang, refused, entries, of).Errors {
			_, n, field := lineAt(f.Field)
			message := v.lang.said(f.Message)
			if field != "" {
				message = v.lang.t(labelOf(field)) + ": " + message
			}
			shown.Wrong = append(shown.Wrong, v.lang.tf("Row %s", n+1)+": "+message)
		}
		return shown
	}
	shown.Accounts = would.Accounts
	return shown
}

// checkKhata posts the accepted rows, shows their effect, or opens an account for a row.
func (v *visit) checkKhata() page {
	upload, form := v.upload(), v.r.PostForm
	shown := khataPage{Upload: upload, Key: form.Get("key")}
	if upload["result"] == nil {
		return v.showKhata(shown, nil, nil, http.StatusConflict)
	}
	entries := v.entriesPosted(len(upload.read()))
	if form.Get("open") != "" {
		return v.openForKhata(shown, entries)
	}
	if form.Get("preview") != "" {
		shown.Preview = v.previewKhata(upload, entries)
		if form.Get("preview") == "part" {
			return page{template: "khata", part: "khata-preview", body: shown.Preview}
		}
		return v.showKhata(shown, entries, nil, 0)
	}
	in, of := submission(upload, entries)
	in.key = shown.Key
	if len(of) == 0 {
		shown.Wrong = []string{v.lang.t("Accept a row first.")}
		return v.showKhata(shown, entries, nil, http.StatusUnprocessableEntity)
	}
	out, refused := v.ask("submit-khata", in, nil)
	if refused == nil {
		return page{redirect: after(out, upload.Link(), "posted")}
	}
	if refused.Status == http.StatusForbidden {
		return v.deny(refused)
	}
	faults := entryFaults(v.lang, refused, entries, of).faults()
	if len(faults) == 0 || refused.Status == http.StatusConflict {
		shown.Wrong = []string{refused.Detail}
	}
	return v.showKhata(shown, entries, faults, refused.Status)
}

// openForKhata opens an account by the name in a row, and gives it to all rows with that name.
func (v *visit) openForKhata(shown khataPage, entries []khataEntry) page {
	form := v.r.PostForm
	at, err := strconv.Atoi(form.Get("open"))
	if err != nil || at < 0 || at >= len(entries) {
		return v.deny(errNoPage)
	}
	kind, work, _ := strings.Cut(form.Get(fmt.Sprintf("entries[%d].kind", at)), " ")
	if kindName(kind) == "" {
		return v.deny(errNoPage)
	}
	name := entries[at].Account
	body := map[string]any{"name": name}
	if kind == "polisher" {
		body["type"], _ = strconv.Atoi(work)
	}
	var opened map[string]any
	key := uuid.NewSHA1(uuid.NameSpaceURL, []byte(shown.Key+"\n"+kind+"\n"+name)).String()
	if _, refused := v.ask("open-"+kind, request{body: body, key: key}, &opened); refused != nil {
		faults := map[string]string{fmt.Sprintf("entries[%d].account", at): detail(refused)}
		return v.showKhata(shown, entries, faults, refused.Status)
	}
	for i := range entries {
		if e := &entries[i]; e.Line["account_id"] == nil && strings.EqualFold(e.Account, name) {
			e.Line["ledger"], e.Line["account_id"] = kind, opened["id"]
			e.Account = v.accountText(textOf(opened["name"]), kind)
		}
	}
	entries[at].Accepted = true
	shown.Preview = v.previewKhata(shown.Upload, entries)
	return v.showKhata(shown, entries, nil, 0)
}

// khataEntry is a read or checked entry of a khata page. Its line has the operation's format.
type khataEntry struct {
	Line     map[string]any
	Account  string // as the form names it
	Accepted bool
}

// khataRow is an entry as the page shows it.
type khataRow struct {
	khataEntry

	Name        string // JSON path
	Summary     string
	Account     field
	Fields      []field        // the others
	Read        map[string]any // nil: added by the user; the reading missed it
	Open, Focus bool           // Open: the inputs are shown; Focus: the row has the focus
	Wrong       string
}

// entriesRead returns the entries of the reading.
func entriesRead(upload khataUpload, accounts refs) []khataEntry {
	entries := make([]khataEntry, len(upload.read()))
	for i, read := range upload.read() {
		e := khataEntry{Line: map[string]any{}, Account: textOf(read["party_name"])}
		for _, name := range []string{"ledger", "account_id", "side", "date", "item_name", "weight", "touch", "fine_weight", "amount"} {
			if read[name] != nil {
				e.Line[name] = read[name]
			}
		}
		if id := read["account_id"]; id != nil {
			e.Account = accounts.Text(textOf(read["ledger"]) + "/" + plain(id))
		}
		e.Accepted = !unsure(read) && e.Line["account_id"] != nil && e.Line["date"] != nil
		entries[i] = e
	}
	return entries
}

// entriesPosted returns the entries of the form.
func (v *visit) entriesPosted(count int) []khataEntry {
	lines, form := v.schemaOf("submit-khata").of("entries").Items, v.r.PostForm
	var accounts refs
	entries := make([]khataEntry, 0, count+1)
	for i := 0; i < count || i < maxLines && form.Has(fmt.Sprintf("entries[%d].account", i)); i++ {
		name := fmt.Sprintf("entries[%d]", i)
		entries = append(entries, khataEntry{
			Account: strings.TrimSpace(form.Get(name + ".account")), Accepted: form.Get(name+".accepted") != "",
		})
		e := &entries[i]
		e.Line, _ = reader(form).object(lines, name, false)
		if e.Line["account_id"] != nil && e.Account == form.Get(name+".was") {
			continue
		}
		delete(e.Line, "ledger")
		delete(e.Line, "account_id")
		if e.Account == "" {
			continue
		}
		if accounts.List == "" {
			accounts = v.refsOf("")
		}
		if found, wrong := accounts.find(v.lang, e.Account); wrong == "" {
			kind, id, _ := strings.Cut(found, "/")
			e.Line["ledger"], e.Line["account_id"], e.Account = kind, number(id, ""), accounts.Text(found)
		}
	}
	if last := len(entries) - 1; last >= count && entries[last].blank() {
		entries = entries[:last]
	}
	return entries
}

// blank reports whether the entry has no input. It ignores the side, which always has a value.
func (e khataEntry) blank() bool {
	return e.Account == "" && !e.Accepted && len(e.Line) <= 1 && (len(e.Line) == 0 || e.Line["side"] != nil)
}

// summary returns an entry as one text.
func (v *visit) summary(e khataEntry) string {
	parts := []string{v.lang.day(textOf(e.Line["date"])), e.Account, v.lang.t(wordOf(e.Line["side"])), v.lang.line(e.Line)}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " · ")
}

// khataRows returns the rows of the page, then a blank one if the visitor may post.
func (v *visit) khataRows(upload khataUpload, entries []khataEntry, faults map[string]string) []khataRow {
	lines := v.schemaOf("submit-khata").of("entries").Items
	count, found, first := len(entries), len(upload.read()), -1
	if v.permissions()["ledger:write"] {
		entries = append(entries[:count:count], khataEntry{Line: map[string]any{}})
	}
	rows := make([]khataRow, len(entries))
	for i, e := range entries {
		var read map[string]any
		if i < found {
			read = upload.read()[i]
		}
		name := fmt.Sprintf("entries[%d]", i)
		r := khataRow{khataEntry: e, Name: name, Read: read, Wrong: faults[name]}
		r.Summary = v.summary(e)
		r.Account = field{Name: name + ".account", Label: "Account", Kind: "text", Value: e.Account, Error: faults[name+".account"]}
		r.Fields = drawing{faults: faults}.object(lines.without("ledger", "account_id"), name, any(e.Line), false)
		faulty := r.Wrong != "" || r.Account.Error != "" || slices.ContainsFunc(r.Fields, func(f field) bool { return f.Error != "" })
		r.Open = i < count && (faulty || e.Line["account_id"] == nil || e.Line["date"] == nil)
		if first < 0 && i < count && (faulty || len(faults) == 0 && !e.Accepted) {
			first = i
		}
		rows[i] = r
	}
	if len(rows) > 0 {
		rows[max(first, 0)].Focus = true
	}
	return rows
}

// entryFaults returns the faults of a refused submission by the paths of the page's entries. of has the numbers of the sent lines.
func entryFaults(l language, refused *problem, entries []khataEntry, of []int) *problem {
	found := &problem{}
	for _, f := range refused.Errors {
		entry := 0
		array, n, field := lineAt(f.Field)
		if array != "entries" || n < 0 || n >= len(of) {
			field = ""
		} else {
			entry = of[n]
		}
		if field == "ledger" || field == "account_id" {
			field = "account"
			switch at := entries[entry]; {
			case at.Account == "":
				f.Message = l.t("Name the account.")
			case at.Line["account_id"] == nil:
				f.Message = l.t("No account has this name.")
			}
		}
		f.Field = strings.TrimSuffix(fmt.Sprintf("entries[%d].%s", entry, field), ".")
		if !slices.ContainsFunc(found.Errors, func(other fault.Field) bool { return other.Field == f.Field }) {
			found.Errors = append(found.Errors, f)
		}
	}
	return found
}

// accountText returns an account's name with its kind.
func (v *visit) accountText(name, kind string) string {
	return name + " · " + v.lang.t(kindName(kind))
}
