// Package marketplacecli has the commands for companies and their catalogs.
package marketplacecli

import (
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"

	"bahi/commands/marketplacecmd"
	"bahi/commands/spreadsheet"
	"bahi/http/sheet"
	"bahi/internal/app"
	"bahi/internal/cli/progress"
	"bahi/internal/cli/remote"
	"bahi/projections/marketplaceproj"
	"bahi/readmodels"
)

// Commands are the commands of the marketplace.
type Commands struct {
	Company struct {
		Verify verifyCompany `cmd:"" help:"Mark a company as verified, or as not verified."`
	} `cmd:"" help:"Verify companies."`
	Catalog struct {
		Import importCatalog `cmd:"" help:"Import products from a CSV or Excel file."`
	} `cmd:"" help:"Import the products of companies."`
}

type verifyCompany struct {
	remote.Server

	Slug   string `arg:"" help:"The company's slug or id."`
	Revoke bool   `help:"Mark the company as not verified."`
}

// Run sets the mark.
func (c verifyCompany) Run(ctx context.Context) error {
	company := struct{ ID, Slug string }{}
	path := "/api/v1/companies/" + url.PathEscape(c.Slug)
	if err := c.Do(ctx, remote.Request{Method: "GET", Path: path}, &company); err != nil {
		return err
	}
	err := c.Do(ctx, remote.Request{Method: "PATCH", Path: "/api/v1/companies/" + company.ID,
		Body: map[string]bool{"verified": !c.Revoke}}, nil)
	if err != nil {
		return err
	}
	state := "verified"
	if c.Revoke {
		state = "not verified"
	}
	fmt.Fprintf(c.Shell.Out, "%s is %s\n", company.Slug, state)
	return nil
}

type importCatalog struct {
	app.Settings

	File    string `arg:"" type:"existingfile" help:"The file: .csv or .xlsx."`
	Company string `required:"" placeholder:"SLUG" help:"The company's slug or id."`
	Key     string `help:"Name of the import: the same file under the same name has one effect, however often it is imported. Without it, the file's content is the name."`
	DryRun  bool   `help:"Report the result without importing."`
	Accept  bool   `name:"accept-guesses" help:"Use columns with headers that only resemble a field."`
}

// maxFile is the maximum size of a file, in bytes.
const maxFile = 10 << 20

// Run imports the valid rows, and writes the invalid ones into another file beside it.
func (c importCatalog) Run(ctx context.Context) error {
	file, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was read
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() > maxFile {
		return errors.New("the file is too large: at most 10 MB")
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return fmt.Errorf("read %s: %w", c.File, err)
	}
	read, err := marketplacecmd.ReadCatalog(ctx, io.NewSectionReader(file, 0, info.Size()), c.Accept)
	if err != nil {
		return err
	}
	sys, err := c.Open(ctx, false)
	if err != nil {
		return err
	}
	defer sys.Close()
	if err := sys.CatchUp(ctx, marketplaceproj.Companies, marketplaceproj.Products); err != nil { // SKUs are looked up there
		return err
	}
	to, err := sys.Marketplace.Company(ctx, &readmodels.At{Wait: app.CatchUpTimeout}, c.Company)
	if err != nil {
		return err
	}
	req := sys.ByOperator(sys.Home)
	req.Operation, req.Fingerprint, req.Key, req.DryRun = "import-products-by-shell", append(sum.Sum(nil), to.ID[:]...), c.Key, c.DryRun
	if c.Accept { // an import with other columns
		req.Fingerprint = append(req.Fingerprint, 1)
	}
	if c.Key == "" {
		req.Key = hex.EncodeToString(req.Fingerprint)
	}
	bar := progress.NewBar(c.Shell.Err, "import", "products")
	show := func(done int) { bar.Show(int64(done), int64(len(read.Items))) }
	show(0) // the rate is measured from here
	out, err := marketplacecmd.ImportProducts(ctx, sys.Commands, req, sys.Marketplace,
		marketplacecmd.Import{Company: to.ID, Lines: read.Items, Progress: show})
	bar.End()
	if err != nil {
		return err
	}
	return c.report(read, out)
}

// report prints the result, and writes the rows that failed to a file.
func (c importCatalog) report(read marketplacecmd.CatalogFile, done marketplacecmd.Imported) error {
	result, how := read.Result(done), ""
	switch {
	case c.DryRun:
		how = "would be: "
	case done.Replayed:
		how = "imported before: "
	}
	fmt.Fprintln(c.Shell.Out, how+inWords(result))
	for _, header := range read.Columns.Ignored {
		fmt.Fprintf(c.Shell.Err, "the column %q is ignored\n", header)
	}
	for _, guess := range read.Columns.Guessed {
		fmt.Fprintf(c.Shell.Err, "the column %q resembles %s: --accept-guesses reads it\n", guess.Header, guess.Field)
	}
	if len(result.Errors) == 0 {
		return nil
	}
	name := c.File + ".errors.csv"
	kept, err := os.Create(name) //nolint:gosec // G304: beside the file that the operator names
	if err != nil {
		return err
	}
	if err := errors.Join(writeErrors(kept, result.Errors), kept.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return fmt.Errorf("rows failed: see %s", name)
}

// inWords returns a result in one sentence.
func inWords(r marketplacecmd.CatalogResult) string {
	changed := ""
	if r.Updated+r.Unchanged > 0 {
		changed = fmt.Sprintf(" %d updated, %d unchanged,", r.Updated, r.Unchanged)
	}
	return fmt.Sprintf("%d products created,%s %d rows failed", r.Created, changed, r.Failed)
}

// writeErrors writes the number of each failed row, the reason, and its cells.
func writeErrors(w io.Writer, failed []spreadsheet.RowError) error {
	if _, err := io.WriteString(w, sheet.ByteOrderMark); err != nil {
		return err
	}
	out := csv.NewWriter(w)
	_ = out.Write([]string{"row", "error"}) // Error returns the error
	for _, e := range failed {
		line := []string{strconv.Itoa(e.Row), e.Error}
		for _, cell := range e.Source {
			line = append(line, sheet.Text(cell))
		}
		_ = out.Write(line) // as above
	}
	out.Flush()
	return out.Error()
}
