package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A test slower than longTest, and a package slower than longPackage, is listed in the report. One that takes tooLong times as long, and
// has no reason in slow.txt, fails the run. Both limits are seconds of the machine that slow.txt is for, two cores without other load. They
// are multiplied by how much slower this machine was during the tests. The range between the two limits is for other causes, such as a slow
// disk, so that a run does not fail by chance. In a whole run of a quarter of an hour the slowest package took 168 s. Beside other builds,
// on a machine several times as slow, a test of 5 s took up to 190 s.
const (
	longTest    = 5
	longPackage = 60
	tooLong     = 40
)

//go:embed slow.txt
var slowTests string

// slowness finds slow tests and packages.
type slowness struct {
	reasons map[string]string             // by name
	pace    func() float64                // slowness relative to the machine of slow.txt; 0: unknown
	ran     map[string]bool               // names of tests and packages that ran, and did not come from the cache
	within  map[string]map[string]float64 // seconds, by package and name: of a package that has not ended
	slow    map[string]float64            // seconds, by name
}

// newSlowness reads lines of a name and a reason, with a colon between. A name is a package's path in the module, or that and a test's.
func newSlowness(lines string, pace func() float64) (*slowness, error) {
	s := &slowness{reasons: map[string]string{}, pace: pace, ran: map[string]bool{}, within: map[string]map[string]float64{},
		slow: map[string]float64{}}
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, told := strings.Cut(line, ": ")
		if !told || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("slow.txt: %q has no reason", line)
		}
		s.reasons[name] = reason
	}
	return s, nil
}

// take records the duration of a test or a package. Results from the cache were checked when they ran.
func (s *slowness) take(e event) {
	_, path, _ := strings.Cut(e.Package, "/") // without the module's name
	times := s.within[path]
	if times == nil {
		times = map[string]float64{}
		s.within[path] = times
	}
	ended := e.Action == "pass" || e.Action == "fail"
	switch {
	case e.Test == "" && e.Action == "output" && strings.Contains(e.Output, "\t(cached)"):
		clear(times)
		times["cached"] = 0
	case e.Test != "" && ended && !strings.Contains(e.Test, "/"):
		times[path+" "+e.Test] = e.Elapsed
	case e.Test == "" && ended:
		if _, cached := times["cached"]; !cached {
			times[path] = e.Elapsed
			for name, seconds := range times {
				s.ran[name] = true
				if seconds > bound(name) {
					s.slow[name] = seconds
				}
			}
		}
		delete(s.within, path)
	}
}

// bound is the limit in seconds of a test or a package.
func bound(name string) float64 {
	if strings.Contains(name, " ") {
		return longTest
	}
	return longPackage
}

// report prints slow tests and packages, slowest first, and the unknown names in slow.txt. It reports whether a reason is missing.
func (s *slowness) report() (text string, unexplained bool) {
	var out strings.Builder
	pace := max(s.pace(), 1)
	names := slices.SortedFunc(maps.Keys(s.slow), func(a, b string) int { return cmp.Compare(s.slow[b], s.slow[a]) })
	if len(names) > 0 {
		fmt.Fprintf(&out, "slow (this machine took %.1f times as long as that of scripts/testreport/slow.txt):\n", pace)
	}
	for _, name := range names {
		reason, told := s.reasons[name]
		if !told {
			reason = "no reason in scripts/testreport/slow.txt"
			if s.slow[name] > tooLong*pace*bound(name) {
				reason, unexplained = "TOO SLOW: make it faster, or say in scripts/testreport/slow.txt why it cannot be", true
			}
		}
		fmt.Fprintf(&out, "%7.1fs  %s: %s\n", s.slow[name], name, reason)
	}
	for _, name := range slices.Sorted(maps.Keys(s.reasons)) {
		if path, _, _ := strings.Cut(name, " "); s.ran[path] && !s.ran[name] {
			fmt.Fprintf(&out, "scripts/testreport/slow.txt has %s, which does not exist\n", name)
			unexplained = true
		}
	}
	return out.String(), unexplained
}
