package ledgerhttp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/fault"
	"bahi/domain/ledger/khata"
	"bahi/domain/ledger/khatapage"
	"bahi/domain/unit"
	"bahi/http/api"
	"bahi/readmodels"
	"bahi/readmodels/ledgerview"
)

// The limits of an upload (CONTRACT.md D49, I17).
const (
	khataBytes   = 15 << 20
	khataTimeout = 11 * time.Minute // a minute for each of ten pages, and one in addition
)

// byKhata identifies an upload.
type byKhata struct {
	ID int64 `path:"upload_id" minimum:"1" doc:"The upload's id"`
}

// khataRead is the result of reading a khata: a proposal to check and submit.
type khataRead struct {
	UploadID int64               `json:"upload_id,omitzero" required:"true" doc:"ID; absent in a dry run"`
	Status   string              `json:"status" enum:"processing,done,failed" doc:"Progress of the reading"`
	Pipeline string              `json:"pipeline" enum:"v1,v2" doc:"Pipeline that reads the page"`
	Engine   string              `json:"engine,omitempty" enum:"tesseract,text,model" doc:"Engine that read the page; text: the PDF contains its text"`
	Pages    int                 `json:"pages" doc:"Number of pages"`
	Entries  []khatapage.Entry   `json:"entries,omitzero" nullable:"false" doc:"Entries"`
	Warnings []string            `json:"warnings,omitzero" nullable:"false" doc:"Warnings about guesses"`
	Rows     []khata.ProposedRow `json:"rows,omitzero" nullable:"false" doc:"Entries in the form of ledger rows; pipeline v2 only"`
}

func readOf(id int64, r ledgercmd.KhataResult) khataRead {
	k := khataRead{UploadID: id, Status: "done", Pipeline: r.Pipeline, Engine: r.Engine, Pages: r.Pages, Entries: r.Entries,
		Warnings: r.Warnings}
	if r.Pipeline == khata.V2 {
		k.Rows = khata.Rows(r.Entries)
	}
	return k
}

// khataUpload is an upload with the progress of reading it.
type khataUpload struct {
	ledgerview.ListedUpload

	Result *khataRead                `json:"result" doc:"Result; null: not read yet, or deleted"`
	Rows   []ledgerview.SubmittedRow `json:"submitted_rows" nullable:"false" doc:"Submitted rows that are not deleted"`
}

// khataAnswer is the response to an upload: 200 with the result, or 202 with the URL of the future result.
type khataAnswer struct {
	Status   int
	Location string `header:"Location"`
	Applied  string `header:"Preference-Applied"`
	Body     khataRead
}

// errLaterDry refuses a dry run with respond-async.
var errLaterDry = fault.Wrong("Prefer", "respond-async has no dry run: nothing would be read")

func khataOp(id, method, path, summary string) api.Op {
	return ledgerOp(api.Op{ID: id, Method: method, Path: path, Summary: summary, Tags: []string{"Khata"}, StrictQuery: true})
}

// scannedPages registers the uploads of khatas and their submission.
func (r *Routes) scannedPages() {
	r.khataUpload("upload-khata", "/khata-upload", khata.V1, "Upload a khata page and read its rows. JPEG, PNG, WebP, TIFF or PDF.")
	r.khataUpload("upload-khata-v2", "/khata-upload-v2", khata.V2, "Upload a khata page and read its rows and accounts. "+
		"Groups entries to rows and proposes similar names of accounts.")
	list := khataOp("list-khata-uploads", "GET", "/khata-uploads", "List the uploads of khata pages, newest first")
	list.Reads = []string{"khatas"}
	api.Handle(r.API, list, func(ctx context.Context, in *struct {
		SomePage
		ledgerview.KhataFilter
	}) (answer *api.Array[ledgerview.ListedUpload], err error) {
		err = in.read(ctx, func(page readmodels.Page) (int64, error) {
			rows, total, err := r.Views.Khatas(ctx, api.At(ctx), workspace(ctx), page, in.KhataFilter)
			answer, err = api.Listed(rows, total, err)
			return total, err
		})
		return answer, err
	})
	show := khataOp("get-khata-upload", "GET", "/khata-uploads/{upload_id}", "Read the progress and result of a khata page")
	show.Reads = []string{"khatas", "books"}
	api.Handle(r.API, show, func(ctx context.Context, in *byKhata) (*api.Body[khataUpload], error) {
		k, err := r.Views.Khata(ctx, api.At(ctx), workspace(ctx), in.ID)
		if err != nil {
			return nil, err
		}
		return api.Answer(r.uploadOf(ctx, k))
	})
	original := khataOp("get-khata-original", "GET", "/khata-uploads/{upload_id}/original", "Download the file of a khata page")
	original.Reads = []string{"khatas"}
	api.Download(r.API, original, khataTypes, func(ctx context.Context, in *byKhata) (api.Content, error) {
		k, err := r.Views.Khata(ctx, api.At(ctx), workspace(ctx), in.ID)
		if err != nil {
			return api.Content{}, err
		}
		return r.original(ctx, k)
	})
	r.khataSubmits()
}

