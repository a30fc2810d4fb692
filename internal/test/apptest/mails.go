package apptest

// LaterMails moves all sent mails two minutes into the past.
func (o *Server) LaterMails() {
	o.T.Helper()
	o.Sql(`update account.mailed_token set issued_at = issued_at - interval '2 minutes'`)
}
