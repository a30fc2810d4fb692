package messagingcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"bahi/commands"
	"bahi/commands/spreadsheet"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/messaging/contact"
	"bahi/domain/patch"
	"bahi/domain/person"
	"bahi/domain/wording"
	"bahi/eventstore"
)

// contactColumns are the column names of a file of contacts.
var contactColumns = spreadsheet.Named(map[string]string{
	"name": "contact contactname fullname customer customername " +
		"नाम पूरानाम ग्राहक ग्राहककानाम " +
		"નામ પૂરુંનામ ગ્રાહક ગ્રાહકનુંનામ",
	"phone": "mobile number phonenumber phoneno mobilenumber mobileno contactnumber contactno cell cellno " +
		"फोन फ़ोन फोननंबर फ़ोननंबर मोबाइल मोबाइलनंबर " +
		"मोबाइलनं मोबाईल मोबाईलनंबर " +
		"ફોન ફોનનંબર મોબાઇલ મોબાઇલનંબર મોબાઈલ મોબાઈલનંબર",
	"email": "mail emailaddress ईमेल ઈમેલ ઇમેલ", "source": "", "listIds": "list lists listids",
	"optIn": "optin consent", "optInEvidence": "optinevidence evidence",
})

// imported is a row of a file.
type imported struct {
	number  int
	add     contact.Add
	warning error // quotes an unreadable phone; nil: none
}

// maxEvidence is the maximum length of the evidence of a consent in characters, as in a PATCH.
const maxEvidence = 500

const (
	maxThousands = 50  // maximum thousands of rows in a file (CONTRACT.md R14)
	batchSize    = 100 // rows per transaction: 500 (CONTRACT.md R14) delays others two to three times as much, see docs/figures.md
	maxLists     = 100 // lists of one contact
)

// Imported is the result of importing a file of contacts.
type Imported struct {
	Result   spreadsheet.ImportResult
	Position event.Position // 0: nothing was appended
	Replayed bool
}

// ImportContacts creates contacts from the rows of a file, and reports the rows with faults. The phone of an existing contact or of an
// earlier row is a fault. Each batch of rows is one transaction. A retry creates the missing contacts. Its result is Replayed if none was
// missing.
func ImportContacts(ctx context.Context, h *commands.Handler, req commands.Request, file *io.SectionReader) (Imported, error) {
	rows, wrong, columns, err := readContacts(ctx, file)
	if err != nil {
		return Imported{}, err
	}
	i := importing{h: h, req: req, columns: columns, wrong: wrong}
	for n := 0; n*batchSize < len(rows); n++ {
		batch := rows[n*batchSize : min(len(rows), (n+1)*batchSize)]
		if err := i.write(ctx, n, batch); err != nil {
			return i.out, i.interrupted(err, len(rows)+len(wrong))
		}
	}
	slices.SortFunc(i.wrong, func(a, b spreadsheet.RowError) int { return a.Row - b.Row })
	i.out.Result, i.out.Replayed = spreadsheet.Result(i.created, i.wrong, i.columns), i.created > 0 && i.replayed == i.created
	i.out.Result.Warnings = i.warnings
	return i.out, nil
}

// importing is a running import.
type importing struct {
	h       *commands.Handler
	req     commands.Request
	columns *spreadsheet.Columns

	created, replayed int
	wrong, warnings   []spreadsheet.RowError
	out               Imported
}

// interrupted returns the error of an import that stopped early, with its progress.
func (i *importing) interrupted(err error, rows int) error {
	refused, isFault := errors.AsType[*fault.Error](err)
	away := isFault && refused.Kind == fault.Unavailable || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, eventstore.ErrUnavailable) || errors.Is(err, eventstore.ErrInDoubt)
	if !away {
		return err
	}
	return fault.Newf(fault.Unavailable, "The import was interrupted: of %d rows, %d are contacts and %d have faults. "+
		"Send the file again with the same Idempotency-Key to continue", rows, i.created, len(i.wrong))
}

// keyed returns the request for a batch of the import.
func (i *importing) keyed(part string, number int) commands.Request {
	req := i.req
	req.IfMatch = nil // an import does not change a single record
	if req.Key != "" {
		req.Key += " " + part + " " + strconv.Itoa(number)
	}
	return req
}

