package auditproj

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/eventstore/tlog"
)

// Bucket is a folder or a bucket.
type Bucket interface {
	Put(ctx context.Context, key, contentType string, data []byte) error
	// Get returns the data under a key and its type. For a missing key, the error is a [fs.ErrNotExist].
	Get(ctx context.Context, key string) (data []byte, contentType string, err error)
}

// Copies stores every checkpoint in a bucket under its size, and the newest one under a fixed name too. The log's operator should not have
// write access to the bucket.
type Copies struct {
	Bucket Bucket
	Where  string // name in messages
	Origin string
}

const noteType = "text/plain; charset=utf-8"

// Name implements [Publisher].
func (c *Copies) Name() string { return c.Where }

func (c *Copies) folder() string { return strings.ReplaceAll(c.Origin, "/", "-") + "/" }

// Publish implements [Publisher].
func (c *Copies) Publish(ctx context.Context, signed *Signed) error {
	if err := c.Bucket.Put(ctx, fmt.Sprintf("%s%020d", c.folder(), signed.Size), noteType, []byte(signed.Note)); err != nil {
		return err
	}
	return c.Bucket.Put(ctx, c.folder()+"newest", noteType, []byte(signed.Note))
}

// Newest returns the newest checkpoint, nil if there is none.
func (c *Copies) Newest(ctx context.Context) ([]byte, error) {
	note, _, err := c.Bucket.Get(ctx, c.folder()+"newest")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the newest checkpoint in %s: %w", c.Where, err)
	}
	return note, nil
}

// Printer prints every checkpoint to the program's log, on one line.
type Printer struct{ Log *slog.Logger }

// Name implements [Publisher].
func (Printer) Name() string { return "the log of the program" }

// Publish implements [Publisher].
func (p Printer) Publish(ctx context.Context, signed *Signed) error {
	p.Log.InfoContext(ctx, "checkpoint", "size", signed.Size, "position", uint64(signed.Position), "note", signed.Note)
	return nil
}

// Witness requests signatures of checkpoints from another party, which checks that each contains the previous one (C2SP tlog-witness). It
// adds the signature to the checkpoint's row.
type Witness struct {
	URL    string    // base of add-checkpoint
	Keys   tlog.Keys // the witness's public keys
	Tables Tables
	DB     *pgxpool.Pool
	Client *http.Client

	mu   sync.Mutex // one checkpoint at a time
	size uint64     // size of the last checkpoint that the witness signed; 0: unknown
}

// maxAnswered limits the size of a witness's response.
const maxAnswered = 64 << 10

// Name implements [Publisher].
func (w *Witness) Name() string { return w.URL }

// Publish implements [Publisher].
func (w *Witness) Publish(ctx context.Context, signed *Signed) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for range 2 { // a second attempt if the witness reports another size
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
				return fmt.Errorf("the witness has signed %q events, but this checkpoint has %d: the log was shortened, or its key also signs "+
					"elsewhere",
					strings.TrimSpace(string(answer)), signed.Size)
			}
			w.size = size
		default:
			return fmt.Errorf("the witness returned status %d: %s", status, strings.TrimSpace(string(answer)))
		}
	}
	return errors.New("the witness reported two different sizes as the last one that it signed")
}

// add requests a signature. It sends the size of the checkpoint that the witness last signed, the proof that the new checkpoint contains
// it, and the new checkpoint.
func (w *Witness) add(ctx context.Context, signed *Signed) (status int, answer []byte, err error) {
	proof, err := tlog.Consistency(ctx, w.Tables, w.size, signed.Size)
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
	defer response.Body.Close() //nolint:errcheck // the body was read
	answer, err = io.ReadAll(io.LimitReader(response.Body, maxAnswered))
	return response.StatusCode, answer, err
}

// keep adds the witness's signatures to the checkpoint if they are valid.
func (w *Witness) keep(ctx context.Context, signed *Signed, lines []byte) error {
	note, err := w.Keys.AddSignatures([]byte(signed.Note), lines)
	if err != nil {
		return err
	}
	signed.Note, w.size = string(note), signed.Size
	if _, err := w.DB.Exec(ctx, `update audit.checkpoint set note = $2 where number = $1`, signed.Number, signed.Note); err != nil {
		return fmt.Errorf("store the witness's signature: %w", err)
	}
	return nil
}
