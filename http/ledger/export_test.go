package ledger

// Served returns where each ledger is served, by its name.
func Served() map[string]Paths {
	all := map[string]Paths{}
	for _, s := range ledgers {
		all[s.ledger.Name] = s.paths
	}
	return all
}
