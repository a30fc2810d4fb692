#!/bin/sh
# Before an installation or an upgrade. After a removal dpkg gives postinst the old version, as at an upgrade: this marks the difference.
set -e
if [ "$1" = install ] && [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
  : >/run/bahi.installed
fi
