package archive

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"bahi/domain/event"
	"bahi/eventstore/tlog"
)

// Report is the result of a verification, for people and for scripts.
type Report struct {
	Verdict    tlog.Verdict     `json:"verdict"`
	Log        string           `json:"log"` // its origin in checkpoints
	Result     *tlog.Result     `json:"result,omitempty"`
	Difference *tlog.Difference `json:"difference,omitempty"` // from the copy that it was compared with
	Proofs     []ProvenEvent    `json:"proofs,omitempty"`
	Statement  *tlog.Statement  `json:"statement,omitempty"` // with the figures computed from its events
	Sentences  []string         `json:"sentences"`
}

func (a *Report) sayf(format string, args ...any) {
	a.Sentences = append(a.Sentences, fmt.Sprintf(format, args...))
}

// Given has what a verifier trusts: public keys and retained checkpoints.
type Given struct {
	Keys  tlog.Keys
	Files []KeptFile
}

// KeptFile is a file with kept checkpoints.
type KeptFile struct {
	Name string
	Text []byte
}

// ReadGiven reads the files with keys, and those with checkpoints.
func ReadGiven(keys, checkpoints []string) (g Given, err error) {
	var all strings.Builder
	for _, path := range keys {
		text, err := os.ReadFile(path) //nolint:gosec // G304: the caller names it
		if err != nil {
			return g, err
		}
		all.Write(append(text, '\n'))
	}
	if g.Keys, err = tlog.ParseKeys(all.String()); err != nil {
		return g, err
	}
	for _, path := range checkpoints {
		text, err := os.ReadFile(path) //nolint:gosec // G304: as above
		if err != nil {
			return g, err
		}
		g.Files = append(g.Files, KeptFile{filepath.Base(path), text})
	}
	return g, nil
}

// Kept returns the kept checkpoints of a log.
func (g Given) Kept(origin string) (all []tlog.RetainedCheckpoint, err error) {
	for _, f := range g.Files {
		kept, err := g.Keys.Collect(origin, f.Name, f.Text)
		if err != nil {
			return nil, err
		}
		if len(kept) == 0 {
			return nil, fmt.Errorf("%s has no checkpoint", f.Name)
		}
		all = append(all, kept...)
	}
	return all, nil
}

// Source is a log to verify.
type Source struct {
	Name   string
	Origin string
	Live   bool // the log itself, so no copy can be newer
	Events func(ctx context.Context) iter.Seq2[event.Stored, error]
	Verify func(ctx context.Context, g Given, kept []tlog.RetainedCheckpoint, progress func(uint64)) (tlog.Result, error)
}

// Source returns the archive as a log to verify.
func (a *Archive) Source(name string) Source {
	return Source{
		Name: name, Origin: tlog.Origin(a.StoreID), Events: a.Events,
		Verify: func(ctx context.Context, g Given, kept []tlog.RetainedCheckpoint, progress func(uint64)) (tlog.Result, error) {
			return a.Verify(ctx, g.Keys, kept, progress)
		},
	}
}

// Examine compares a log with what the verifier trusts, and with a copy if there is one.
func Examine(ctx context.Context, log Source, g Given, other *Source, progress func(what string, events uint64)) (Report, error) {
	kept, err := g.Kept(log.Origin)
	if err != nil {
		return Report{}, err
	}
	r, err := log.Verify(ctx, g, kept, func(n uint64) { progress("verifying", n) })
	if err != nil && r.Finding == nil {
		return Report{}, err
	}
	a := Report{Verdict: r.Verdict(), Log: log.Origin, Result: &r}
	if other != nil {
		if err := a.compare(ctx, log, *other, g, kept, progress); err != nil {
			return Report{}, err
		}
	}
	a.Sentences = append(a.Sentences, r.Sentences()...)
	if err != nil {
		a.sayf("Reading stopped: %s", err)
	}
	return a, nil
}

// compare finds the first difference from a copy. The checkpoints decide which of the two is true.
func (a *Report) compare(ctx context.Context, log, other Source, g Given, kept []tlog.RetainedCheckpoint,
	progress func(string, uint64)) error {
	if other.Origin != log.Origin {
		return fmt.Errorf("%s is of the log %s, and %s of %s", other.Name, other.Origin, log.Name, log.Origin)
	}
	d, err := tlog.Compare(other.Events(ctx), log.Events(ctx), func(n uint64) { progress("comparing", n) })
	if b, ok := errors.AsType[*CorruptError](err); ok {
		a.sayf("The comparison stopped: %s.", b)
		return nil
	}
	if err != nil {
		return err
	}
	a.Difference = d
	if d == nil {
		a.sayf("It has everything that %s has.", other.Name)
		return nil
	}
	if d.Kind == tlog.Truncated && a.Verdict != tlog.Tampered && !log.Live {
		a.sayf("It ends after %d events, and %s continues.", d.Number-1, other.Name)
		return nil
	}
	trusted, err := other.Verify(ctx, g, kept, func(n uint64) { progress("verifying the copy", n) })
	if err != nil {
		return err
	}
	right := trusted.Finding == nil || trusted.Finding.Kind == tlog.Truncated // an older copy ends before newer checkpoints
	difference := fmt.Sprintf("The first one here is %s, the second %s. %s", other.Name, log.Name, d)
	switch {
	case a.Verdict != tlog.Tampered && a.Result.Proven >= d.Number:
		a.sayf("%s is not the signed log. %s", other.Name, difference)
	case right && trusted.Proven >= d.Number:
		a.Verdict = tlog.Tampered
		a.sayf("TAMPERED. The first bad event is event %d: the events before it are those of %s, which is proven. %s", d.Number, other.Name,
			difference)
	default:
		a.Verdict = tlog.Tampered
		a.sayf("TAMPERED, one or the other: no checkpoint shows which of the two is true. %s", difference)
	}
	return nil
}

