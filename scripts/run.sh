#!/usr/bin/env bash
# Starts Bahi on ./data. If root works in a folder that is closed to others (/root), it uses /var/lib/bahi: Postgres refuses to
# run as root, and the user that runs it instead could not enter. Usage: run.sh BINARY
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" = 0 ] && [ -z "${BAHI_DATA:-}" ] && [ -z "${DATABASE_URL:-}" ] && command -v setpriv >/dev/null &&
  ! setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$PWD"; then
  export BAHI_DATA=/var/lib/bahi
  echo "the user that runs Postgres cannot enter $PWD: the data folder is $BAHI_DATA (BAHI_DATA names another)"
fi
exec "$1" serve
