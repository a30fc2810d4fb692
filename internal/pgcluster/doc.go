// Package pgcluster keeps a private Postgres cluster under Bahi's data folder, so that one command is enough
// to run the whole system: nothing has to be installed, configured or started beside it.
//
// The cluster outlives a killed Bahi: Postgres is started in a session of its own, and the next start adopts it.
// The alternative, a cluster that dies with its parent, was turned down: it would turn each crash of Bahi into
// a crash of the database, with a recovery before the first request.
//
// The cluster listens on a unix socket in a folder that only its owner (and root) can enter, and there it asks for
// peer authentication. There is no TCP port and no password.
//
// What lies where, below the data folder:
//
//	lock                 held by the one bahi serve of this folder (Lock)
//	postgres.start       held while somebody looks for, starts or stops the cluster
//	postgres.users       held, shared, by everybody who uses the cluster; the last one out stops it
//	postgres/            mode 0700, belongs to the user that runs Postgres
//	  data/              the cluster itself
//	  log/               Postgres's log, a file per day of the week
//	  run/               the socket, unless its path would be too long for one
//	  socket             says where the socket is instead
package pgcluster
