package spec

import "slices"

// CommitDescribes are the functions that [Commit] models.
var CommitDescribes = map[string][]string{
	"eventstore/postgres/group.go":      {"attempt", "insertCalm", "insertLocked", "lockAndLook", "conclude", "find"},
	"eventstore/postgres/appender.go":   {"write", "retryable"},
	"eventstore/postgres/connection.go": {"resolve", "end", "lookUp"},
	"eventstore/postgres/journal.go":    {"insertJournaled", "section", "toLog", "toJournal"},
	"eventstore/journal/journal.go":     {"Append", "look"},
}

// Commit models the commit of a group of appends by two processes. Each has one group, and both expect the same stream to be empty: at most
// one may be appended. Connections break at any time. The lost session of a process may still act, until the process has ended it. With a
// journal, an append to it may arrive late. The process sends the same append until it gets a response.
type Commit struct {
	Journal bool
	Without string // an omitted step, to check that the rules detect it
}

type commitLog [3]int8 // the groups, in order; 0: none

func (l commitLog) len() int8 { return int8(max(0, slices.Index(l[:], 0))) }

func (l commitLog) count(id int8) (n int) {
	for _, e := range l {
		if e == id {
			n++
		}
	}
	return n
}

func (l commitLog) and(id int8) commitLog {
	if n := l.len(); n < 2 {
		l[n] = id
	}
	return l
}

// The phases of a process.
const (
	idle      = iota
	validated // knows the head, and that its group fits there
	sent      // its statements are in transit
	inserted  // under the log's lock, not committed; only with a journal
	replicated
	lost    // its connection is lost
	ended   // its lost session has ended
	done    // the caller got a success
	refused // the caller knows that nothing was appended
	dead    // no caller waits any more
)

// CommitState is a state of [Commit].
type CommitState struct {
	Log, Journal commitLog
	Lock         int8 // the process that has the log's lock, 0: none
	Late         int8 // a group in transit to the journal, without its sender
	LateAt       int8 // the revision at which it is appended
	P            [2]struct {
		Phase, Head, Tries int8
		Session            bool // a lost session that may still insert and commit at Head
	}
}

// Model returns the model.
func (c Commit) Model() Model[CommitState] {
	return Model[CommitState]{Next: c.next, Broken: c.broken, Final: func(s CommitState) bool {
		return s.P[0].Phase >= done && s.P[1].Phase >= done
	}}
}

func (c Commit) next(s CommitState, to func(string, CommitState)) {
	if n := s; s.Late > 0 {
		if n.Late = 0; s.Journal.len() == s.LateAt && s.Journal.count(s.Late) == 0 {
			n.Journal = s.Journal.and(s.Late)
		}
		to("a late append reaches the journal", n)
	}
	for i := range s.P {
		c.process(s, i, func(step string, n CommitState) { to([]string{"1 ", "2 "}[i]+step, n) })
	}
}

func (c Commit) process(s CommitState, i int, to func(string, CommitState)) {
	id, p, free := int8(i+1), s.P[i], s.Lock == 0
	move := func(step string, phase int8, change func(n *CommitState)) {
		n := s
		n.P[i].Phase = phase
		if change != nil {
			change(&n)
		}
		to(step, n)
	}
	if p.Session && free && (s.Log.len() == p.Head || c.Without == "head") {
		move("its lost session commits", p.Phase, func(n *CommitState) { n.Log, n.P[i].Session = s.Log.and(id), false })
	}
	switch p.Phase {
	case idle, ended:
		c.look(s, i, move)
	case validated:
		move("sends its group", sent, nil)
		if c.Without == "commit" {
			move("answers", done, func(n *CommitState) { n.P[i].Session = true })
		}
	case sent: // one statement, which finds the unchanged head, or nothing
		if free && (s.Log.len() == p.Head || c.Without == "head") {
			move("commits", done, func(n *CommitState) { n.Log = s.Log.and(id) })
		} else if free {
			move("finds another head", idle, nil)
		}
		move("loses its connection", lost, func(n *CommitState) { n.P[i].Session = true })
	case inserted, replicated:
		c.journaled(s, i, move)
	case lost:
		move("ends its lost session", ended, func(n *CommitState) { n.P[i].Session = c.Without == "end" })
	}
}

// journaled appends to the journal at the head, and then commits.
func (c Commit) journaled(s CommitState, i int, move func(string, int8, func(*CommitState))) {
	id, p := int8(i+1), s.P[i]
	unlock := func(n *CommitState) { n.Lock = 0 }
	if move("dies", dead, unlock); p.Phase == replicated {
		move("commits", done, func(n *CommitState) { n.Log, n.Lock = s.Log.and(id), 0 })
		move("loses its connection", ended, unlock)
		return
	}
	at := p.Head
	if c.Without == "revision" { // it sends the group again wherever the journal ends
		at = s.Journal.len()
	}
	if c.Without == "commit" {
		move("answers", done, unlock)
	}
	switch {
	case s.Journal.len() == at:
		move("the journal takes its group", replicated, func(n *CommitState) { n.Journal = s.Journal.and(id) })
		if p.Tries == 0 {
			again := func(n *CommitState) { n.P[i].Tries = 1 }
			move("the journal's response is lost", inserted, func(n *CommitState) { n.Journal = s.Journal.and(id); again(n) })
			if s.Late == 0 {
				move("the append to the journal is late", inserted, func(n *CommitState) { n.Late, n.LateAt = id, at; again(n) })
			}
		}
	case s.Journal[at] == id:
		move("the journal has its group", replicated, nil)
	default:
		move("the journal has another group", idle, unlock)
	}
	if s.Late != id { // it is in doubt while its append may arrive
		move("loses its connection", ended, unlock)
	}
}

// look searches the log for a group, before it is sent and after its connection was lost. A new connection first makes the log equal to its
// journal. With a journal, a group is validated under the log's lock.
func (c Commit) look(s CommitState, i int, move func(string, int8, func(*CommitState))) {
	id, phase := int8(i+1), s.P[i].Phase
	switch {
	case c.Journal && s.Lock != 0: // waits
	case c.Journal && s.Journal != s.Log:
		move("copies the journal", phase, func(n *CommitState) {
			if n.Log = s.Journal; s.Log.len() > s.Journal.len() {
				n.Log, n.Journal = s.Log, s.Log
			}
		})
	case s.Log.count(id) > 0:
		move("finds its group", done, nil)
	case phase == ended:
		move("knows that nothing was appended", refused, nil)
		if s.P[i].Tries < 2 {
			move("tries again", idle, func(n *CommitState) { n.P[i].Tries = 2 })
		}
	case s.Log.len() > 0:
		move("is refused", refused, nil)
	case c.Journal:
		move("inserts under the lock", inserted, func(n *CommitState) { n.P[i].Head, n.Lock = s.Log.len(), id })
	default:
		move("validates", validated, func(n *CommitState) { n.P[i].Head = s.Log.len() })
	}
}

func (c Commit) broken(s CommitState) string {
	for i, p := range s.P {
		switch n := s.Log.count(int8(i + 1)); {
		case n > 1 || s.Journal.count(int8(i+1)) > 1:
			return "a group is there twice"
		case p.Phase == done && n == 0:
			return "an acknowledged group is not in the log"
		case p.Phase == refused && n > 0:
			return "a refused group is in the log"
		}
	}
	if s.Log.len() > 1 {
		return "both groups are in the log, and each expected the stream to be empty"
	}
	return ""
}
