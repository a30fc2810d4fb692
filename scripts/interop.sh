#!/usr/bin/env bash
# The official Node clients of EventStoreDB and KurrentDB against the gateway, the feed of a catalog against its schema, the search of vectors against pgvector, and
# a TypeScript client that is generated from openapi.json: the versions of the package-lock.json files of scripts/interop and scripts/document, without their install scripts.
set -euo pipefail
cd "$(dirname "$0")/.."

npm ci --prefix scripts/interop --ignore-scripts --no-audit --no-fund --silent
npm ci --prefix scripts/document --ignore-scripts --no-audit --no-fund --silent
exec go test -count=1 -tags interop -run '^(TestNodeClients|TestFeedIsWhatItsSchemaSays|TestTypeScriptClientRunsTheSession|TestPgvectorFindsWhatTheScanFinds)$' -v ./internal/app ./http/marketplacehttp ./internal/readme ./commands/messagingcmd/knowledge
