# Two commands do all the set-up on a machine with only Python 3.11, pip, venv, make and git:
#   make demo   protects a secret in real recordings; prints where the page is
#   make test   every quick test
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
SHELL := /bin/bash

.PHONY: demo test test-slow lint docs package bench bench-page lock clean
.DELETE_ON_ERROR:

demo: .venv/run.stamp
	$(BIN)/reticent demo --out results/demo

test: .venv/dev.stamp
	$(BIN)/pytest

test-slow: .venv/agents.stamp
	$(BIN)/pytest -m slow

# All that is checked must be there, outside agents too.
lint: .venv/agents.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

# The site, in results/site: open index.html. It fetches nothing.
docs: .venv/docs.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "Site: $(CURDIR)/results/site/index.html"

# Wheel and sdist, each installed in an empty environment, where the demo runs; and how large the base install is.
package: .venv/dev.stamp
	.ci/package $(BIN)/python

bench: .venv/agents.stamp
	$(BIN)/python -m benchmarks all
	$(MAKE) bench-page

# The page and the figures of what was measured last.
bench-page: .venv/dev.stamp
	$(BIN)/python -m benchmarks.figures
	$(BIN)/python -m benchmarks.page

# What the package needs to run, then what working on it needs. Both are locked, with hashes.
.venv/run.stamp: requirements.lock pyproject.toml
	@started=$$SECONDS; set -e; \
	test -x $(BIN)/python || $(PYTHON) -m venv .venv; \
	echo "Setting up .venv (once) ..."; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .; \
	touch $@; echo "Set-up took $$((SECONDS - started)) s."

.venv/dev.stamp: requirements-dev.lock .venv/run.stamp
	@echo "Adding the tools for tests and checks (once) ..."; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

.venv/docs.stamp: requirements-docs.lock .venv/dev.stamp
	@echo "Adding the tools for the documentation (once) ..."; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
	@touch $@

# Outside agents (Stable-Baselines3) for slow tests and benchmarks. PyTorch stands outside of the lock, because which
# build of it suits a machine depends on the machine; all that it needs is locked.
TORCH := torch==2.13.0
.venv/agents.stamp: requirements-agents.lock .venv/dev.stamp
	@set -e; echo "Adding outside agents (once) ..."; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements-agents.lock; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	@touch $@

# The build backend is part of the run lock, so that installing the package fetches nothing that is not locked.
lock:
	printf "hatchling\neditables\n" | uv pip compile --universal --python-version 3.11 --generate-hashes --no-header \
	    --no-emit-index-url --no-emit-find-links pyproject.toml - -o requirements.lock
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url \
	    --no-emit-find-links --extra dev -c requirements.lock pyproject.toml -o requirements-dev.lock
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url \
	    --no-emit-find-links --extra docs -c requirements-dev.lock pyproject.toml -o requirements-docs.lock
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url \
	    --no-emit-find-links --extra agents --override <(echo "$(TORCH) ; sys_platform == 'none'") \
	    -c requirements-dev.lock pyproject.toml -o requirements-agents.lock

clean:
	rm -rf .venv results
