# What there is to do: make help.

GO      ?= go
K8S     := $(shell cd devcluster && $(GO) list -m -f '{{.Version}}' k8s.io/kubernetes)
K8SVARS := k8s.io/component-base/version
# The race detector needs a C compiler; without one, tests run without it.
RACE    := $(shell command -v $${CC:-cc} >/dev/null 2>&1 && echo -race)
STAGE   := sh hack/stage
# Packages that start control planes of their own, or need one.
CLUSTER := ./internal/e2e/... ./internal/kube ./internal/stream
OWN     := ./internal/controlplane ./internal/manifests ./cmd/gopf

.DEFAULT_GOAL := help
.PHONY: help demo test lint build kubectl clean

help: ## List what there is to do
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 18

demo: build ## Run an operator on a real Kubernetes API and show an object handled (ONCE=1: and end)
	@$(GO) run ./internal/demo

test: build ## Run all tests: units, vectors, end to end on a real Kubernetes API
	@$(STAGE) reset
	@$(STAGE) "vet" $(GO) vet ./...
	@$(STAGE) "vet devcluster" -C devcluster $(GO) vet ./...
	@$(STAGE) "vet gopftest" -C gopftest $(GO) vet ./...
	@$(STAGE) "layers" $(GO) test -count=1 ./internal/layers
	@$(STAGE) "vectors" sh hack/vectors
	@$(STAGE) "units" $(GO) test $(RACE) -timeout 20m $$($(GO) list ./... | grep -Ev '/(internal/(e2e|controlplane|manifests|vectors|layers)|cmd/gopf)(/|$$)')
	@$(STAGE) "cluster in memory" -C gopftest $(GO) test $(RACE) -timeout 20m ./...
	@$(STAGE) "10,000 objects" -C gopftest $(GO) test -timeout 20m -run TestIdle ./engine
	@$(STAGE) "end to end" bin/gopf exec -- $(GO) test $(RACE) -count=1 -timeout 30m $(CLUSTER)
	@$(STAGE) "conformance" bin/gopf exec -- sh -c 'cd gopftest && $(GO) test $(RACE) -count=1 -timeout 30m -run Conform .'
	@$(STAGE) "control plane" $(GO) test $(RACE) -timeout 30m -p 1 $(OWN)
	@$(STAGE) total

lint: ## Check the style (the linter is pinned in tools/go.mod and built on first use)
	$(GO) tool -modfile=tools/go.mod golangci-lint run ./...
	cd gopftest && $(GO) tool -modfile=../tools/go.mod golangci-lint run ./...
	cd devcluster && $(GO) tool -modfile=../tools/go.mod golangci-lint run ./...

build: ## Build the gopf command into bin/
	@$(GO) build -o bin/gopf ./cmd/gopf

kubectl: ## Build a kubectl that matches the control plane into bin/
	cd devcluster && CGO_ENABLED=0 $(GO) build -buildvcs=false -o ../bin/kubectl \
		-ldflags "-s -w -X $(K8SVARS).gitVersion=$(K8S) -X $(K8SVARS).gitMajor=1 -X $(K8SVARS).gitMinor=$(word 2,$(subst ., ,$(K8S)))" \
		k8s.io/kubernetes/cmd/kubectl

clean: ## Remove what was built here (the control plane stays in the user's cache)
	rm -rf bin
