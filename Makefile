# The targets that users, contributors and CI call. "make" alone lists them.

GO ?= go
DELIVERY ?= at-least-once

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the program as bin/relay
	$(GO) build -o bin/ ./cmd/relay

.PHONY: demo
demo: build bin-demo ## watch transitions arrive, on a PostgreSQL and a broker of its own; DELIVERY=exactly-once for that mode
	bin/demo -relay bin/relay -delivery $(DELIVERY)

.PHONY: demo-keep
demo-keep: build bin-demo ## the same, and it stays up until Ctrl-C
	bin/demo -relay bin/relay -delivery $(DELIVERY) -keep

.PHONY: bin-demo
bin-demo:
	$(GO) build -o bin/ ./cmd/demo

# Servers are started once and shared by all packages; those that RELAY_TEST_POSTGRES,
# RELAY_TEST_KAFKA and RELAY_TEST_KAFKA_SECURE name are used instead.
.PHONY: test
test: tools ## all tests: unit, race, real PostgreSQL, real Kafka, real Aksara, a real browser
	$(GO) run ./internal/testservers -postgres -kafka -secure -- \
		$(GO) test -race -shuffle=on -timeout 30m ./...

.PHONY: check
check: ## gofmt, go vet, staticcheck, the state of go.mod, and the manifests
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) mod tidy -diff
	cd deploy && $(GO) vet ./... && $$($(GO) -C .. tool -n staticcheck) ./... && $(GO) mod tidy -diff && $(GO) test .

.PHONY: bench
bench: ## measure speed and memory, side by side with simpler ways; takes minutes
	$(GO) run ./bench

DURATION ?= 10m
SEED ?= 0
.PHONY: chaos
chaos: ## kill, cut and freeze everything for DURATION=10m with SEED=n, then look for what was lost
	$(GO) run ./chaos -duration $(DURATION) -seed $(SEED) -delivery $(DELIVERY)

VERSION ?= devel
REVISION = $(shell git rev-parse HEAD 2>/dev/null || echo unknown)

.PHONY: image
image: ## build the image relay:VERSION for this machine, with Docker
	DOCKER_BUILDKIT=1 docker build --tag relay:$(VERSION) --build-arg VERSION=$(VERSION) --build-arg REVISION=$(REVISION) .

.PHONY: image-test
image-test: ## build and run the image and compose.yaml, on Docker or an engine of its own; takes minutes
	cd deploy && $(GO) test -count=1 -timeout 30m -v ./imagetest

.PHONY: alerts-test
alerts-test: ## the alerts and the dashboard, on a running Prometheus; needs Debian's prometheus
	cd deploy && $(GO) test -count=1 -v ./alertstest

.PHONY: release
release: ## build archives, checksums and SBOMs of VERSION=v1.2.3 into dist/
	deploy/release.sh "$(VERSION)"

.PHONY: tools
tools:
	@missing=; \
	for tool in curl gcc javac mvn npm python3; do command -v $$tool >/dev/null || missing="$$missing $$tool"; done; \
	command -v chromium >/dev/null || command -v google-chrome >/dev/null || missing="$$missing chromium"; \
	command -v pgbouncer >/dev/null || test -x /usr/sbin/pgbouncer || missing="$$missing pgbouncer"; \
	if [ -n "$$missing" ]; then \
		echo "The tests need$$missing, which can't be found." >&2; \
		echo "On Debian: apt-get install curl gcc default-jdk-headless maven npm python3-venv postgresql pgbouncer chromium" >&2; \
		exit 1; \
	fi
