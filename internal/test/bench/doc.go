// Package bench measures speed relative to the limits of the machine, in the same run. Rounds of a measurement and of its limit alternate,
// so that other load slows both. Only ratios count: they show which part of the machine's capacity is lost.
//
// pgbench on the same cluster measures the limits. Requests come from a client that writes prebuilt bytes and parses as little of a
// response as possible, because it shares the processors with the server. Go's own client takes as much time for a request as the server.
//
// The package knows nothing of Bahi except how to start its cluster; the figures are in cmd/bahi-bench.
package bench
