package sim

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

var oids = map[string]uint32{
	"bool": 16, "int8": 20, "int4": 23, "text": 25, "json": 114, "timestamptz": 1184, "interval": 1186, "uuid": 2950,
	"void":   2278,
	"bool[]": 1000, "int4[]": 1007, "text[]": 1009, "int8[]": 1016, "timestamptz[]": 1185, "uuid[]": 2951, "bigint": 20, "int": 23,
}

type column struct {
	name string
	oid  uint32
}

// columnsOf reads "name:type name:type".
func columnsOf(text string) (all []column) {
	for field := range strings.FieldsSeq(text) {
		name, typ, _ := strings.Cut(field, ":")
		all = append(all, column{name, oids[typ]})
	}
	return all
}

// table is a table for statements of the small language. The first columns are its key.
type table struct {
	columns []column
	key     int
	zero    row
}

var generationTable = table{columnsOf(`
	name:text generation:int4 version:int4 ddl_sha256:text status:text store_id:uuid position:int8 event_id:uuid
	owner:uuid error:text paused:bool throttle:int4 partitions:int4 accepted:bool differences:json
	total:int8 rate:int8 filled_at:timestamptz keep_for:interval keep_until:timestamptz error_at:timestamptz error_position:int8
	error_program:text after_fill:interval`), 2, row{
	"position": int64(0), "total": int64(0), "rate": int64(0), "paused": false, "accepted": false,
}}

var tables = map[string]table{
	"projection.generation": generationTable,
	"projection.partition":  {columnsOf(`name:text generation:int4 ordinal:int4 position:int8 event_id:uuid`), 3, row{"position": int64(0)}},
	"knowledge.lease":       {columnsOf(`contact_id:int8 holder:uuid until:timestamptz`), 1, nil},
	"tally":                 {columnsOf(`stream:text events:int8 total:int8`), 1, nil},
}

// statement is a parsed statement.
type statement struct {
	sql    string
	verb   string
	params []uint32
	cols   []column
	run    func(x *execution)
}

func (st *statement) describe(formats []int16) pgproto3.BackendMessage {
	if len(st.cols) == 0 {
		return &pgproto3.NoData{}
	}
	d := &pgproto3.RowDescription{}
	for i, c := range st.cols {
		f := pgproto3.FieldDescription{Name: []byte(c.name), DataTypeOID: c.oid, DataTypeSize: -1, TypeModifier: -1}
		switch {
		case len(formats) == 1:
			f.Format = formats[0]
		case len(formats) > i:
			f.Format = formats[i]
		}
		d.Fields = append(d.Fields, f)
	}
	return d
}

var (
	spaces  = regexp.MustCompile(`\s+`)
	note    = regexp.MustCompile(`--[^\n]*`)
	parsing sync.Mutex
	parsed  = map[string]*statement{}
)

// parse returns a statement: one with a function of its own, or one of the small language.
func (w *world) parse(sql string) *statement {
	parsing.Lock()
	defer parsing.Unlock()
	if st, known := parsed[sql]; known {
		return st
	}
	text := strings.TrimSpace(spaces.ReplaceAllString(note.ReplaceAllString(sql, ""), " "))
	st := &statement{sql: text}
	st.verb, _, _ = strings.Cut(text, " ")
	found := false
	for _, c := range special {
		if found = strings.HasPrefix(text, c.begins) && strings.Contains(text, c.has); found {
			if st.cols, st.run = columnsOf(c.returns), c.run; c.returns == "generation" {
				st.cols = generationResult
			}
			for p := range strings.FieldsSeq(c.takes) {
				st.params = append(st.params, oids[p])
			}
			break
		}
	}
	if !found {
		p := &parser{st: st, tokens: token.FindAllString(text, -1)}
		p.statement()
		if len(p.tokens) > 0 {
			panic(fmt.Sprintf("unknown end of %q: %q", text, p.tokens))
		}
	}
	parsed[sql] = st
	return st
}

var token = regexp.MustCompile(`'[^']*'|\$\d+|::[a-z\[\]]+|<>|<=|>=|[a-z_][a-z_0-9.]*|\d+|\S`)

// parser parses statements on one table, as far as the product uses them.
type parser struct {
	st     *statement
	tokens []string
	table  table
	name   string
}

// expression is a part of a statement with its type.
type expression struct {
	eval  func(x *execution, r, given row) any
	oid   uint32
	param int
}

func (p *parser) take(words ...string) bool {
	if len(p.tokens) < len(words) || !slices.Equal(p.tokens[:len(words)], words) {
		return false
	}
	p.tokens = p.tokens[len(words):]
	return true
}

func (p *parser) need(words ...string) {
	if !p.take(words...) {
		panic(fmt.Sprintf("cannot parse %q: %q instead of %q", p.st.sql, p.tokens, words))
	}
}

func (p *parser) pop() string {
	t := p.tokens[0]
	p.tokens = p.tokens[1:]
	return t
}

func (p *parser) from() {
	p.name = p.pop()
	t, known := tables[p.name]
	if !known {
		panic(fmt.Sprintf("unknown table %s of %q", p.name, p.st.sql))
	}
	p.table = t
}

