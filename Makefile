# What there is to do: make help.

GO      ?= go
K8S      = $(shell cd cmd/devcluster && $(GO) list -m -f '{{.Version}}' k8s.io/kubernetes)
K8SVARS := k8s.io/component-base/version
# Building does not depend on git being able to read the checkout.
BUILD   := $(GO) build -buildvcs=false
# The race detector needs cgo, which Go turns off where there is no C compiler.
RACE    := $(shell [ "$$($(GO) env CGO_ENABLED)" = 1 ] && echo -race)
BEGUN   := $(shell date +%s)
STAGE   := sh hack/stage
# All modules with Go code, and those that users download.
MODULES   := . gopftest serve otel webhook/ngrok cmd/devcluster cmd/gopf-manifests site bench \
	examples/database examples/09-testing examples/19-levels examples/20-other-namespaces examples/upgrade
PUBLISHED := . gopftest serve otel webhook/ngrok cmd/devcluster cmd/gopf-manifests
# Pinned, so that a new version of the tool does not change the result of a build.
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
# Packages that need a control plane.
CLUSTER := $(shell $(GO) list ./internal/test/e2e/... | grep -v /attacks$$) ./cli
# Packages in which the tests that need a control plane have "Cluster" in their names.
PARTLY  := ./internal/kube ./internal/stream ./internal/rbac ./internal/peering ./internal/lease ./internal/login ./internal/admission
# Tests with thousands of objects, or with hundreds of crashes, which take minutes with the race detector.
MANY    := ^(TestIdle|TestManyOwners|TestSlowHandlersOf|TestAFloodOf|TestNothingIsLostOrRepeatedWhatever)
# What runs for every object and every event.
HOT     := ./diff ./storage ./internal/object ./internal/essence ./internal/handler ./internal/progress ./internal/process ./internal/queue ./internal/kube ./internal/index ./internal/daemon
# What make mutate makes mistakes in: packages without I/O, and the root. After a "+" are the
# packages whose tests must notice, where they are others than its own.
VECTORS := ./internal/vectors
PURE    := ./internal/cause ./internal/handler ./internal/patch ./internal/jsonvalue \
	$(foreach p,./diff ./storage ./internal/progress ./internal/essence ./internal/execute,$(p)+$(p)+$(VECTORS))
ROOT    := .+.+gopftest:./engine
SAMPLE  ?= 0
SEED    ?= 1
JOBS    ?= 2
BUDGET  ?= 0
ONLY    ?=
OWN     := ./internal/dev/controlplane ./internal/dev/manifests

.DEFAULT_GOAL := help
.PHONY: help demo test chart attacks api fuzz downgrade mutate bench bench-quick bench-full bench-median bench-micro lint build pictures site site-test site-browser page-browser \
	release dist vulnerabilities kubectl test-kubectl test-loop test-delve clean

help: ## List what there is to do
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

demo: ## Run an operator on an in-memory Kubernetes API and show an object handled (REAL=1: a real API, ONCE=1: and end)
	@echo "Building the operator examples/01-minimal$(if $(REAL),, and the in-memory API). The first build compiles all dependencies, which takes about a minute on 2 cores."
	@# One command builds all programs, so that both cores are busy until the end.
	@cd gopftest && GO="$(GO)" sh ../hack/progress sh ../hack/quick-build -buildvcs=false -tags gopf_lean -ldflags "-s -w" -o ../bin/ \
		gopf.dev/gopf/internal/dev/demo gopf.dev/gopf/examples/01-minimal $(if $(REAL),,./cmd/gopf-memory)
	@REAL="$(REAL)" ONCE="$(ONCE)" bin/demo

