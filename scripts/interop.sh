#!/usr/bin/env bash
# The official Node clients of EventStoreDB and KurrentDB against the gateway, and the feed of a catalog against its schema: the versions of scripts/interop/package-lock.json,
# without their install scripts.
set -euo pipefail
cd "$(dirname "$0")/.."

npm ci --prefix scripts/interop --ignore-scripts --no-audit --no-fund --silent
exec go test -count=1 -tags interop -run '^(TestNodeClients|TestFeedIsWhatItsSchemaSays)$' -v ./internal/app ./http/marketplace
