package marketplacehttp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"io"
	"net/http"

	"github.com/google/uuid"

	"bahi/commands/marketplacecmd"
	"bahi/commands/spreadsheet"
	"bahi/domain/fault"
	"bahi/http/api"
)

const (
	maxFile = 10 << 20 // CONTRACT.md D49

	csvType  = "text/csv; charset=utf-8"
	xlsxType = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
)

var errNoTemplate = fault.New(fault.NotFound, "Template not found")

// bulk registers the import of products from files.
func (r *Routes) bulk() {
	op := closed(api.Op{
		ID: "import-products", Method: "POST", Path: catalog + "/bulk",
		Summary: "Import products from a CSV or Excel file. A row with a product's SKU edits that product. The response names faulty rows.",
		Status:  http.StatusOK, Limit: "catalog_bulk", DryRun: true,
	})
	op.MaxBody, op.AnyField, op.EmptyFile, op.Expensive = maxFile, true, spreadsheet.ErrFormat, true
	api.Handle(r.API, op, func(ctx context.Context, in *struct {
		CompanyID api.Optional[uuid.UUID] `query:"company_id" doc:"ID of one of the caller's companies; required if there are several. It may be a field of the form"`
		Accept    string                  `query:"accept" enum:"guesses" doc:"guesses: read the columns whose headers only resemble a field; may be a field of the form"`
		File      api.File
	}) (*api.Body[marketplacecmd.CatalogResult], error) {
		named := in.CompanyID.Get()
		if text := in.File.Texts["company_id"]; named == nil && text != "" {
			id, err := uuid.Parse(text)
			if err != nil {
				return nil, fault.Wrong("company_id", "expected a UUID")
			}
			named = &id
		}
		of, err := r.seller(ctx, named)
		if err != nil {
			return nil, err
		}
		req, err := marketplacecmd.Seller(ctx, r.Commands, api.Request(ctx), of)
		if err != nil {
			return nil, err
		}
		found, err := marketplacecmd.ReadCatalog(ctx, in.File.Open(), cmp.Or(in.Accept, in.File.Texts["accept"]) == "guesses")
		if err != nil {
			return nil, err
		}
		out, err := marketplacecmd.ImportProducts(ctx, r.Commands, req, r.Views,
			marketplacecmd.Import{Company: of, Lines: found.Items})
		if err != nil {
			return nil, err
		}
		if out.Position != 0 {
			api.SetWriteHeaders(ctx, out.Position, out.Replayed)
		}
		return api.Answer(found.Result(out), nil)
	})
	template := open(api.Op{
		ID: "get-catalog-template", Method: "GET", Path: catalog + "/bulk/template.{format}",
		Summary: "Download an empty file for the import",
		Limit:   "catalog_general", Errors: []int{http.StatusNotFound},
	})
	api.Download(r.API, template, map[string]any{csvType: nil, xlsxType: nil}, func(_ context.Context, in *struct {
		Format string `path:"format" doc:"csv or xlsx"`
	}) (api.Content, error) {
		content := api.Content{Name: "catalog." + in.Format}
		switch in.Format {
		case "csv":
			content.Type = csvType
			content.Write = func(_ context.Context, w io.Writer) error {
				var line bytes.Buffer
				line.WriteString("\ufeff") // spreadsheet programs treat it as the encoding's mark
				names := csv.NewWriter(&line)
				_ = names.Write(marketplacecmd.Columns) // to memory
				names.Flush()
				_, err := w.Write(line.Bytes())
				return err
			}
		case "xlsx":
			content.Type = xlsxType
			content.Write = func(_ context.Context, w io.Writer) error { return spreadsheet.Template(w, marketplacecmd.Columns) }
		default:
			return content, errNoTemplate
		}
		return content, nil
	})
}
