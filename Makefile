# make run (PORT=8501 ADDRESS=127.0.0.1) · make test · make test-all (make rest, make browser) · make test-latest · make gpu · make lint · make matrix · make claims · make lessons · make legal-model · make family · make docs: each makes .venv and installs what is missing, once.
PYTHON ?= python3
PORT ?= 8501
ADDRESS ?= 127.0.0.1
BIN := .venv/bin
QUIETLY := --quiet --disable-pip-version-check
# PyTorch without CUDA, a tenth of the size: taken on Linux where there is no NVIDIA GPU, if it can be reached.
CPU_BUILD := https://download.pytorch.org/whl/cpu

# The studies that ship (core/study/shipped.py), and those that are trained for claims alone.
SHIPPED := ablation_matrix attention norm_and_stream feed_forward positions optimisers own_learning_rates
CLAIMS := $(basename $(notdir $(wildcard studies/claims/*.toml)))
LESSONS := $(basename $(notdir $(wildcard studies/lessons/*.toml)))
STORE ?= studies.sqlite

TWO := -n 2 --dist loadfile
# Or two processes would give other names to tests that are parametrized over sets.
export PYTHONHASHSEED := 0
# What Python has compiled is kept for the next process, of which the tests start hundreds.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run test rest browser test-all test-latest gpu lint matrix claims lessons legal-model family reference docs

.venv/app: requirements.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	if [ "$$(uname -s)" = Linux ] && ! command -v nvidia-smi >/dev/null; then $(BIN)/python -m pip install $(QUIETLY) --retries 0 --index-url $(CPU_BUILD) $$(grep '^torch==' requirements.txt) || true; fi
	$(BIN)/python -m pip install $(QUIETLY) -r requirements.txt
	touch $@

.venv/dev: .venv/app requirements-dev.txt
	$(BIN)/python -m pip install $(QUIETLY) -r requirements-dev.txt
	touch $@

run: .venv/app
	ABLATION_READ_ONLY=$${ABLATION_READ_ONLY:-0} $(BIN)/python -m streamlit run app.py --server.address $(ADDRESS) --server.port $(PORT)

# The tests that need neither a browser nor half a minute each: about ten minutes on two cores. ARGS="-k norm": some of them.
test: .venv/dev
	$(BIN)/python -m pytest $(TWO) -m "not slow and not browser" $(ARGS)

# What make test leaves out: trainings to the end, processes that are killed.
rest: .venv/dev
	$(BIN)/python -m pytest $(TWO) -m "slow and not browser" $(ARGS)

# The tests in Chromium, by themselves: what they wait for must not stand behind a long training.
browser: .venv/dev
	$(BIN)/python -m pytest $(TWO) -m browser $(ARGS)

test-all: test rest browser

# On a machine with a CUDA device, with the packages that core needs and pytest (no Streamlit, no Altair): its tests, and a table for
# benchmarks/README.md.
gpu:
	$(PYTHON) -m pytest -m gpu tests/test_device.py tests/test_knockout.py tests/test_stack.py tests/test_second_device.py
	$(PYTHON) -m benchmarks.gpu --device cuda

# With the newest versions that pyproject.toml allows (torch stays as it is): the tests of pages, and every page once in a browser.
test-latest:
	$(PYTHON) -m venv .venv-latest
	$(PYTHON) -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb'))['project']; extras = p['optional-dependencies']; print('\n'.join(p['dependencies'] + extras['app'] + extras['gpt2'] + extras['dev']))" > .venv-latest/requirements.txt
	if [ "$$(uname -s)" = Linux ]; then .venv-latest/bin/python -m pip install $(QUIETLY) --retries 0 --index-url $(CPU_BUILD) $$(grep '^torch==' requirements.txt) || true; fi
	.venv-latest/bin/python -m pip install $(QUIETLY) --upgrade $$(grep '^torch==' requirements.txt) -r .venv-latest/requirements.txt
	.venv-latest/bin/python -m pip freeze | grep -E '^(streamlit|starlette|uvicorn|altair|pandas)=='
	.venv-latest/bin/python -m pytest $(TWO) -m "not slow and not browser" tests/test_server.py tests/test_*page.py
	.venv-latest/bin/python -m pytest tests/test_addresses_browser.py -k pages_open_without_errors

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Store the results that ship, so that the next targets train only what they lack. Without it they train everything again.
import: .venv/app
	$(BIN)/python -m core.study import $(SHIPPED:%=studies/%.toml) $(CLAIMS:%=studies/claims/%.toml) $(LESSONS:%=studies/lessons/%.toml) --database $(STORE)

# Train the studies that ship (what is missing of them), say whether each agrees with what ships, and put it in its place, with its curves.
matrix: .venv/app
	$(BIN)/python -m core.study run $(SHIPPED:%=studies/%.toml) --database $(STORE)
	besides=; for name in $(SHIPPED); do \
	  test ! -f results/$$name.csv || $(BIN)/python -m core.study check studies/$$name.toml --with results/$$name.csv --database $(STORE); \
	  $(BIN)/python -m core.study export studies/$$name.toml --summary results/$$name.csv --curves results/curves/$$name.npz --besides $$besides --database $(STORE) || exit 1; \
	  besides="$$besides results/curves/$$name.npz"; \
	done
	$(BIN)/python -m core.study export studies/ablation_matrix.toml --picture docs/ablation_matrix.svg --database $(STORE)

# Train what the claims of papers are measured on (what is missing of it), and measure them.
claims: .venv/app
	$(BIN)/python -m core.study run $(CLAIMS:%=studies/claims/%.toml) --database $(STORE)
	besides="$(SHIPPED:%=results/curves/%.npz)"; for name in $(CLAIMS); do \
	  $(BIN)/python -m core.study export studies/claims/$$name.toml --curves results/curves/claims/$$name.npz --besides $$besides --database $(STORE) || exit 1; \
	  besides="$$besides results/curves/claims/$$name.npz"; \
	done
	$(BIN)/python -m core.teaching.claims

# Train what lessons are measured on (what is missing of it).
lessons: .venv/app
	$(BIN)/python -m core.study run $(LESSONS:%=studies/lessons/%.toml) --database $(STORE)
	besides="$(SHIPPED:%=results/curves/%.npz) $(CLAIMS:%=results/curves/claims/%.npz)"; for name in $(LESSONS); do \
	  $(BIN)/python -m core.study export studies/lessons/$$name.toml --curves results/curves/lessons/$$name.npz --besides $$besides --database $(STORE) || exit 1; \
	  besides="$$besides results/curves/lessons/$$name.npz"; \
	done

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