// write creates the contacts of a batch in one transaction. Their ids follow the id of the batch in the order of the rows, so a retry finds
// the contacts. A retry also creates contacts that the first attempt refused if their rows are valid now.
func (i *importing) write(ctx context.Context, number int, batch []imported) error {
	if err := commands.InParallel(len(batch),
		func(n int) error { return name(ctx, i.h, i.req.Workspace, &batch[n].add.Addresses) }); err != nil {
		return err
	}
	var refused []error
	out, err := commands.Do(ctx, i.h, i.keyed("batch", number), contact.Kind, func(ctx context.Context, tx *commands.Tx) error {
		first, err := commands.Once(tx, "ids", func() (int64, error) {
			return i.h.Numbers(ctx, contact.Kind.Category(), int64(len(batch)))
		})
		if err != nil {
			return err
		}
		refused, err = i.decide(ctx, tx, first, batch)
		return err
	})
	if err != nil {
		return err
	}
	if out.Replayed {
		return i.repeat(ctx, out, batch)
	}
	for n, row := range batch {
		i.count(row, refused[n], out.Position, false)
	}
	return nil
}

// decide records the contacts of a batch, and returns the errors of refused rows.
func (i *importing) decide(ctx context.Context, tx *commands.Tx, first int64, batch []imported) ([]error, error) {
	refused, guessed := make([]error, len(batch)), map[string]bool{"": true}
	if tx.Again() { // after a conflict: check all values, several concurrently
		if err := commands.InParallel(len(batch), func(n int) error { return phones.Prepare(ctx, i.h, batch[n].add.PhoneKey) }); err != nil {
			return nil, err
		}
	}
	for n, row := range batch {
		row.add.ID = strconv.FormatInt(first+int64(n), 10)
		commands.NewRecord(tx, contact.Kind, row.add.ID)
		if n == 0 {
			if _, err := commands.Decide(ctx, tx, contact.Kind, row.add.ID, nothing{}); err != nil {
				return nil, err
			}
		}
		if key := row.add.PhoneKey; !guessed[key] && !tx.Again() {
			phones.Guess(tx, key)
			guessed[key] = true
		}
		err := fault.Join(lists(ctx, tx, i.req, row.add.ListIDs), phones.Free(ctx, tx, row.add.PhoneKey, row.add.ID))
		if err == nil {
			_, err = commands.Decide(ctx, tx, contact.Kind, row.add.ID, row.add)
		}
		if refused[n] = err; isRefusal(err) {
			continue
		}
		if err == nil {
			err = phones.Give(ctx, tx, row.add.PhoneKey, row.add.ID)
		}
		if err != nil {
			return nil, err
		}
	}
	return refused, nil
}

// nothing is a command without effect for the first contact of a batch, which identifies the batch.
type nothing struct{}

func (nothing) Decide(contact.State) ([]event.Event[contact.State], error) { return nil, nil }

// isRefusal reports whether an error is a row's fault, not the log's.
func isRefusal(err error) bool {
	f, ok := errors.AsType[*fault.Error](err)
	return ok && f.Kind != fault.Unavailable
}

// repeat counts the contacts of a batch that an earlier attempt has written.
func (i *importing) repeat(ctx context.Context, out commands.Outcome[contact.State], batch []imported) error {
	first, err := strconv.ParseInt(out.ID, 10, 64)
	if err != nil {
		return fmt.Errorf("id of a batch: %w", err)
	}
	made := make([]commands.Loaded[contact.State], len(batch))
	err = commands.InParallel(len(batch), func(n int) (err error) {
		made[n], err = commands.Load(ctx, i.h.Fresh(), contact.Kind, strconv.FormatInt(first+int64(n), 10))
		return err
	})
	if err != nil {
		return err
	}
	for n, row := range batch {
		at, replayed := made[n].Position, true
		var refused error
		if made[n].Revision < 0 {
			late, err := AddContact(ctx, i.h, i.keyed("row", row.number), row.add)
			if err != nil && !isRefusal(err) {
				return err
			}
			at, replayed, refused = late.Position, late.Replayed, err
		}
		i.count(row, refused, at, replayed)
	}
	return nil
}

