package projections

import "strings"

// RowCountDDL returns DDL for the end of a projection's DDL. It maintains the number of rows of a table, so that lists do not count them.
// Table <of>_tally has the number in column rows, for each combination of values of the named columns. A column with a name that ends in ?
// may be null, which equals the empty text. Only rows that match where are counted. Triggers maintain the numbers. A fill counts once, at
// its end.
func RowCountDDL(of, where string, columns ...string) string {
	var names, values []string
	for _, c := range columns {
		name, nullable := strings.CutSuffix(c, "?")
		value := name
		if nullable {
			value = "coalesce(" + name + ", '') as " + name
		}
		names, values = append(names, name), append(values, value)
	}
	each := func(n, from string) string {
		return "select " + strings.Join(values, ", ") + ", " + n + " as n from " + from + " where " + where
	}
	fill := func(text string, more ...string) string {
		return strings.NewReplacer(append(more, "{of}", of, "{columns}", strings.Join(names, ", "), "{moved}",
			"moved."+strings.Join(names, ", moved."))...).Replace(text)
	}
	ddl := fill(`
create table {of}_tally as select {columns}, sum(n)::bigint as rows from (` + each("1", "{of}") + `) every group by {columns};
alter table {of}_tally add primary key ({columns});
`)
	for _, t := range [][3]string{
		{"insert", "new table as added", each("1", "added")},
		{"update", "old table as gone new table as added", each("1", "added") + " union all " + each("-1", "gone")},
		{"delete", "old table as gone", each("-1", "gone")},
	} {
		ddl += fill(tallyTrigger, "{event}", t[0], "{tables}", t[1], "{changes}", t[2])
	}
	return ddl
}

const tallyTrigger = `
create function {of}_{event}() returns trigger language plpgsql set search_path from current as $$
declare
  moved record;
  counted bigint;
begin
  for moved in select {columns}, sum(n)::bigint as rows from ({changes}) every group by {columns} having sum(n) <> 0 order by {columns} loop
    insert into {of}_tally as t values ({moved}, moved.rows) on conflict ({columns}) do update set rows = t.rows + excluded.rows
    	returning t.rows into counted;
    if counted = 0 then
      delete from {of}_tally t where ({columns}) = ({moved});
    end if;
  end loop;
  return null;
end $$;
create trigger {of}_{event} after {event} on {of} referencing {tables} for each statement execute function {of}_{event}();
`
