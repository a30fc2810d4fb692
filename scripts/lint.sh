#!/usr/bin/env bash
# Runs format, vet, linters and the check of shell scripts. Each complaint fails the script.
set -euo pipefail
cd "$(dirname "$0")/.."
status=0

unformatted=$(git ls-files -z --cached --others --exclude-standard '*.go' | xargs -0 -r ls -d 2>/dev/null | xargs -r gofmt -l)
if [ -n "$unformatted" ]; then
  printf 'not formatted by gofmt:\n%s\n' "$unformatted"
  status=1
fi
go vet ./... || status=1
"$LINT" run ./... || status=1
"$LINT" run --build-tags soak ./internal/... || status=1
if command -v shellcheck >/dev/null; then
  shellcheck scripts/*.sh .ci/run || status=1
  shellcheck --shell=sh internal/pgtest/watch.sh || status=1
else
  echo "shell scripts not checked: shellcheck is missing (apt-get install shellcheck)"
fi
exit $status
