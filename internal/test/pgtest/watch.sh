# Stops the tests' cluster a few seconds after its last use. pgtest runs it once for each test process; all but one end
# at once. $1 is the data folder; the locks are those of internal/pgcluster.
set -eu
exec 9>"$1/watch"
flock -n 9 || exit 0
while :; do
  flock -x "$1/postgres.users" true # waits for the last user
  sleep 5                           # the next package may be on its way
  exec 8>>"$1/postgres.start"
  flock 8
  if flock -n -x "$1/postgres.users" true; then
    pid=$(head -n 1 "$1/postgres/data/postmaster.pid" 2>/dev/null) || exit 0
    # The command line must name the folder: a stale number may be another process.
    if tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null | grep -qxF "$1/postgres/data"; then
      kill -INT "$pid"
      while [ -s "/proc/$pid/cmdline" ]; do sleep 0.05; done
    fi
    exec 9>&- # before the start lock: the next process that starts a cluster then starts a watcher too
    exit 0
  fi
  exec 8>&-
done
