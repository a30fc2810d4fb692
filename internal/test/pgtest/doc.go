// Package pgtest gives tests a real Postgres: one cluster for the whole run of go test ./..., a database for each test.
//
// Each package of a run is a process. The first one starts the cluster, the others join it, and a small shell process stops it a few
// seconds after its last use. They coordinate by file locks, which end with their process, so a killed test run leaves nothing behind that
// disturbs the next. No TestMain stops the cluster: a package without that TestMain would leave a server running.
//
// The cluster does not sync to disk. A test about durability, or one that kills Postgres, uses Cluster.
package pgtest
