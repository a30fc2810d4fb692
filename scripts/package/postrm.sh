#!/bin/sh
# After a removal. The books stay, even after a purge: they are the only copy.
set -e
if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
if [ "$1" = purge ] && [ -d "$DPKG_ROOT/var/lib/bahi" ]; then
  echo "the books and their keys stay in /var/lib/bahi"
fi
