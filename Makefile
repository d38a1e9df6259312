# SPDX-License-Identifier: Apache-2.0
# `make help` lists the targets. Everything that is missing on the machine is installed by test/setup.sh.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# The Go that is new enough, wherever setup.sh finds it, goes before an older one.
GO_DIR := $(shell test/setup.sh --go-dir 2>/dev/null)
export PATH := $(if $(GO_DIR),$(GO_DIR):)$(PATH)
# Go wants to know where its caches are.
export HOME ?= /root
export CGO_ENABLED ?= 0
export GOFLAGS ?= -trimpath -buildvcs=false

MODULE  := github.com/ovn-uplink/ovn-uplink
VERSION ?= $(shell cat VERSION)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X $(MODULE)/shared/agent.Version=$(VERSION) -X $(MODULE)/shared/agent.Commit=$(COMMIT)
ARCHES  ?= amd64 arm64
OUT     ?= bin
# The host agent idles beside tenants' workloads, and nearly all of its memory is its own code: without inlining there
# is a twelfth less of it, and nothing that it does is any slower to notice.
HOST_GCFLAGS := -gcflags=all=-l

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

.PHONY: setup
setup: ## Install what is missing on the machine (Debian packages); needs root
	@test/setup.sh

.PHONY: build
build: ## Build host-agent and dpu-agent for every architecture into bin/<os>-<arch>
	@for arch in $(ARCHES); do \
		echo "building host-agent and dpu-agent $(VERSION) for linux/$$arch"; \
		mkdir -p $(OUT)/linux-$$arch; \
		GOOS=linux GOARCH=$$arch go build -ldflags '$(LDFLAGS)' $(HOST_GCFLAGS) -o $(OUT)/linux-$$arch/ ./host-agent; \
		GOOS=linux GOARCH=$$arch go build -ldflags '$(LDFLAGS)' -o $(OUT)/linux-$$arch/ ./dpu-agent; \
	done

.PHONY: generate
generate: ## Write what is generated from the API types
	@test/generate.sh

.PHONY: generate-check
generate-check: ## Fail where what is generated is not what the API types say
	@test/generate.sh
	@git diff --exit-code -- shared/api deploy/host/chart/crds || { echo 'generated files are stale: run make generate and commit'; exit 1; }
	@test -z "$$(git status --porcelain -- shared/api deploy/host/chart/crds)" || { git status --short -- shared/api deploy/host/chart/crds; exit 1; }

.PHONY: lint
lint: ## Vet, lint and check formatting
	@test/lint.sh

.PHONY: test
test: setup ## Run every test, the ones with real components too; needs root
	@test/run.sh all

.PHONY: test-unit
test-unit: ## Run the tests that need neither root nor packages
	@test/run.sh unit

.PHONY: demo
demo: setup ## Run the product on a simulated cluster and show it; needs root
	@$(MAKE) --no-print-directory build ARCHES=$$(go env GOARCH)
	@go run ./test/demo up --bin bin/linux-$$(go env GOARCH)

.PHONY: demo-down
demo-down: ## End what demo left running
	@go run ./test/demo down

.PHONY: bench
bench: setup ## Measure, as a table and JSON; needs root
	@$(MAKE) --no-print-directory build ARCHES=$$(go env GOARCH)
	@go run ./test/bench

.PHONY: images
images: ## Build the container images into dist/images; ALLOW_DIRTY=1 with what is not committed
	@go run ./deploy/release images $(if $(ALLOW_DIRTY),--allow-dirty)

.PHONY: chart
chart: ## Write the Helm chart of the commit, with the tag of its images, into dist/chart
	@deploy/host/package.sh --commit $(COMMIT) --out dist/chart

.PHONY: debs
debs: ## Make the Debian packages in dist/debs, of what make images and make chart wrote
	@deploy/deb/build.sh --version '$(VERSION)' --commit '$(COMMIT)'

.PHONY: apt
apt: ## Make a signed apt repository of them in dist/apt; APT_KEY=key, an id or a file
	@deploy/deb/apt.sh --key '$(APT_KEY)'

.PHONY: push
push: ## Push the images to a registry; REGISTRY=host[:port], INSECURE=1 without TLS
	@go run ./deploy/release push --registry "$(REGISTRY)" $(if $(INSECURE),--insecure)

.PHONY: lock
lock: ## Build the images and write the locks of the version into deploy/nvke/lock
	@go run ./deploy/release lock

.PHONY: verify-lock
verify-lock: ## Build the images somewhere else and compare them with the locks
	@go run ./deploy/release verify-lock

.PHONY: release
release: ## All of images, chart, debs and apt, of the locked commit, and release-check; APT_KEY=key
	@commit=$$(go run ./deploy/release source) && $(MAKE) --no-print-directory images chart debs apt release-check COMMIT=$$commit

.PHONY: release-check
release-check: ## Check that locks and what is in dist are of one source
	@go run ./deploy/release check

.PHONY: pins
pins: ## Pin the newest versions of the Debian packages that the images have files of
	@go run ./deploy/release pins

.PHONY: clean
clean: ## Remove what was built
	@rm -rf bin dist out