// count counts a created or refused row.
func (i *importing) count(row imported, refused error, at event.Position, replayed bool) {
	if f, ok := errors.AsType[*fault.Error](refused); ok {
		i.wrong = append(i.wrong, spreadsheet.RowError{Row: row.number, Error: i.columns.Named(f)})
		return
	}
	if w, ok := errors.AsType[*fault.Error](row.warning); ok {
		i.warnings = append(i.warnings, spreadsheet.RowError{Row: row.number, Error: i.columns.Named(w)})
	}
	if i.created++; replayed {
		i.replayed++
	}
	i.out.Position = max(i.out.Position, at)
}

// readContacts returns the valid rows of a file, and the faults of the others.
func readContacts(ctx context.Context, file *io.SectionReader) (rows []imported, wrong []spreadsheet.RowError,
	columns *spreadsheet.Columns, err error) {
	phones, titles := map[string]int{}, spreadsheet.Titles{}
	unread, err := spreadsheet.Read(ctx, file, maxThousands, func(r spreadsheet.Row) (err error) {
		if columns == nil {
			fields, seen, err := spreadsheet.Header(r, contactColumns)
			if err != nil {
				return err
			}
			if delete(seen, ""); !seen["name"] {
				return titles.Add(len(seen), r.Lacks(fields, "The first row must name the column name"))
			}
			columns = r.Columns(fields, func(string) string { return "" }, false)
			return nil
		}
		row, err := contactOf(r, columns)
		if phone, _ := person.ParseE164("phone", row.add.Phone.Value); err == nil && phone != "" {
			if first := phones[phone]; first != 0 {
				err = fault.Wrong("phone", "row "+strconv.Itoa(first)+" has the same phone")
			} else {
				phones[phone] = r.Number
			}
		}
		if refused, ok := errors.AsType[*fault.Error](err); ok {
			wrong = append(wrong, spreadsheet.RowError{Row: r.Number, Error: columns.Named(refused)})
			return nil
		}
		rows = append(rows, row)
		return err
	})
	if columns == nil {
		return nil, nil, nil, cmp.Or(err, titles.Refusal, error(spreadsheet.ErrFormat))
	}
	columns.Ignored = append(columns.Ignored, unread...)
	return rows, wrong, columns, err
}

// contactOf returns the contact of a row, or its faults.
func contactOf(r spreadsheet.Row, columns *spreadsheet.Columns) (row imported, err error) {
	cells, err := columns.Of(r)
	if err != nil {
		return row, err
	}
	row = imported{number: r.Number, add: contact.Add{Name: cells["name"], Source: cells["source"]}}
	for name, into := range map[string]*patch.Field[string]{"phone": &row.add.Phone, "email": &row.add.Email} {
		if cells[name] != "" {
			*into = patch.Set(cells[name])
		}
	}
	if _, unread, _ := wording.ParseE164("phone", row.add.Phone); unread != "" {
		row.warning = spreadsheet.Quoting(fault.Wrong("phone", wording.UnreadPhone), cells)
	}
	var faults []fault.Field
	if s := row.add.Source; s != "" && !slices.Contains([]string{"chat", "social", contact.Manual}, s) {
		faults = append(faults, fault.Field{Field: "source", Message: "expected chat, social or manual"})
	}
	for _, text := range strings.FieldsFunc(cells["listIds"], func(c rune) bool { return strings.ContainsRune(",;| ", c) }) {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id < 1 {
			faults = append(faults, fault.Field{Field: "listIds", Message: "expected ids of lists"})
			break
		}
		row.add.ListIDs = append(row.add.ListIDs, id)
	}
	if len(row.add.ListIDs) > maxLists {
		faults = append(faults, fault.Field{Field: "listIds", Message: "at most 100"})
	}
	switch strings.ToLower(cells["optIn"]) {
	case "", "false", "no", "n", "0", "नहीं", "ના":
	case "true", "yes", "y", "1", "हाँ", "हां", "હા":
		switch row.add.Evidence = cells["optInEvidence"]; {
		case row.add.Evidence == "":
			faults = append(faults, fault.Field{Field: "optInEvidence", Message: "is required with a consent"})
		case utf8.RuneCountInString(row.add.Evidence) > maxEvidence:
			faults = append(faults, fault.Field{Field: "optInEvidence", Message: "at most 500 characters"})
		}
	default:
		faults = append(faults, fault.Field{Field: "optIn", Message: "expected true or false"})
	}
	_, wrong := row.add.Decide(contact.State{})
	if len(faults) > 0 {
		wrong = fault.Join(wrong, fault.Fields(faults...))
	}
	return row, spreadsheet.Quoting(wrong, cells)
}
