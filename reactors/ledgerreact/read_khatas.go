package ledgerreact

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/ledger/khata"
	"bahi/reactors"
	"bahi/readmodels/ledgerview"
)

// Khatas reads scanned pages of uploads that were accepted without reading.
var Khatas = reactors.Define("khatas",
	reactors.On(func(q *reactors.Queue, e event.Recorded[khata.Uploaded]) {
		if e.Data.Later {
			q.Add(readKhata{Khata: e.StreamID()})
		}
	}),
)

// readKhata reads an upload.
type readKhata struct {
	Khata string `json:"khata"`
}

// Kind implements [reactors.Args].
func (readKhata) Kind() string { return "read_khata" }

// SweepKhatas removes the files of old uploads.
type SweepKhatas struct{}

// Kind implements [reactors.Args].
func (SweepKhatas) Kind() string { return "sweep_khatas" }

// SweepKhatasInterval is the interval of SweepKhatas.
const SweepKhatasInterval = time.Hour

// Reading reads uploads and removes old ones.
type Reading struct {
	// Read reads an upload. last: no attempt follows an error.
	Read   func(ctx context.Context, khata string, last bool) error
	Remove func(ctx context.Context, workspace uuid.UUID, khata string) error
	Views  *ledgerview.Views
	Keep   time.Duration // how long files are kept
	Now    func() time.Time
}

const (
	readAttempts = 4
	readTimeout  = 11 * time.Minute // ten pages
)

// Workers returns the workers of uploads.
func (r *Reading) Workers() reactors.Workers {
	return reactors.Workers{
		reactors.Work(reactors.Policy{Attempts: readAttempts, MaxConcurrent: 1, Timeout: readTimeout},
			func(ctx context.Context, job reactors.Job[readKhata]) error {
				return reactors.Later(r.Read(ctx, job.Args.Khata, job.Attempt >= readAttempts))
			}),
		reactors.Work(reactors.Policy{MaxConcurrent: 1}, func(ctx context.Context, _ reactors.Job[SweepKhatas]) error { return r.Sweep(ctx) }),
	}
}

// Sweep deletes the files of uploads that are too old.
func (r *Reading) Sweep(ctx context.Context) error {
	old, err := r.Views.KhatasBefore(ctx, nil, r.Now().Add(-r.Keep))
	if err != nil {
		return fmt.Errorf("find old khatas: %w", err)
	}
	for _, k := range old {
		if err := r.Remove(ctx, k.Workspace, k.ID()); err != nil {
			return fmt.Errorf("remove the file of khata %d: %w", k.Number, err)
		}
	}
	return nil
}
