package audit

import "fmt"

// Verdict is what an auditor wants to know in one word.
type Verdict string

// The verdicts.
const (
	Verified  Verdict = "verified"
	Tampered  Verdict = "tampered"
	Undecided Verdict = "undecided" // nothing speaks against the log, and nothing that is trusted for it
)

// Verdict says whether something trusted vouches for the log, and nothing speaks against it.
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

// Also is the result with something else that was found wrong: behind what there is, if that is something.
func (r Result) Also(f Finding) Result {
	if r.Finding != nil {
		why := r.Finding.Why + " " + f.Why
		f = *r.Finding
		f.Why = why
	}
	r.Finding = &f
	return r
}

// Sentences say it to people.
func (r Result) Sentences() (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	switch r.Verdict() {
	case Tampered:
		say("TAMPERED. %s", r.Finding)
	case Verified:
		say("VERIFIED. The first %s what was signed; %d %s.", events(r.Proven, "is", "are"), r.Trusted, agree(r.Trusted))
		if behind := r.Events - r.Proven; behind > 0 {
			say("%s behind the last checkpoint: nothing vouches for them yet.", events(behind, "stands", "stand"))
		}
	case Undecided:
		if r.Trusted > 0 {
			say("CANNOT TELL. The first %s what was signed. The events from position %d on, which was recorded at %s, are not signed, and a server signs within seconds: "+
				"none ran, or their checkpoints were removed. Start bahi serve, which signs them, and verify again.", events(r.Proven, "is", "are"), r.Unsigned.Position, r.Unsigned.At.Format(moment))
			break
		}
		say("CANNOT TELL. Nothing is wrong with the %s in itself, but whoever can write the log can write all of it anew. "+
			"Give a checkpoint that was kept elsewhere, or the public key of the log.", events(r.Events, "that was read", "that were read"))
		if r.Agreed > 0 {
			say("It agrees with %d of its own checkpoints, for which nobody vouches.", r.Agreed)
		}
	}
	if r.Finding == nil && r.Proven < r.Events && uint64(r.Last) > r.Events {
		say("Positions have gaps here, as those of EventStoreDB do, and so none of them is a sign that an event is missing. Behind what is proven, " +
			"whoever took the newest events of a stream out left no trace.")
	}
	if n := len(r.Unlisted); n > 0 {
		say("Not verified, and no part of the log: %s, which the manifest does not list. The first is %s.", files(n), shown(r.Unlisted[0]))
	}
	for _, e := range r.Restores {
		say("At position %d the log says that a restore lost its tail: %s. Checkpoints from before may be of what was lost; ask for the reason.", e.Position, e)
	}
	return all
}

func files(n int) string {
	if n == 1 {
		return "1 file among the segments"
	}
	return fmt.Sprintf("%d files among the segments", n)
}

func agree(checkpoints int) string {
	if checkpoints == 1 {
		return "checkpoint agrees"
	}
	return "checkpoints agree"
}
