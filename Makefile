# make run (PORT=8501) · make test · make test-all (make rest, make browser) · make lint · make matrix · make legal-model · make family · make docs: each makes .venv and installs what is missing, once.
PYTHON ?= python3
PORT ?= 8501
BIN := .venv/bin
QUIETLY := --quiet --disable-pip-version-check
# PyTorch without CUDA, a tenth of the size: taken on Linux where there is no NVIDIA GPU, if it can be reached.
CPU_BUILD := https://download.pytorch.org/whl/cpu

MATRIX := results/ablation_matrix.csv
CURVES := results/ablation_matrix_curves.npz
STORE ?= studies.sqlite

TWO := -n 2 --dist loadfile
# Or two processes would give other names to tests that are parametrized over sets.
export PYTHONHASHSEED := 0
# What Python has compiled is kept for the next process, of which the tests start hundreds.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run test rest browser test-all lint matrix legal-model family reference docs

.venv/app: requirements.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	if [ "$$(uname -s)" = Linux ] && ! command -v nvidia-smi >/dev/null; then $(BIN)/python -m pip install $(QUIETLY) --retries 0 --index-url $(CPU_BUILD) $$(grep '^torch==' requirements.txt) || true; fi
	$(BIN)/python -m pip install $(QUIETLY) -r requirements.txt
	touch $@

.venv/dev: .venv/app requirements-dev.txt
	$(BIN)/python -m pip install $(QUIETLY) -r requirements-dev.txt
	touch $@

run: .venv/app
	ABLATION_READ_ONLY=$${ABLATION_READ_ONLY:-0} $(BIN)/python -m streamlit run app.py --server.address 127.0.0.1 --server.port $(PORT)

# The essentials, two files at a time: every test in a few of its cases (tests/conftest.py).
test: .venv/dev
	$(BIN)/python -m pytest $(TWO) --quick $(ARGS)

# Everything: what make test leaves out, then the browser by itself: what it waits for must not stand behind a long training.
# BUT="and not slow": without what trains to the end. SOME="--cases 1": of each test one case more, drawn by $$DRAW;
# SOME="--until …": no test begins after that second since 1970.
test-all: test rest browser

rest: .venv/dev
	$(BIN)/python -m pytest $(TWO) --rest $(SOME) -m "not browser $(BUT)" $(ARGS)

browser: .venv/dev
	$(BIN)/python -m pytest $(TWO) $(SOME) -m "browser $(BUT)" $(ARGS)

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Train the ablation matrix (what is missing of it), say whether it agrees with the one that ships, and put it in its place, with its curves.
matrix: .venv/app
	$(BIN)/python -m core.study run studies/ablation_matrix.toml --database $(STORE)
	-test ! -f $(MATRIX) || $(BIN)/python -m core.study check studies/ablation_matrix.toml --with $(MATRIX) --database $(STORE)
	$(BIN)/python -m core.study export studies/ablation_matrix.toml --summary $(MATRIX) --picture docs/ablation_matrix.svg --curves $(CURVES) --database $(STORE)

# Train the language model that ships in models/legal, and write down beside it what it can do.
legal-model: .venv/app
	$(BIN)/python -m scripts.legal_model

# Train that model anew without each part, three seeds each (what is missing of it), and write down what each can do.
family: .venv/app
	$(BIN)/python -m scripts.family

# Write docs/reference.md from the menus.
reference: .venv/app
	$(BIN)/python -m scripts.reference

# The guides as a site, in site/.
docs: .venv/app
	$(BIN)/python -m pip install $(QUIETLY) -r requirements-docs.txt
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
