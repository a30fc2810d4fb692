#!/usr/bin/env bash
# Each fuzz target for FUZZTIME.
set -euo pipefail
cd "$(dirname "$0")/.."

go build -o .tools/testreport ./scripts/testreport

targets() {
  local status=0 file target
  while IFS=: read -r file target; do
    go test -json -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-30s}" "./$(dirname "$file")" || status=1
  done < <(grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed 's/:func /:/')
  return $status
}

targets | .tools/testreport
