package pages

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"bahi/domain/fault"
)

const khatasShown = 30

// readOf returns the entries of the reading.
func readOf(upload map[string]any) []map[string]any {
	return entriesOf(inner(upload, "result")["entries"])
}

// khataList lists the uploads. It shows why an upload was refused, and keeps its key.
func (v *visit) khataList(status int, key string, wrong ...string) page {
	number := v.number()
	uploads, total, refused := v.paged("list-khata-uploads", request{}, number, khatasShown)
	v.require(refused)
	body := map[string]any{"Uploads": uploads, "Key": key, "Wrong": wrong}
	body["Newer"], body["Older"] = turned(Path+"/khata", nil, number, number*khatasShown < total)
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
	var upload map[string]any
	out, refused := v.ask("upload-khata-v2", in, &upload)
	switch {
	case refused != nil && refused.Status == http.StatusForbidden:
		return v.deny(refused)
	case refused != nil:
		return v.khataList(refused.Status, in.key, detail(refused))
	}
	return page{redirect: after(out, pagePath("khata", upload["upload_id"]), "")}
}

// khataPage is the content of the page of an upload.
type khataPage struct {
	Upload   map[string]any
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

// upload returns the upload of the page.
func (v *visit) upload() map[string]any {
	u := map[string]any{}
	v.read("get-khata-upload", request{vars: []string{v.r.PathValue("id")}}, &u)
	kind := textOf(u["content_type"])
	u["picture"] = strings.HasPrefix(kind, "image/") && kind != "image/tiff" // browsers show it
	return u
}

// showKhata shows an upload: the progress of its reading, the rows to check, or the posted rows. It shows the entries and the faults of a
// refused form.
func (v *visit) showKhata(shown khataPage, entries []map[string]any, faults map[string]string, status int) page {
	u := shown.Upload
	read, posted := u["result"] != nil, u["submitted"] == true
	if read || posted {
		shown.Accounts = v.refsOf("")
	}
	if read && !posted {
		if entries == nil {
			entries = v.entriesRead(u, shown.Accounts)
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
func submission(upload map[string]any, entries []map[string]any) (in request, of []int) {
	lines := []any{}
	for i, e := range entries {
		if e["accepted"] == true {
			line := maps.Clone(e)
			delete(line, "account")
			delete(line, "accepted")
			lines, of = append(lines, line), append(of, i)
		}
	}
	in.body = map[string]any{"upload_id": upload["upload_id"], "entries": lines}
	return in, of
}

// previewKhata returns the effect of posting the accepted entries, nil for visitors who may not post.
func (v *visit) previewKhata(upload map[string]any, entries []map[string]any) *khataPreview {
	if !v.permissions()["ledger:write"] {
		return nil
	}
	in, of := submission(upload, entries)
	shown := &khataPreview{Accepted: len(of), Left: len(entries) - len(of)}
	for _, e := range entries {
		if e["accepted"] != true {
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
	entries := v.entriesPosted(len(readOf(upload)))
	if form.Get("open") != "" {
		return v.openForKhata(shown, entries)
	}
	if form.Get("preview") != "" {
		shown.Preview = v.previewKhata(upload, entries)
		return v.previewed("khata", shown.Preview, func() page { return v.showKhata(shown, entries, nil, 0) })
	}
	in, of := submission(upload, entries)
	in.key = shown.Key
	if len(of) == 0 {
		shown.Wrong = []string{v.lang.t("Accept a row first.")}
		return v.showKhata(shown, entries, nil, http.StatusUnprocessableEntity)
	}
	out, refused := v.ask("submit-khata", in, nil)
	if refused == nil {
		return page{redirect: after(out, pagePath("khata", upload["upload_id"]), "posted")}
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
func (v *visit) openForKhata(shown khataPage, entries []map[string]any) page {
	form := v.r.PostForm
	at, err := strconv.Atoi(form.Get("open"))
	if err != nil || at < 0 || at >= len(entries) {
		return v.deny(errNoPage)
	}
	kind, work, _ := strings.Cut(form.Get(fmt.Sprintf("entries[%d].kind", at)), " ")
	if kindName(kind) == "" {
		return v.deny(errNoPage)
	}
	name := textOf(entries[at]["account"])
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
	for _, e := range entries {
		if e["account_id"] == nil && strings.EqualFold(textOf(e["account"]), name) {
			e["ledger"], e["account_id"] = kind, opened["id"]
			e["account"] = v.accountText(textOf(opened["name"]), kind)
		}
	}
	entries[at]["accepted"] = true
	shown.Preview = v.previewKhata(shown.Upload, entries)
	return v.showKhata(shown, entries, nil, 0)
}

// khataLine is the schema of a read or checked entry in the form: that of the operation, with the text of the account and a tick.
func (v *visit) khataLine() *schema {
	line := *v.schemaOf("submit-khata").of("entries").Items
	line.Properties = append([]property{{"account", &schema{Kind: "text"}}, {"accepted", &schema{Kind: "tick"}}}, line.Properties...)
	return &line
}

// khataRow is an entry as the page shows it.
type khataRow struct {
	Entry       map[string]any
	Name        string // JSON path
	Summary     string
	Account     field
	Fields      []field        // the others
	Read        map[string]any // nil: added by the user; the reading missed it
	Open, Focus bool           // Open: the inputs are shown; Focus: the row has the focus
	Wrong       string
}

// entriesRead returns the entries of the reading.
func (v *visit) entriesRead(upload map[string]any, accounts refs) (entries []map[string]any) {
	for _, read := range readOf(upload) {
		e := map[string]any{"account": textOf(read["party_name"])}
		for _, p := range v.khataLine().Properties {
			if read[p.Name] != nil {
				e[p.Name] = read[p.Name]
			}
		}
		if id := read["account_id"]; id != nil {
			e["account"] = accounts.Text(textOf(read["ledger"]) + "/" + plain(id))
		}
		e["accepted"] = !unsure(read) && e["account_id"] != nil && e["date"] != nil
		entries = append(entries, e)
	}
	return entries
}

// entriesPosted returns the entries of the form, without a blank one at its end. The side always has a value.
func (v *visit) entriesPosted(count int) (entries []map[string]any) {
	line, form := v.khataLine(), v.r.PostForm
	var accounts refs
	for i := 0; i < count || i < maxLines && form.Has(fmt.Sprintf("entries[%d].account", i)); i++ {
		name := fmt.Sprintf("entries[%d]", i)
		e, _ := reader(form).object(line, name, false)
		text := textOf(e["account"])
		entries = append(entries, e)
		if e["account_id"] != nil && text == form.Get(name+".was") {
			continue
		}
		delete(e, "ledger")
		delete(e, "account_id")
		if text == "" {
			continue
		}
		if accounts.List == "" {
			accounts = v.refsOf("")
		}
		if found, wrong := accounts.find(v.lang, text); wrong == "" {
			kind, id, _ := strings.Cut(found, "/")
			e["ledger"], e["account_id"], e["account"] = kind, number(id, ""), accounts.Text(found)
		}
	}
	if last := len(entries) - 1; last >= count && (len(entries[last]) == 0 || len(entries[last]) == 1 && entries[last]["side"] != nil) {
		entries = entries[:last]
	}
	return entries
}

// summary returns an entry as one text.
func (v *visit) summary(e map[string]any) string {
	parts := []string{v.lang.day(textOf(e["date"])), textOf(e["account"]), v.lang.t(wordOf(e["side"])), v.lang.line(e)}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " · ")
}

// khataRows returns the rows of the page, then a blank one if the visitor may post.
func (v *visit) khataRows(upload map[string]any, entries []map[string]any, faults map[string]string) []khataRow {
	line, found := v.khataLine().without("ledger", "account_id", "accepted"), readOf(upload)
	count, first := len(entries), -1
	if v.permissions()["ledger:write"] {
		entries = append(entries[:count:count], map[string]any{})
	}
	rows := make([]khataRow, len(entries))
	for i, e := range entries {
		name := fmt.Sprintf("entries[%d]", i)
		r := khataRow{Entry: e, Name: name, Summary: v.summary(e), Wrong: faults[name]}
		if i < len(found) {
			r.Read = found[i]
		}
		drawn := drawing{faults: faults}.object(line, name, any(e), false)
		r.Account, r.Fields = drawn[0], drawn[1:]
		faulty := r.Wrong != "" || slices.ContainsFunc(drawn, func(f field) bool { return f.Error != "" })
		r.Open = i < count && (faulty || e["account_id"] == nil || e["date"] == nil)
		if first < 0 && i < count && (faulty || len(faults) == 0 && e["accepted"] != true) {
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
func entryFaults(l language, refused *problem, entries []map[string]any, of []int) *problem {
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
			case textOf(at["account"]) == "":
				f.Message = l.t("Name the account.")
			case at["account_id"] == nil:
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
