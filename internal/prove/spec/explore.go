// Package spec has exhaustive models of three basic protocols: the commit of a group of appends, the move of a projection's pointer, and a
// lease. Each names the functions that it models. Every state that any order of steps reaches is checked.
package spec

import (
	"fmt"
	"strings"
)

// Model is a protocol with its faults. A state is a value without pointers.
type Model[S comparable] struct {
	Start S
	// Next calls to with each possible next state, and the name of the step.
	Next func(s S, to func(step string, next S))
	// Broken returns the rule that a state breaks, or "".
	Broken func(S) string
	// Final reports whether a state without a next state is an end. Otherwise it is a deadlock.
	Final func(S) bool
}

// maxStates limits a model. More states mean a mistake.
const maxStates = 5_000_000

// Explore visits all states in order of distance. It returns their number, and an error with the shortest path to a state that breaks a
// rule.
func Explore[S comparable](m Model[S]) (states int, err error) {
	type way struct {
		from int
		step string
	}
	known, all, ways := map[S]bool{m.Start: true}, []S{m.Start}, []way{{-1, "start"}}
	fails := func(at int, why string) error {
		var steps []string
		for i := at; i >= 0; i = ways[i].from {
			steps = append([]string{fmt.Sprintf("%s: %+v", ways[i].step, all[i])}, steps...)
		}
		return fmt.Errorf("%s\n%s", why, strings.Join(steps, "\n"))
	}
	for i := 0; i < len(all); i++ {
		if why := m.Broken(all[i]); why != "" {
			return len(all), fails(i, why)
		}
		moves := false
		m.Next(all[i], func(step string, next S) {
			moves = true
			if !known[next] {
				known[next] = true
				all, ways = append(all, next), append(ways, way{i, step})
			}
		})
		if !moves && !m.Final(all[i]) {
			return len(all), fails(i, "deadlock")
		}
		if len(all) > maxStates {
			return len(all), fmt.Errorf("there are more than %d states", maxStates)
		}
	}
	return len(all), nil
}
