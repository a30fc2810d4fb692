#!/usr/bin/env bash
# Runs each fuzz target for FUZZTIME. A number of inputs, such as 100x, only checks that the targets work, for CI. It uses the test programs
# of make test, which have no coverage. Coverage would guide a longer search, but needs another compilation of everything.
set -euo pipefail
cd "$(dirname "$0")/.."

go build -o .tools/testreport ./scripts/testreport
time=${FUZZTIME:-30s}
found=$(mktemp -d)
trap 'rm -r "$found"' EXIT

targets() {
  local status=0 file target
  while IFS=: read -r file target; do
    if [[ $time == *x ]]; then
      go test -json -vet=off -ldflags='-s -w' -run '^$' "./$(dirname "$file")" -args -test.fuzz="^$target\$" -test.fuzztime="$time" -test.fuzzcachedir="$found" || status=1
    else
      go test -json -run '^$' -fuzz "^$target\$" -fuzztime "$time" "./$(dirname "$file")" || status=1
    fi
  done < <(grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed 's/:func /:/')
  return $status
}

targets | .tools/testreport
