package replay

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"bahi/domain/event"
	"bahi/domain/unit"
)

// Difference is the first difference between a text and the books.
type Difference struct {
	Account  int64          `json:"account,omitempty"`
	Row      int64          `json:"row,omitempty"`
	Position event.Position `json:"position,omitempty"`
	Text     string         `json:"text"`
}

// Text reads a text of books, such as the output of bahi books export.
type Text struct {
	Header

	lines *bufio.Reader
	next  string // "": the text has ended
}

// ReadText reads the first line of a text.
func ReadText(from io.Reader) (*Text, error) {
	t := &Text{lines: bufio.NewReaderSize(from, 1<<18)}
	if err := t.advance(); err != nil {
		return nil, err
	}
	words := strings.Fields(t.next)
	if len(words) != 6 || words[0] != version || words[2] != "as_of" || words[4] != "known_at" {
		return nil, fmt.Errorf("its first line is not one of %s", version)
	}
	position, err := strconv.ParseUint(words[1], 10, 63)
	t.Position = event.Position(position)
	if err == nil && words[3] != "-" {
		t.AsOf = new(unit.Date)
		err = t.AsOf.UnmarshalText([]byte(words[3]))
	}
	if err == nil && words[5] != "-" {
		position, err = strconv.ParseUint(words[5], 10, 63)
		t.KnownAt = event.Position(position)
	}
	if err != nil {
		return nil, fmt.Errorf("its first line: %w", err)
	}
	return t, nil
}

func (t *Text) advance() error {
	line, err := t.lines.ReadString('\n')
	if errors.Is(err, io.EOF) {
		err = nil
	}
	t.next = line
	return err
}

// word returns the first word of the next line.
func (t *Text) word() string {
	word, _, _ := strings.Cut(strings.TrimSuffix(t.next, "\n"), " ")
	return word
}

// errDiffers stops a comparison.
var errDiffers = errors.New("the text differs")

// Compare returns the first difference between a text and the books, or nil. It skips lines that the events do not
// determine.
func (b *Books) Compare(t *Text) (*Difference, error) {
	var (
		found     *Difference
		workspace string // the current one
	)
	err := b.Write(t.Header, func(l Line) error {
		if l.Word == "workspace" {
			workspace = strings.Fields(string(l.Text))[1]
		}
		for l.Text == nil && (t.word() == l.Word && l.Word != "account" || l.Word == "account" && ofAccount[t.word()]) {
			if err := t.advance(); err != nil {
				return err
			}
		}
		if l.Text == nil {
			return nil
		}
		if string(l.Text) != t.next {
			var err error
			if found, err = b.difference(l, t); err != nil {
				return err
			}
			if found.Account == 0 && found.Row == 0 && found.Position == 0 && !strings.Contains(found.Text, workspace) {
				found.Text = "workspace " + workspace + ": " + found.Text
			}
			return errDiffers
		}
		return t.advance()
	})
	switch {
	case errors.Is(err, errDiffers):
		return found, nil
	case err == nil && t.next != "":
		return b.added(t), nil
	default:
		return nil, err
	}
}

// ofAccount has the first words of the lines that follow the first line of an account.
var ofAccount = map[string]bool{"row": true, "period": true, "closing": true}

// columns are the names of the words of each kind of line, after the first word.
var columns = map[string][]string{
	"workspace": {"id", "", "locked through", "", "metal"},
	"seal":      {"from", "through", "digest", "position"},
	"account":   {"ledger", "account", "opened at position"},
	"row": {"row", "date", "IN paise", "IN milligrams", "OUT paise", "OUT milligrams", "state", "reverses", "reversed by",
		"IN entries", "OUT entries", "paired with", "position"},
	"period":  {"from", "through", "rows", "paise", "milligrams", "digest"},
	"closing": {"ledger", "account", "paise", "milligrams", "rows"},
	"trial":   {"ledger", "debit paise", "credit paise"},
	"metal":   {"ledger", "debit milligrams", "credit milligrams", "name"},
	"digest":  {"of the closing balances"},
	"order":   {"order", "client", "date", "milligrams", "delivered milligrams", "takadas"},
	"takada":  {"takada", "order", "date", "milligrams", "karigar"},
}

