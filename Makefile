# One page on purpose. Everything works in a clean clone with Go alone; the tools
# are pinned in shared/tools, built from source once and cached (see
# shared/testkit/binaries). Every module is used on its own, without go.work.

MODULES   = apis shared operators deploy e2e
# The test double of TiKV stands apart: it needs TiDB's requirements, and a cold build takes minutes.
APART     = e2e/tikv
# The packages of e2e whose tests take minutes, the longest first.
LASTING   = ./rig ./installation ./bench ./rig/clusterwide ./campaign
# The packages of e2e that read files of other modules, by which Go does not tell that a result is outdated.
READERS   = mutants|architecture|remedy
# Programs of tests are linked without symbols, which takes a third less time. What vet finds,
# "make verify" tells: here it would check all dependencies once more.
TEST      = go test -vet=off -ldflags=-s -timeout 30m
OPERATORS = $(notdir $(patsubst %/controller,%,$(wildcard operators/*/controller)))
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS  ?= -s -w -X github.com/tidb-groups/tidb-groups/shared/operator.version=$(VERSION)
PROVIDER ?= local
IMAGES   ?= real
# The package whose rights every operator of groups has beside its own.
LOOP = github.com/tidb-groups/tidb-groups/shared/reconciler
# What "generate" writes.
GENERATED      = apis/groups/*/zz_generated.*.go deploy/crds deploy/bases/*/role.yaml docs/conditions.md docs/reference/api.md docs/parity.md \
	docs/performance.md docs/pictures/performance-*.svg

SHELL = /bin/bash -o pipefail
TOOL  = go -C shared run ./testkit/binaries/cmd/toolbin
export GOWORK = off
export CGO_ENABLED = 0
# The flags of every build, so that checks, tests and images share one cache: with another tag all
# that uses gRPC is compiled once more, which takes three minutes. Why this tag: e2e/images/binary.go.
# $(APART) is built without, as TiDB itself is, with which it shares what it requires.
TAG            = grpcnotrace
E2E_TAGS       = e2e,$(TAG)
export GOFLAGS = -trimpath -buildvcs=false -tags=$(TAG)
# With this the linter takes a third less time, and 2 GiB more memory.
COLLECT_LESS   = GOGC=400 GOMEMLIMIT=6GiB
export PROVIDER IMAGES FULL
.DEFAULT_GOAL = help
.PHONY: help build generate verify lint vulncheck test test-e2e test-beside check conformance campaign mutants rig bench bench-compare e2e demo demo-down images release docs tidy

# $(call each,what,commands,modules) runs the commands inside every module that has packages, of all if none are named.
each = @set -e; for module in $(or $(3),$(MODULES)); do ( cd $$module; [ -n "$$(go list ./... 2>/dev/null)" ] || exit 0; echo "$(1) $$module"; $(2) ); done
# A checksum of every generated file, to see whether generating changes any.
sums = find $(wildcard $(GENERATED)) -type f | sort | xargs sha256sum

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## Build every module; programs go into bin/
	$(call each,build,go build ./... && mains="$$(go list -f '{{if eq .Name "main"}}{{.ImportPath}}{{end}}' ./...)" && \
		if [ -n "$$mains" ]; then go build -ldflags "$(LDFLAGS)" -o $(CURDIR)/bin/ $$mains; fi)

generate: ## Write deepcopy code, CRDs, RBAC and generated documents
	@set -e; gen="$$($(TOOL) controller-gen)"; mkdir -p deploy/crds; cd apis; \
		"$$gen" object paths=./...; "$$gen" crd paths=./... output:crd:artifacts:config=../deploy/crds
	@go -C deploy run ./cmd/lists
	@set -e; gen="$$($(TOOL) controller-gen)"; cd operators; for name in $(OPERATORS); do mkdir -p ../deploy/bases/$$name; \
		grep -q $(LOOP) $$name/controller/controller.go && loop=paths=$(LOOP) || loop=; \
		"$$gen" rbac:roleName=$$name-operator paths=./$$name/controller $$loop output:rbac:artifacts:config=../deploy/bases/$$name; done
	go -C deploy run ./cmd/generate
	go -C e2e run ./cmd/parity
	go -C e2e run ./cmd/bench -draw

verify: ## Fail when generated files, go.mod files or formatting are not as they should be
	$(call each,tidy?,go mod tidy -diff)
	go -C $(APART) mod tidy -diff
	@set -e; before="$$($(sums))"; $(MAKE) --no-print-directory generate; after="$$($(sums))"; \
		diff <(echo "$$before") <(echo "$$after") || { echo "generated files were out of date: commit what 'make generate' wrote"; exit 1; }
	@bad="$$(gofmt -l $(MODULES))"; [ -z "$$bad" ] || { echo "not formatted, run gofmt -w:"; echo "$$bad"; exit 1; }
	$(call each,vet,go vet -tags $(E2E_TAGS) ./...)
	go -C $(APART) vet -tags= ./...

lint: ## Run golangci-lint, as configured in .golangci.yaml, the list of retired words, and vulncheck if its database answers
	@$(TOOL) golangci-lint >/dev/null
	$(call each,lint,$(COLLECT_LESS) "$$(go -C ../shared run ./testkit/binaries/cmd/toolbin golangci-lint)" run ./...)
	@linter="$$($(TOOL) golangci-lint)"; echo "lint $(APART)"; cd $(APART); $(COLLECT_LESS) "$$linter" run --build-tags= ./...
	@echo "lint words"; go -C e2e test -count=1 -run RetiredWords ./architecture
	@go -C shared run ./testkit/vulncheck/cmd/vulncheck -optional $(MODULES) $(APART)

vulncheck: ## Look for known vulnerabilities that code can reach; fails if the database does not answer
	@go -C shared run ./testkit/vulncheck/cmd/vulncheck $(MODULES) $(APART)

test: ## Run every test that needs neither root nor containers
	@$(TOOL) etcd kube-apiserver kube-controller-manager kubectl >/dev/null
	@echo "testing $(MODULES), in this order; e2e begins with $(LASTING), and tells nothing for some ten minutes on two cores"
	@# PAGES tells the tests of deploy that a page has changed: Go looks for changes only in their own module.
	$(call each,test,PAGES="$$(cat ../*.md ../docs/*.md ../docs/*/*.md | cksum)" $(TEST) -p 3 ./...,$(filter-out e2e,$(MODULES)))
	@$(MAKE) --no-print-directory -j2 test-e2e test-beside

test-e2e:
	@# Packages that take minutes come first, and three run at a time: many of them wait more than they compute.
	@echo "test e2e"; cd e2e; go list ./... | grep -Ev '/e2e/($(READERS))$$' | xargs $(TEST) -p 3 $(LASTING)

test-beside:
	@echo "test $(APART)"; go -C $(APART) test -vet=off -tags= -ldflags="-s -checklinkname=0" -timeout 15m ./...
	cd e2e; $(TEST) -count=1 $(patsubst %,./%,$(subst |, ,$(READERS)))

check: ## Test a package and what depends on it, without what needs a control plane; PKG=./shared/store
	@go -C shared run ./testkit/affected/cmd/check -apart $(APART) "$(PKG)" $(MODULES)

conformance: ## Hold the stand-ins for PD and a real PD, which is built once, to recorded answers
	CONFORMANCE=real go -C e2e test -count=1 -timeout 30m ./conformance

rig: ## Run every scenario of the simulated world; RIG='flags and scenarios', see RIG=-help
	@$(TOOL) etcd kube-apiserver kube-controller-manager kubectl >/dev/null
	@go -C e2e run ./cmd/rig $(RIG)

bench: ## Measure what the operators write, ask and use; BENCH='flags', see BENCH=-help
	@$(TOOL) etcd kube-apiserver kube-controller-manager kubectl >/dev/null
	@go -C e2e run ./cmd/bench $(BENCH)

bench-compare: ## Compare the counts of BASE=<commit> with those of this tree; fails for 10 % more writes or reads
	@[ -n "$(BASE)" ] || { echo "name the commit to compare with: make bench-compare BASE=main"; exit 2; }
	@$(TOOL) etcd kube-apiserver kube-controller-manager kubectl >/dev/null
	@set -e; top="$$(mktemp -d)"; trap 'git worktree remove --force "$$top/base"; rm -rf "$$top"' EXIT; \
		git worktree add --quiet --detach "$$top/base" $(BASE); rm -f "$$top/base/docs/performance.json"; \
		go -C "$$top/base/e2e" run ./cmd/bench -clusters 1,8 -record "the base"; \
		go -C e2e run ./cmd/bench -clusters 1,8 -base "$$top/base/docs/performance.json"

campaign: ## Try to break every promise at every point; CAMPAIGN="-help" lists the flags
	go -C e2e run ./cmd/campaign $(CAMPAIGN)

mutants: ## Build deliberate bugs into the suite and show what catches each; MUTANTS='-run name'
	@$(TOOL) etcd kube-apiserver kube-controller-manager kubectl >/dev/null
	@go -C e2e run ./cmd/mutants $(MUTANTS)

e2e: ## Run the end-to-end suite; FULL=1 IMAGES=real|standin|upstream PROVIDER=local|kind|kubeconfig
	go -C e2e test -tags $(E2E_TAGS) ./suite/... -v -parallel 3 -timeout $(if $(FULL),150m,60m)

demo: ## Start a local Kubernetes with a TiDB cluster in it (needs root on Linux)
	@echo "compiling the demo itself first: about four minutes on two cores if nothing is cached, a second later on"
	go -C e2e run ./cmd/demo up

demo-down: ## Stop what "make demo" started
	go -C e2e run ./cmd/demo down

images: ## Build the images of the operators and of the stand-ins
	TIDB_GROUPS_VERSION=$(VERSION) go -C e2e run ./images/cmd/images base operators standins

release: ## Write images, files to install, SBOMs and checksums into dist/; VERSION=v0.1.0, DRY=1 only tries
	@go -C e2e run ./cmd/release $(if $(DRY),--dry) "$(VERSION)"

docs: ## Build the pages of docs into bin/docs; fails on a broken link or anchor
	@command -v mkdocs >/dev/null || { echo "mkdocs is missing; on Debian: apt-get update && apt-get install -y --no-install-recommends mkdocs" >&2; exit 1; }
	go -C deploy test -count=1 ./docs
	mkdocs build --strict --quiet --clean -f - <docs/mkdocs.yml

tidy: ## Tidy the go.mod of every module
	$(call each,tidy,go mod tidy)
	go -C $(APART) mod tidy
