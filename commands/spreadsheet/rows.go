package spreadsheet

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/xuri/excelize/v2"

	"bahi/domain/fault"
	"bahi/domain/person"
	"bahi/domain/wording"
)

// RowError is the fault of a row of a file.
type RowError struct {
	Row   int    `json:"row" doc:"Row number in the spreadsheet, from 1"`
	Error string `json:"error" doc:"Fault of the row"`

	Source []string `json:"-"` // its cells
}

// ImportResult is the response to a file of records.
type ImportResult struct {
	Success bool       `json:"success" doc:"true: a record was created, or no row was faulty"`
	Created int        `json:"created" doc:"Number of created records"`
	Failed  int        `json:"failed" doc:"Number of faulty rows"`
	Errors  []RowError `json:"errors" doc:"Faulty rows"`
	Columns *Columns   `json:"columns" doc:"Result by column of the file"`

	Warnings []RowError `json:"warnings,omitempty" doc:"Values of created records that are stored but not used"`
}

// Result returns the response to a file from which the given number of records was created.
func Result(created int, wrong []RowError, columns *Columns) ImportResult {
	if wrong == nil {
		wrong = []RowError{}
	}
	return ImportResult{Success: created > 0 || len(wrong) == 0, Created: created, Failed: len(wrong), Errors: wrong, Columns: columns}
}

// inOneLine returns all faults of a row in one line.
func inOneLine(wrong *fault.Error) string {
	if len(wrong.Fields) == 0 {
		return wrong.Detail
	}
	parts := make([]string, len(wrong.Fields))
	for i, f := range wrong.Fields {
		parts[i] = f.Field + ": " + f.Message
	}
	return strings.Join(parts, "; ")
}

// Quoting adds to each fault of a row's field the text of its cell.
func Quoting(err error, cells map[string]string) error {
	wrong, is := errors.AsType[*fault.Error](err)
	if !is {
		return err
	}
	quoting := *wrong
	quoting.Fields = slices.Clone(wrong.Fields)
	for i, f := range quoting.Fields {
		if text := cells[f.Field]; text != "" {
			quoting.Fields[i].Message += " (" + quoted(text) + ")"
		}
	}
	return &quoting
}

// Named returns columns by their names in files. The names have only letters and digits. known has further names of each column.
func Named(known map[string]string) map[string]string {
	all := map[string]string{}
	for column, names := range known {
		for name := range strings.FieldsSeq(column + " " + names) {
			all[plain(name)] = column
		}
	}
	return all
}

// Known returns the column with a header, or "".
func Known(named map[string]string, header string) string { return named[plain(header)] }

// plain returns a name in lower case without spaces and signs.
func plain(name string) string {
	return strings.Map(func(c rune) rune {
		if unicode.In(c, unicode.L, unicode.N) {
			return wording.Devanagari(c)
		}
		return -1
	}, person.Folded(name))
}

// maxColumns is the maximum number of columns in a row of names. It bounds the work on malicious files.
const maxColumns = 500

// Header returns the columns of the row of names, "" for unknown ones, and the set of known ones.
func Header(r Row, named map[string]string) (columns []string, seen map[string]bool, err error) {
	if r.Wrong != "" {
		return nil, nil, fault.New(fault.Malformed, "The row of names cannot be read")
	}
	if r.filled() > maxColumns {
		return nil, nil, fault.Newf(fault.Malformed, "The row of names has more than %d cells", maxColumns)
	}
	if len(r.wrong) > 0 {
		return nil, nil, because(r.wrong[0].in(r.Number))
	}
	columns, seen = make([]string, r.filled()), map[string]bool{}
	for i := range columns {
		column := named[plain(r.Cells[i])]
		if column != "" && seen[column] {
			first := r.Cells[slices.Index(columns, column)]
			return nil, nil, &fault.Error{
				Kind: fault.Malformed, Detail: "Two columns are " + column,
				Fields: []fault.Field{{Field: column, Message: quoted(first) + " and " + quoted(r.Cells[i])}},
			}
		}
		columns[i], seen[column] = column, true
	}
	return columns, seen, nil
}

