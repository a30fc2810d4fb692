package ledgerhttp

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"

	"bahi/http/api"
	"bahi/http/pdf"
	"bahi/readmodels"
	"bahi/readmodels/ledgerview"
)

// ordersPDF registers the report of orders. Without a page it has all orders.
func (r *Routes) ordersPDF() {
	api.Download(r.API, orderOp(api.Op{
		ID: "get-client-orders-pdf", Method: "GET", Path: "/client-orders/pdf",
		Summary: "Read the orders of clients as a PDF", Limit: limitPDF,
	}), map[string]any{pdfType: nil}, func(ctx context.Context, in *struct {
		OrderPage
		ledgerview.OrderFilter
	}) (c api.Content, err error) {
		title, err := r.title(ctx, workspace(ctx), math.MaxInt64-1)
		if err != nil {
			return c, err
		}
		o := pdf.Orders{Title: title, Scope: []string{"All clients"}}
		if in.Client != 0 {
			name, err := r.Views.ClientName(ctx, api.At(ctx), workspace(ctx), in.Client)
			if err != nil {
				return c, err
			}
			o.Scope[0] = "Client: " + name
		}
		if in.Slip != "" {
			o.Scope = append(o.Scope, "Slip number: "+in.Slip)
		}
		page := in.get()
		if page.Size != 0 {
			o.Scope = append(o.Scope, fmt.Sprintf("Page %d of the list, with %d orders a page", page.Number, page.Size))
		}
		return api.Content{
			Type: pdfType, Name: "client-orders.pdf", Inline: true, Drawn: true,
			Write: func(ctx context.Context, w io.Writer) error {
				o.Each = func(take func(ledgerview.ClientOrder) error) error {
					return r.Views.EachOrder(ctx, api.At(ctx), workspace(ctx), page, in.OrderFilter, take)
				}
				o.Drawn = func() (pdf.Drawn, error) {
					var as ledgerview.As // state of the rows that were read
					recorded, err := r.fixed(ctx, &as)
					if err != nil {
						return pdf.Drawn{}, err
					}
					return r.drawnFrom(ctx, *as.KnownAt, recorded)
				}
				return pdf.WriteOrders(w, o)
			},
		}, nil
	})
}

// OrderPage selects a page of the list, or all orders.
type OrderPage struct {
	Page     int `query:"page" minimum:"1" maximum:"1000000000" doc:"Number of the page, from 1; without page and page_size, all orders"`
	PageSize int `query:"page_size" minimum:"1" maximum:"100" doc:"Orders per page"`
}

// get returns the page; its size is 0 for all orders.
func (p OrderPage) get() readmodels.Page {
	if p.Page == 0 && p.PageSize == 0 {
		return readmodels.Page{Number: 1}
	}
	return readmodels.Page{Number: max(p.Page, 1), Size: cmp.Or(p.PageSize, 50)}
}