test: build ## Run all tests: units, vectors, end to end on a real Kubernetes API
	@[ -n "$(RACE)" ] || echo "There is no C compiler: tests run without the race detector."
	@$(STAGE) "vet" $(GO) vet ./...
	@$(STAGE) "vet gopftest" -C gopftest $(GO) vet ./...
	@$(STAGE) "vet serve" -C serve $(GO) vet ./...
	@$(STAGE) "vet otel" -C otel $(GO) vet ./...
	@$(STAGE) "vet bench" -C bench $(GO) vet ./...
	@$(STAGE) "layers" $(GO) test -count=1 ./internal/test/layers ./internal/test/scaling
	@$(STAGE) "api" env GO="$(GO)" sh hack/api
	@$(STAGE) "vectors" -C internal/vectors $(GO) test $(RACE) -count=1
	@$(STAGE) "units" $(GO) test $(RACE) -timeout 45m $$($(GO) list ./... | grep -Ev '/(internal/(test|dev|vectors)|cmd/gopf)(/|$$)')
	@# They read files and start programs. The race detector would make them four times slower.
	@$(STAGE) "pages and tools" $(GO) test -timeout 45m ./internal/test/docs $$($(GO) list ./internal/dev/... | grep -Ev '/dev/(controlplane|manifests)(/|$$)')
	@$(STAGE) "cluster in memory" -C gopftest $(GO) test $(RACE) -timeout 45m -skip '$(MANY)' $$(cd gopftest && $(GO) list ./... | grep -Ev '/(model|formats)$$')
	@$(STAGE) "model and formats" -C gopftest $(GO) test -timeout 45m ./model ./formats
	@$(STAGE) "downgrade" env GO="$(GO)" sh hack/downgrade
	@$(STAGE) "pictures and search" -C site $(GO) test -timeout 5m ./manual ./picture
	@$(STAGE) "serve" -C serve $(GO) test -timeout 10m ./...
	@$(STAGE) "otel" -C otel $(GO) test -timeout 5m ./...
	@$(STAGE) "tunnel" -C webhook/ngrok $(GO) test -timeout 5m ./...
	@$(STAGE) "many objects" -C gopftest $(GO) test -timeout 45m -run '$(MANY)' ./engine
	@# One control plane for all of them.
	@bin/gopf exec -- sh -c '$(STAGE) "end to end" $(GO) test $(RACE) -count=1 -timeout 30m $(CLUSTER) && \
		$(STAGE) "parts on a cluster" $(GO) test $(RACE) -count=1 -timeout 15m -parallel 8 -run Cluster $(PARTLY) && \
		$(STAGE) "attacks" $(GO) test -count=1 -timeout 15m ./internal/test/e2e/attacks && \
		$(STAGE) "conformance" -C gopftest $(GO) test -count=1 -timeout 30m -run Conform . && \
		$(STAGE) "serve on the cluster" -C serve $(GO) test -count=1 -timeout 5m -run OnAnyCluster . ./metacontroller ./cmd/gopf-serve && \
		$(STAGE) "code of the pages" -C gopftest $(GO) test -count=1 -timeout 10m ./docs && \
		$(STAGE) "blocks of the pages" $(GO) test -count=1 -timeout 10m -run ThatWrite ./internal/test/docs'
	@$(STAGE) "control plane" $(GO) test $(RACE) -timeout 30m -p 1 $(OWN)
	@# Most of its time is spent in other processes, which have no race detector.
	@$(STAGE) "command gopf" $(GO) test -timeout 30m ./cmd/gopf
	@# As it was built, or else all of Kubernetes would be compiled once more.
	@$(STAGE) "vet devcluster" -C cmd/devcluster env CGO_ENABLED=0 GOFLAGS=-mod=readonly $(GO) vet ./...
	@$(STAGE) "demo" $(MAKE) --no-print-directory demo ONCE=1 REAL=1
	@$(STAGE) "demo in memory" $(MAKE) --no-print-directory demo ONCE=1 REAL=
	@echo "== all stages passed in $$(($$(date +%s) - $(BEGUN))) s"

chart: build ## Test generated definitions, and install a generated chart with the libraries of Helm (the first compilation takes minutes)
	@$(STAGE) "vet gopf-manifests" -C cmd/gopf-manifests $(GO) vet ./...
	@bin/gopf exec -- sh -c '$(STAGE) "chart" -C cmd/gopf-manifests $(GO) test -count=1 -timeout 45m ./...'

