package spreadsheet

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"bahi/domain/fault"
	"bahi/domain/person"
)

// RowError is what is wrong with a row of a file.
type RowError struct {
	Row   int    `json:"row" doc:"That the spreadsheet shows: 1 is the row of names"`
	Error string `json:"error"`

	Source []string `json:"-"` // its cells
}

// ImportResult is the answer to a file of records.
type ImportResult struct {
	Success bool       `json:"success" doc:"A record was made, or nothing was wrong"`
	Created int        `json:"created"`
	Failed  int        `json:"failed"`
	Errors  []RowError `json:"errors"`
}

// Result returns the answer to a file of which so many records were made.
func Result(created int, wrong []RowError) ImportResult {
	if wrong == nil {
		wrong = []RowError{}
	}
	return ImportResult{Success: created > 0 || len(wrong) == 0, Created: created, Failed: len(wrong), Errors: wrong}
}

// InOneLine returns all that is wrong with a row.
func InOneLine(wrong *fault.Error) string {
	if len(wrong.Fields) == 0 {
		return wrong.Detail
	}
	parts := make([]string, len(wrong.Fields))
	for i, f := range wrong.Fields {
		parts[i] = f.Field + ": " + f.Message
	}
	return strings.Join(parts, "; ")
}

// Named returns columns by the names that files have for them, in letters and digits alone. known has, for each column, further names.
func Named(known map[string]string) map[string]string {
	all := map[string]string{}
	for column, names := range known {
		for name := range strings.FieldsSeq(plain(column) + " " + names) {
			all[name] = column
		}
	}
	return all
}

// plain returns a name without case, spaces and signs.
func plain(name string) string {
	return strings.Map(func(c rune) rune {
		if unicode.In(c, unicode.L, unicode.N) {
			return c
		}
		return -1
	}, person.Folded(name))
}

// maxColumns bounds the work on a row of names that is made to cause much.
const maxColumns = 500

// Header returns the columns of the row of names, empty for unknown ones, and which there are.
func Header(r Row, named map[string]string) (columns []string, seen map[string]bool, err error) {
	if r.Wrong != "" {
		return nil, nil, fault.New(fault.Malformed, "The row of names cannot be read")
	}
	if r.Filled() > maxColumns {
		return nil, nil, fault.Newf(fault.Malformed, "The row of names has more than %d cells", maxColumns)
	}
	if len(r.wrong) > 0 {
		return nil, nil, because(r.wrong[0].in(r.Number))
	}
	columns, seen = make([]string, r.Filled()), map[string]bool{}
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

// mostNamed is how many unknown columns a refusal names.
const mostNamed = 10

// Lacks refuses a row of names for what it lacks, and says which of its names are unknown: one of them may be meant.
func (r Row) Lacks(columns []string, detail string) error {
	refused := fault.New(fault.Malformed, detail)
	var unknown []string
	for i, column := range columns {
		if column == "" && strings.TrimSpace(r.Cells[i]) != "" && len(unknown) < mostNamed {
			unknown = append(unknown, quoted(r.Cells[i]))
		}
	}
	if len(unknown) > 0 {
		refused.Fields = []fault.Field{{Field: "file", Message: "row " + strconv.Itoa(r.Number) + " has unknown columns: " + strings.Join(unknown, ", ")}}
	}
	return refused
}

// quoted returns the name of a column as a refusal has it, cut if it is long.
func quoted(name string) string {
	const most = 60
	text := []rune(strings.ToValidUTF8(strings.TrimSpace(name), "\ufffd"))
	if len(text) > most {
		text = append(text[:most], '…')
	}
	return strconv.Quote(string(text))
}

// By returns the cells of a row by their columns, without the space around them.
func (r Row) By(columns []string) (map[string]string, error) {
	switch {
	case r.Wrong != "":
		return nil, fault.New(fault.Invalid, r.Wrong)
	case r.Filled() > len(columns):
		return nil, fault.New(fault.Invalid, "it has more cells than the row of names")
	}
	if err := r.whole(columns); err != nil {
		return nil, err
	}
	cells := map[string]string{}
	for i, column := range columns[:min(len(columns), len(r.Cells))] {
		cells[column] = strings.TrimSpace(r.Cells[i])
	}
	return cells, nil
}
