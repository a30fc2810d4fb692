-- The rows and balances of all five ledgers. IDs of accounts and rows are unique in the deployment, so the keys do not contain the
-- ledger's name.

create table account (
  id               bigint primary key,
  ledger           text not null,
  workspace_id     uuid not null,
  name             text not null, -- current name
  name_folded      text collate "C" not null, -- name in the form in which searches compare it
  type             smallint,      -- current type; null: accounts of the ledger have no type
  metal            text,          -- current metal; null: the metal of the books
  revision         bigint not null,
  opened_position  bigint not null,
  deleted_position bigint not null default 9223372036854775807
);

-- Versions of an account's name, type and metal. A version is valid from from_position up to, but not at, to_position.
create table account_name (
  account_id    bigint not null,
  from_position bigint not null,
  to_position   bigint not null default 9223372036854775807,
  name          text not null,
  name_folded   text collate "C" not null,
  type          smallint,
  metal         text,
  revision      bigint not null, -- of the account's own stream
  primary key (account_id, from_position)
);

create table books_lock (
  workspace_id   uuid primary key,
  locked_through date,
  moved_position bigint not null,
  revision       bigint not null
);

-- The default metal of a workspace's books from a position on.
create table books_metal (
  workspace_id  uuid not null,
  from_position bigint not null,
  metal         text not null,
  revision      bigint not null,
  primary key (workspace_id, from_position)
);

-- All versions of all rows. A version is valid from from_position up to, but not at, to_position. Each change of a row starts a
-- version. A deletion starts the last version.
create table row_version (
  row_id        bigint not null,
  from_position bigint not null,
  to_position   bigint not null default 9223372036854775807,
  account_id    bigint not null,
  date          date not null,
  in_entries    text not null, -- JSON; text, because Postgres would parse the type json at each insert
  out_entries   text not null,
  warnings      text,          -- JSON; null: none
  in_cash numeric(38,2) not null,
  out_cash numeric(38,2) not null,
  in_fine numeric(38,3) not null, -- grams of pure metal
  out_fine numeric(38,3) not null,
  loss numeric(38,3) not null, -- part of in_fine that was lost in work
  metal         text,             -- metal of the entries; null: the metal of the account
  revision      bigint not null,  -- revision of the row's stream
  deleted       boolean not null,
  void          boolean not null, -- a void row remains on its page, and its sums are 0
  reverses      bigint,           -- the row that this one reverses
  reversed_by   bigint,           -- the row that reverses this one
  paired_with   bigint,           -- the counter row in another account
  actor         text not null,
  reason        text,
  recorded_at   timestamptz not null,
  primary key (row_id, from_position)
);

-- Current sums of an account's rows, by level: 0 the account, 1 its 64-day periods, 2 its days, 3 the parts of days with more than 4096
-- rows, 4 the parts of days with more than 32 rows. The node of a part has the day and the id of the part's first row. The opening
-- balance of a page is the sum of a few hundred of these, however long the ledger is.
create table total (
  account_id bigint not null,
  level      smallint not null,
  node       bigint not null,
  row_count  bigint not null,
  cash numeric(38,2) not null,
  fine numeric(38,3) not null,
  loss numeric(38,3), -- metal lost in work, without reversed rows; null: none
  in_cash numeric(38,2), -- sum of the IN sides of a period's rows; null at other levels
  in_fine numeric(38,3),
  primary key (account_id, level, node)
) with (fillfactor = 70);

