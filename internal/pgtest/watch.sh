# Stops the cluster of the tests when nobody has used it for a few seconds. Run by pgtest, once for each test process;
# all but one end at once. $1 is the data folder; the locks are those of internal/pgcluster.
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
    # Asking the process for its folder keeps a stale number from hitting a stranger.
    if tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null | grep -qxF "$1/postgres/data"; then
      kill -INT "$pid"
      while [ -s "/proc/$pid/cmdline" ]; do sleep 0.05; done
    fi
    exec 9>&- # before the start lock: whoever starts a cluster next finds no watcher, and sends one
    exit 0
  fi
  exec 8>&-
done
