# Targets of the project; `make` alone lists them.
GO ?= go
# Packages whose tests judge no timing: these run under the race detector too.
RACE = ./fixtures/... ./corpus ./harness/... ./mockserver/... ./reports/... ./suites/session/...

.DEFAULT_GOAL := help
.PHONY: help test unit specs check race pace load fuzz corpus build image clean

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

load: ## a load of 100,000 requests in bounded memory, and figures of up to 1000 streams against the paced mock; two minutes, and an idle machine
	$(GO) test -count=1 -timeout=20m ./suites/selftest -run 'TestTheLongestLoad|TestFiguresUnderLoad' -load -v

FUZZTIME ?= 1m
fuzz: ## every fuzz target in turn, FUZZTIME each
	@for f in $$(grep -rl --include=*_test.go 'func Fuzz' .); do \
	  for t in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9]*\).*/\1/p' $$f); do \
	    echo "$$(dirname $$f) $$t"; $(GO) test -run='^$$' -fuzz="^$$t\$$" -fuzztime=$(FUZZTIME) $$(dirname $$f) || exit 1; done; done

corpus: ## build the corpus pack again; needs PLUMBLINE_TOKENIZER_DIR
	$(GO) run ./corpus/build

# The source commit, when nothing differs from it.
COMMIT = $(shell git diff --quiet HEAD 2>/dev/null && git rev-parse HEAD)
NAMED = -X plumbline/suites/session.commit=$(COMMIT)

build: ## one binary of the suite and one of the command, in bin/
	mkdir -p bin
	$(GO) tool ginkgo build -ldflags '$(NAMED)' -o bin/plumbline-suite ./suites
	$(GO) build -ldflags '$(NAMED)' -o bin/plumbline ./cmd/plumbline

# What the images are labelled with.
VERSION = $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
DOCKER ?= docker
IMAGE_TAG ?= dev
# The certificate authorities of this machine, for the suite's image: the first file that is there.
CA_BUNDLE ?= $(firstword $(wildcard /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem))
LABELS = --build-arg VERSION='$(VERSION)' --build-arg COMMIT='$(COMMIT)'
STATIC = -trimpath -ldflags '-s -w $(NAMED)'

image: ## the images plumbline-mock:dev and plumbline-suite:dev, from binaries built here; no registry is asked
	@test -n "$(CA_BUNDLE)" || { echo "no bundle of certificate authorities found here: name one with CA_BUNDLE=FILE"; exit 1; }
	rm -rf bin/image
	mkdir -p bin/image/root/run/plumbline/out bin/image/root/tmp bin/image/root/etc/ssl/certs
	chmod 1777 bin/image/root/tmp
	cp -L $(CA_BUNDLE) bin/image/root/etc/ssl/certs/ca-certificates.crt
	CGO_ENABLED=0 GOOS=linux $(GO) build $(STATIC) -o bin/image/plumbline ./cmd/plumbline
	CGO_ENABLED=0 GOOS=linux $(GO) build $(STATIC) -o bin/image/ginkgo github.com/onsi/ginkgo/v2/ginkgo
	CGO_ENABLED=0 GOOS=linux $(GO) test -c $(STATIC) -o bin/image/plumbline-suite.test ./suites
	$(DOCKER) build --quiet $(LABELS) -t plumbline-mock:$(IMAGE_TAG) -f mockserver/Dockerfile .
	$(DOCKER) build --quiet $(LABELS) -t plumbline-suite:$(IMAGE_TAG) -f suites/Dockerfile .

clean: ## remove what the targets made
	rm -rf bin out
