# Commands for developers; `make` lists them. Needs Python 3.11 or newer and sets up everything else.

PYTHON ?= python3
ARGS ?=
F ?=
SEED ?= 1
N ?= 1000
PYTEST_ARGS ?=
WORKERS ?= 2

# A Python as new as that of the image, beside that of .venv: TLS is stricter from 3.13 on.
NEWER ?= $(firstword $(shell $(UV) python find --no-project --no-python-downloads '>=3.13' 2>/dev/null) \
	$(lastword $(sort $(wildcard $(HOME)/.pyenv/versions/3.1[3-9].*/bin/python))))
NEWER_TESTS := tests/test_tls.py tests/cli/test_top_client.py tests/kube/test_config.py tests/kube/binder/test_connections.py \
	tests/serve/test_http.py tests/serve/test_tls.py tests/serve/test_notifier.py tests/signals/asking/test_session.py

# Tests start hundreds of processes; each would compile its imports again.
unexport PYTHONDONTWRITEBYTECODE

# The uv of this machine, or else one of our own.
UV := $(shell command -v uv 2>/dev/null || echo .uv/bin/uv)
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help setup controlplane exporters scrapes test test-newer faults mutants sequences tenants decisions conformance promql check format dashboards run demo bench bench-micro clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

.uv/bin/uv:
	$(PYTHON) -m venv .uv
	.uv/bin/python -m pip install --quiet --disable-pip-version-check uv
	@echo '*' > .uv/.gitignore

.venv/.synced: pyproject.toml uv.lock $(filter .uv/%,$(UV))
	$(UV) sync --locked --quiet
	@touch $@

setup: .venv/.synced ## Install Vane and its tools into .venv, as uv.lock says

controlplane: setup ## Build etcd, Kubernetes and Prometheus for the tests; the first time takes minutes
	$(BIN)/python tests/controlplane/build.py
	$(BIN)/python tests/controlplane/build.py oracle
	$(BIN)/python tests/controlplane/build.py parser

exporters: setup ## Build node_exporter, blackbox_exporter, kube-state-metrics, the kubelet, …; tests that scrape them need it
	$(BIN)/python tests/controlplane/build.py exporters

scrapes: controlplane exporters ## Scrape these at 15, 30 and 60 s and ask every pack that reads them; make test only does a second
	SCRAPES=full $(BIN)/python -m pytest -n 0 tests/exporters $(PYTEST_ARGS)

test: setup ## Run the tests, with a control plane if it can be built (PYTEST_ARGS="-k cli", WORKERS=0: in one process)
	@$(BIN)/python tests/controlplane/build.py && $(BIN)/python tests/controlplane/build.py oracle \
		&& $(BIN)/python tests/controlplane/build.py parser \
		|| echo "no control plane on this machine: tests that need it will say so"
	$(BIN)/python -m pytest -n $(WORKERS) $(PYTEST_ARGS)

test-newer: setup ## Run the tests that make TLS contexts on Python 3.13 or newer, where one is there (NEWER=/path/to/python)
	@if $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 13))'; then \
		echo "test-newer: nothing to do, make test runs on Python 3.13 or newer"; \
	elif [ -z "$(NEWER)" ]; then \
		echo "test-newer: NOT RUN, no Python 3.13 or newer on this machine; name one with NEWER=/path/to/python"; \
	else \
		echo "test-newer: $$($(NEWER) -V), $(NEWER)"; \
		UV_PROJECT_ENVIRONMENT=.venv-newer $(UV) sync --locked --quiet --python $(NEWER) && \
		.venv-newer/bin/python -m pytest -q -n $(WORKERS) -m "not controlplane" $(NEWER_TESTS); \
	fi

faults: controlplane ## Break real servers beneath two replicas, row by row; F=F26 for one, ARGS="--list" for their names
	$(BIN)/python -m tests.faults $(F) $(ARGS)

mutants: setup ## Put known faults into a copy of the code, one at a time: the tests must find each (ARGS="--only cache")
	$(BIN)/python -m tests.mutants $(ARGS)

sequences: setup ## Place, remove and undo at random, N times; compare every index and column (SEED=1 N=10000)
	$(BIN)/python -m tests.contracts.sequences --seed $(SEED) --number $(N)

tenants: setup ## Let tenants, signals and Pods come and go at random, N times; no tenant may exceed its limit (N=10000)
	$(BIN)/python -m tests.contracts.tenancy --seed $(SEED) --number $(N)

decisions: setup ## Decide N times at random under rules of every kind, print one hash to compare before and after a change (N=200000)
	$(BIN)/python -m tests.contracts.decisions --seed $(SEED) --number $(N) $(ARGS)

conformance: setup ## Make N fresh cases, ask kube-scheduler's own plugins and compare (SEED=7 N=10000)
	$(BIN)/python -m tests.conformance.generate --seed $(SEED) --number $(N) $(ARGS)

promql: setup ## Make N fresh expressions, ask Prometheus' own parser and compare (SEED=7 N=20000; N=0: the corpus, kept anew)
	$(BIN)/python -m tests.promql --generate $(N) --seed $(SEED)

check: setup ## Check style, formatting, types, layers, and for what is known to be unsafe
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy scheduler tests benchmarks dashboards
	$(BIN)/lint-imports --no-logo
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml scheduler
	.ci/audit $(BIN)

format: setup ## Format the code and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

dashboards: setup ## Generate the Grafana dashboards from the Python modules
	$(BIN)/python -m dashboards.generate

run: setup ## Run the scheduler (ARGS="--rules rules --prometheus http://localhost:9090")
	$(BIN)/vane run $(ARGS)

# Without developer tools; what is already installed stays.
demo: $(filter .uv/%,$(UV)) ## See Vane at work for a minute, on a simulated cluster (ARGS="--seed 7", ARGS="--keep")
	@$(UV) run --quiet --locked --no-dev --extra demo vane demo $(ARGS)

bench: controlplane ## Race kube-scheduler on a real API server, some 25 minutes (ARGS="--quick", ARGS="--write")
	$(BIN)/python -m benchmarks.race $(ARGS)

bench-micro: setup ## Time every plugin and the whole decision at 5,000 nodes
	$(BIN)/python -m pytest benchmarks --benchmark-enable --benchmark-only $(PYTEST_ARGS)

clean: ## Remove what the targets above have created
	rm -rf .venv .venv-newer .uv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .benchmarks
