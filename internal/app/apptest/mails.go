package apptest

// LaterMails lets two minutes pass since the mails that were sent.
func (o *Office) LaterMails() {
	o.T.Helper()
	o.Sql(`update account.mailed_token set issued_at = issued_at - interval '2 minutes'`)
}
