package ledgercmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/ledger/khata"
	"bahi/domain/ledger/khatapage"
	"bahi/domain/number"
	"bahi/providers/jail"
	"bahi/providers/ocr"
)

// visionReader reads the picture of a page by a model. After an error, the page is read without the model.
type visionReader interface {
	See(ctx context.Context, image []byte) ([]khatapage.Entry, error)
}

// khataFiles stores the files of uploads and their results. Get returns nil for an unknown name.
type khataFiles interface {
	Put(ctx context.Context, name string, content []byte) error
	Get(ctx context.Context, name string) ([]byte, error)
	Delete(ctx context.Context, name string) error
}

// khataReads are the queries of khatas.
type khataReads interface {
	// AccountNames returns the open accounts of a workspace.
	AccountNames(ctx context.Context, workspace uuid.UUID) ([]khatapage.Account, error)
}

// Khatas reads and submits khatas.
type Khatas struct {
	Books   *Books
	Reads   khataReads
	Scanner *ocr.Reader
	Sight   visionReader // nil: no model
	Files   khataFiles
	OutLeft bool // unmarked pages have the OUT side at the left
}

// KhataResult is the result of reading a file.
type KhataResult struct {
	khatapage.Result

	Pipeline string `json:"pipeline" enum:"v1,v2"`
	Engine   string `json:"engine" enum:"tesseract,text,model"`
	Pages    int    `json:"pages"`
}

// The engines that read pages.
const (
	byTesseract = "tesseract"
	byText      = "text" // the file contains its text
	byModel     = "model"
)

// An upload waits for another upload of its workspace at most khataWait (CONTRACT.md R11), and in a job at most jobWait. Afterwards jobs of
// other workspaces run first.
const (
	khataWait = 10 * time.Second
	jobWait   = 100 * time.Millisecond
)

// resultOf returns the name of a file's result.
func resultOf(blob string) string { return blob + ".json" }

// Upload reads a file and records it with the result. A dry run only reads. A retry of [Khatas.UploadLater] gets an empty result until the
// job has read the file.
func (k *Khatas) Upload(ctx context.Context, req commands.Request, pipeline string, file []byte) (KhataResult,
	commands.Outcome[khata.State], error) {
	kind, err := ocr.Check(file)
	if err != nil {
		return KhataResult{}, commands.Outcome[khata.State]{}, err
	}
	if out, done, err := commands.PreviousOutcome(ctx, k.Books.Commands, req, khata.Kind); done || err != nil {
		if err != nil {
			return KhataResult{}, out, err
		}
		result, err := k.Result(ctx, out.State.Blob)
		if result == nil && !out.State.Done {
			return KhataResult{}, out, err
		}
		if result == nil {
			result = &KhataResult{Result: khatapage.Result{Entries: []khatapage.Entry{}, Warnings: []string{"the upload was deleted"}},
				Pipeline: pipeline}
		}
		return *result, out, err
	}
	result, err := k.read(ctx, req.Workspace, khataWait, pipeline, file, func(int, int) error { return nil })
	if err != nil || req.DryRun {
		return result, commands.Outcome[khata.State]{Revision: -1}, err
	}
	blob, err := k.keep(ctx, file, &result)
	if err != nil {
		return result, commands.Outcome[khata.State]{}, err
	}
	out, err := k.begin(ctx, req, khata.Upload{
		Uploaded: khata.Uploaded{Pipeline: pipeline, Blob: blob, Type: kind, Size: int64(len(file))},
		Read:     &khata.Read{Engine: result.Engine, Pages: result.Pages, Entries: len(result.Entries)},
	})
	return result, out, err
}

// UploadLater records a file for a job to read, see [Khatas.ReadLater].
func (k *Khatas) UploadLater(ctx context.Context, req commands.Request, pipeline string, file []byte) (commands.Outcome[khata.State],
	error) {
	kind, err := ocr.Check(file)
	if err != nil {
		return commands.Outcome[khata.State]{}, err
	}
	if out, done, err := commands.PreviousOutcome(ctx, k.Books.Commands, req, khata.Kind); done || err != nil {
		return out, err
	}
	blob, err := k.keep(ctx, file, nil)
	if err != nil {
		return commands.Outcome[khata.State]{}, err
	}
	return k.begin(ctx, req, khata.Upload{Uploaded: khata.Uploaded{Pipeline: pipeline, Blob: blob, Type: kind, Size: int64(len(file)),
		Later: true}})
}

