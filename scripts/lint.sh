#!/usr/bin/env bash
# Runs format, vet, linters, the check of shell scripts and that of openapi.json. Each finding fails the script.
set -euo pipefail
cd "$(dirname "$0")/.."
status=0

unformatted=$(git ls-files -z --cached --others --exclude-standard '*.go' | xargs -0 -r ls -d 2>/dev/null | xargs -r gofmt -l)
if [ -n "$unformatted" ]; then
  printf 'not formatted by gofmt:\n%s\n' "$unformatted"
  status=1
fi
scripts/size.sh || status=1
go vet ./... || status=1
"$LINT" run ./... || status=1
"$LINT" run --build-tags soak ./internal/... || status=1
if command -v shellcheck >/dev/null; then
  shellcheck scripts/*.sh scripts/package/*.sh .ci/run || status=1
  shellcheck --shell=sh internal/test/pgtest/watch.sh || status=1
else
  echo "shell scripts not checked: shellcheck is missing (apt-get install shellcheck)"
fi
if command -v npm >/dev/null; then
  npm ci --prefix scripts/document --ignore-scripts --no-audit --no-fund --silent
  scripts/document/node_modules/.bin/redocly lint --config scripts/document/lint.yaml http/testdata/openapi.json || status=1
else
  echo "openapi.json not checked: npm is missing (apt-get install npm)"
fi
exit $status
