// Package pgcluster runs an embedded Postgres in Bahi's data folder, so that one command runs the whole
// system: nothing else has to be installed, configured or started.
//
// The cluster survives a killed Bahi: Postgres runs in its own session, and the next start adopts it. If it died with its parent, each
// crash of Bahi would crash the database, with a recovery before the first request.
//
// The cluster listens on a unix socket in a folder that only its owner and root can enter, with peer
// authentication. There is no TCP port and no password.
//
// Files in the data folder:
//
//	lock                 held by the one bahi serve of this folder (Lock)
//	postgres.start       held by a process that finds, starts or stops the cluster
//	postgres.users       shared lock of all processes that use the cluster; the last one stops it
//	postgres/            mode 0700, belongs to the user that runs Postgres
//	  data/              the cluster itself
//	  log/               Postgres's log, a file per day of the week
//	  run/               the socket, unless its path would be too long for one
//	  socket             names the socket's folder in that case
package pgcluster
