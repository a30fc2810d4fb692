// Package bench measures how fast something is beside what the machine can do at all, in the same run:
// rounds of the one and of the other take turns, so that whatever else the machine does slows both.
// Ratios count, times do not: a figure says how much of the machine is lost on the way.
//
// The machine's own limits come from pgbench on the same cluster. Requests come from a client that
// writes prebuilt bytes to its connection and looks at no more of an answer than it must, because it
// shares the cores with the server: Go's own client takes as much time for a request as the server does.
//
// It knows nothing of Bahi but how to start its cluster; the figures themselves are in cmd/bahi-bench.
package bench