// begin records an upload. It removes the files if the recorded upload does not refer to them.
func (k *Khatas) begin(ctx context.Context, req commands.Request, c khata.Upload) (commands.Outcome[khata.State], error) {
	h := k.Books.Commands
	out, err := commands.Create(ctx, h, req, khata.Kind, h.IDFromSeries(number.Rows, 1), c)
	if _, refused := errors.AsType[*fault.Error](err); refused || err == nil && out.State.Blob != c.Blob {
		if removing := k.forget(context.WithoutCancel(ctx), c.Blob); removing != nil {
			k.Books.Log.Warn("removing the file of an unrecorded khata failed", "error", removing)
		}
	}
	return out, err
}

// keep stores a file and its result.
func (k *Khatas) keep(ctx context.Context, file []byte, result *KhataResult) (blob string, err error) {
	blob = "khata/" + uuid.NewString()
	if err := k.Files.Put(ctx, blob, file); err != nil || result == nil {
		return blob, err
	}
	return blob, k.keepResult(ctx, blob, *result)
}

func (k *Khatas) keepResult(ctx context.Context, blob string, result KhataResult) error {
	text, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("encode what was read: %w", err)
	}
	return k.Files.Put(ctx, resultOf(blob), text)
}

func (k *Khatas) forget(ctx context.Context, blob string) error {
	return errors.Join(k.Files.Delete(ctx, blob), k.Files.Delete(ctx, resultOf(blob)))
}

// Result returns the result of an upload, or nil if it was deleted.
func (k *Khatas) Result(ctx context.Context, blob string) (*KhataResult, error) {
	text, err := k.Files.Get(ctx, resultOf(blob))
	if err != nil || text == nil {
		return nil, err
	}
	var result KhataResult
	if err := json.Unmarshal(text, &result); err != nil {
		return nil, fmt.Errorf("decode what was read: %w", err)
	}
	return &result, nil
}

// Original returns the file of an upload, or nil if it was deleted.
func (k *Khatas) Original(ctx context.Context, blob string) ([]byte, error) {
	return k.Files.Get(ctx, blob)
}

// read reads a file with a pipeline. It calls noted after each page.
func (k *Khatas) read(ctx context.Context, workspace uuid.UUID, wait time.Duration, pipeline string, file []byte,
	noted func(page, of int) error) (KhataResult, error) {
	result := KhataResult{Pipeline: pipeline, Engine: byText}
	var (
		pages []khatapage.Page
		seen  [][]khatapage.Entry
	)
	err := k.Scanner.Read(ctx, jail.Owner{ID: workspace, Wait: wait}, file, func(p ocr.Page) error {
		pages, result.Pages = append(pages, p.Page), p.Of
		var entries []khatapage.Entry
		if p.Image != nil {
			result.Engine = byTesseract
		}
		if pipeline == khata.V2 && k.Sight != nil && p.Image != nil {
			var err error
			if entries, err = k.Sight.See(ctx, p.Image); err != nil {
				k.Books.Log.WarnContext(ctx, "reading a khata page by the model failed; reading without the model", "error", err)
				entries = nil
			}
		}
		seen = append(seen, entries)
		return noted(p.Number, p.Of)
	})
	if err != nil {
		return result, err
	}
	accounts, err := k.Reads.AccountNames(ctx, workspace)
	if err != nil {
		return result, err
	}
	o := khatapage.Options{Accounts: accounts, Today: k.Books.Today(), OutLeft: k.OutLeft, Similar: pipeline == khata.V2}
	result.Result = khatapage.Read(pages, o)
	merged, used := khatapage.Merge(result.Result, seen, o)
	if result.Result = merged; used {
		result.Engine = byModel
	}
	return result, nil
}

