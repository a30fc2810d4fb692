#!/usr/bin/env bash
# Builds cmd/bahi-verify for browsers, for the page /verify: Go embeds the files in http/pages/verify.
# Usage: verifier.sh [folder]
set -euo pipefail
cd "$(dirname "$0")/.."

into=${1:-http/pages/verify}
program=$(mktemp)
trap 'rm -f "$program"' EXIT

GOOS=js GOARCH=wasm CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$program" ./cmd/bahi-verify
gzip -9 -n <"$program" >"$into/.bahi-verify.wasm.gz"
mv "$into/.bahi-verify.wasm.gz" "$into/bahi-verify.wasm.gz"
install -m 644 "$(go env GOROOT)/lib/wasm/wasm_exec.js" "$into/wasm_exec.js"
