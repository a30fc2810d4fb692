package cli_test

// faults are changes that a faulty fold could leave in the tables, with the texts of the comparison.
var faults = []struct {
	name string
	row  int // of the corrected account; -1: none
	text string
	sql  string
}{
	{"the sign of a row is wrong", 0, "IN paise is 100005, and 0 in the file",
		`update books.row_version set in_cash = out_cash, out_cash = in_cash
			where row_id = @row0 and to_position = 9223372036854775807`},
	{"an amount is off by a paisa", 5, "OUT paise is 334, and 333 in the file",
		`update books.row_version set out_cash = out_cash - 0.01 where row_id = @row5 and to_position = 9223372036854775807`},
	{"money is counted as metal", 2, "IN milligrams is 0, and 12500 in the file",
		`update books.row_version set in_fine = in_cash, in_cash = 0 where row_id = @row2 and to_position = 9223372036854775807`},
	{"a row is not void", 4, "state is void, and - in the file",
		`update books.row_version set void = false where row_id = @row4 and to_position = 9223372036854775807`},
	{"a void row is deleted", 4, "the row is missing in the file",
		`update books.row_version set deleted = true where row_id = @row4 and to_position = 9223372036854775807`},
	{"a deletion is ignored", 7, "the row was deleted, and the file has it",
		`update books.row_version set deleted = false where row_id = @row7 and to_position = 9223372036854775807`},
	{"an edit is ignored", 3, "IN paise is 7000, and 700 in the file",
		`update books.row_version v
			set in_entries = o.in_entries, in_cash = o.in_cash, out_entries = o.out_entries, out_cash = o.out_cash
			from books.row_version o
			where v.row_id = @row3 and v.to_position = 9223372036854775807 and o.row_id = v.row_id and o.to_position = v.from_position`},
	{"an edit changes the sum and not the entries", 3, "IN entries is",
		`update books.row_version set in_entries = '[{"amount":7}]' where row_id = @row3 and to_position = 9223372036854775807`},
	{"an edit leaves the former version", 3, "IN paise is 7000, and 700 in the file",
		`update books.row_version v set to_position = case when to_position = 9223372036854775807 then from_position else 9223372036854775807 end
			where row_id = @row3`},
	{"a row is moved by a day", 0, "date is 2024-03-31, and 2024-04-01 in the file",
		`update books.row_version set date = '2024-04-01' where row_id = @row0 and to_position = 9223372036854775807`},
	{"a row is on another account", 5, "the row is missing in the file",
		`update books.row_version set account_id = @gone where row_id = @row5 and to_position = 9223372036854775807`},
	{"an escape is read and written again", 5, "OUT entries is",
		`update books.row_version set out_entries = replace(out_entries, chr(92) || 'u003c', '<')
			where row_id = @row5 and to_position = 9223372036854775807`},
	{"a reversal is ignored", 8, "reversed by is",
		`update books.row_version set reversed_by = null where row_id = @row8 and to_position = 9223372036854775807`},
	{"a reversing row does not name the reversed one", 10, "reverses is",
		`update books.row_version set reverses = null where row_id = @row10 and to_position = 9223372036854775807`},
	{"a balance is off by a paisa", -1, "closing: paise is 82914, and 82915 in the file",
		`update books.total set cash = cash + 0.01 where account_id = @account and level = 0`},
	{"a balance counts a row twice", -1, "closing: rows is 12, and 13 in the file",
		`update books.total set row_count = row_count + 1 where account_id = @account and level = 0`},
	{"a balance has metal", -1, "closing: milligrams is 0, and 1 in the file",
		`update books.total set fine = 0.001 where account_id = @account and level = 0`},
	{"a lock is ignored", -1, "workspace: locked through is 2024-04-30, and - in the file",
		`update books.books_lock set locked_through = null
			where workspace_id = (select workspace_id from books.account where id = @account)`},
	{"a deleted account is open", -1, "in the file",
		`update books.account set deleted_position = 9223372036854775807 where id = @gone`},
	{"an account is of another ledger", -1, "account: ledger is bank, and client in the file",
		`update books.account set ledger = 'client' where id = @account`},
	{"an order is delivered by half", -1, "delivered milligrams",
		`update orders.client_order set delivered_mg = delivered_mg - 1 where takadas > 0`},
	{"a deleted takada counts", -1, "takadas is",
		`update orders.client_order set takadas = takadas + 1 where takadas > 0`},
	{"a takada is of another order", -1, "takada: order is",
		`update orders.takada set order_id = order_id + 1 where not deleted`},
	{"a metal of an account is ignored", -1, "metal: credit milligrams is 10000, and 20000 in the file",
		`update books.account_name set metal = null where account_id = @dealer`},
	{"a metal of an entry is ignored", -1, "metal: credit milligrams is 10000, and 30000 in the file",
		`update books.row_version set metal = null where account_id = @dealer`},
	{"a pairing is ignored", -1, "paired with is",
		`update books.row_version set paired_with = null where account_id = @account and paired_with is not null`},
	{"a closed period is open", -1, "seal 1900-01-01 2024-04-30",
		`update periods.period set reopened_position = position where through = '2024-04-30'`},
	{"a closed period has another digest", -1, "seal: digest is",
		`update periods.period set digest = 'ab'`},
}
