package audit

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/eventstore/audit"
)

// Bucket is a folder or a bucket somewhere.
type Bucket interface {
	Put(ctx context.Context, key, contentType string, data []byte) error
	// Get returns what is kept under a key, nil when there is nothing.
	Get(ctx context.Context, key string) ([]byte, error)
}

// Copies keeps every checkpoint in a bucket, each under its size, and the newest under a name of its own. The bucket
// should be one that whoever runs the log cannot rewrite.
type Copies struct {
	Bucket Bucket
	Where  string // for people
	Origin string
}

const noteType = "text/plain; charset=utf-8"

// Name implements [Outlet].
func (c *Copies) Name() string { return c.Where }

func (c *Copies) folder() string { return strings.ReplaceAll(c.Origin, "/", "-") + "/" }

// Bring implements [Outlet].
func (c *Copies) Bring(ctx context.Context, signed *Signed) error {
	if err := c.Bucket.Put(ctx, fmt.Sprintf("%s%020d", c.folder(), signed.Size), noteType, []byte(signed.Note)); err != nil {
		return err
	}
	return c.Bucket.Put(ctx, c.folder()+"newest", noteType, []byte(signed.Note))
}

// Newest returns the newest checkpoint that was brought, nil when there is none.
func (c *Copies) Newest(ctx context.Context) ([]byte, error) {
	note, err := c.Bucket.Get(ctx, c.folder()+"newest")
	if err != nil {
		return nil, fmt.Errorf("read the newest checkpoint in %s: %w", c.Where, err)
	}
	return note, nil
}

// Printer prints every checkpoint to the log of the program, on one line.
type Printer struct{ Log *slog.Logger }

// Name implements [Outlet].
func (Printer) Name() string { return "the log of the program" }

// Bring implements [Outlet].
func (p Printer) Bring(ctx context.Context, signed *Signed) error {
	p.Log.InfoContext(ctx, "checkpoint", "size", signed.Size, "position", uint64(signed.Position), "note", signed.Note)
	return nil
}

// Witness has checkpoints signed by somebody else, who sees to it that each contains the one before (C2SP
// tlog-witness). Its signature is added to the checkpoint in the table.
type Witness struct {
	URL    string     // to which add-checkpoint is added
	Keys   audit.Keys // its public key, or keys
	Tables Tables
	DB     *pgxpool.Pool
	Client *http.Client

	mu   sync.Mutex // one checkpoint at a time
	size uint64     // that it signed last, as far as is known
}

// mostAnswered bounds what is read of a witness's answer.
const mostAnswered = 64 << 10

// Name implements [Outlet].
func (w *Witness) Name() string { return w.URL }

// Bring implements [Outlet].
func (w *Witness) Bring(ctx context.Context, signed *Signed) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for range 2 { // once more when it says that it knows another size
		status, answer, err := w.add(ctx, signed)
		if err != nil {
			return err
		}
		switch status {
		case http.StatusOK:
			return w.keep(ctx, signed, answer)
		case http.StatusConflict:
			size, err := strconv.ParseUint(strings.TrimSuffix(string(answer), "\n"), 10, 63)
			if err != nil || size > signed.Size {
				return fmt.Errorf("the witness has signed for %q events, and this checkpoint is of %d: the log was shortened, or its key signs elsewhere too",
					strings.TrimSpace(string(answer)), signed.Size)
			}
			w.size = size
		default:
			return fmt.Errorf("the witness answers %d: %s", status, strings.TrimSpace(string(answer)))
		}
	}
	return errors.New("the witness changes its mind about the size that it signed last")
}

// add asks for a signature: the size that the witness signed last, the proof that the checkpoint contains it, and the
// checkpoint.
func (w *Witness) add(ctx context.Context, signed *Signed) (status int, answer []byte, err error) {
	proof, err := audit.Consistency(ctx, w.Tables, w.size, signed.Size)
	if err != nil {
		return 0, nil, err
	}
	var body bytes.Buffer
	fmt.Fprintf(&body, "old %d\n", w.size)
	for _, h := range proof {
		fmt.Fprintln(&body, base64.StdEncoding.EncodeToString(h[:]))
	}
	body.WriteString("\n" + signed.Note)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(w.URL, "/")+"/add-checkpoint", &body)
	if err != nil {
		return 0, nil, err
	}
	response, err := w.Client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	answer, err = io.ReadAll(io.LimitReader(response.Body, mostAnswered))
	return response.StatusCode, answer, err
}

// keep adds the witness's signatures, which must be good, to the checkpoint.
func (w *Witness) keep(ctx context.Context, signed *Signed, lines []byte) error {
	note, err := w.Keys.AddSignatures([]byte(signed.Note), lines)
	if err != nil {
		return err
	}
	signed.Note, w.size = string(note), signed.Size
	if _, err := w.DB.Exec(ctx, `update audit.checkpoint set note = $2 where number = $1`, signed.Number, signed.Note); err != nil {
		return fmt.Errorf("keep the witness's signature: %w", err)
	}
	return nil
}
