#!/usr/bin/env bash
# Lists missing tools, so that no build starts that would fail half-way. Usage: need.sh git go cc
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()

need_git() {
  command -v git >/dev/null || missing+=("git: apt-get install git")
}

# go.mod has the required version of Go; an older Go that may fetch toolchains does so by itself.
need_go() {
  local want have
  want=$(awk '$1 == "go" { print $2 }' go.mod)
  if ! command -v go >/dev/null; then
    missing+=("Go $want or newer: https://go.dev/dl, unpacked into /usr/local/go")
    return
  fi
  if ! have=$(go env GOVERSION 2>&1) || [ "$(printf '%s\n' "$want" "${have#go}" | sort -V | head -n 1)" != "$want" ]; then
    missing+=("Go $want or newer (found: $have): https://go.dev/dl, unpacked into /usr/local/go")
  fi
}

# The race detector is linked with C.
need_cc() {
  local cc
  cc=${CC:-$(go env CC 2>/dev/null || echo gcc)}
  if command -v "${cc%% *}" >/dev/null; then
    return
  fi
  if [ -z "${CC:-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "no C compiler, which the race detector needs: installing gcc from the distribution's packages" >&2
    local log
    log=$(mktemp)
    if { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends gcc libc6-dev; } >"$log" 2>&1; then
      rm -f "$log"
      return
    fi
    tail -n 5 "$log" >&2
    rm -f "$log"
  fi
  missing+=("a C compiler for the race detector ($cc): apt-get install gcc libc6-dev")
}

# The official Node clients of EventStoreDB are tested against the gateway.
need_node() {
  if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    missing+=("Node 20 or newer with npm: apt-get install nodejs npm")
  fi
}

for what in "$@"; do
  "need_$what"
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "missing:" >&2
  printf '  %s\n' "${missing[@]}" >&2
  exit 1
fi
