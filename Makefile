# make run (PORT=8501) · make test · make lint · make matrix · make legal-model: each makes .venv and installs what is missing, once.
PYTHON ?= python3
PORT ?= 8501
BIN := .venv/bin

MATRIX := results/ablation_matrix.csv
STORE ?= studies.sqlite

.PHONY: run test lint matrix legal-model

.venv/app: requirements.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

.venv/dev: .venv/app requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	touch $@

run: .venv/app
	ABLATION_READ_ONLY=$${ABLATION_READ_ONLY:-0} $(BIN)/python -m streamlit run app.py --server.address 127.0.0.1 --server.port $(PORT)

test: .venv/dev
	$(BIN)/python -m pytest $(ARGS)

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# Train the ablation matrix (what is missing of it), say whether it agrees with the one that ships, and put it in its place.
matrix: .venv/app
	$(BIN)/python -m core.study run studies/ablation_matrix.toml --database $(STORE)
	-test ! -f $(MATRIX) || $(BIN)/python -m core.study check studies/ablation_matrix.toml --with $(MATRIX) --database $(STORE)
	$(BIN)/python -m core.study export studies/ablation_matrix.toml --summary $(MATRIX) --picture docs/ablation_matrix.svg --database $(STORE)

# Train the language model that ships in models/legal, and write down beside it what it can do.
legal-model: .venv/app
	$(BIN)/python -m scripts.legal_model
