# The targets that users, contributors and CI call. "make" alone lists them.

GO ?= go

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the program as bin/relay
	$(GO) build -o bin/ ./cmd/relay

.PHONY: demo
demo: build bin-demo ## watch transitions arrive, on a PostgreSQL and a broker of its own; ends by itself
	bin/demo -relay bin/relay

.PHONY: demo-keep
demo-keep: build bin-demo ## the same, and it stays up until Ctrl-C
	bin/demo -relay bin/relay -keep

.PHONY: bin-demo
bin-demo:
	$(GO) build -o bin/ ./cmd/demo

# Servers are started once and shared by all packages; those that RELAY_TEST_POSTGRES,
# RELAY_TEST_KAFKA and RELAY_TEST_KAFKA_SECURE name are used instead.
.PHONY: test
test: tools ## all tests: unit, race, real PostgreSQL, real Kafka, real Aksara
	$(GO) run ./internal/testservers -postgres -kafka -secure -- \
		$(GO) test -race -shuffle=on -timeout 20m ./...

.PHONY: check
check: ## gofmt, go vet, staticcheck and the state of go.mod
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) mod tidy -diff

.PHONY: bench
bench: ## measure speed and memory, side by side with simpler ways; takes minutes
	$(GO) run ./bench

DURATION ?= 10m
SEED ?= 0

.PHONY: chaos
chaos: ## kill, cut and freeze everything for DURATION=10m with SEED=n, then look for what was lost
	$(GO) run ./chaos -duration $(DURATION) -seed $(SEED)

.PHONY: tools
tools:
	@missing=; \
	for tool in gcc javac mvn npm python3; do command -v $$tool >/dev/null || missing="$$missing $$tool"; done; \
	command -v pgbouncer >/dev/null || test -x /usr/sbin/pgbouncer || missing="$$missing pgbouncer"; \
	if [ -n "$$missing" ]; then \
		echo "The tests need$$missing, which can't be found." >&2; \
		echo "On Debian: apt-get install gcc default-jdk-headless maven npm python3-venv postgresql pgbouncer" >&2; \
		exit 1; \
	fi
