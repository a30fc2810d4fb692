#!/usr/bin/env bash
# Checks the promises of docs/correctness.md by exhaustive models, a seeded simulation and histories under faults. Planted faults show that
# these checks can find faults. "short" takes ten minutes, "long" a night; MUTATIONS=all or MUTATIONS="07 12" runs only those mutations.
# SEED repeats a run.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 # as bin/bahi is built

if [ -n "${MUTATIONS:-}" ]; then
  read -ra names <<<"$MUTATIONS"
  exec go run ./internal/prove/mutations "${names[@]}"
fi

seed=${SEED:-$RANDOM}
if [ "${1:-short}" = long ]; then
  seeds=1000000 rounds=50 mutations=(all) systems=("1 postgres" "3 postgres" "1 journal" "3 journal")
else
  seeds=2000 rounds=1 mutations=(02 15 28 31) systems=("3 postgres" "1 journal") # faults of the store, the commands, the tables and the builds
fi
echo "seed $seed"
go test -count=1 -timeout 30m ./internal/prove/spec
go test -count=1 -timeout 24h ./internal/prove/sim -run Sim -seeds "$seeds" -from "$seed"
for system in "${systems[@]}"; do
  read -r nodes log <<<"$system"
  go run ./cmd/bahi-prove histories --rounds "$rounds" --length 60s --seed "$seed" --nodes "$nodes" --log "$log"
done
go run ./internal/prove/mutations "${mutations[@]}"