var khataTypes = map[string]any{"image/jpeg": nil, "image/png": nil, "image/webp": nil, "image/tiff": nil, "application/pdf": nil}

// errRemoved reports that the file of an old upload was deleted.
var errRemoved = fault.New(fault.NotFound, "The file of the khata upload was deleted")

// original returns the file of an upload.
func (r *Routes) original(ctx context.Context, k ledgerview.ListedUpload) (api.Content, error) {
	file, err := r.Scans.Original(ctx, k.Blob)
	if err == nil && file == nil {
		err = errRemoved
	}
	name := fmt.Sprintf("khata-%d.%s", k.ID, k.Type[strings.Index(k.Type, "/")+1:])
	return api.Content{Type: k.Type, Name: name, Inline: strings.HasPrefix(k.Type, "image/"),
		Write: func(_ context.Context, w io.Writer) error {
			_, err := w.Write(file)
			return err
		}}, err
}

func (r *Routes) uploadOf(ctx context.Context, k ledgerview.ListedUpload) (khataUpload, error) {
	shown := khataUpload{ListedUpload: k, Rows: []ledgerview.SubmittedRow{}}
	if k.Submitted {
		rows, err := r.Views.SubmittedRows(ctx, api.At(ctx), k)
		if err != nil {
			return shown, err
		}
		shown.Rows = append(shown.Rows, rows...)
	}
	if k.Status != "done" {
		return shown, nil
	}
	result, err := r.Scans.Result(ctx, k.Blob)
	if result != nil {
		shown.Result = new(readOf(k.ID, *result))
	}
	return shown, err
}

func (r *Routes) khataUpload(id, path, pipeline, summary string) {
	op := khataOp(id, "POST", path, summary)
	op.Status, op.Limit, op.MaxBody, op.Timeout = http.StatusOK, "ledger_khata_upload", khataBytes, khataTimeout
	op.Expensive, op.EmptyFile, op.Errors = true, errEmptyFile, []int{http.StatusUnsupportedMediaType, http.StatusServiceUnavailable}
	api.Handle(r.API, op, func(ctx context.Context, in *struct{ File api.File }) (*khataAnswer, error) {
		file, err := io.ReadAll(in.File.Open())
		if err != nil {
			return nil, fmt.Errorf("read an upload: %w", err)
		}
		req := api.Request(ctx)
		applied := ""
		var result ledgercmd.KhataResult
		var out commands.Outcome[khata.State]
		switch {
		case !api.PrefersLater(ctx):
			result, out, err = r.Scans.Upload(ctx, req, pipeline, file)
		case req.DryRun:
			err = errLaterDry
		default:
			applied = "respond-async"
			out, err = r.Scans.UploadLater(ctx, req, pipeline, file)
		}
		if err != nil {
			return nil, err
		}
		api.SetWriteHeaders(ctx, out.Position, out.Replayed)
		if result.Pipeline != "" {
			return &khataAnswer{Status: http.StatusOK, Body: readOf(out.Number(), result)}, nil
		}
		return &khataAnswer{
			Status: http.StatusAccepted, Location: "/khata-uploads/" + out.ID, Applied: applied,
			Body: khataRead{UploadID: out.Number(), Status: "processing", Pipeline: pipeline},
		}, nil
	})
}

// errEmptyFile refuses an empty file, which has no recognisable type (CONTRACT.md I16).
var errEmptyFile = fault.New(fault.Unsupported, "File must be a JPEG, PNG, WebP, TIFF or PDF")

// submitLines is the body of a submission of entries.
type submitLines struct {
	UploadID *int64       `json:"upload_id,omitempty" minimum:"1" doc:"ID of the upload, which can be submitted once"`
	Entries  []khata.Line `json:"entries" nullable:"false" doc:"Entries, 1 to 1,000. Entries with the same account and date become one row"`
}

// submitRows is the body of a submission of rows.
type submitRows struct {
	UploadID *int64            `json:"upload_id,omitempty" minimum:"1" doc:"ID of the upload, which can be submitted once"`
	Rows     []khata.SubmitRow `json:"rows" nullable:"false" doc:"Rows, 1 to 1,000"`
}

// khataSubmitted is the response to a submission.
type khataSubmitted struct {
	UploadID *int64           `json:"upload_id" doc:"ID of the upload; null: none"`
	Created  int              `json:"created" doc:"Number of posted rows"`
	Failed   int              `json:"failed" doc:"Always 0: all are posted, or none"`
	Results  []submittedEntry `json:"results" nullable:"false" doc:"One result for each sent entry or row, in order"`
	Accounts []khataAccount   `json:"accounts,omitempty" nullable:"false" doc:"Accounts with balances before and after the rows; dry run only"`
}

