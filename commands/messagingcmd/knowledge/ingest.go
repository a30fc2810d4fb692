package knowledge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/messagingcmd"
	"bahi/domain/actor"
	"bahi/domain/fault"
	"bahi/domain/messaging/bot"
	"bahi/domain/messaging/botsource"
)

// blobs store the bytes of files and pages.
type blobs interface {
	Put(ctx context.Context, key, contentType string, data []byte) error
	Get(ctx context.Context, key string) (data []byte, contentType string, err error)
	Delete(ctx context.Context, key string) error
	List(ctx context.Context, prefix string) ([]string, error)
}

// pages fetch pages. The text of an [ownerError] is for the bot's owner.
type pages interface {
	Fetch(ctx context.Context, address string) ([]byte, error)
}

// pdfs read the text of PDFs. The text of an [ownerError] is for the bot's owner.
type pdfs interface {
	// Read passes the lines of each page of a workspace's file to each as it is read. The cells of a line are a row of a table. An empty line
	// is a gap. An error of each ends the reading.
	Read(ctx context.Context, workspace uuid.UUID, file []byte, each func(page [][]botsource.Cell) error) error
}

// ownerError is an error with a text for the bot's owner.
type ownerError interface {
	error
	// Temporary reports whether a retry may succeed.
	Temporary() bool
}

// Indexer reads and indexes the sources of bots.
type Indexer struct {
	Commands *commands.Handler
	Store    *Store
	Blobs    blobs
	Pages    pages
	PDFs     pdfs
	Now      func() time.Time
}

const (
	maxText  = 16 << 20 // bytes of text of one source
	maxTitle = 300      // characters

	noText = "The source has no text"
)

// Read indexes a source. It first fetches a pending page. If last is true, an error is final. Read records a fault of the source itself and
// returns nil.
func (r *Indexer) Read(ctx context.Context, id string, last bool) error {
	l, err := commands.Load(ctx, r.Commands.Fresh(), botsource.Kind, id)
	if err != nil || l.State.Bot == 0 {
		return err
	}
	number, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return err
	}
	done, err := r.read(ctx, id, number, l.Workspace, l.State)
	told, ok := errors.AsType[ownerError](err)
	switch {
	case err == nil:
	case fault.Soon(err) > 0: // another file of the workspace is being read
		return err
	case ok && (!told.Temporary() || last):
		done = botsource.Conclude{Failure: told.Error()}
	case last && ctx.Err() == nil:
		done = botsource.Conclude{Failure: "The source could not be read"}
	default:
		return err
	}
	req := commands.Request{Actor: actor.Actor{Type: "system", ID: "bots", Workspace: l.Workspace}, Workspace: l.Workspace}
	if _, err := commands.Handle(ctx, r.Commands, req, botsource.Kind, id, done); err != nil {
		return err
	}
	if err := r.Store.Index(ctx); err != nil {
		return err
	}
	now, err := commands.Load(ctx, r.Commands.Fresh(), botsource.Kind, id)
	if err != nil {
		return err
	}
	of, err := commands.Load(ctx, r.Commands.Fresh(), bot.Kind, strconv.FormatInt(l.State.Bot, 10))
	if err != nil || now.State.Bot != 0 && of.State.Name != "" {
		return err
	}
	return r.Forget(ctx, l.State.Bot, id) // the source was deleted meanwhile
}

// failure is Bahi's own [ownerError].
type failure string

// Error implements error.
func (f failure) Error() string { return string(f) }

// Temporary returns false: a retry would not help.
func (failure) Temporary() bool { return false }

