// Package sim runs the product's own appender, commands, followers, projections and leases in one process under a seeded scheduler. They
// talk to a database in memory that speaks Postgres's protocol over pipes, so nothing of the product is replaced. Time is virtual
// (testing/synctest).
//
// In each step the scheduler lets one thing happen: a session of the database carries out one request, a notice arrives, a client begins
// an operation, a fault strikes. Then it waits until every goroutine waits. So one seed has one order of steps.
//
//	go test ./internal/prove/sim -run Sim -seed 7          # one seed, with its trace
//	go test ./internal/prove/sim -run Sim -seeds 100000    # many, from 1 on, or -from
package sim
