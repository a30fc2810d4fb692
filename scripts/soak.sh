#!/usr/bin/env bash
# The long tests: those with the build tag soak, and the fault tests with ROUNDS rounds, which they read from BAHI_ROUNDS.
set -euo pipefail
cd "$(dirname "$0")/.."

go build -o .tools/testreport ./scripts/testreport
BAHI_ROUNDS=${ROUNDS:-100} go test -json -race -tags soak -shuffle=on -count=1 -timeout 12h "${@:-./...}" | .tools/testreport
