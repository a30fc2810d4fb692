#!/usr/bin/env bash
# Generates everything again and fails if that changes a file. Earlier edits do not matter.
set -euo pipefail
cd "$(dirname "$0")/.."

state() {
  git diff HEAD
  git ls-files -z --others --exclude-standard | xargs -0 -r sha256sum
}

before=$(state)
go generate ./...
if [ "$(state)" != "$before" ]; then
  echo "generated files were not fresh; they are now, commit them:"
  git status --short
  exit 1
fi
go mod verify
go mod tidy -diff
