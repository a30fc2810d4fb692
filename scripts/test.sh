#!/usr/bin/env bash
# Runs all tests, with the seeds of the fuzz targets. Packages whose goroutines share memory run under the race detector, which makes them a
# few times slower. Two packages with a vendor's large library run without it, because the library would be compiled twice. Tests that
# start Bahi as a process share one program, which has no detector. `make soak` uses the detector for all. go vet does not run here, because
# it would run twice, with and without the detector: see `make vet`.
set -euo pipefail
cd "$(dirname "$0")/.."

# The compiler ends before its garbage fills the memory; collecting it would take an eighth of the time.
export GOFLAGS="${GOFLAGS:-} '-toolexec=env GOGC=off GOMEMLIMIT=2GiB'"

export CGO_ENABLED=0 # as bin/bahi is built
go build -o .tools/testreport ./scripts/testreport
go build -ldflags '-s -w -X bahi/internal/app.Version=v0-test' -o .tools/bahi-test.new ./cmd/bahi
cmp -s .tools/bahi-test.new .tools/bahi-test || cp .tools/bahi-test.new .tools/bahi-test # a new time would spoil Go's cache of results
export BAHI_TEST_PROGRAM=$PWD/.tools/bahi-test

race='^bahi/(eventstore(/(postgres|esdbserver|signal|tlog|vault))?|commands(/unique)?|projections(/auditproj)?|reactors|internal/pgcluster|http/api(/ratelimit)?)$'
mapfile -t all < <(go list ./...)
packages=2 # at once: with more, the clocks of servers and clients run out on a machine with two processors
parallel=2 # tests of a package at once: more keep two processors no busier, and make each test late
concurrent=() rest=()
for package in "${all[@]}"; do
  if [[ $package =~ $race ]]; then
    concurrent=("$package" "${concurrent[@]}") # backwards: projections, which mostly waits, would run alone for a minute
  else
    rest+=("$package")
  fi
done

# -s -w omits debug information, which takes a third of the linking time of sixty large test programs.
tests() {
  local status=0
  if [ ${#concurrent[@]} -gt 0 ]; then
    CGO_ENABLED=1 go test -json -vet=off -p "$packages" -ldflags='-s -w' -race -parallel "$parallel" -shuffle=on -timeout 30m "${concurrent[@]}" || status=1
  fi
  if [ ${#rest[@]} -gt 0 ]; then
    go test -json -vet=off -p "$packages" -ldflags='-s -w' -parallel "$parallel" -shuffle=on -timeout 30m "${rest[@]}" || status=1
  fi
  return $status
}

tests | .tools/testreport