// key returns the prefix of the keys of the table's records.
func (x *execution) table(name string) string {
	if !strings.Contains(name, ".") {
		return x.s.schema + "." + name
	}
	return name
}

func (t table) keyOf(name string, r row) string {
	for _, c := range t.columns[:t.key] {
		name += fmt.Sprintf("|%v", r[c.name])
	}
	return name
}

const generationList = `select name, generation, version, ddl_sha256, status,`

func (p *parser) statement() {
	switch {
	case strings.HasPrefix(p.st.sql, generationList):
		cut := strings.Index(p.st.sql, " as then_each from ") + len(" as then_each ")
		p.tokens = token.FindAllString(p.st.sql[cut:], -1)
		p.need("from")
		p.from()
		where := p.where()
		lock := p.take("for", "update")
		if !lock {
			p.tokens = nil // the order is that of the keys
		}
		p.st.cols = generationResult
		p.st.run = func(x *execution) {
			for _, key := range x.s.all(p.name) {
				if r, _ := x.s.get(key); where(x, r) {
					if lock && !x.lock(key) {
						return
					}
					x.rows = append(x.rows, generationRow(x, r))
				}
			}
			x.tag = fmt.Sprintf("SELECT %d", len(x.rows))
		}
	case p.take("update"):
		p.update()
	case p.take("delete", "from"):
		p.from()
		where := p.where()
		p.st.run = func(x *execution) { p.changes(x, where, func(row) row { return nil }, "DELETE", false) }
	case p.take("insert", "into"):
		p.insert()
	default:
		panic(fmt.Sprintf("cannot parse %q", p.st.sql))
	}
}

func (p *parser) where() func(x *execution, r row) bool {
	if !p.take("where") {
		return func(*execution, row) bool { return true }
	}
	e := p.expression()
	return func(x *execution, r row) bool { return e.eval(x, r, nil) == true }
}

func (p *parser) sets() func(x *execution, r, given row) row {
	type set struct {
		name string
		to   expression
	}
	var all []set
	for {
		name := p.pop()
		p.need("=")
		e := p.expression()
		p.typed(e, p.column(name))
		all = append(all, set{name, e})
		if !p.take(",") {
			break
		}
	}
	return func(x *execution, r, given row) row {
		to := row{}
		maps.Copy(to, r)
		for _, s := range all {
			to[s.name] = s.to.eval(x, r, given)
		}
		return to
	}
}

func (p *parser) update() {
	p.from()
	p.need("set")
	sets := p.sets()
	where := p.where()
	returns := p.take("returning")
	if returns {
		p.tokens, p.st.cols = nil, generationResult
	}
	p.st.run = func(x *execution) {
		p.changes(x, where, func(r row) row { return sets(x, r, nil) }, "UPDATE", returns)
	}
}

// changes changes the records for which the condition holds. If another transaction has changed one, it checks the condition again.
func (p *parser) changes(x *execution, where func(*execution, row) bool, to func(row) row, verb string, returns bool) {
	keys := slices.DeleteFunc(x.s.all(x.table(p.name)), func(key string) bool { r, _ := x.s.get(key); return !where(x, r) })
	for _, key := range keys {
		if !x.lock(key) {
			return
		}
	}
	for _, key := range keys {
		r, _ := x.s.get(key)
		now := to(r)
		if x.change(key, now); returns {
			x.rows = append(x.rows, generationRow(x, now))
		}
	}
	if p.name == "projection.generation" {
		x.unique()
	}
	x.tag = fmt.Sprintf("%s %d", verb, len(keys))
}

func (p *parser) insert() {
	p.from()
	p.need("(")
	var names []string
	for !p.take(")") {
		names = append(names, p.pop())
		p.take(",")
	}
	p.need("values", "(")
	var values []expression
	for !p.take(")") {
		e := p.expression()
		p.typed(e, p.column(names[len(values)]))
		values = append(values, e)
		p.take(",")
	}
	var sets func(x *execution, r, given row) row
	where := func(*execution, row) bool { return true }
	if p.take("on", "conflict") {
		for p.pop() != ")" {
		}
		p.need("do", "update", "set")
		sets = p.sets()
		where = p.where()
	}
	if p.take("returning", "true") {
		p.st.cols = columnsOf("held:bool")
	}
	p.st.run = func(x *execution) {
		r := row{}
		for i, e := range values {
			r[names[i]] = e.eval(x, nil, nil)
		}
		key := p.table.keyOf(x.table(p.name), r)
		if !x.lock(key) {
			return
		}
		x.tag = "INSERT 0 0"
		old, there := x.s.get(key)
		switch {
		case there && sets == nil:
			x.fail("23505", "duplicate key")
			return
		case there && !where(x, old):
			return
		case there:
			r = sets(x, old, r)
		}
		x.change(key, r)
		x.tag = "INSERT 0 1"
		if len(p.st.cols) > 0 {
			x.row(true)
		}
	}
}

var generationResult = append(slices.Clone(generationTable.columns[:20]), columnsOf("over:bool then_each:int8")...)

func generationRow(x *execution, r row) (values []any) {
	for _, c := range generationTable.columns[:20] {
		values = append(values, r[c.name])
	}
	until, kept := r["keep_until"].(time.Time)
	return append(values, kept && !until.After(x.s.w.db.now()), nil)
}