attacks: build ## Run the attacks of hostile tenants at full size, in four minutes
	@bin/gopf exec -- env GOPF_ATTACKS=full $(GO) test -count=1 -timeout 45m -v -run Attacks ./internal/test/e2e/attacks

fuzz: ## Run every fuzz target for a minute (FUZZTIME=10m: longer, FUZZ=PATTERN: only some)
	@GO="$(GO)" FUZZTIME="$(FUZZTIME)" FUZZ="$(FUZZ)" sh hack/fuzz

api: ## Print what changed in the exported API since another commit (BASE=COMMIT; default: the previous one)
	@GO="$(GO)" sh hack/api $(BASE)

downgrade: ## Run an older version on what this one leaves on objects (BASE=COMMIT: that version)
	@GO="$(GO)" sh hack/downgrade $(BASE)

mutate: ## Make mistakes in the code and report those that no test notices (SAMPLE=N per package, SEED, JOBS, BUDGET=30m, ONLY=REGEXP of the report's lines)
	$(GO) run -buildvcs=false ./internal/dev/mutate -sample $(SAMPLE) -seed $(SEED) -parallel $(JOBS) -budget $(BUDGET) -only '$(ONLY)' -least 85 $(PURE)
	$(GO) run -buildvcs=false ./internal/dev/mutate -sample $(or $(filter-out 0,$(SAMPLE)),100) -seed $(SEED) -parallel $(JOBS) -budget $(BUDGET) -only '$(ONLY)' -timeout 5m $(ROOT)

bench: ## Measure everything beside controller-runtime, in half an hour (KOPF_COMMAND: and beside Kopf); see bench/README.md
	cd bench && $(GO) run -buildvcs=false . -mode bench

bench-quick: ## Measure what matters most, in four minutes
	cd bench && $(GO) run -buildvcs=false . -mode quick

bench-full: ## Measure cold starts, latency, lists and timers with 100,000 objects, in 36 minutes
	cd bench && $(GO) run -buildvcs=false . -mode full

bench-median: ## Measure the strictest budgets in three rounds, in 20 minutes
	cd bench && $(GO) run -buildvcs=false . -mode median

bench-micro: ## Measure hot paths alone, with their allocations
	$(GO) test -run '^$$' -bench . -benchmem $(HOT)
	cd serve && $(GO) test -run '^$$' -bench . -benchmem ./call && $(GO) test -run '^$$' -bench . -benchtime 1x .

lint: ## Check the style of all modules (the linter is pinned in tools/go.mod and built on first use)
	@# Not by "go tool" in each module: -modfile excludes workspaces, which some examples have.
	@linter=$$($(GO) tool -n -modfile=tools/go.mod golangci-lint) && failed= && for module in $(MODULES); do \
		$(STAGE) "lint $$module" -C $$module $$linter run ./... || failed="$$failed $$module"; done; \
	[ -z "$$failed" ] || { echo "lint: findings in$$failed"; exit 1; }

build: ## Build the command gopf into bin/
	@$(BUILD) -o bin/ ./cmd/gopf

pictures: ## Draw the diagrams of the manual from docs/pictures/*.txt
	cd site && $(GO) run -buildvcs=false ./pictures

site: ## Build the manual as a site into bin/site (VERSION=v1.2.3; the first time, Hugo is compiled, which takes minutes)
	@cd site && $(GO) run -buildvcs=false . -version "$(or $(VERSION),dev)" $(if $(REPOSITORY),-repository "$(REPOSITORY)")

site-test: ## Test the site without a browser: links, requests, search
	@$(STAGE) "vet site" -C site $(GO) vet ./...
	@$(STAGE) "site" -C site $(GO) test -count=1 -timeout 45m . ./manual ./picture

