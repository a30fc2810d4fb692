package messaging

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"bahi/commands"
	"bahi/commands/spreadsheet"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/messaging/contact"
	"bahi/domain/patch"
	"bahi/domain/person"
)

// contactColumns are the columns of a file of contacts.
var contactColumns = spreadsheet.Named(map[string]string{
	"name": "contact contactname fullname", "phone": "mobile number phonenumber phoneno mobilenumber mobileno contactnumber contactno", "email": "mail emailaddress", "source": "", "lists": "list listids",
	"optIn": "optin consent", "optInEvidence": "optinevidence evidence",
})

// imported is a row of a file.
type imported struct {
	number int
	add    contact.Add
}

// maxEvidence is how many characters the evidence of a consent has at most, as in a PATCH.
const maxEvidence = 500

// rowsAtOnce is how many rows are written at once.
const rowsAtOnce = 16

// Imported is what became of a file of contacts.
type Imported struct {
	Result   spreadsheet.ImportResult
	Position event.Position // 0: nothing was written
	Replayed bool
}

// ImportContacts makes contacts of the rows of a file, and names the rows that are not in order. A phone that a contact or an earlier row has is an error
// of its row. A repetition of the request makes who is missing; it is Replayed if nobody was.
func ImportContacts(ctx context.Context, h *commands.Handler, req commands.Request, file *io.SectionReader) (out Imported, err error) {
	rows, wrong, err := readContacts(ctx, file)
	if err != nil {
		return out, err
	}
	var (
		mu                sync.Mutex
		created, replayed int
		writing           errgroup.Group
	)
	writing.SetLimit(rowsAtOnce)
	for _, row := range rows {
		writing.Go(func() error {
			made, err := row.write(ctx, h, req)
			mu.Lock()
			defer mu.Unlock()
			if refused, ok := errors.AsType[*fault.Error](err); ok && refused.Kind != fault.Unavailable {
				wrong = append(wrong, spreadsheet.RowError{Row: row.number, Error: spreadsheet.InOneLine(refused)})
				return nil
			}
			if err == nil {
				created, out.Position = created+1, max(out.Position, made.Position)
			}
			if err == nil && made.Replayed {
				replayed++
			}
			return err
		})
	}
	if err := writing.Wait(); err != nil {
		return out, err
	}
	slices.SortFunc(wrong, func(a, b spreadsheet.RowError) int { return a.Row - b.Row })
	out.Result, out.Replayed = spreadsheet.Result(created, wrong), created > 0 && replayed == created
	return out, nil
}

// write makes the contact of a row.
func (r imported) write(ctx context.Context, h *commands.Handler, req commands.Request) (commands.Outcome[contact.State], error) {
	if req.Key != "" {
		req.Key += " row " + strconv.Itoa(r.number)
	}
	return AddContact(ctx, h, req, r.add)
}

// readContacts reads the rows of a file that are in order, and what is wrong with the others.
func readContacts(ctx context.Context, file *io.SectionReader) (rows []imported, wrong []spreadsheet.RowError, err error) {
	var columns []string // nil: the row of names is to come
	phones := map[string]int{}
	err = spreadsheet.Read(ctx, file, func(r spreadsheet.Row) (err error) {
		if columns == nil {
			var seen map[string]bool
			if columns, seen, err = spreadsheet.Header(r, contactColumns); err == nil && !seen["name"] {
				err = r.Lacks(columns, "The first row must name the column name")
			}
			return err
		}
		row, err := contactOf(r, columns)
		if phone, _ := person.Dialled("phone", row.add.Phone.Value); err == nil && phone != "" {
			if first := phones[phone]; first != 0 {
				err = fault.Fields(fault.Field{Field: "phone", Message: "row " + strconv.Itoa(first) + " has it too"})
			} else {
				phones[phone] = r.Number
			}
		}
		if refused, ok := errors.AsType[*fault.Error](err); ok {
			wrong = append(wrong, spreadsheet.RowError{Row: r.Number, Error: spreadsheet.InOneLine(refused)})
			return nil
		}
		rows = append(rows, row)
		return err
	})
	if err == nil && columns == nil {
		err = spreadsheet.ErrFormat
	}
	return rows, wrong, err
}

// contactOf returns the contact of a row, or what is wrong with it.
func contactOf(r spreadsheet.Row, columns []string) (row imported, err error) {
	cells, err := r.By(columns)
	if err != nil {
		return row, err
	}
	row = imported{number: r.Number, add: contact.Add{Name: cells["name"], Source: cells["source"]}}
	for name, into := range map[string]*patch.Field[string]{"phone": &row.add.Phone, "email": &row.add.Email} {
		if cells[name] != "" {
			*into = patch.Set(cells[name])
		}
	}
	var faults []fault.Field
	if s := row.add.Source; s != "" && !slices.Contains([]string{"chat", "social", contact.Manual}, s) {
		faults = append(faults, fault.Field{Field: "source", Message: "expected chat, social or manual"})
	}
	for _, text := range strings.FieldsFunc(cells["lists"], func(c rune) bool { return strings.ContainsRune(",;| ", c) }) {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id < 1 {
			faults = append(faults, fault.Field{Field: "lists", Message: "expected ids of lists"})
			break
		}
		row.add.ListIDs = append(row.add.ListIDs, id)
	}
	switch strings.ToLower(cells["optIn"]) {
	case "", "false", "no", "0":
	case "true", "yes", "1":
		switch row.add.Evidence = cells["optInEvidence"]; {
		case row.add.Evidence == "":
			faults = append(faults, fault.Field{Field: "optInEvidence", Message: "is required with optIn"})
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
	return row, wrong
}