// maxGuessed is the maximum number of unknown headers that are compared with the known ones.
const maxGuessed = 30

// maxNamed is the maximum number of unknown columns in a refusal.
const maxNamed = 10

// Lacks returns the refusal of a row of names without the required columns. The refusal lists the unknown names, because one may be
// misspelt.
func (r Row) Lacks(columns []string, detail string) error {
	refused := fault.New(fault.Malformed, detail)
	var unknown []string
	for _, header := range r.ignored(columns) {
		unknown = append(unknown, quoted(header))
	}
	unknown = unknown[:min(len(unknown), maxNamed)]
	if len(unknown) > 0 {
		refused.Fields = []fault.Field{{Field: "file",
			Message: "row " + strconv.Itoa(r.Number) + " has unknown columns: " + strings.Join(unknown, ", ")}}
	}
	return refused
}

// ignored returns the names of unknown columns.
func (r Row) ignored(columns []string) []string {
	names := []string{}
	for i, column := range columns {
		if name := strings.TrimSpace(r.Cells[i]); column == "" && name != "" {
			names = append(names, name)
		}
	}
	return names
}

// maxTitles is the maximum number of rows above the header row.
const maxTitles = 10

// Titles are the rows above the header row.
type Titles struct {
	Refusal error // of the row with the greatest number of known columns

	rows, known int
}

// Add adds a row that lacks required columns. It returns Refusal if the file has too many such rows.
func (t *Titles) Add(known int, refusal error) error {
	if t.Refusal == nil || known > t.known {
		t.known, t.Refusal = known, refusal
	}
	if t.rows++; t.rows > maxTitles {
		return t.Refusal
	}
	return nil
}

// Column is a column of a file with its field.
type Column struct {
	Header string `json:"header" doc:"Header in the file"`
	Field  string `json:"field" doc:"Field that the column fills"`
}

// Columns reports the use of a file's columns.
type Columns struct {
	Row     int      `json:"row"     doc:"Number of the row of names, from 1; Bahi ignores rows above it"`
	Used    []Column `json:"used" doc:"Columns that Bahi used"`
	Ignored []string `json:"ignored" doc:"Headers of unread columns; hidden rows and columns, and sheets, which are not read"`
	Guessed []Column `json:"guessed" doc:"Columns with headers that resemble a field; read only with accept=guesses, if the operation has it"`

	fields  []string          // by column; empty: its values are not read
	unnamed []bool            // by column: it has no header, and no value in the rows so far
	headers map[string]string // by field
}

// Columns returns the use of the columns below a row of names. fields is the result of [Header]. guess returns the similar field of an
// unknown column. If guesses are accepted, their columns are read.
func (r Row) Columns(fields []string, guess func(header string) string, accept bool) *Columns {
	c := &Columns{Row: r.Number, Used: []Column{}, Ignored: []string{}, Guessed: []Column{}, fields: fields, headers: map[string]string{}}
	for i, field := range fields {
		if field != "" {
			c.Used = append(c.Used, Column{Header: strings.TrimSpace(r.Cells[i]), Field: field})
			c.headers[field] = strings.TrimSpace(r.Cells[i])
		}
	}
	c.unnamed = make([]bool, len(fields))
	for i, field := range fields {
		header := strings.TrimSpace(r.Cells[i])
		if c.unnamed[i] = header == ""; field != "" || header == "" {
			continue
		}
		guessed := ""
		if len(c.Guessed)+len(c.Ignored) < maxGuessed {
			guessed = guess(header)
		}
		if _, known := c.headers[guessed]; known || guessed == "" {
			c.Ignored = append(c.Ignored, header)
			continue
		}
		c.Guessed = append(c.Guessed, Column{Header: header, Field: guessed})
		if c.headers[guessed] = header; accept {
			fields[i] = guessed
		}
	}
	return c
}

