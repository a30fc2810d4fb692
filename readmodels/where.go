package readmodels

import (
	"strconv"
	"strings"
)

// Where is a condition with its parameters, made of what was asked for. A part that was not asked for is left out: in the SQL, it would
// keep Postgres from using the index of one that was.
type Where struct {
	SQL  string
	Args []any // from $1 on
}

// And adds a condition, in which $n is the value.
func (w *Where) And(condition string, value any) {
	w.Args = append(w.Args, value)
	w.SQL += " and " + strings.ReplaceAll(condition, "$n", "$"+strconv.Itoa(len(w.Args)))
}
