# SPDX-License-Identifier: Apache-2.0

GOLANGCI_LINT_VERSION := v2.15.0
BIN := $(CURDIR)/.bin
GOLANGCI_LINT := $(BIN)/golangci-lint-$(GOLANGCI_LINT_VERSION)

# The variables of a running Open vSwitch must not reach the private ones that
# the tests start.
unexport OVS_RUNDIR OVS_LOGDIR OVS_DBDIR OVS_SYSCONFDIR

.PHONY: test
test: deps vet lint ## everything that must pass before a change lands
	go test -race -shuffle=on -timeout=10m ./...

.PHONY: deps
deps: ## install Open vSwitch if it is missing (Debian, Ubuntu)
	@command -v ovs-vswitchd >/dev/null || test -x /usr/sbin/ovs-vswitchd || { \
		echo "installing openvswitch-switch"; \
		sudo=$$([ "$$(id -u)" = 0 ] || echo sudo); \
		$$sudo apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends openvswitch-switch; }

.PHONY: vet
vet: ## go vet, here and for the other systems that users build for
	go vet ./...
	GOOS=windows go build ./...
	GOOS=darwin go vet ./...

.PHONY: lint
lint: $(GOLANGCI_LINT) ## golangci-lint with .golangci.yml
	$(GOLANGCI_LINT) run ./...

$(GOLANGCI_LINT):
	GOBIN=$(BIN) GOWORK=off go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	mv $(BIN)/golangci-lint $@

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## format the code
	$(GOLANGCI_LINT) fmt

.PHONY: e2e-deps
e2e-deps: deps ## install ip and tc, which the emulated machines need, if they are missing (Debian, Ubuntu)
	@test -x /sbin/tc || test -x /usr/sbin/tc || { \
		echo "installing iproute2"; \
		sudo=$$([ "$$(id -u)" = 0 ] || echo sudo); \
		$$sudo apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends iproute2; }

.PHONY: e2e
e2e: e2e-deps ## field reports replayed on the kernel's datapath, in emulated machines
	go run ./internal/vmtest/e2e $(E2EFLAGS)

.PHONY: e2e-short
e2e-short: e2e-deps ## the same with fewer rounds, connections and ports: part of CI
	go run ./internal/vmtest/e2e -short $(E2EFLAGS)

.PHONY: long
long: deps ## the tests on random input for long
	FLOWGATE_LONG=1 go test -timeout=60m -run='Random|Model' ./bundle ./portstatus

.PHONY: matrix
matrix: deps ## the conformance suite on Open vSwitch 2.15, 3.1 and 3.5
	bash .ci/matrix

.PHONY: bench
bench: deps ## benchmarks; compare ratios within one run only
	go test -run='^$$' -bench=. -benchmem -timeout=60m ./...
	cd internal/bench/ofnet && GOWORK=off go test -run='^$$' -bench=. -benchmem -timeout=60m .

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME
	@for pkg in $$(go list ./...); do \
		for target in $$(go test -list='^Fuzz' $$pkg | grep '^Fuzz'); do \
			echo "$$pkg $$target"; go test -run='^$$' -fuzz="^$$target$$" -fuzztime=$(FUZZTIME) $$pkg || exit 1; \
		done; \
	done
FUZZTIME ?= 1m

.PHONY: tidy
tidy: ## go mod tidy that knows go.work's replace
	sh .ci/tidy

.PHONY: help
help:
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'