-- Reports whether a row is the first of a part. rows is the average number of rows in a part, a power of 2. A hash of the id selects one
-- of so many rows.
create function begins(id bigint, rows bigint) returns boolean language sql immutable as $$
  select ((c # (c >> 16)) & (rows - 1)) = 0
  from (select (id # (id >> 32)) & 4294967295) x (a),
    lateral (select ((a # (a >> 16)) * 73244475) & 4294967295) y (b),
    lateral (select ((b # (b >> 16)) * 73244475) & 4294967295) z (c)
$$;

-- Stores the sums of parts of days. A part has the rows from one id up to, but not with, another id.
create function make_parts(accounts bigint[], levels smallint[], days bigint[], lows bigint[], highs bigint[], sizes bigint[])
returns void language sql as $$
  insert into total (account_id, level, node, row_count, cash, fine)
  select p.account, p.level, (p.day << 40) | p.low, count(v.row_id), coalesce(sum(v.in_cash - v.out_cash), 0), coalesce(sum(v.in_fine - v.out_fine), 0)
  from (
    select d.account, d.level, d.day, s.low, lead(s.low, 1, d.high) over (partition by d.account, d.level, d.day, d.low order by s.low) as high
    from unnest(accounts, levels, days, lows, highs, sizes) d (account, level, day, low, high, size)
    cross join lateral (
      select d.low
      union
      select v.row_id from row_version v
      where v.account_id = d.account and v.date = date '1970-01-01' + d.day::int and v.row_id > d.low and v.row_id < d.high
        and not v.deleted and begins(v.row_id, d.size)
    ) s (low)
  ) p
  left join row_version v on v.account_id = p.account and v.date = date '1970-01-01' + p.day::int and v.row_id >= p.low and v.row_id < p.high
    and v.to_position = 9223372036854775807 and not v.deleted
  group by 1, 2, 3
  on conflict (account_id, level, node) do update set
    row_count = excluded.row_count, cash = excluded.cash, fine = excluded.fine
$$;

-- Sums of the current balances of a ledger's open accounts. Balances above and below 0 have separate sums, both positive.
create table ledger_total (
  workspace_id uuid not null,
  ledger       text not null,
  accounts     bigint not null,
  cash_above numeric(38,2) not null, cash_below numeric(38,2) not null,
  fine_above numeric(38,3) not null, fine_below numeric(38,3) not null,
  primary key (workspace_id, ledger)
) with (fillfactor = 70);

-- Turnover of a day: sums of each side over all open accounts of a ledger.
create table ledger_day (
  workspace_id uuid not null,
  ledger       text not null,
  date         date not null,
  row_count    bigint not null,
  in_cash numeric(38,2) not null, out_cash numeric(38,2) not null,
  in_fine numeric(38,3) not null, out_fine numeric(38,3) not null,
  primary key (workspace_id, ledger, date)
) with (fillfactor = 70);

-- The sums of the table total after each change, for the account, the period and the day. They answer reads as known at a position.
create table balance_history (
  account_id   bigint not null,
  position     bigint not null,
  ordinal      int not null, -- index among the changes by one event, from 0
  period       int not null,
  day          int not null, -- days since 1970-01-01
  account_rows bigint not null, account_cash numeric(38,2) not null, account_fine numeric(38,3) not null, account_loss numeric(38,3),
  period_rows  bigint not null, period_cash numeric(38,2) not null, period_fine numeric(38,3) not null, period_loss numeric(38,3),
  period_in_cash numeric(38,2) not null, period_in_fine numeric(38,3) not null,
  day_rows     bigint not null, day_cash numeric(38,2) not null, day_fine numeric(38,3) not null, day_loss numeric(38,3)
);

-- after fill

create index account_workspace_id_ledger_id_idx on account (workspace_id, ledger, id);
create index account_workspace_id_name_folded_idx on account (workspace_id, name_folded, ledger, id) where deleted_position = 9223372036854775807;
create index row_version_account_id_date_row_id_idx on row_version (account_id, date, row_id, to_position, from_position)
  where not deleted;
create index row_version_account_id_metal_idx on row_version (account_id) where metal is not null;
create index row_version_account_id_matched_idx on row_version (account_id)
  where not deleted and (paired_with is not null or reverses is not null or reversed_by is not null
    or in_cash = out_cash and in_fine = out_fine + loss);
create unique index balance_history_account_id_position_idx on balance_history (account_id, position, ordinal);
create index balance_history_account_id_period_position_idx on balance_history (account_id, period, position, ordinal);
create index balance_history_account_id_day_position_idx on balance_history (account_id, day, position, ordinal);

select make_parts(array_agg(t.account_id), array_agg(l.level::smallint), array_agg(t.node), array_agg(0::bigint), array_agg(1::bigint << 40), array_agg(l.rows))
from total t join (values (3, 4096::bigint), (4, 32)) l (level, rows) on t.row_count > l.rows
where t.level = 2;

insert into ledger_total (workspace_id, ledger, accounts, cash_above, cash_below, fine_above, fine_below)
select a.workspace_id, a.ledger, count(*),
  sum(greatest(t.cash, 0)), sum(greatest(-t.cash, 0)), sum(greatest(t.fine, 0)), sum(greatest(-t.fine, 0))
from account a join total t on t.account_id = a.id and t.level = 0
where a.deleted_position = 9223372036854775807
group by a.workspace_id, a.ledger;

insert into ledger_day (workspace_id, ledger, date, row_count, in_cash, out_cash, in_fine, out_fine)
select a.workspace_id, a.ledger, v.date, count(*), sum(v.in_cash), sum(v.out_cash), sum(v.in_fine), sum(v.out_fine)
from row_version v join account a on a.id = v.account_id
where v.to_position = 9223372036854775807 and not v.deleted and a.deleted_position = 9223372036854775807
group by a.workspace_id, a.ledger, v.date;