site-browser: ## Test the site in Chromium or Chrome (BROWSER=PATH: that one)
	@browser="$(BROWSER)"; for name in chromium chromium-headless-shell chromium-browser google-chrome; do [ -n "$$browser" ] || browser=$$(command -v $$name || true); done; \
	if [ -z "$$browser" ]; then echo "site-browser: not run, because there is no Chromium; name one with BROWSER=PATH"; exit 0; fi; \
	$(MAKE) --no-print-directory site && \
	$(STAGE) "site in a browser" -C site env GOPF_SITE="$(CURDIR)/bin/site" GOPF_BROWSER="$$browser" $(GO) test -count=1 -timeout 10m -run "EveryPage|SearchInTheBrowser|Buttons" ./browser

page-browser: ## Test the page of an operator in Chromium or Chrome (BROWSER=PATH: that one; PICTURES=FOLDER: store screenshots)
	@browser="$(BROWSER)"; for name in chromium chromium-headless-shell chromium-browser google-chrome; do [ -n "$$browser" ] || browser=$$(command -v $$name || true); done; \
	if [ -z "$$browser" ]; then echo "page-browser: not run, because there is no Chromium; name one with BROWSER=PATH"; exit 0; fi; \
	$(BUILD) -o bin/ ./internal/dev/page && \
	$(STAGE) "page in a browser" -C site env GOPF_PAGE="$(CURDIR)/bin/page" GOPF_PICTURES="$(PICTURES)" GOPF_BROWSER="$$browser" \
		$(GO) test -count=1 -timeout 10m -run 'OperatorsPage|ObjectsAreSearched|NoHTML' ./browser

release: ## Tag a version of all modules, after checks in a clone; never pushes (VERSION=v1.2.3, DRY=1: only the checks)
	@[ -n "$(VERSION)" ] || { echo "release: name a VERSION, such as v0.1.0"; exit 2; }
	@$(GO) run -buildvcs=false ./internal/dev/release $(if $(DRY),-dry-run) "$(VERSION)"

dist: ## Build the files of a release into bin/dist: gopf for each platform, SBOM, checksums (VERSION=v1.2.3)
	@GO="$(GO)" sh hack/dist "$(VERSION)"

vulnerabilities: ## Look for known vulnerabilities in all published modules (needs the network)
	@for module in $(PUBLISHED); do \
		$(STAGE) "vulnerabilities in $$module" -C $$module $(GO) run $(GOVULNCHECK) ./... || exit 1; done

test-kubectl: ## Test kubectl on the in-memory API server (if there is a kubectl, here or in bin/)
	@PATH="$(CURDIR)/bin:$$PATH"; if command -v kubectl > /dev/null; then \
		$(STAGE) "kubectl" $(GO) test -count=1 -tags gopf_kubectl ./internal/test/kubectl; \
	else echo "There is no kubectl: nothing was tested. make kubectl builds one."; fi

test-loop: build ## Test gopf dev with real builds and processes: twenty edits under load, mistakes, keys (minutes)
	@$(STAGE) "inner loop" $(GO) test -v -count=1 -timeout 15m ./internal/test/devloop

test-delve: ## Test the debugger of gopf dev (if there is a dlv; HOLD=5m: hold the breakpoint that long)
	@if command -v dlv > /dev/null; then $(STAGE) "delve" env GOPF_HOLD="$(HOLD)" $(GO) test -count=1 -timeout 30m -tags gopf_delve -run Debugger ./internal/test/devloop; \
	else echo "There is no dlv: nothing was tested. Install it by: go install github.com/go-delve/delve/cmd/dlv@latest"; fi

kubectl: ## Build a kubectl that matches the control plane into bin/
	cd cmd/devcluster && CGO_ENABLED=0 $(BUILD) -o ../../bin/kubectl \
		-ldflags "-s -w -X $(K8SVARS).gitVersion=$(K8S) -X $(K8SVARS).gitMajor=1 -X $(K8SVARS).gitMinor=$(word 2,$(subst ., ,$(K8S)))" \
		k8s.io/kubernetes/cmd/kubectl

clean: ## Remove what was built here (the control plane stays in the user's cache)
	rm -rf bin
