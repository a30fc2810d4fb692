package cli_test

// faults are changes that a faulty fold could leave in the tables, with the texts of the comparison.
var faults = []struct {
	name string
	row  int // of the corrected account; -1: none
	text string
	sql  string // what is set in the newest version of the row, or an update
}{
	{"the sign of a row is wrong", 0, "IN paise is 100005, and 0 in the file", `in_cash = out_cash, out_cash = in_cash`},
	{"the amount of an OUT entry is added", 1, "OUT paise is 40000, and -40000 in the file", `out_cash = -out_cash`},
	{"an amount is off by a paisa", 5, "OUT paise is 334, and 333 in the file", `out_cash = out_cash - 0.01`},
	{"money is counted as metal", 2, "IN milligrams is 0, and 12500 in the file", `in_fine = in_cash, in_cash = 0`},
	{"a void row counts", 4, "IN paise is 0, and 800 in the file", `in_cash = 8`},
	{"a row is not void", 4, "state is void, and - in the file", `void = false`},
	{"a void row is deleted", 4, "the row is missing in the file", `deleted = true`},
	{"a deletion is ignored", 7, "the row was deleted, and the file has it", `deleted = false`},
	{"an edit changes the sum and not the entries", 3, "IN entries is", `in_entries = '[{"amount":7}]'`},
	{"an edit leaves the former version", 3, "IN paise is 7000, and 700 in the file",
		`update books.row_version v set to_position = case when to_position = 9223372036854775807 then from_position else 9223372036854775807 end
			where row_id = @row3`},
	{"a move to another date is ignored", 6, "date is 2025-03-30, and 2025-04-02 in the file", `date = '2025-04-02'`},
	{"rows of a day change places", 3, "the row is missing in the file", `row_id = row_id + 1000000`},
	{"a row is on another account", 5, "the row is missing in the file", `account_id = @gone`},
	{"an escape is read and written again", 5, "OUT entries is", `out_entries = replace(out_entries, chr(92) || 'u003c', '<')`},
	{"the sides of entries change places", 2, "IN entries is", `in_entries = out_entries, out_entries = in_entries`},
	{"a reversal is ignored", 8, "reversed by is", `reversed_by = null`},
	{"a reversing row does not name the reversed one", 10, "reverses is", `reverses = null`},
	{"a balance is off by a paisa", -1, "closing: paise is 82914, and 82915 in the file",
		`update books.total set cash = cash + 0.01 where account_id = @account and level = 0`},
	{"a balance counts a row twice", -1, "closing: rows is 12, and 13 in the file",
		`update books.total set row_count = row_count + 1 where account_id = @account and level = 0`},
	{"a balance has metal", -1, "closing: milligrams is 0, and 1 in the file",
		`update books.total set fine = 0.001 where account_id = @account and level = 0`},
	{"a lock is ignored", -1, ": locked through is 2024-04-30, and - in the file",
		`update books.books_lock set locked_through = null where workspace_id = (select workspace_id from books.account where id = @account)`},
	{"a deleted account is open", -1, "in the file",
		`update books.account set deleted_position = 9223372036854775807 where id = @gone`},
	{"an account is deleted", -1, "account: account is", `update books.account set deleted_position = 1 where id = @account`},
	{"an account is of another ledger", -1, "ledger is bank, and client in", `update books.account set ledger = 'client' where id = @account`},
	{"an order is delivered by half", -1, "delivered milligrams",
		`update orders.client_order set delivered_mg = delivered_mg - 1 where takadas > 0`},
	{"a deleted takada counts", -1, "takadas is", `update orders.client_order set takadas = takadas + 1 where takadas > 0`},
	{"a takada is of another order", -1, "takada: order is", `update orders.takada set order_id = order_id + 1 where not deleted`},
	{"a metal of an account is ignored", -1, "metal: credit milligrams is 10000, and 20000 in the file",
		`update books.account_name set metal = null where account_id = @dealer`},
	{"a metal of an entry is ignored", -1, "metal: credit milligrams is 10000, and 30000 in the file",
		`update books.row_version set metal = null where account_id = @dealer`},
	{"a pairing is ignored", -1, "paired with is",
		`update books.row_version set paired_with = null where account_id = @account and paired_with is not null`},
	{"a closed period is open", -1, "seal 1900-01-01 2024-04-30",
		`update periods.period set reopened_position = position where through = '2024-04-30'`},
	{"a closed period has another digest", -1, "seal: digest is", `update periods.period set digest = 'ab'`},
}
