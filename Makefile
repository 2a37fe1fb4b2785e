# Targets of the project; `make` alone lists them.
GO ?= go
# Packages whose tests judge no timing: these run under the race detector too.
RACE = ./fixtures/... ./corpus ./harness/... ./mockserver/... ./reports/... ./suites/session/...

.DEFAULT_GOAL := help
.PHONY: help test unit specs check race pace fuzz corpus build clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

test: unit specs ## everything: unit tests, then the suite on the built-in mock

unit: ## unit tests
	$(GO) test $$($(GO) list ./... | grep -v /suites$$)

specs: ## the suite on the built-in mock, and its result validated
	$(GO) tool ginkgo ./suites
	$(GO) run ./cmd/plumbline validate out/latest/results.json

check: ## vet, and a check of the formatting
	$(GO) vet ./...
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not formatted: $$unformatted"; exit 1; fi

race: ## unit tests under the race detector
	$(GO) test -race $(RACE)

pace: ## a whole run on the paced mock, both clocks against the pace; two minutes, and an idle machine
	$(GO) test -count=1 -timeout=10m ./suites/selftest -run TestBothClocks -pace

FUZZTIME ?= 1m
fuzz: ## every fuzz target in turn, FUZZTIME each
	@for f in $$(grep -rl --include=*_test.go 'func Fuzz' .); do \
	  for t in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9]*\).*/\1/p' $$f); do \
	    echo "$$(dirname $$f) $$t"; $(GO) test -run='^$$' -fuzz="^$$t\$$" -fuzztime=$(FUZZTIME) $$(dirname $$f) || exit 1; done; done

corpus: ## build the corpus pack again; needs PLUMBLINE_TOKENIZER_DIR
	$(GO) run ./corpus/build

# The source commit, when nothing differs from it.
COMMIT = $(shell git diff --quiet HEAD 2>/dev/null && git rev-parse HEAD)

build: ## one binary of the suite and one of the command, in bin/
	mkdir -p bin
	$(GO) tool ginkgo build -ldflags '-X plumbline/suites/session.commit=$(COMMIT)' -o bin/plumbline-suite ./suites
	$(GO) build -o bin/plumbline ./cmd/plumbline

clean: ## remove what the targets made
	rm -rf bin out
