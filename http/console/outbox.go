package console

import (
	"maps"
	"slices"

	"bahi/http/ops"
)

const messagesOfPage = 25

// outbox is the messages kept by a port's embedded provider.
type outbox struct {
	Port     string
	Ports    []string
	Messages []ops.Message
	Total    int
	Pages    pages
}

func (v *visit) outbox() (page, error) {
	query := v.r.URL.Query()
	o := outbox{Port: query.Get("port"), Ports: slices.Sorted(maps.Keys(v.Captured))}
	if !slices.Contains(o.Ports, o.Port) {
		o.Port = ""
	}
	p := page{template: "outbox", title: "Outbox"}
	if o.Port == "" && len(o.Ports) > 0 {
		o.Port = o.Ports[0]
		if slices.Contains(o.Ports, mailPort) {
			o.Port = mailPort
		}
	}
	if o.Port != "" {
		var err error
		n := number(query.Get("page"))
		if o.Messages, o.Total, err = v.Captured[o.Port].Captured(v.r.Context(), (n-1)*messagesOfPage, messagesOfPage); err != nil {
			return p, err
		}
		o.Pages = v.pagesOf(n, messagesOfPage, int64(o.Total))
	}
	p.body = o
	return p, nil
}

// mailPort is the port of mails.
const mailPort = "mail"
