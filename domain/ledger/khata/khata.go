// Package khata is an uploaded khata: its file, the proposed rows, and the rows that a user submitted.
package khata

import (
	"time"

	"bahi/domain/event"
	"bahi/domain/fault"
)

// Kind registers the events of streams khata-<number>. Stored names are permanent.
var Kind = event.NewKind("khata",
	event.Of[Uploaded]("KhataUploaded", 1),
	event.Of[PageRead]("KhataPageRead", 1),
	event.Of[Read]("KhataRead", 1),
	event.Of[Failed]("KhataFailed", 1),
	event.Of[Submitted]("KhataSubmitted", 1),
	event.Of[Removed]("KhataRemoved", 1),
)

// Errors that commands return.
var (
	ErrNotFound  = fault.New(fault.NotFound, "Khata upload not found")
	ErrSubmitted = fault.New(fault.Conflict, "Khata upload was already submitted")
	ErrNotRead   = fault.New(fault.Conflict, "Khata upload is not read yet")
)

// The pipelines that read a khata.
const (
	V1 = "v1"
	V2 = "v2"
)

// State is the state that decisions require.
type State struct {
	Blob     string // name of the file; "": there is no upload
	Type     string
	Pipeline string
	PagesOf  int // number of pages read so far
	Done     bool
	Failed   bool
	Removed  bool

	First int64 // id of the first submitted row; 0: none
}

// exists reports whether the khata was uploaded or submitted.
func (s State) exists() bool { return s.Blob != "" || s.First != 0 }

// Waiting is an upload without submitted rows.
type Waiting struct {
	ID        int64
	Blob      string
	Read      bool // its rows were read
	CreatedAt time.Time
}

// Uploaded records a new upload. Blob names its file in the blob store.
type Uploaded struct {
	Pipeline string `json:"pipeline"`
	Blob     string `json:"blob"`
	Type     string `json:"content_type"`
	Size     int64  `json:"size"`
	Later    bool   `json:"later,omitempty"` // the file is read after the response
}

// PageRead records the progress of reading an upload.
type PageRead struct {
	Page int `json:"page"`
	Of   int `json:"of"`
}

// Read records that the upload was read. The result is stored beside the file.
type Read struct {
	Engine  string `json:"engine"`
	Pages   int    `json:"pages"`
	Entries int    `json:"entries"`
}

// Failed records that the upload cannot be read.
type Failed struct {
	Reason string `json:"why"`
}

// Submitted records the rows that were posted in the same transaction. Their ids are consecutive.
type Submitted struct {
	First int64 `json:"first_row"`
	Rows  int   `json:"rows"`
}

// Removed records that the file and its result were deleted.
type Removed struct{}

// Evolve sets the upload.
func (e Uploaded) Evolve(s State) State {
	s.Blob, s.Type, s.Pipeline = e.Blob, e.Type, e.Pipeline
	return s
}

// Evolve sets the number of read pages.
func (e PageRead) Evolve(s State) State { s.PagesOf = e.Page; return s }

// Evolve marks the upload as read.
func (Read) Evolve(s State) State { s.Done = true; return s }

// Evolve marks the upload as failed.
func (Failed) Evolve(s State) State { s.Failed = true; return s }

// Evolve sets the first submitted row.
func (e Submitted) Evolve(s State) State { s.First = e.First; return s }

// Evolve marks the file as removed.
func (Removed) Evolve(s State) State { s.Removed = true; return s }

// Upload records a new upload. If Read is set, the upload is already read.
type Upload struct {
	Uploaded

	Read *Read
}

// Decide refuses an id that exists.
func (c Upload) Decide(s State) ([]event.Event[State], error) {
	switch {
	case s.exists():
		return nil, fault.New(fault.Conflict, "Khata upload exists already")
	case c.Read != nil:
		return []event.Event[State]{c.Uploaded, *c.Read}, nil
	default:
		return []event.Event[State]{c.Uploaded}, nil
	}
}

// NotePage records that a page was read.
type NotePage PageRead

// Decide records each page once.
func (c NotePage) Decide(s State) ([]event.Event[State], error) {
	if s.Done || s.Failed || s.Removed || c.Page <= s.PagesOf {
		return nil, nil
	}
	return []event.Event[State]{PageRead(c)}, nil
}

// Finish records the result of reading an upload, or the reason of its failure.
type Finish struct {
	Read   Read
	Reason string
}

// Decide records the first result only.
func (c Finish) Decide(s State) ([]event.Event[State], error) {
	switch {
	case s.Done || s.Failed || s.Removed:
		return nil, nil
	case c.Reason != "":
		return []event.Event[State]{Failed{c.Reason}}, nil
	default:
		return []event.Event[State]{c.Read}, nil
	}
}

// Remove records that the file of an upload was deleted.
type Remove struct{}

// Decide records the removal once.
func (Remove) Decide(s State) ([]event.Event[State], error) {
	if s.Blob == "" || s.Removed {
		return nil, nil
	}
	return []event.Event[State]{Removed{}}, nil
}
