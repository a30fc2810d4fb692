package messaging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"bahi/commands"
	"bahi/commands/spreadsheet"
	"bahi/commands/unique"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/messaging/contact"
	"bahi/domain/patch"
	"bahi/domain/person"
	"bahi/eventstore"
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

const (
	mostThousands = 50  // thousands of rows of a file (CONTRACT.md R14)
	batchSize     = 500 // rows that are written together
	rowsAtOnce    = 16  // rows of a batch that are looked at at once
	mostLists     = 100 // of a contact
)

// Imported is what became of a file of contacts.
type Imported struct {
	Result   spreadsheet.ImportResult
	Position event.Position // 0: nothing was written
	Replayed bool
}

// ImportContacts makes contacts of the rows of a file, and names the rows that are not in order. A phone that a contact or an earlier row has is an error
// of its row. It writes batches of rows. A retry creates the missing contacts; it is Replayed if none was missing.
func ImportContacts(ctx context.Context, h *commands.Handler, req commands.Request, file *io.SectionReader) (Imported, error) {
	rows, wrong, columns, err := readContacts(ctx, file)
	if err != nil {
		return Imported{}, err
	}
	i := importing{h: h, req: req, wrong: wrong, lists: map[int64]error{}}
	for n := 0; n*batchSize < len(rows); n++ {
		batch := rows[n*batchSize : min(len(rows), (n+1)*batchSize)]
		if err := i.write(ctx, n, batch); err != nil {
			return i.out, i.interrupted(err, len(rows)+len(wrong))
		}
	}
	slices.SortFunc(i.wrong, func(a, b spreadsheet.RowError) int { return a.Row - b.Row })
	i.out.Result, i.out.Replayed = spreadsheet.Result(i.created, i.wrong, columns), i.created > 0 && i.replayed == i.created
	return i.out, nil
}

// importing is an import under way.
type importing struct {
	h   *commands.Handler
	req commands.Request

	lists             map[int64]error // what is wrong with lists that rows have named
	mu                sync.Mutex      // of the rest
	created, replayed int
	wrong             []spreadsheet.RowError
	out               Imported
}

// interrupted returns the error of an import that ended early, with how far it came.
func (i *importing) interrupted(err error, rows int) error {
	refused, isFault := errors.AsType[*fault.Error](err)
	away := isFault && refused.Kind == fault.Unavailable || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, eventstore.ErrUnavailable) || errors.Is(err, eventstore.ErrInDoubt)
	if !away {
		return err
	}
	return fault.Newf(fault.Unavailable, "The import was interrupted: of %d rows, %d are contacts and %d have faults. "+
		"Send the file again with the same Idempotency-Key, and it goes on", rows, i.created, len(i.wrong))
}

// keyed returns the request for a part of the import.
func (i *importing) keyed(part string, number int) commands.Request {
	req := i.req
	if req.Key != "" {
		req.Key += " " + part + " " + strconv.Itoa(number)
	}
	return req
}

// write makes contacts of a batch. The ids of a batch follow one another, so that a repetition finds its contacts.
func (i *importing) write(ctx context.Context, number int, batch []imported) error {
	first, again, err := commands.Reserve(ctx, i.h, i.keyed("batch", number), contact.Kind, int64(len(batch)))
	if err != nil {
		return err
	}
	for _, row := range batch {
		if err := i.know(ctx, row.add.ListIDs); err != nil {
			return err
		}
	}
	news, there := make([]unique.New[contact.State], len(batch)), make([]bool, len(batch))
	err = each(batch, func(n int, row imported) (err error) {
		row.add.ID = strconv.FormatInt(first+int64(n), 10)
		if again {
			l, err := commands.Load(ctx, i.h.Fresh(), contact.Kind, row.add.ID)
			if there[n] = l.Revision >= 0; err != nil || there[n] {
				i.made(l.Position, true)
				return err
			}
		}
		err = name(ctx, i.h, i.req.Workspace, &row.add.Reach)
		news[n] = unique.New[contact.State]{ID: row.add.ID, Key: row.add.PhoneKey, Command: row.add}
		return err
	})
	if err != nil {
		return err
	}
	var (
		together []unique.New[contact.State]
		of, left []imported // left are rows that something is wrong with, or may be
	)
	for n, row := range batch {
		row.add.ID = news[n].ID
		switch {
		case there[n]:
		case i.unknown(row.add.ListIDs) != nil:
			left = append(left, row)
		default:
			together, of = append(together, news[n]), append(of, row)
		}
	}
	done, err := phones.CreateEach(ctx, i.h, i.req, together)
	for n, d := range done {
		if d.Changed {
			i.made(d.Position, false)
		} else {
			left = append(left, of[n])
		}
	}
	if err != nil {
		return err
	}
	return each(left, func(_ int, row imported) error {
		made, err := AddContact(ctx, i.h, i.keyed("row", row.number), row.add)
		refused, ok := errors.AsType[*fault.Error](err)
		switch {
		case err == nil:
			i.made(made.Position, made.Replayed)
		case !ok || refused.Kind == fault.Unavailable:
			return err
		case i.req.Key != "" && len(refused.Fields) == 1 && fmt.Sprint(refused.Fields[0].ID) == row.add.ID: // the same request is under way in another place
			i.made(0, true)
		default:
			i.mu.Lock()
			defer i.mu.Unlock()
			i.wrong = append(i.wrong, spreadsheet.RowError{Row: row.number, Error: spreadsheet.InOneLine(refused)})
		}
		return nil
	})
}

// each does something for each row, some rows at once.
func each(rows []imported, do func(n int, row imported) error) error {
	var all errgroup.Group
	all.SetLimit(rowsAtOnce)
	for n, row := range rows {
		all.Go(func() error { return do(n, row) })
	}
	return all.Wait()
}

// made counts a contact.
func (i *importing) made(at event.Position, replayed bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.created++; replayed {
		i.replayed++
	}
	i.out.Position = max(i.out.Position, at)
}

// know looks at lists that were not looked at before.
func (i *importing) know(ctx context.Context, ids []int64) error {
	for _, id := range ids {
		if _, known := i.lists[id]; known {
			continue
		}
		err := lists(ctx, i.h, i.req, []int64{id})
		if _, refused := errors.AsType[*fault.Error](err); err != nil && !refused {
			return err
		}
		i.lists[id] = err
	}
	return nil
}

// unknown returns the fault of the first list that does not exist.
func (i *importing) unknown(ids []int64) error {
	for _, id := range ids {
		if err := i.lists[id]; err != nil {
			return err
		}
	}
	return nil
}

// readContacts reads the rows of a file that are in order, and what is wrong with the others.
func readContacts(ctx context.Context, file *io.SectionReader) (rows []imported, wrong []spreadsheet.RowError, columns *spreadsheet.Columns, err error) {
	phones := map[string]int{}
	err = spreadsheet.Read(ctx, file, mostThousands, func(r spreadsheet.Row) (err error) {
		if columns == nil {
			fields, seen, err := spreadsheet.Header(r, contactColumns)
			if err == nil && !seen["name"] {
				err = r.Lacks(fields, "The first row must name the column name")
			}
			if err == nil {
				columns = r.Columns(fields, func(string) string { return "" }, false)
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
	return rows, wrong, columns, err
}

// contactOf returns the contact of a row, or what is wrong with it.
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
	if len(row.add.ListIDs) > mostLists {
		faults = append(faults, fault.Field{Field: "lists", Message: "at most 100"})
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