// khataAccount has the balances of an account before and after the rows.
type khataAccount struct {
	Ledger  string          `json:"ledger" enum:"bank,bullion,client,karigar,polisher" doc:"Ledger, such as bank"`
	Account int64           `json:"account_id" doc:"ID of the account"`
	Name    string          `json:"name" doc:"Name of the account"`
	Before  khataAccountSum `json:"before" doc:"Balances before the rows"`
	After   khataAccountSum `json:"after" doc:"Balances after the rows"`
}

// khataAccountSum has the balances of an account.
type khataAccountSum struct {
	Balance *unit.Sum `json:"balance,omitempty" doc:"Balance of a bank account in rupees"`
	Metal
}

// changed returns the accounts of the rows with their balances before and after. The rows are sorted by account.
func (r *Routes) changed(ctx context.Context, at *readmodels.At, rows []khata.Row) (accounts []khataAccount, err error) {
	var after ledgerview.Balance
	for i, row := range rows {
		if i == 0 || rows[i-1].Account != row.Account {
			a, err := r.Views.Account(ctx, at, accountOf(ctx, row.Ledger, row.Account), ledgerview.As{})
			if err != nil {
				return nil, err
			}
			after = a.Balance
			c := khataAccount{Ledger: row.Name, Account: a.ID, Name: a.Name}
			c.Before.Balance, c.Before.Metal = balances(row.Ledger, after)
			accounts = append(accounts, c)
		}
		after = after.Plus(row.In.Effect.Minus(row.Out.Effect))
		c := &accounts[len(accounts)-1]
		c.After.Balance, c.After.Metal = balances(row.Ledger, after)
	}
	return accounts, nil
}

// submittedEntry identifies the row of a submitted entry.
type submittedEntry struct {
	Index   int    `json:"index" doc:"Index of the row, from 0"`
	Ledger  string `json:"ledger" doc:"Ledger, such as bank"`
	Account int64  `json:"account_id" doc:"ID of the account"`
	Row     int64  `json:"row_id,omitzero" required:"true" doc:"ID; absent in a dry run"`
}

func (r *Routes) khataSubmits() {
	lines := khataOp("submit-khata", "POST", "/khata-submit", "Post checked entries of a khata page to the ledgers, all or none")
	lines.MaxBody = bulkBytes
	lines.ReadOnly = []string{"entries.id", "entries.page", "entries.party_name", "entries.confidence", "entries.raw_text"}
	api.Handle(r.API, lines, func(ctx context.Context, in *struct{ Body submitLines }) (*api.Body[khataSubmitted], error) {
		rows, err := khata.Lines(in.Body.Entries)
		return r.submitKhata(ctx, in.Body.UploadID, rows, err)
	})
	rows := khataOp("submit-khata-rows", "POST", "/khata/submit", "Post checked rows of a khata page to the ledgers, all or none")
	rows.MaxBody, rows.ReadOnly = bulkBytes, []string{"rows.party_name"}
	api.Handle(r.API, rows, func(ctx context.Context, in *struct{ Body submitRows }) (*api.Body[khataSubmitted], error) {
		rows, err := khata.Submitting(in.Body.Rows)
		return r.submitKhata(ctx, in.Body.UploadID, rows, err)
	})
}

func (r *Routes) submitKhata(ctx context.Context, upload *int64, rows []khata.Asked, err error) (*api.Body[khataSubmitted], error) {
	var of int64
	if upload != nil {
		of = *upload
	}
	req := api.Request(ctx)
	if len(rows) == 0 { // none of them could be converted
		return nil, err
	}
	if err != nil {
		req.DryRun, req.Key = true, ""
		_, _, ruled := ledgercmd.SubmitKhata(ctx, req, r.Books, of, rows)
		return nil, fault.Besides(err, ruled)
	}
	out, posted, err := ledgercmd.SubmitKhata(ctx, req, r.Books, of, rows)
	var accounts []khataAccount
	if err == nil && req.DryRun {
		accounts, err = r.changed(ctx, api.At(ctx).After(out.Position), posted) // an account may be new
	}
	return api.Reply(ctx, out, err, func(out commands.Outcome[khata.State]) khataSubmitted {
		answer := khataSubmitted{UploadID: upload, Created: len(rows), Results: []submittedEntry{}, Accounts: accounts}
		for nth, row := range rows {
			for _, i := range row.Of {
				answer.Results = append(answer.Results, submittedEntry{i, row.Ledger.Name, row.Account, ledgercmd.RowOf(out.State, nth)})
			}
		}
		slices.SortFunc(answer.Results, func(a, b submittedEntry) int { return a.Index - b.Index })
		return answer
	})
}
