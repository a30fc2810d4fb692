package ledger

func (r *Routes) ordersPDF() {}
