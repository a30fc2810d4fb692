#!/usr/bin/env bash
# All tests, then each fuzz target for FUZZTIME. What is concurrent runs under the race detector, which makes it a few times
# slower; the rest does without. So does the program, whose tests mostly run it as processes: `make soak` brings it under
# the detector as well.
set -euo pipefail
cd "$(dirname "$0")/.."

go build -o .tools/testreport ./scripts/testreport

race='^bahi/(eventstore|commands|projections|reactors|internal/pgcluster|internal/pgtest|http/api)(/|$)'
mapfile -t all < <(go list ./...)
concurrent=() rest=()
for package in "${all[@]}"; do
  if [[ $package =~ $race ]]; then
    concurrent+=("$package")
  else
    rest+=("$package")
  fi
done

tests() {
  local status=0
  if [ ${#concurrent[@]} -gt 0 ]; then
    go test -json -race -shuffle=on -timeout 8m "${concurrent[@]}" || status=1
  fi
  if [ ${#rest[@]} -gt 0 ]; then
    go test -json -shuffle=on -timeout 8m "${rest[@]}" || status=1
  fi
  local file target
  while IFS=: read -r file target; do
    go test -json -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-5s}" "./$(dirname "$file")" || status=1
  done < <(grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed 's/:func /:/')
  return $status
}

tests | .tools/testreport
