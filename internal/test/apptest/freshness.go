package apptest

// Park parks the projection of the books at its next row.
func (o *Server) Park() {
	o.T.Helper()
	o.Sql(`alter table books_g1.row_version add constraint parked_for_a_test check (false) not valid`)
}

func (o *Server) Parked() bool { return o.Sys.Runner.Statuses()["books"].Parked }
