package spec

import "fmt"

// PointerDescribes are the functions that [Pointer] models.
var PointerDescribes = map[string][]string{
	"projections/session.go":    {"own", "apply"},
	"projections/generation.go": {"checkpoint"},
	"projections/takeover.go":   {"swap", "move", "retire"},
	"projections/maintain.go":   {"keep"},
	"projections/operate.go":    {"Rollback", "keptUpTo"},
	"projections/registry.go":   {"begin"},
}

// Pointer models the move of a projection's pointer from one generation to the next, and back. Two processes fold: each takes over a live
// or kept generation, folds the next event, and may sleep between any two steps, even inside its transaction. A build fills the second
// generation, and moves the pointer while it holds the record of the first.
type Pointer struct {
	Without string // an omitted step, to check that the rules detect it
}

const (
	pointerEvents = 3 // of the log

	// The phases of the build, and of the rollback after it.
	building   = 0
	stopping   = 1 // has the record of the live generation
	switched   = 2
	returning  = 3 // the rollback has it
	rolledBack = 4
)

// PointerState is a state of [Pointer].
type PointerState struct {
	Live  int8 // the generation that readers use
	Phase int8
	Stop  int8 // position of the live generation when its record was read
	Seen  int8 // the greatest position that a reader saw
	G     [2]struct {
		Position, Rows, Owner int8 // Rows: number of events in the tables; Owner 0: none
		Locked                int8 // holder of the record: a process, or 3 for the build; 0: none
	}
	P [2]struct {
		Holds, Position int8 // its assumed generation and checkpoint; Holds 0: none
		Folds           bool // its transaction has folded the next event, and has not committed
	}
}

// Model returns the model.
func (c Pointer) Model() Model[PointerState] {
	return Model[PointerState]{Next: c.next, Broken: c.broken, Final: func(PointerState) bool { return true }}
}

func (c Pointer) next(s PointerState, to func(string, PointerState)) {
	if at := s.G[s.Live].Position; at > s.Seen {
		n := s
		n.Seen = at
		to("a reader looks", n)
	}
	for i := range s.P {
		for g := range s.G {
			c.process(s, int8(i), int8(g), to)
		}
	}
	c.build(s, to)
}

func (c Pointer) process(s PointerState, i, g int8, to func(string, PointerState)) {
	p, at := s.P[i], s.G[g]
	name := func(what string) string { return fmt.Sprintf("%d %s %d", i+1, what, g) }
	served := s.Live == g || g == 0 && s.Phase >= switched || g == 1 && s.Phase == rolledBack
	if !p.Folds && served && at.Locked == 0 && (p.Holds != g+1 || at.Owner != i+1) {
		n := s
		n.G[g].Owner, n.P[i].Holds, n.P[i].Position = i+1, g+1, at.Position
		to(name("takes over"), n)
	}
	if p.Holds != g+1 {
		return
	}
	if !p.Folds {
		if p.Position < pointerEvents {
			n := s
			n.P[i].Folds = true
			to(name("folds in"), n)
		}
		return
	}
	n := s
	n.P[i].Folds = false
	switch {
	case at.Locked != 0 && c.Without != "record": // waits for the owner of the record
	case at.Owner == i+1 && at.Position == p.Position || c.Without == "fence":
		n.G[g].Position, n.G[g].Rows, n.P[i].Position = p.Position+1, at.Rows+1, p.Position+1
		to(name("commits in"), n)
	default:
		n.P[i].Holds = 0
		to(name("is fenced off from"), n)
	}
}

func (c Pointer) build(s PointerState, to func(string, PointerState)) {
	n := s
	switch s.Phase {
	case building:
		if s.G[1].Position < pointerEvents {
			n.G[1].Position, n.G[1].Rows = s.G[1].Position+1, s.G[1].Rows+1
			to("the build folds", n)
			n = s
		}
		if s.G[0].Locked == 0 {
			n.Phase, n.Stop, n.G[0].Locked = stopping, s.G[0].Position, 3
			to("the build stops the live generation", n)
		}
	case stopping:
		if s.G[1].Position < s.Stop && c.Without != "reach" {
			n.G[1].Position, n.G[1].Rows = s.G[1].Position+1, s.G[1].Rows+1
			to("the build catches up", n)
			return
		}
		n.Phase, n.Live, n.G[0].Locked, n.G[0].Owner = switched, 1, 0, 0
		to("the pointer moves", n)
	case switched:
		if s.G[1].Locked == 0 {
			n.Phase, n.Stop, n.G[1].Locked = returning, s.G[1].Position, 3
			to("the rollback stops the live generation", n)
		}
	case returning: // the kept generation is folded by its keeper
		if s.G[0].Position >= s.Stop || c.Without == "kept" {
			n.Phase, n.Live, n.G[1].Locked, n.G[0].Owner, n.G[1].Owner = rolledBack, 0, 0, 0, 0
			to("the pointer moves back", n)
		}
		n = s
		n.Phase, n.G[1].Locked = switched, 0
		to("the rollback gives up", n)
	}
}

func (c Pointer) broken(s PointerState) string {
	for i, g := range s.G {
		if g.Rows != g.Position {
			return fmt.Sprintf("the tables of generation %d have %d events, and its checkpoint is %d", i, g.Rows, g.Position)
		}
	}
	if s.G[s.Live].Position < s.Seen {
		return "a reader sees less than before"
	}
	return ""
}
