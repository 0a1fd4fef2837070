# Two commands do everything on a fresh machine: `make demo` and `make test`.
# Each makes a virtual environment of its own in .venv and builds what is native.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
JOBS   ?= $(shell nproc 2>/dev/null || echo 2)

SOURCES := $(shell find app native reproducer_templates -type f \
             -not -name '*.pyc' -not -path '*/__pycache__/*') pyproject.toml
INSTALLED := $(VENV)/.installed
TOOLS     := $(VENV)/.tools

.PHONY: demo test test-slow sanitize lint format bench pictures clean help

help:
	@echo 'make demo       the terminal UI on a simulated GPU; without a terminal, the loop printed'
	@echo 'make test       set up, lint and run the tests'
	@echo 'make test-slow  the slower tests'
	@echo 'make sanitize   the native tests under AddressSanitizer and UBSan'
	@echo 'make bench      measure; writes build/bench.json'
	@echo 'make format     format C++ and Python'

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(INSTALLED): $(SOURCES) | $(VENV)/bin/python
	@if [ -e $@ ]; then echo 'Building kerncap again in $(VENV): only what has changed, up to a few minutes.'; else \
	  echo 'Building kerncap in $(VENV): it fetches Python packages and compiles the native part.'; \
	  echo 'The first time that takes about 2 to 5 minutes on two cores, and about 600 MB of disk; pip prints nothing meanwhile.'; fi
	CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) $(BIN)/python -m pip install --quiet '.[sim]'
	@touch $@

$(TOOLS): pyproject.toml | $(VENV)/bin/python $(INSTALLED)
	@echo 'Installing what the tests and checks need (pytest, ruff, mypy, clang-format): about a minute.'
	$(BIN)/python -m pip install --quiet '.[sim,test,dev]'
	@touch $@

demo: $(INSTALLED)
	$(BIN)/kerncap demo

lint: $(TOOLS)
	$(BIN)/ruff check app tests
	$(BIN)/ruff format --check app tests
	$(BIN)/mypy
	find native -name '*.h' -o -name '*.cpp' | grep -v '/tables/' | xargs $(BIN)/clang-format --dry-run --Werror

# Side by side, but for those of the terminal UI: a person's terminal has a core for itself.
test: $(TOOLS) $(INSTALLED) lint
	$(BIN)/python -m pytest -m 'not slow' --ignore=tests/tui -n $(JOBS) --maxprocesses=8 --dist=loadscope
	$(BIN)/python -m pytest -m 'not slow' tests/tui

test-slow: $(TOOLS) $(INSTALLED)
	$(BIN)/python -m pytest -m slow

# The simulator's driver, the replayer and the interposer's own tests; programs that are not sanitised themselves are left out,
# and so is what measures memory.
SANITIZED := build/sanitize/install/kerncap/_native
sanitize: $(TOOLS) $(INSTALLED)
	$(BIN)/cmake -S native -B build/sanitize -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja \
	  -DCMAKE_BUILD_TYPE=RelWithDebInfo -DKERNCAP_SANITIZE=ON -DKERNCAP_NATIVE_TESTS=ON
	$(BIN)/cmake --build build/sanitize --parallel $(JOBS)
	$(BIN)/cmake --install build/sanitize --prefix build/sanitize/install >/dev/null
	KERNCAP_NATIVE_DIR=$(abspath $(SANITIZED)) ASAN_OPTIONS=halt_on_error=1:detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1 \
	  $(BIN)/python -m pytest -q tests/sim tests/replay -k 'not takes_no_memory and not a_program_with'
	build/sanitize/interpose/hsa/kerncap_interpose_tests

format: $(TOOLS)
	$(BIN)/ruff check --fix app tests
	$(BIN)/ruff format app tests
	find native -name '*.h' -o -name '*.cpp' | grep -v '/tables/' | xargs $(BIN)/clang-format -i

bench: $(TOOLS) $(INSTALLED)
	mkdir -p build
	$(BIN)/python tests/bench/run.py --json build/bench.json

pictures: $(INSTALLED)
	$(BIN)/python -m pip install --quiet '.[pictures]'
	$(BIN)/python tests/tui/pictures.py screenshots

clean:
	rm -rf build $(VENV)
