// Package pgtest gives tests a real Postgres: one cluster for the whole run of go test ./..., a database for each test.
//
// The packages of a run are processes of their own, side by side and one after the other. The first that asks starts the
// cluster, the others join it, and a small shell process stops it when nobody has used it for a few seconds. All that
// holds this together are file locks, which end with the process that holds them: a killed test run leaves nothing that
// the next one trips over. A TestMain in each package that stops the cluster was turned down: one that is forgotten leaves a server behind.
//
// The cluster does not sync to disk. A test about durability, or one that kills Postgres, asks for its own with Cluster.
package pgtest
