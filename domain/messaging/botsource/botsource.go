// Package botsource is what a bot knows from: a file that was uploaded, or a page of the web. Its bytes are in the blob store; what is
// searched is made from them by jobs.
package botsource

import (
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
	event.Of[ReadFailed]("BotSourceUnread", 1),
	event.Of[Deleted]("BotSourceDeleted", 1),
)

type page struct{}

// Pages are the addresses of pages: each belongs to one source of a bot. A stream is botpage-<hash>.
var Pages = claims.New[page]("botpage", "BotPageClaimed", "BotPageReleased")

// The refusals, which also meet those who may not know that the record exists.
var (
	ErrNoFile = fault.New(fault.NotFound, "File not found")
	ErrNoPage = fault.New(fault.NotFound, "URL not found")
)

// The statuses.
const (
	Processing = "processing"
	Ready      = "ready"
	Failed     = "failed"
)

// State is what decisions and answers need.
type State struct {
	Bot       int64  // 0: there is no source
	URL       string // empty: a file
	PageKey   string // keyed hash, which names the claim of the address
	Name      string // of a file, or the title of a page
	MediaType string
	Size      int64
	Hash      string // SHA-256 of the bytes, in hex; empty: they were not fetched yet
	Status    string
	Error     string // why it failed
	Chunks    int64
	FetchedAt time.Time
}

// FileAdded records that a bot got a file.
type FileAdded struct {
	Bot       int64  `json:"bot"`
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	Size      int64  `json:"size"`
	Hash      string `json:"hash"`
}

// PageAdded records that a bot got a page, which is to be fetched.
type PageAdded struct {
	Bot     int64  `json:"bot"`
	URL     string `json:"url"`
	PageKey string `json:"page_key"`
}

// Requested records that the page is to be fetched again.
type Requested struct{}

// Read records what became of the bytes: chunks that are searched.
type Read struct {
	Chunks    int64     `json:"chunks"`
	Title     string    `json:"title,omitempty"`     // of a page
	Hash      string    `json:"hash,omitempty"`      // of a page that was fetched
	FetchedAt time.Time `json:"fetched_at,omitzero"` // of a page
	Model     string    `json:"model,omitempty"`     // that made the vectors; empty: none
}

// ReadFailed records that nothing could be made of the source.
type ReadFailed struct {
	Error string `json:"error"`
}

// Deleted records that the source is gone.
type Deleted struct {
	Bot int64 `json:"bot"`
}

// Evolve begins a file.
func (e FileAdded) Evolve(State) State {
	return State{Bot: e.Bot, Name: e.Name, MediaType: e.MediaType, Size: e.Size, Hash: e.Hash, Status: Processing}
}

// Evolve begins a page.
func (e PageAdded) Evolve(State) State {
	return State{Bot: e.Bot, URL: e.URL, PageKey: e.PageKey, Status: Processing}
}

// Evolve lets it be worked on again.
func (Requested) Evolve(s State) State {
	s.Status, s.Error = Processing, ""
	return s
}

// Evolve makes it ready.
func (e Read) Evolve(s State) State {
	s.Status, s.Error, s.Chunks = Ready, "", e.Chunks
	if s.URL != "" {
		s.Name, s.Hash, s.FetchedAt = e.Title, e.Hash, e.FetchedAt
	}
	return s
}

// Evolve keeps the reason.
func (e ReadFailed) Evolve(s State) State {
	s.Status, s.Error = Failed, e.Error
	return s
}

// Evolve ends it.
func (Deleted) Evolve(State) State { return State{} }

// AddFile gives a bot a file whose bytes are kept.
type AddFile struct {
	Bot       int64
	Name      string
	MediaType string
	Size      int64
	Hash      string
}

// Decide begins the file.
func (c AddFile) Decide(State) ([]event.Event[State], error) {
	return []event.Event[State]{FileAdded(c)}, nil
}

// AddPage gives a bot a page.
type AddPage struct {
	Bot     int64  `json:"-"`
	URL     string `json:"url" maxLength:"3000" doc:"Of a public page: http or https"`
	PageKey string `json:"-"`
}

// Decide puts the address in order.
func (c AddPage) Decide(State) ([]event.Event[State], error) {
	address, err := Normal(c.URL)
	if err != nil {
		return nil, err
	}
	return []event.Event[State]{PageAdded{Bot: c.Bot, URL: address, PageKey: c.PageKey}}, nil
}

const maxURL = 2048

// Normal returns the address of a page in the form in which addresses are compared, or what its text shows to be wrong with it (CONTRACT.md
// B7).
func Normal(text string) (string, error) {
	wrong := fault.Fields(fault.Field{Field: "url", Message: "expected a web address, as in https://shop.example/faq"})
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
	if u.Path == "" {
		u.Path = "/"
	}
	u.Fragment, u.RawFragment = "", ""
	return u.String(), nil
}

// Request lets a page be fetched again.
type Request struct{}

// Decide passes over a page that is about to be fetched.
func (Request) Decide(s State) ([]event.Event[State], error) {
	switch {
	case s.Bot == 0 || s.URL == "":
		return nil, ErrNoPage
	case s.Status == Processing:
		return nil, nil
	}
	return []event.Event[State]{Requested{}}, nil
}

// Conclude notes what became of the bytes.
type Conclude struct {
	Read

	Failure string // empty: it was read
}

// Decide passes over a source that was deleted meanwhile.
func (c Conclude) Decide(s State) ([]event.Event[State], error) {
	switch {
	case s.Bot == 0:
		return nil, nil
	case c.Failure != "" && s.Error == c.Failure, c.Failure == "" && s.Status == Ready && s.Chunks == c.Chunks && s.URL == "":
		return nil, nil
	case c.Failure != "":
		return []event.Event[State]{ReadFailed{Error: c.Failure}}, nil
	}
	return []event.Event[State]{c.Read}, nil
}

// Delete ends a source of a bot: a file, or a page.
type Delete struct {
	Bot  int64
	Page bool
}

// Decide refuses what is not there.
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
