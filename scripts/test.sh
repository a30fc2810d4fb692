#!/usr/bin/env bash
# All tests, with the seeds of the fuzz targets. Where goroutines share memory they run under the race detector, which makes them
# a few times slower; the rest does without. So does the program, which is built once here and which tests run as processes:
# `make soak` brings all under the detector. go vet would look at all of it
# for each of the two: `make vet` does so once.
set -euo pipefail
cd "$(dirname "$0")/.."

go build -o .tools/testreport ./scripts/testreport
go build -ldflags '-s -w -X bahi/internal/app.Version=v0-test' -o .tools/bahi-test.new ./cmd/bahi
cmp -s .tools/bahi-test.new .tools/bahi-test || cp .tools/bahi-test.new .tools/bahi-test # a new time would spoil Go's cache of results
export BAHI_TEST_PROGRAM=$PWD/.tools/bahi-test

# Temporary files, among them the tests' cluster, are in memory where there is room: ext4 does not use the inode of a deleted file again
# for seconds and looks at each of them whenever a file is made, and databases of 700 files come and go.
if [[ $(df --output=avail -k /dev/shm 2>/dev/null | tail -1) -gt $((4 << 20)) ]]; then
  export GOTMPDIR=${GOTMPDIR:-${TMPDIR:-/tmp}} TMPDIR=/dev/shm/bahi-test-$UID # binaries are not run from there
  mkdir -p -m 711 "$TMPDIR"
fi

race='^bahi/(eventstore(/(postgres|esdb|gateway|audit|vault))?|commands(/unique)?|projections(/audit)?|reactors(/feed)?|internal/pgcluster|http/api(/window)?)$'
mapfile -t all < <(go list ./...)
parallel=2 # tests of a package at once, of two packages: more keep two processors no busier, and make each test late
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
    go test -json -vet=off -race -parallel "$parallel" -shuffle=on -timeout 25m "${concurrent[@]}" || status=1
  fi
  if [ ${#rest[@]} -gt 0 ]; then
    go test -json -vet=off -parallel "$parallel" -shuffle=on -timeout 25m "${rest[@]}" || status=1
  fi
  return $status
}

tests | .tools/testreport
