// Package sim runs the product's own appender, commands, followers, projections and leases in one process under a seeded scheduler. They
// use a database in memory that speaks Postgres's protocol over pipes, so nothing of the product is replaced. Time is virtual
// (testing/synctest).
//
// In each step the scheduler lets one thing happen: a session of the database executes one request, a notice arrives, a client starts an
// operation, a fault occurs. Then it waits until every goroutine is blocked. So one seed gives one order of steps.
//
//	go test ./internal/prove/sim -run Sim -seed 7          # one seed, with its trace
//	go test ./internal/prove/sim -run Sim -seeds 100000    # many, from 1 on, or -from
package sim