// difference returns the difference between line l and the next line of the text.
func (b *Books) difference(l Line, t *Text) (*Difference, error) {
	ours, theirs := strings.Fields(string(l.Text)), strings.Fields(t.next)
	d := &Difference{Account: l.Account, Row: l.Row, Position: l.Position}
	switch {
	case len(theirs) == 0:
		d.Text = fmt.Sprintf("the file ends before %q", strings.Join(ours, " "))
	case theirs[0] != ours[0] && theirs[0] == "row":
		return b.added(t), nil
	case theirs[0] == "row" && len(theirs) == len(ours) && theirs[1] != ours[1]:
		return b.otherRow(d, ours, t)
	case theirs[0] != ours[0] && l.Word == "row":
		d.Text = "the row is missing in the file"
	case theirs[0] != ours[0], len(theirs) != len(ours):
		d.Text = fmt.Sprintf("%q is %q in the file", strings.Join(ours, " "), strings.Join(theirs, " "))
	default:
		d.Text = differing(ours, theirs)
	}
	return d, nil
}

// differing returns the differences of two lines of the same kind.
func differing(ours, theirs []string) string {
	var all []string
	names := columns[ours[0]]
	for i := 1; i < len(ours) && i < len(theirs); i++ {
		if ours[i] != theirs[i] {
			name := "a further word"
			if i <= len(names) {
				name = names[i-1]
			}
			all = append(all, fmt.Sprintf("%s is %s, and %s in the file", name, ours[i], theirs[i]))
		}
	}
	if ours[0] != "row" && ours[0] != "workspace" { // these are named already
		return ours[0] + ": " + strings.Join(all, "; ")
	}
	return strings.Join(all, "; ")
}

// otherRow returns the difference if the file has a different row in place of a row.
func (b *Books) otherRow(d *Difference, ours []string, t *Text) (*Difference, error) {
	theirs := strings.Fields(t.next)
	id, _ := strconv.ParseInt(theirs[1], 10, 64)
	if theirs[2] < ours[2] || theirs[2] == ours[2] && id < d.Row {
		return b.addedRow(theirs), nil
	}
	for ofAccount[t.word()] {
		if theirs = strings.Fields(t.next); theirs[0] == "row" && theirs[1] == ours[1] {
			d.Text = differing(ours, theirs)
			return d, nil
		}
		if err := t.advance(); err != nil {
			return nil, err
		}
	}
	d.Text = "the row is missing in the file"
	return d, nil
}

// added returns the difference if the file has an additional line.
func (b *Books) added(t *Text) *Difference {
	words := strings.Fields(t.next)
	if len(words) > 2 && words[0] == "row" {
		return b.addedRow(words)
	}
	return &Difference{Text: fmt.Sprintf("the file has a line that the books do not have: %q", strings.TrimSuffix(t.next, "\n"))}
}

// addedRow returns the difference if the books have the file's row in another position, or do not have it.
func (b *Books) addedRow(theirs []string) *Difference {
	id, _ := strconv.ParseInt(theirs[1], 10, 64)
	r, known := b.rows.find(id)
	d := &Difference{Row: id}
	if !known {
		d.Text = "no event adds the row, and the file has it"
		return d
	}
	d.Account, d.Position = r.Account, r.Position
	if r.Deleted {
		d.Text = "the row was deleted, and the file has it"
		return d
	}
	ours := strings.Fields(string(appendWords(r.append(nil), r.Paired, r.Position)))
	if d.Text = differing(ours, theirs); d.Text == "" {
		d.Text = "the row is at another place in the file"
	}
	return d
}
