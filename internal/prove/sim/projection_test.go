package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// projectionStatements are the statements of projections outside the small language.
var projectionStatements = []known{
	{"select set_config('search_path', $1,", "", "text", "set:text", func(x *execution) {
		x.s.schema = arg[string](x, 1)
		x.row(x.s.schema)
		x.tag = "SELECT 1"
	}},
	{"insert into projection.generation", "coalesce(max(generation), 0) + 1",
		"text int4 text uuid text int4 int4 bool interval", "generation", func(x *execution) {
			r := row{}
			maps.Copy(r, generationTable.zero)
			last := int64(0)
			for _, key := range x.s.all("projection.generation") {
				if g, _ := x.s.get(key); g["name"] == x.value(1) {
					last = max(last, g["generation"].(int64))
				}
			}
			r["generation"] = last + 1
			for i, name := range strings.Fields("name version ddl_sha256 store_id status throttle partitions accepted keep_for") {
				r[name] = x.value(i + 1)
			}
			if !x.change(generationTable.keyOf("projection.generation", r), r) {
				return
			}
			x.unique()
			x.rows = [][]any{generationRow(x, r)}
			x.tag = "INSERT 0 1"
		}},
	{"create schema", "", "", "", func(x *execution) {
		x.tag = "CREATE SCHEMA"
		key := "schema|" + strings.TrimSuffix(strings.Fields(x.st.sql)[2], ";")
		if _, there := x.s.get(key); there {
			x.fail("42P06", "schema already exists")
			return
		}
		x.change(key, row{})
	}},
	{"create table tally", "", "", "", func(x *execution) { x.tag = "CREATE TABLE" }},
	{"drop schema if exists", "", "", "", func(x *execution) {
		name := strings.Fields(x.st.sql)[4]
		x.drop("schema|"+name, x.s.all(name+".tally")...)
		x.tag = "DROP SCHEMA"
	}},
	{"delete from projection.generation where name = $1 and generation = $2", "", "text int4", "", func(x *execution) {
		key := fmt.Sprintf("projection.generation|%v|%v", x.value(1), x.value(2))
		x.drop(key, x.s.all(strings.Replace(key, "generation", "partition", 1))...)
		x.tag = "DELETE 1"
	}},
	{"insert into projection.partition", "generate_series", "text int4 int4", "", func(x *execution) {
		for nth := range arg[int64](x, 3) {
			r := row{"name": x.value(1), "generation": x.value(2), "ordinal": nth, "position": int64(0), "event_id": nil}
			x.change(tables["projection.partition"].keyOf("projection.partition", r), r)
		}
		x.tag = "INSERT 0 1"
	}},
	{"select position, event_id from projection.partition", "", "text int4", "position:int8 event_id:uuid", func(x *execution) {
		for _, key := range x.s.all(fmt.Sprintf("projection.partition|%v|%v", x.value(1), x.value(2))) {
			r, _ := x.s.get(key)
			x.row(r["position"], r["event_id"])
		}
		x.tag = "SELECT 1"
	}},
	{"select coalesce(string_agg(format('%I.%I'", "", "text", "all:text", func(x *execution) {
		x.row("")
		x.tag = "SELECT 1"
	}},
	{"select quote_ident(tablename)", "", "text text", "name:text live:bool fresh:bool", func(x *execution) {
		x.row("tally", true, true)
		x.tag = "SELECT 1"
	}},
	{"select count(*)::text, coalesce(sum(hash_record_extended", "", "", "n:text sum:text", func(x *execution) {
		_, from, _ := strings.Cut(x.st.sql, "from (select * from ")
		name, _, _ := strings.Cut(from, ")")
		text := ""
		keys := x.s.all(name)
		for _, key := range keys {
			r, _ := x.s.get(key)
			text += fmt.Sprint(r["stream"], r["events"], r["total"], ";")
		}
		x.row(fmt.Sprint(len(keys)), text)
		x.tag = "SELECT 1"
	}},
	{"with odd as materialized", "", "int8", "place:text n:int8 row:text", func(x *execution) {
		x.row("live tables", int64(1), `"rows differ"`)
		x.tag = "SELECT 1"
	}},
	{"with unsafe as materialized", "knowledge.lease", "int8 uuid", "", func(x *execution) {
		key := fmt.Sprintf("knowledge.lease|%v", x.value(1))
		x.tag, x.s.tx.async = "DELETE 0", true
		if r, ok := x.s.get(key); ok && r["holder"] == x.value(2) && x.change(key, nil) {
			x.tag = "DELETE 1"
		}
	}},
}

// drop deletes records. It waits if a transaction has changed one of them.
func (x *execution) drop(key string, others ...string) {
	all := append(slices.Clone(others), key)
	for _, k := range all {
		if !x.lock(k) {
			return
		}
	}
	for _, k := range all {
		x.change(k, nil)
	}
}

// unique fails the statement if two generations are live, or two are being built.
func (x *execution) unique() {
	count := map[string]int{}
	for _, key := range x.s.all("projection.generation") {
		g, _ := x.s.get(key)
		switch g["status"] {
		case "kept", "scratch":
		case "live":
			count[fmt.Sprint("live ", g["name"], g["version"])]++
		default:
			count[fmt.Sprint("built ", g["name"], g["version"])]++
		}
	}
	for what, n := range count {
		if n > 1 {
			x.fail("23505", what)
		}
	}
}
