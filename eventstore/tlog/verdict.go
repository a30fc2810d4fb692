package tlog

import "fmt"

// Verdict is the result of a verification in one word.
type Verdict string

// The verdicts.
const (
	Verified  Verdict = "verified"
	Tampered  Verdict = "tampered"
	Undecided Verdict = "undecided" // nothing contradicts the log, but nothing trusted confirms it
)

// Verdict returns Verified if a trusted checkpoint confirms the log and nothing contradicts it.
func (r Result) Verdict() Verdict {
	switch {
	case r.Finding != nil:
		return Tampered
	case r.Trusted > 0 && r.Unsigned == nil:
		return Verified
	default:
		return Undecided
	}
}

// Also returns the result with a further finding, unless it already has one.
func (r Result) Also(f Finding) Result {
	if r.Finding != nil {
		why := r.Finding.Reason + " " + f.Reason
		f = *r.Finding
		f.Reason = why
	}
	r.Finding = &f
	return r
}

// Sentences returns the result for people.
func (r Result) Sentences() (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	switch r.Verdict() {
	case Tampered:
		say("TAMPERED. %s", r.Finding)
	case Verified:
		say("VERIFIED. The first %s what was signed; %d %s.", events(r.Proven, "is", "are"), r.Trusted, agree(r.Trusted))
		if r.Maps > 0 {
			say("The map of accounts is as signed in %s.", checkpoints(r.Maps))
		}
		if behind := r.Events - r.Proven; behind > 0 {
			say("%s after the last checkpoint that was kept elsewhere or that a trusted key signed: nothing proves them yet.",
				events(behind, "is", "are"))
			r.sayAgreed(say)
		}
	case Undecided:
		if r.Trusted > 0 {
			say("CANNOT TELL. The first %s what was signed. The events from position %d on, which was recorded at %s, are not signed, and a "+
				"server signs within seconds: "+
				"none ran, or their checkpoints were removed. Start bahi serve, which signs them, and verify again.", events(r.Proven, "is", "are"),
				r.Unsigned.Position, r.Unsigned.At.Format(moment))
			break
		}
		say("CANNOT TELL. The %s consistent, but a writer of the log could have replaced all of it. "+
			"Provide a checkpoint that was kept elsewhere, or the log's public key.", events(r.Events, "that was read is", "that were read are"))
		r.sayAgreed(say)
	}
	if n := len(r.Unlisted); n > 0 {
		say("Not verified, and no part of the log: %s, which the manifest does not list. The first is %s.", files(n), shown(r.Unlisted[0]))
	}
	for _, e := range r.Restores {
		say("At position %d the log records that a restore lost its tail: %s. Older checkpoints may cover lost events; ask for the reason.",
			e.Position, e)
	}
	return all
}

// sayAgreed adds a sentence with the number of agreeing checkpoints that prove nothing.
func (r Result) sayAgreed(say func(format string, args ...any)) {
	if doubtful := r.Agreed - r.Trusted; doubtful > 0 {
		say("It agrees with %d of its own checkpoints, which no trusted key signed.", doubtful)
	}
}

func files(n int) string {
	if n == 1 {
		return "1 file among the segments"
	}
	return fmt.Sprintf("%d files among the segments", n)
}

func checkpoints(n int) string {
	if n == 1 {
		return "1 checkpoint"
	}
	return fmt.Sprintf("%d checkpoints", n)
}

func agree(checkpoints int) string {
	if checkpoints == 1 {
		return "checkpoint agrees"
	}
	return "checkpoints agree"
}
