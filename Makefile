# `make` lists what there is. Everything is installed into .venv, once; .make/set_up.py says how and why.
# On the command line: PYTHON=python3.12, VENV=folder, TORCH_BUILD=auto|cpu|default, RUN=runs/my-run, ARGS="..."

VENV  ?= .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/set-up-done
ARGS  ?=

export VENV TORCH_BUILD TORCH_CPU_INDEX
# Output appears as it is made, and the kernel is .venv's even where the user has others.
export PYTHONUNBUFFERED := 1
# Python keeps what it compiled, also where that is switched off: to compile PyTorch anew takes each kernel 10 s.
export PYTHONDONTWRITEBYTECODE :=
export JUPYTER_PREFER_ENV_PATH := 1
# A sign that the terminal does not have is written as its number.
export PYTHONIOENCODING := :backslashreplace
# The default paths need no network; to use a hub model in JupyterLab: make lab HF_HUB_OFFLINE=0
HF_HUB_OFFLINE ?= 1

.PHONY: help setup run lab test test-all test-browser bench gpu-check table1 lint strip clean
.DEFAULT_GOAL := help

help:  ## list these commands
	@echo "cdlm_lab: make COMMAND"; \
	awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(STAMP)  ## install everything into .venv (the other commands do it by themselves)

# The first Python on the path that is new enough; set_up.py explains itself if none is.
$(STAMP): pyproject.toml .make/set_up.py
	@for python in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
	  if [ -n "$(PYTHON)" ] || $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then break; fi; \
	  python=python3; \
	done; \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$$python is missing or older than 3.11 (`$$python --version 2>&1`); install Python 3.11 or newer," \
	       "or name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }; \
	$$python .make/set_up.py

run: $(STAMP)  ## run the tour: five models in one table, one answer about real English, a short training
	@set -e; run="$(RUN)"; \
	if [ -z "$$run" ]; then run=runs/tour-$$(date +%Y%m%d-%H%M%S); fi; \
	HF_HUB_OFFLINE=$(HF_HUB_OFFLINE) $(BIN)/python .make/run_notebook.py notebooks/00_tour.ipynb "$$run" $(ARGS); \
	echo "all tables and figures: $$run/results.html (open it in a browser); scores: $$run/report.json"; \
	echo "next: make lab"

lab: $(STAMP)  ## open JupyterLab on the notebooks
	@HF_HUB_OFFLINE=$(HF_HUB_OFFLINE) $(BIN)/jupyter lab --notebook-dir=. \
	  $(shell [ "$$(id -u)" = 0 ] && echo --allow-root) $(ARGS) notebooks/00_tour.ipynb

# In another order each time: make test ARGS="-p randomly"
test: $(STAMP)  ## run the tests (offline, CPU; the slow ones are left out)
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

test-all: $(STAMP)  ## run all tests, the slow ones and, where they can run, those for GPU and browser
	@$(BIN)/python -m pytest -m "slow or not slow" --durations=15 $(ARGS)

test-browser: $(STAMP)  ## run the tests of the widgets in a real browser; on Debian first: apt-get install chromium
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m browser $(ARGS) tests/browser

# Each row of training five times, for an hour or more: make bench ARGS="--full"
bench: $(STAMP)  ## measure attention, training and reading, half an hour and more; into data/results/speed.md
	@$(BIN)/python -m cdlm_lab.benchmarks.attention --lengths 4096 --repeats 3 --json data/results/attention_benchmark.json
	@$(BIN)/python -m cdlm_lab.benchmarks.training --json data/results/training_benchmark.json $(ARGS)
	@$(BIN)/python -m cdlm_lab.benchmarks.inference --encoder minilm --max-length 512 --window 128 --stories 4 --items 64 \
	  --repeats 2 --json data/results/inference_benchmark.json
	@$(BIN)/python .make/result_pages.py README.md data/results/*.md

# On a GPU machine the first thing to run; on a CPU it checks what needs none: make gpu-check ARGS="--parts resume"
gpu-check: $(STAMP)  ## check a GPU with tests, notebooks, resumption and speed; one page in runs/gpu-check
	@HF_HUB_OFFLINE=$(HF_HUB_OFFLINE) $(BIN)/python -m cdlm_lab.benchmarks.gpu_check $(ARGS)

# JUDGED: clusters whose val and test nobody is to have read, as data/news_clusters/README.md describes; without, those mined for test
JUDGED ?=
MINED  := runs/news/clusters.jsonl

table1: $(STAMP) $(MINED)  ## CDLM's Table 1 from a pile of dated articles: make table1 ARTICLES=articles.jsonl.xz JUDGED=clusters.jsonl.xz
	@$(BIN)/cdlm-lab run notebooks/grids/news.yaml --set clusters=$(MINED) --set judged=$(or $(JUDGED),$(MINED)) $(ARGS)

$(MINED): $(ARTICLES) $(JUDGED) | $(STAMP)
	@if [ -z "$(ARTICLES)" ]; then echo "say where the articles are: make table1 ARTICLES=articles.jsonl.xz"; exit 1; fi
	@mkdir -p $(@D)
	@$(BIN)/cdlm-lab mine $(ARTICLES) $@ --by-date --most 4 $(if $(JUDGED),--apart $(JUDGED) --apart-splits val test)

lint: $(STAMP)  ## check the style of code and notebooks, and that imports follow the plan of the house
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports --no-cache

strip: $(STAMP)  ## take the outputs out of the notebooks, before a commit
	@$(BIN)/nbstripout --keep-id --extra-keys metadata.language_info.version notebooks/*.ipynb

clean:  ## remove caches and .venv; runs/ stays
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis build dist *.egg-info
	find cdlm_lab tests .make -name __pycache__ -type d -prune -exec rm -rf {} +
