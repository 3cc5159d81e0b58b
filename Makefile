# On a fresh machine two targets do everything: run and test.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help run test fuzz build bench generate lint postgres browser audits pgbouncer web

# The tools have a module of their own, so that what they depend on is not what the product depends
# on. Without cgo sqlc builds in half the time.
TOOL := CGO_ENABLED=0 go tool -modfile=internal/tools/tools.mod

# The race detector needs a C compiler; CI has one, and insists.
RACE := $(shell command -v cc >/dev/null 2>&1 && echo -race)
ifdef CI
RACE := -race
endif

help: ## Say what there is.
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build postgres ## Build, bring PostgreSQL up, make the demo tenant, serve, and say where.
	bin/countersign serve

test: postgres browser audits pgbouncer ## Run every test.
	CGO_ENABLED=$(if $(RACE),1,0) go test $(RACE) -timeout 15m ./...

# How long each target is fuzzed. What is found is kept under testdata/fuzz, where go test tries it again.
FUZZTIME := 2m

fuzz: ## Fuzz each target that there is for FUZZTIME.
	@internal/tools/fuzz.sh $(FUZZTIME)

build: ## Build bin/countersign.
	CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o bin/countersign .

bench: build postgres ## Measure the server against pgbench, side by side.
	CGO_ENABLED=0 go run ./internal/bench $(BENCH)
	CGO_ENABLED=0 COUNTERSIGN_PAGES_ROWS=1000000 go test -run '^$$' -bench 'Limiter|Pages' -timeout 1h ./graph
	CGO_ENABLED=0 COUNTERSIGN_AUDIT_NUMBERS=10000000 go test -run '^$$' -bench SeriesAudit -benchtime 1x -timeout 2h ./internal/invoicing

generate: ## Make again what is generated from the queries and the schema.
	$(TOOL) sqlc generate
	$(TOOL) gqlgen generate
	CGO_ENABLED=0 go run . schema > docs/schema.graphql

web: ## Make the playground's bundle again.
	web/build.sh

lint: ## Check form, the queries' rules and which way imports go.
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo "run gofmt"; exit 1; }
	go mod tidy -diff
	go vet ./...
	$(TOOL) staticcheck ./...
	$(TOOL) depguard ./...
	$(TOOL) sqlc vet

postgres: # Bring PostgreSQL's server binaries where there are none.
	@internal/localpg/install.sh

browser: # Bring what the playground's test needs.
	@web/browser/install.sh

audits: # Bring what the audits of GraphQL over HTTP need.
	@web/audits/install.sh

pgbouncer: # Bring the pooler that a test puts before the database.
	@internal/testdb/bouncer/install.sh