// Has reports whether the values of a field are read.
func (c *Columns) Has(field string) bool { return slices.Contains(c.fields, field) }

// Of returns the cells of a row by their fields. It adds a column without a header to the ignored ones if the row has a value there.
func (c *Columns) Of(r Row) (map[string]string, error) {
	for i, text := range r.Cells[:min(len(r.Cells), len(c.unnamed))] {
		if c.unnamed[i] && strings.TrimSpace(text) != "" {
			c.unnamed[i] = false
			name, _ := excelize.ColumnNumberToName(i + 1) // valid: at most maxColumns
			c.Ignored = append(c.Ignored, "column "+name+" without a header")
		}
	}
	return r.by(c.fields)
}

// Foreign returns the currency of a field's cell, "" for rupees and for none.
func (c *Columns) Foreign(r Row, field string) string {
	for _, cell := range r.foreign {
		if cell.column < len(c.fields) && c.fields[cell.column] == field {
			return cell.money
		}
	}
	return ""
}

// Dated reports whether a field's cell is a number that the sheet shows as a date.
func (c *Columns) Dated(r Row, field string) bool {
	return slices.ContainsFunc(r.dates, func(d cell) bool { return d.column < len(c.fields) && c.fields[d.column] == field })
}

// Named returns the faults of a row in one line, with the file's headers instead of field names.
func (c *Columns) Named(wrong *fault.Error) string {
	renamed := *wrong
	renamed.Fields = slices.Clone(wrong.Fields)
	for i, f := range renamed.Fields {
		field, nth, _ := strings.Cut(f.Field, "[")
		if header := c.headers[field]; header != "" {
			renamed.Fields[i].Field = header
			if nth != "" {
				renamed.Fields[i].Field += " [" + nth
			}
		}
	}
	return inOneLine(&renamed)
}

// Guess returns the field with a name similar to the header, or "". A field with a name that is a word of the header ranks first.
func Guess(named map[string]string, header string) (field string) {
	const alike = 450 // thousandths
	best, text := alike-1, plain(header)
	for _, name := range slices.Sorted(maps.Keys(named)) {
		likeness := wording.Similarity(text, name)
		if len(name) > 2 && slices.Contains(wording.Words(header), name) {
			likeness = 1000 + len(name)
		}
		if likeness > best {
			best, field = likeness, named[name]
		}
	}
	return field
}

// quoted returns a name or a cell for a refusal, cut if it is long.
func quoted(name string) string {
	const most = 60
	text := []rune(strings.ToValidUTF8(strings.TrimSpace(name), "\ufffd"))
	if len(text) > most {
		text = append(text[:most], '…')
	}
	return strconv.Quote(string(text))
}

// failed matches the text of a failed formula, or of a number wider than its column.
var failed = regexp.MustCompile(`^#(N/A|(REF|VALUE|DIV/0|NUM|NULL|SPILL|CALC|ERROR)!|NAME\?|#+)$`)

// by returns the cells of a row by their columns, without the space around them.
func (r Row) by(columns []string) (map[string]string, error) {
	switch {
	case r.Wrong != "":
		return nil, fault.New(fault.Invalid, r.Wrong)
	case r.filled() > len(columns):
		return nil, fault.New(fault.Invalid, "it has more cells than the row of names")
	}
	if err := r.whole(columns); err != nil {
		return nil, err
	}
	cells, faults := map[string]string{}, []fault.Field(nil)
	for i, column := range columns[:min(len(columns), len(r.Cells))] {
		cells[column] = strings.TrimSpace(r.Cells[i])
		if column != "" && failed.MatchString(cells[column]) {
			faults = append(faults, fault.Field{Field: column, Message: "has the error " + cells[column]})
		}
	}
	if len(faults) > 0 {
		return nil, fault.Fields(faults...)
	}
	return cells, nil
}
