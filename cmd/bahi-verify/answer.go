package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"bahi/domain/event"
	"bahi/eventstore/archive"
	"bahi/eventstore/tlog"
)

// answer is the result for people and for scripts.
type answer struct {
	Verdict    tlog.Verdict     `json:"verdict"`
	Log        string           `json:"log"` // its origin in checkpoints
	Result     *tlog.Result     `json:"result,omitempty"`
	Difference *tlog.Difference `json:"difference,omitempty"` // from the copy that it was compared with
	Proofs     []proven         `json:"proofs,omitempty"`
	Sentences  []string         `json:"sentences"`
}

func (a *answer) sayf(format string, args ...any) {
	a.Sentences = append(a.Sentences, fmt.Sprintf(format, args...))
}

// trust is what the auditor trusts.
type trust struct {
	keys  tlog.Keys
	files []file // with kept checkpoints
}

type file struct {
	name string
	text []byte
}

// kept returns the kept checkpoints of a log.
func (t trust) kept(origin string) (all []tlog.RetainedCheckpoint, err error) {
	for _, f := range t.files {
		kept, err := t.keys.Collect(origin, f.name, f.text)
		if err != nil {
			return nil, err
		}
		if len(kept) == 0 {
			return nil, fmt.Errorf("%s has no checkpoint", f.name)
		}
		all = append(all, kept...)
	}
	return all, nil
}

// source is a log to verify.
type source struct {
	name   string
	origin string
	live   bool // the log itself, not a copy: no copy can be newer
	events func(ctx context.Context) iter.Seq2[event.Stored, error]
	verify func(ctx context.Context, t trust, kept []tlog.RetainedCheckpoint, progress func(uint64)) (tlog.Result, error)
}

func archiveSource(name string, a *archive.Archive) source {
	return source{
		name: name, origin: tlog.Origin(a.StoreID), events: a.Events,
		verify: func(ctx context.Context, t trust, kept []tlog.RetainedCheckpoint, progress func(uint64)) (tlog.Result, error) {
			return a.Verify(ctx, t.keys, kept, progress)
		},
	}
}

// verify compares a log with what the auditor trusts, and with a copy if there is one.
func verify(ctx context.Context, log source, t trust, other *source, progress func(what string, events uint64)) (answer, error) {
	kept, err := t.kept(log.origin)
	if err != nil {
		return answer{}, err
	}
	r, err := log.verify(ctx, t, kept, func(n uint64) { progress("verifying", n) })
	if err != nil && r.Finding == nil {
		return answer{}, err
	}
	a := answer{Verdict: r.Verdict(), Log: log.origin, Result: &r}
	if other != nil {
		if err := a.compare(ctx, log, *other, t, kept, progress); err != nil {
			return answer{}, err
		}
	}
	a.Sentences = append(a.Sentences, r.Sentences()...)
	if err != nil {
		a.sayf("Reading stopped: %s", err)
	}
	return a, nil
}

// compare finds the first difference from a copy and lets the checkpoints decide which of the two is true.
func (a *answer) compare(ctx context.Context, log, other source, t trust, kept []tlog.RetainedCheckpoint,
	progress func(string, uint64)) error {
	if other.origin != log.origin {
		return fmt.Errorf("%s is of the log %s, and %s of %s", other.name, other.origin, log.name, log.origin)
	}
	d, err := tlog.Compare(other.events(ctx), log.events(ctx), func(n uint64) { progress("comparing", n) })
	if b, ok := errors.AsType[*archive.CorruptError](err); ok {
		a.sayf("The comparison stopped: %s.", b)
		return nil
	}
	if err != nil {
		return err
	}
	a.Difference = d
	if d == nil {
		a.sayf("It has everything that %s has.", other.name)
		return nil
	}
	if d.Kind == tlog.Truncated && a.Verdict != tlog.Tampered && !log.live {
		a.sayf("It ends after %d events, and %s continues.", d.Number-1, other.name)
		return nil
	}
	trusted, err := other.verify(ctx, t, kept, func(n uint64) { progress("verifying the copy", n) })
	if err != nil {
		return err
	}
	right := trusted.Finding == nil || trusted.Finding.Kind == tlog.Truncated // an older copy ends before newer checkpoints
	difference := fmt.Sprintf("The first one here is %s, the second %s. %s", other.name, log.name, d)
	switch {
	case a.Verdict != tlog.Tampered && a.Result.Proven >= d.Number:
		a.sayf("%s is not the signed log. %s", other.name, difference)
	case right && trusted.Proven >= d.Number:
		a.Verdict = tlog.Tampered
		a.sayf("TAMPERED. The first bad event is event %d: the events before it are those of %s, which is proven. %s", d.Number, other.name,
			difference)
	default:
		a.Verdict = tlog.Tampered
		a.sayf("TAMPERED, one or the other: no checkpoint shows which of the two is true. %s", difference)
	}
	return nil
}

