#!/usr/bin/env bash
# Tests with other systems: the gateway with the official Node clients of EventStoreDB and KurrentDB, a catalog's feed with its schema, the
# search of vectors with pgvector, and openapi.json with a generated TypeScript client. npm installs the versions of the package-lock.json
# files of scripts/interop and scripts/document, without their install scripts.
set -euo pipefail
cd "$(dirname "$0")/.."

npm ci --prefix scripts/interop --ignore-scripts --no-audit --no-fund --silent
npm ci --prefix scripts/document --ignore-scripts --no-audit --no-fund --silent
exec go test -count=1 -tags interop -run '^(TestNodeClients|TestFeedIsWhatItsSchemaSays|TestTypeScriptClientRunsTheSession|TestPgvectorFindsWhatTheScanFinds)$' -v ./internal/app ./http/marketplacehttp ./internal/readme ./commands/messagingcmd/knowledge