// ProvenEvent is the result for an event of a file of proofs.
type ProvenEvent struct {
	Event      tlog.Event       `json:"event"`
	Payload    string           `json:"payload"`
	Metadata   string           `json:"metadata"`
	Index      uint64           `json:"index"`
	Checkpoint tlog.Checkpoint  `json:"checkpoint"`
	By         []tlog.Signature `json:"by,omitempty"`
	Problem    string           `json:"problem,omitempty"` // empty: the event is in the log
}

// ExamineProofs checks each proof of a file.
func ExamineProofs(text []byte, g Given) (Report, error) {
	proofs, err := tlog.ParseProofs(text)
	if err != nil {
		return Report{}, err
	}
	a := Report{Verdict: tlog.Verified}
	for _, p := range proofs {
		one := ProvenEvent{Event: tlog.Of(p.Event), Payload: string(p.Event.Data), Metadata: string(p.Event.Meta), Index: p.Index}
		verdict, err := one.verify(p, g)
		if err != nil {
			return Report{}, err
		}
		if verdict == tlog.Tampered || a.Verdict == tlog.Verified {
			a.Verdict = verdict
		}
		a.Log = one.Checkpoint.Origin
		a.Proofs = append(a.Proofs, one)
		a.sayf("%s", one.sentence(verdict))
	}
	if a.Verdict == tlog.Undecided {
		a.sayf("Provide the log's public key, or a checkpoint of as many events that was kept elsewhere.")
	}
	return a, nil
}

// verify verifies a proof and fills in its result.
func (p *ProvenEvent) verify(proof tlog.Proof, g Given) (tlog.Verdict, error) {
	c, by, err := g.Keys.Verify(proof)
	p.Checkpoint, p.By = c, by
	if errors.Is(err, tlog.ErrNotSigned) {
		return p.kept(proof, g)
	}
	if err != nil {
		p.Problem = err.Error()
		return tlog.Tampered, nil //nolint:nilerr // the failure is the result
	}
	return tlog.Verified, nil
}

// kept compares a proof with the retained checkpoints if no trusted key signed its checkpoint.
func (p *ProvenEvent) kept(proof tlog.Proof, g Given) (tlog.Verdict, error) {
	if err := proof.Holds(p.Checkpoint); err != nil {
		p.Problem = err.Error()
		return tlog.Tampered, nil //nolint:nilerr // the failure is the result
	}
	kept, err := g.Kept(p.Checkpoint.Origin)
	if err != nil {
		return "", err
	}
	for _, k := range kept {
		switch {
		case k.Size != p.Checkpoint.Size:
		case k.Root == p.Checkpoint.Root:
			return tlog.Verified, nil
		default:
			p.Problem = fmt.Sprintf("%s has another root", k)
			return tlog.Tampered, nil
		}
	}
	p.Problem = tlog.ErrNotSigned.Error() + ", and is not one of the kept ones"
	return tlog.Undecided, nil
}

func (p *ProvenEvent) sentence(verdict tlog.Verdict) string {
	what := fmt.Sprintf("the event at position %d, %s, recorded at %s", p.Event.Position, p.Event,
		p.Event.At.Format("2006-01-02 15:04:05.000000 MST"))
	switch verdict {
	case tlog.Verified:
	case tlog.Tampered:
		return fmt.Sprintf("FALSE. The proof of %s does not hold: %s.", what, p.Problem)
	case tlog.Undecided:
		return fmt.Sprintf("CANNOT TELL. The proof of %s is consistent, but %s.", what, p.Problem)
	}
	return fmt.Sprintf("VERIFIED. %s is in the log %s: in its first %d events, %s.\n  payload   %s\n  metadata  %s",
		strings.ToUpper(what[:1])+what[1:], p.Checkpoint.Origin, p.Checkpoint.Size, SignedBy(p.By), onOneLine(p.Payload), onOneLine(p.Metadata))
}

// SignedBy names the signers of a checkpoint in words.
func SignedBy(by []tlog.Signature) string {
	if len(by) == 0 {
		return "as in the checkpoint that you kept"
	}
	names := make([]string, len(by))
	for i, s := range by {
		if names[i] = s.Name + " (key " + s.ID + ")"; s.Witness {
			names[i] += ", a witness, at " + s.At.Format("2006-01-02 15:04:05 MST")
		}
	}
	return "signed by " + strings.Join(names, " and ")
}

// onOneLine prevents a text from the log from looking like a sentence of the verifier.
func onOneLine(text string) string { return strings.ReplaceAll(text, "\n", " ") }