// proven is the result for an event of a file of proofs.
type proven struct {
	Event      tlog.Event       `json:"event"`
	Payload    string           `json:"payload"`
	Metadata   string           `json:"metadata"`
	Index      uint64           `json:"index"`
	Checkpoint tlog.Checkpoint  `json:"checkpoint"`
	By         []tlog.Signature `json:"by,omitempty"`
	Problem    string           `json:"problem,omitempty"` // empty: the event is in the log
}

// verifyProofs checks each proof of a file.
func verifyProofs(text []byte, t trust) (answer, error) {
	proofs, err := tlog.ParseProofs(text)
	if err != nil {
		return answer{}, err
	}
	a := answer{Verdict: tlog.Verified}
	for _, p := range proofs {
		one := proven{Event: tlog.Of(p.Event), Payload: string(p.Event.Data), Metadata: string(p.Event.Meta), Index: p.Index}
		verdict, err := one.verify(p, t)
		if err != nil {
			return answer{}, err
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
func (p *proven) verify(proof tlog.Proof, t trust) (tlog.Verdict, error) {
	c, by, err := t.keys.Verify(proof)
	p.Checkpoint, p.By = c, by
	if errors.Is(err, tlog.ErrNotSigned) {
		return p.kept(proof, t)
	}
	if err != nil {
		p.Problem = err.Error()
		return tlog.Tampered, nil //nolint:nilerr // the failure is the result
	}
	return tlog.Verified, nil
}

// kept compares a proof whose checkpoint no trusted key signed with the kept checkpoints.
func (p *proven) kept(proof tlog.Proof, t trust) (tlog.Verdict, error) {
	if err := proof.Holds(p.Checkpoint); err != nil {
		p.Problem = err.Error()
		return tlog.Tampered, nil //nolint:nilerr // the failure is the result
	}
	kept, err := t.kept(p.Checkpoint.Origin)
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

func (p *proven) sentence(verdict tlog.Verdict) string {
	what := fmt.Sprintf("the event at position %d, %s, recorded at %s", p.Event.Position, p.Event,
		p.Event.At.Format("2006-01-02 15:04:05.000000 MST"))
	switch verdict {
	case tlog.Verified:
	case tlog.Tampered:
		return fmt.Sprintf("FALSE. The proof of %s does not hold: %s.", what, p.Problem)
	case tlog.Undecided:
		return fmt.Sprintf("CANNOT TELL. The proof of %s is consistent, but %s.", what, p.Problem)
	}
	signed := "as in the checkpoint that you kept"
	if len(p.By) > 0 {
		names := make([]string, len(p.By))
		for i, s := range p.By {
			if names[i] = s.Name + " (key " + s.ID + ")"; s.Witness {
				names[i] += ", a witness, at " + s.At.Format("2006-01-02 15:04:05 MST")
			}
		}
		signed = "signed by " + strings.Join(names, " and ")
	}
	return fmt.Sprintf("VERIFIED. %s is in the log %s: in its first %d events, %s.\n  payload   %s\n  metadata  %s",
		strings.ToUpper(what[:1])+what[1:], p.Checkpoint.Origin, p.Checkpoint.Size, signed, onOneLine(p.Payload), onOneLine(p.Metadata))
}

// onOneLine prevents a text from the log from looking like a sentence of the verifier.
func onOneLine(text string) string { return strings.ReplaceAll(text, "\n", " ") }
