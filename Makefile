# make run (PORT=8501) · make test · make lint: each makes .venv and installs what is missing, once.
PYTHON ?= python3
PORT ?= 8501
BIN := .venv/bin

.PHONY: run test lint

.venv/app: requirements.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

.venv/dev: .venv/app requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	touch $@

run: .venv/app
	$(BIN)/python -m streamlit run app.py --server.port $(PORT)

test: .venv/dev
	$(BIN)/python -m pytest $(ARGS)

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
