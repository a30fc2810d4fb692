// Package khata is a scanned page of the books: what was read of it, and its rows once somebody has checked and submitted them.
package khata

import (
	"time"

	"bahi/domain/event"
	"bahi/domain/fault"
)

// Kind names what a stream khata-<number> holds. A name is for ever: old logs have it.
var Kind = event.NewKind("khata",
	event.Of[Uploaded]("KhataUploaded", 1),
	event.Of[PageRead]("KhataPageRead", 1),
	event.Of[Read]("KhataRead", 1),
	event.Of[Failed]("KhataFailed", 1),
	event.Of[Submitted]("KhataSubmitted", 1),
	event.Of[Removed]("KhataRemoved", 1),
)

// The refusals of khatas.
var (
	ErrNotFound  = fault.New(fault.NotFound, "Khata upload not found")
	ErrSubmitted = fault.New(fault.Conflict, "Khata upload was already submitted")
	ErrNotRead   = fault.New(fault.Conflict, "Khata upload is not read yet")
)

// The pipelines that read a page.
const (
	V1 = "v1"
	V2 = "v2"
)

// State is what decisions need.
type State struct {
	Blob     string // where the file is; "": nothing was uploaded
	Type     string
	Pipeline string
	PagesOf  int // that were read so far
	Done     bool
	Failed   bool
	Removed  bool

	First int64 // id of the first row that was submitted; 0: none was
}

// Exists reports whether the khata was uploaded or submitted.
func (s State) Exists() bool { return s.Blob != "" || s.First != 0 }

// Waiting is an upload of which no rows were submitted yet.
type Waiting struct {
	ID        int64
	Blob      string
	Read      bool // its rows were read
	CreatedAt time.Time
}

// Uploaded begins an upload, whose file is kept elsewhere under the name of Blob.
type Uploaded struct {
	Pipeline string `json:"pipeline"`
	Blob     string `json:"blob"`
	Type     string `json:"content_type"`
	Size     int64  `json:"size"`
	Later    bool   `json:"later,omitempty"` // it is read after the answer
}

// PageRead tells how far the reading of an upload is.
type PageRead struct {
	Page int `json:"page"`
	Of   int `json:"of"`
}

// Read ends the reading of an upload. What was read is kept beside the file.
type Read struct {
	Engine  string `json:"engine"`
	Pages   int    `json:"pages"`
	Entries int    `json:"entries"`
}

// Failed ends the reading of an upload that cannot be read.
type Failed struct {
	Why string `json:"why"`
}

// Submitted records the rows that were posted in the same transaction. Their ids follow one another.
type Submitted struct {
	First int64 `json:"first_row"`
	Rows  int   `json:"rows"`
}

// Removed tells that the file, and what was read of it, are kept no longer.
type Removed struct{}

// Evolve begins the upload.
func (e Uploaded) Evolve(s State) State {
	s.Blob, s.Type, s.Pipeline = e.Blob, e.Type, e.Pipeline
	return s
}

// Evolve counts the page.
func (e PageRead) Evolve(s State) State { s.PagesOf = e.Page; return s }

// Evolve ends the reading.
func (Read) Evolve(s State) State { s.Done = true; return s }

// Evolve ends the reading.
func (Failed) Evolve(s State) State { s.Failed = true; return s }

// Evolve notes what was submitted.
func (e Submitted) Evolve(s State) State { s.First = e.First; return s }

// Evolve forgets the file.
func (Removed) Evolve(s State) State { s.Removed = true; return s }

// Upload begins an upload. With a Read it is read already.
type Upload struct {
	Uploaded

	Read *Read
}

// Decide begins the upload.
func (c Upload) Decide(s State) ([]event.Event[State], error) {
	switch {
	case s.Exists():
		return nil, fault.New(fault.Conflict, "Khata upload exists already")
	case c.Read != nil:
		return []event.Event[State]{c.Uploaded, *c.Read}, nil
	default:
		return []event.Event[State]{c.Uploaded}, nil
	}
}

// NotePage notes that a page was read.
type NotePage PageRead

// Decide notes each page once.
func (c NotePage) Decide(s State) ([]event.Event[State], error) {
	if s.Done || s.Failed || s.Removed || c.Page <= s.PagesOf {
		return nil, nil
	}
	return []event.Event[State]{PageRead(c)}, nil
}

// Finish ends the reading of an upload: with what was read, or why nothing can be.
type Finish struct {
	Read Read
	Why  string
}

// Decide ends it once.
func (c Finish) Decide(s State) ([]event.Event[State], error) {
	switch {
	case s.Done || s.Failed || s.Removed:
		return nil, nil
	case c.Why != "":
		return []event.Event[State]{Failed{c.Why}}, nil
	default:
		return []event.Event[State]{c.Read}, nil
	}
}

// Remove forgets the file of an upload.
type Remove struct{}

// Decide forgets it once.
func (Remove) Decide(s State) ([]event.Event[State], error) {
	if s.Blob == "" || s.Removed {
		return nil, nil
	}
	return []event.Event[State]{Removed{}}, nil
}
