#!/bin/sh
# After an installation or an upgrade. A running service is restarted: the new program builds its tables first.
set -e
if ! grep -q '^bahi:' "$DPKG_ROOT/etc/passwd"; then
  useradd ${DPKG_ROOT:+--prefix "$DPKG_ROOT"} --system --user-group --home-dir /var/lib/bahi --no-create-home --shell /usr/sbin/nologin bahi
fi
if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  if [ -n "$2" ] && [ ! -e /run/bahi.installed ]; then
    systemctl try-restart bahi.service
  else
    systemctl enable --now bahi.service
  fi
  rm -f /run/bahi.installed
fi