func (r *Indexer) read(ctx context.Context, id string, number int64, workspace uuid.UUID, s botsource.State) (done botsource.Conclude,
	err error) {
	key := messagingcmd.SourceKey(s.Bot, id)
	var data []byte
	if s.URL != "" && s.Status == botsource.Processing {
		if data, err = r.Pages.Fetch(ctx, s.URL); err != nil {
			return done, err
		}
		if err := r.Blobs.Put(ctx, key, "application/octet-stream", data); err != nil {
			return done, err
		}
		done.FetchedAt = r.Now().UTC().Truncate(time.Microsecond)
	} else {
		if data, _, err = r.Blobs.Get(ctx, key); err != nil {
			return done, err
		}
		done.FetchedAt = s.FetchedAt
	}
	title, text, err := r.text(ctx, workspace, data, s.Name)
	if err != nil {
		return done, err
	}
	if s.URL != "" {
		sum := sha256.Sum256(data)
		done.Title, done.Hash = title, hex.EncodeToString(sum[:])
	} else {
		title = s.Name
	}
	chunks := Chunks(strings.ReplaceAll(text, "\x00", "")) // Postgres refuses NUL
	done.Model, done.Chunks = r.Store.Model.Embeds(), int64(len(chunks))
	return done, r.Store.Put(ctx, s.Bot, number, title, chunks)
}

// text returns the text of a file or a web page, and the title of a web page.
func (r *Indexer) text(ctx context.Context, workspace uuid.UUID, data []byte, name string) (title, text string, err error) {
	kind, err := botsource.MediaType(data)
	switch {
	case errors.Is(err, botsource.ErrNotText):
		return "", "", failure("The source is not a text")
	case err != nil:
		return "", "", err
	case kind == botsource.PDF:
		var pages strings.Builder
		var found tables
		err := r.PDFs.Read(ctx, workspace, data, func(page [][]botsource.Cell) error {
			if pages.WriteString(found.page(page) + "\f"); pages.Len() > maxText {
				return errLong
			}
			return nil
		})
		if err != nil {
			return "", "", err
		}
		text = statement(pages.String())
	default:
		if text, err = botsource.Decode(data, ""); err != nil {
			return "", "", err
		}
		if kind == botsource.HTML || strings.Contains(text, "</") {
			title, text = Page(text)
		} else if table := comma(text, tabular.MatchString(name)); table != text {
			text = table
		} else {
			text = rows(piped(strings.ReplaceAll(text, "\r\n", "\n")))
		}
	}
	if len(text) > maxText {
		return "", "", errLong
	}
	if runes := []rune(title); len(runes) > maxTitle {
		title = string(runes[:maxTitle])
	}
	return strings.ToValidUTF8(title, ""), text, nil
}

const errLong failure = "The source has more than 16 MB of text"

// tabular matches the file names of comma-separated values.
var tabular = regexp.MustCompile(`(?i)\.[ct]sv$`)

// Forget removes the chunks and the bytes of a bot's deleted source.
func (r *Indexer) Forget(ctx context.Context, of int64, id string) error {
	number, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return err
	}
	if err := r.Store.Forget(ctx, of, number); err != nil {
		return err
	}
	return r.Blobs.Delete(ctx, messagingcmd.SourceKey(of, id))
}

// EraseBot removes the chunks and the bytes of a bot's sources.
func (r *Indexer) EraseBot(ctx context.Context, id string) error {
	l, err := commands.Load(ctx, r.Commands.Fresh(), bot.Kind, id)
	if err != nil || l.State.Name != "" {
		return err
	}
	number, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return err
	}
	if err := r.Store.Forget(ctx, number, 0); err != nil {
		return err
	}
	keys, err := r.Blobs.List(ctx, messagingcmd.BotFolder(number))
	for _, key := range keys {
		err = errors.Join(err, r.Blobs.Delete(ctx, key))
	}
	return err
}

// Revise indexes the sources again that have vectors of another model than the current one.
func (r *Indexer) Revise(ctx context.Context) error {
	const batch = 100
	ids, err := r.Store.Outdated(ctx, batch)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := r.Read(ctx, strconv.FormatInt(id, 10), false); err != nil {
			return err
		}
	}
	return nil
}
