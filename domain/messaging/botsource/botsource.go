// Package botsource is a knowledge source of a bot: an uploaded file or a web page. Its bytes are in the blob store.
// Jobs build the search index from them.
package botsource

import (
	"cmp"
	"net"
	"net/url"
	"strings"
	"time"
	"unicode"

	"golang.org/x/net/idna"

	"bahi/domain/claims"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/wording"
)

// Kind registers the events of streams botsource-<number>. Stored names are permanent.
var Kind = event.NewKind("botsource",
	event.Of[FileAdded]("BotFileAdded", 1),
	event.Of[PageAdded]("BotPageAdded", 1),
	event.Of[Requested]("BotSourceRequested", 1),
	event.Of[Read]("BotSourceRead", 1),
	event.Of[ReadFailed]("BotSourceReadFailed", 1),
	event.Of[Deleted]("BotSourceDeleted", 1),
)

type page struct{}

// Pages are the claims of web addresses. Each address belongs to one source of a bot. The streams are botpage-<hash>.
var Pages = claims.New[page]("botpage", "BotPageClaimed", "BotPageReleased")

// Errors that commands return. Callers without access to the record receive them too.
var (
	ErrNoFile = fault.New(fault.NotFound, "File not found")
	ErrNoPage = fault.New(fault.NotFound, "URL not found")
)

// The statuses.
const (
	Processing = "processing"
	ready      = "ready"
	failed     = "failed"
)

// State is the state that decisions and responses require.
type State struct {
	Bot       int64  // 0: the source does not exist
	URL       string // empty: a file
	PageKey   string // keyed hash, which identifies the claim of the address
	Name      string // name of a file, or title of a page
	MediaType string
	Size      int64
	Hash      string // SHA-256 of the bytes in hex; empty: not fetched yet
	Status    string
	Error     string // reason of the failure
	Chunks    int64
	FetchedAt time.Time
}

// FileAdded records a new file of a bot.
type FileAdded struct {
	Bot       int64  `json:"bot"`
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	Size      int64  `json:"size"`
	Hash      string `json:"hash"`
}

// PageAdded records a new page of a bot, which a job fetches.
type PageAdded struct {
	Bot     int64  `json:"bot"`
	URL     string `json:"url"`
	PageKey string `json:"page_key"`
}

// Requested records a request to fetch the page again.
type Requested struct{}

// Read records that the source was indexed.
type Read struct {
	Chunks    int64     `json:"chunks"`
	Title     string    `json:"title,omitempty"`     // title of a page
	Hash      string    `json:"hash,omitempty"`      // hash of a fetched page
	FetchedAt time.Time `json:"fetched_at,omitzero"` // time at which a page was fetched
	Model     string    `json:"model,omitempty"`     // model of the vectors; empty: none
}

// ReadFailed records that the source could not be indexed.
type ReadFailed struct {
	Error string `json:"error"`
}

// Deleted records the deletion of the source.
type Deleted struct {
	Bot int64 `json:"bot"`
}

// Evolve creates a file.
func (e FileAdded) Evolve(State) State {
	return State{Bot: e.Bot, Name: e.Name, MediaType: e.MediaType, Size: e.Size, Hash: e.Hash, Status: Processing}
}

// Evolve creates a page.
func (e PageAdded) Evolve(State) State {
	return State{Bot: e.Bot, URL: e.URL, PageKey: e.PageKey, Status: Processing}
}

// Evolve marks the page as pending.
func (Requested) Evolve(s State) State {
	s.Status, s.Error = Processing, ""
	return s
}

// Evolve marks the source as ready.
func (e Read) Evolve(s State) State {
	s.Status, s.Error, s.Chunks = ready, "", e.Chunks
	if s.URL != "" {
		s.Name, s.Hash, s.FetchedAt = e.Title, e.Hash, e.FetchedAt
	}
	return s
}

// Evolve sets the reason.
func (e ReadFailed) Evolve(s State) State {
	s.Status, s.Error = failed, e.Error
	return s
}

// Evolve removes the source.
func (Deleted) Evolve(State) State { return State{} }

// AddFile adds a stored file to a bot.
type AddFile struct {
	Bot       int64
	Name      string
	MediaType string
	Size      int64
	Hash      string
}

// Decide records the file.
func (c AddFile) Decide(State) ([]event.Event[State], error) {
	return []event.Event[State]{FileAdded(c)}, nil
}

// AddPage adds a page to a bot.
type AddPage struct {
	Bot     int64  `json:"-"`
	URL     string `json:"url" maxLength:"3000" doc:"URL of a public page, http or https"`
	PageKey string `json:"-"`
}

// Decide normalises the address.
func (c AddPage) Decide(State) ([]event.Event[State], error) {
	address, err := Normal(c.URL)
	if err != nil {
		return nil, err
	}
	return []event.Event[State]{PageAdded{Bot: c.Bot, URL: address, PageKey: c.PageKey}}, nil
}

const maxURL = 2048

// Normal returns the address of a page in normalised form, or a fault of its text (CONTRACT.md B7).
func Normal(text string) (string, error) {
	wrong := fault.Wrong("url", "expected a web address, as in https://shop.example/faq")
	text, err := wording.Normalise("url", text, maxURL)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || strings.ContainsFunc(text, unicode.IsSpace) {
		return "", wrong
	}
	host, err := idna.Lookup.ToASCII(strings.TrimSuffix(u.Hostname(), "."))
	if net.ParseIP(u.Hostname()) != nil {
		host, err = u.Hostname(), nil
	}
	if err != nil || host == "" {
		return "", wrong
	}
	port := u.Port()
	if port == "80" && u.Scheme == "http" || port == "443" && u.Scheme == "https" {
		port = ""
	}
	u.Host = strings.ToLower(host)
	if strings.Contains(host, ":") {
		u.Host = "[" + u.Host + "]"
	}
	if port != "" {
		u.Host += ":" + port
	}
	u.Path = cmp.Or(u.Path, "/")
	u.Fragment, u.RawFragment = "", ""
	return u.String(), nil
}

// Request requests to fetch a page again.
type Request struct{}

// Decide returns no events for a pending page.
func (Request) Decide(s State) ([]event.Event[State], error) {
	switch {
	case s.Bot == 0 || s.URL == "":
		return nil, ErrNoPage
	case s.Status == Processing:
		return nil, nil
	}
	return []event.Event[State]{Requested{}}, nil
}

// Conclude records the result of indexing a source.
type Conclude struct {
	Read

	Failure string // empty: it was indexed
}

// Decide returns no events for a source that was deleted meanwhile.
func (c Conclude) Decide(s State) ([]event.Event[State], error) {
	switch {
	case s.Bot == 0:
		return nil, nil
	case c.Failure != "" && s.Error == c.Failure, c.Failure == "" && s.Status == ready && s.Chunks == c.Chunks && s.URL == "":
		return nil, nil
	case c.Failure != "":
		return []event.Event[State]{ReadFailed{Error: c.Failure}}, nil
	}
	return []event.Event[State]{c.Read}, nil
}

// Delete deletes a source of a bot: a file or a page.
type Delete struct {
	Bot  int64
	Page bool
}

// Decide refuses a missing source.
func (c Delete) Decide(s State) ([]event.Event[State], error) {
	switch {
	case s.Bot == c.Bot && (s.URL != "") == c.Page:
		return []event.Event[State]{Deleted{Bot: c.Bot}}, nil
	case c.Page:
		return nil, ErrNoPage
	default:
		return nil, ErrNoFile
	}
}