// ReadLater reads an upload that was recorded before. If last is true, an error is final.
func (k *Khatas) ReadLater(ctx context.Context, number string, last bool) error {
	h := k.Books.Commands
	l, err := commands.Load(ctx, h.Fresh(), khata.Kind, number)
	if err != nil || l.State.Blob == "" || l.State.Done || l.State.Failed || l.State.Removed {
		return err
	}
	req := commands.Request{Workspace: l.Workspace}
	file, err := k.Files.Get(ctx, l.State.Blob)
	if err != nil {
		return err
	}
	if file == nil {
		return nil
	}
	result, err := k.read(ctx, l.Workspace, jobWait, l.State.Pipeline, file, func(page, of int) error {
		_, err := commands.Handle(ctx, h, req, khata.Kind, number, khata.NotePage{Page: page, Of: of})
		return err
	})
	refused, final := errors.AsType[*fault.Error](err)
	switch {
	case err == nil:
		if err := k.keepResult(ctx, l.State.Blob, result); err != nil {
			return err
		}
		_, err = commands.Handle(ctx, h, req, khata.Kind, number,
			khata.Finish{Read: khata.Read{Engine: result.Engine, Pages: result.Pages, Entries: len(result.Entries)}})
		return err
	case ctx.Err() != nil, fault.Soon(err) > 0: // another file of the workspace is being read
		return err
	case final && (refused.Kind != fault.Unavailable || last):
		_, err = commands.Handle(ctx, h, req, khata.Kind, number, khata.Finish{Reason: refused.Error()})
		return err
	case last:
		k.Books.Log.ErrorContext(ctx, "reading a khata failed", "khata", number, "error", err)
		_, err = commands.Handle(ctx, h, req, khata.Kind, number, khata.Finish{Reason: "The file could not be read"})
		return err
	default:
		return err
	}
}

// Remove deletes the file of an upload and its result.
func (k *Khatas) Remove(ctx context.Context, workspace uuid.UUID, number string) error {
	out, err := commands.Handle(ctx, k.Books.Commands, commands.Request{Workspace: workspace}, khata.Kind, number, khata.Remove{})
	if err != nil {
		return err
	}
	return k.forget(ctx, out.State.Blob)
}

// SubmitKhata posts the rows of an upload (0: no upload) to several ledgers, all or none. [RowOf] returns the rows' ids. SubmitKhata also
// returns the posted rows, or none for a retry with the same key.
func SubmitKhata(ctx context.Context, req commands.Request, b *Books, upload int64,
	rows []khata.Asked) (out commands.Outcome[khata.State], posted []khata.Row, err error) {
	khata.Arrange(rows)
	out, err = commands.Do(ctx, b.Commands, req, khata.Kind, func(ctx context.Context, tx *commands.Tx) error {
		submit := khata.Submit{Upload: upload != 0, Submitted: khata.Submitted{Rows: len(rows)}}
		var now commands.Loaded[khata.State]
		var err error
		if upload != 0 {
			if now, err = commands.Load(ctx, tx, khata.Kind, id(upload)); err != nil {
				return err
			}
			if now.Workspace != req.Workspace {
				return khata.ErrNotFound
			}
		}
		if _, err := submit.Decide(now.State); err != nil {
			return err
		}
		c := khata.PostRows{Today: b.Today(), Rows: rows, Reason: req.Reason}
		if err := standings(ctx, tx, req.Workspace, &c); err != nil {
			return err
		}
		if posted, err = c.Decide(); err != nil {
			return err
		}
		if submit.First, err = b.numbers(ctx, tx, number.Rows, len(rows)); err != nil {
			return err
		}
		if upload != 0 {
			_, err = commands.Decide(ctx, tx, khata.Kind, id(upload), submit)
		} else { // the state has the id of the first row
			newID := func(context.Context) (string, error) { return id(submit.First), nil }
			_, err = commands.DecideNew(ctx, tx, khata.Kind, newID, func(string) event.Command[khata.State] { return submit })
		}
		if err == nil {
			_, err = b.post(ctx, tx, posted)
		}
		return err
	})
	return out, posted, err
}

// standings loads the data that the rules for the rows require.
func standings(ctx context.Context, from commands.Source, workspace uuid.UUID, c *khata.PostRows) error {
	closed := map[int64]bool{} // by account; an account belongs to one ledger
	for _, row := range c.Rows {
		if _, known := closed[row.Account]; known {
			continue
		}
		open, err := isOpen(ctx, from, row.Ledger, row.Account, workspace)
		if err != nil {
			return err
		}
		closed[row.Account] = !open
	}
	of := map[int64]*book.Ledger{}
	for _, row := range c.Rows {
		if first := of[row.Account]; first == nil {
			of[row.Account] = row.Ledger
		}
	}
	c.Closed = func(l *book.Ledger, account int64) bool { return closed[account] || of[account] != l }
	lock, err := commands.Load(ctx, from, bookslock.Kind, workspace.String())
	c.LockedThrough = lock.State.Through
	return err
}

// RowOf returns the id of a submitted row, 0 in a dry run.
func RowOf(s khata.State, nth int) int64 {
	if s.First == 0 {
		return 0
	}
	return s.First + int64(nth)
}
