#!/bin/sh
# Before a removal; an upgrade lets the service run until the new program is there.
set -e
if [ "$1" = remove ] && [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
  systemctl disable --now bahi.service
fi
