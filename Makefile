# make help lists the targets. A line of help is the comment after a target's name.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# Go's default folder, if it is not on the PATH.
export PATH := $(PATH):/usr/local/go/bin

# The same flags everywhere, so that make run, make test and make lint compile each package once. They omit debug information.
export GOFLAGS := $(GOFLAGS) -trimpath -gcflags=all=-dwarf=0

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
BIN := bin/bahi

# golangci-lint is built from source at this version, once, into .tools.
LINT_VERSION := v2.15.0
# Tools of make package, built once into .tools.
NFPM_VERSION := v2.43.1
SBOM_VERSION := v1.10.0
LINT := .tools/golangci-lint-$(LINT_VERSION)

# How long each fuzz target runs in `make fuzz`, and how many rounds each fault test runs in `make soak`.
FUZZTIME ?= 30s
ROUNDS ?= 100

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build ## start Bahi with nothing configured (settings: bin/bahi serve --help)
	@scripts/run.sh $(BIN)

.PHONY: build
build: need ## build the static binary bin/bahi
	@scripts/verifier.sh # for the page /verify, which is built in
	CGO_ENABLED=0 go build -ldflags '-s -w -X bahi/internal/app.Version=$(VERSION)' -o $(BIN) ./cmd/bahi

.PHONY: verifier
verifier: need ## build the static binary bin/bahi-verify, for auditors
	CGO_ENABLED=0 go build -ldflags '-s -w -X main.version=$(VERSION)' -o bin/bahi-verify ./cmd/bahi-verify

.PHONY: package
package: need ## build the Debian package, the container's folder, SBOMs and checksums in dist
	@NFPM_VERSION=$(NFPM_VERSION) SBOM_VERSION=$(SBOM_VERSION) VERSION=$(VERSION) scripts/package.sh

.PHONY: test
test: need-cc ## run all tests, race detector included
	@scripts/test.sh

.PHONY: pictures
pictures: need ## take pictures of all pages, on one sheet: dist/pictures/index.html
	@scripts/pictures.sh

.PHONY: vet
vet: need ## run go vet
	go vet ./...

.PHONY: fuzz
fuzz: need ## run each fuzz target for a while (FUZZTIME=30s)
	@FUZZTIME=$(FUZZTIME) scripts/fuzz.sh

.PHONY: soak
soak: need-cc ## run the long fault tests (ROUNDS=100), and those that make test omits
	@ROUNDS=$(ROUNDS) scripts/soak.sh

.PHONY: prove
prove: need ## check the promises of docs/correctness.md for ten minutes; MUTATIONS=all: only plant faults
	@MUTATIONS='$(MUTATIONS)' scripts/prove.sh short

.PHONY: prove-long
prove-long: need ## the same for a whole night
	@scripts/prove.sh long

.PHONY: test-interop
test-interop: need-cc need-node ## test with Node clients: EventStoreDB's, pgvector, and one generated from openapi.json
	@scripts/interop.sh

.PHONY: test-eventstore
test-eventstore: need-cc ## test with journals in an EventStoreDB: EVENTSTORE_TEST_URL=esdb://...
	@test -n "$(EVENTSTORE_TEST_URL)" || { echo "make test-eventstore EVENTSTORE_TEST_URL=esdb://user:password@host:2113" >&2; exit 2; }
	EVENTSTORE_TEST_URL='$(EVENTSTORE_TEST_URL)' go test -v -tags eventstore -count=1 -timeout 60m -p 1 -run 'OnTheServer$$' ./eventstore/postgres ./http/ledgerhttp ./internal/app

.PHONY: bench
bench: build ## compare with the machine's limits; prints a table and writes bench.json
	CGO_ENABLED=0 go build -ldflags '-s -w -X bahi/internal/app.Version=$(VERSION)' -o bin/bahi-bench ./cmd/bahi-bench
	bin/bahi-bench --bahi $(BIN) --json bench.json

.PHONY: lint
lint: need $(LINT) ## check format, vet, linters, shell scripts and openapi.json
	@LINT=$(LINT) scripts/lint.sh

.PHONY: generate
generate: need ## write the generated files
	go generate ./...

.PHONY: verify
verify: need ## check that generated files, go.mod and go.sum are up to date
	@scripts/verify.sh

.PHONY: need need-cc need-node
need:
	@scripts/need.sh git go
need-cc:
	@scripts/need.sh git go cc
need-node:
	@scripts/need.sh node

$(LINT):
	@scripts/need.sh go
	@echo "building golangci-lint $(LINT_VERSION) into .tools (once, about a minute)"
	@mkdir -p .tools
	@GOBIN=$(CURDIR)/.tools go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	@mv .tools/golangci-lint $(LINT)
