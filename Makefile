# make demo and make test need only Python >= 3.11 with venv and pip.

PYTHON ?= python3
WORKERS ?= 2
SOAK_ROUNDS ?= 10

BIN := .venv/bin

# Both names: newer pip pins the isolated build by the second only, older pip by the first.
export PIP_CONSTRAINT := constraints.txt
export PIP_BUILD_CONSTRAINT := constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Two test workers with a BLAS pool each would fight for the same cores.
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup

.PHONY: demo test loops quick check format words docs bench bench-full bench-base bench-models bench-service bench-xmc contest peers service-clients fuzz-service soak coverage structure fence changes clean

demo: .venv/.installed
	@mkdir -p build/demo
	$(BIN)/discriminant examples build/demo --quiet
	$(BIN)/discriminant report build/demo/wine.csv --target cultivar \
		--out build/demo/wine.html --save build/demo/wine.model

# Slow tests (two gigabytes, a thousand sets, every cut of every NIST set) are soaked instead.
test: .venv/.installed-test
	$(MAKE) --no-print-directory --jobs 2 check loops
	$(PYTEST) -m "not slow" --durations=25

# Compile every loop once, before two test processes both do.
loops: .venv/.installed-test
	$(BIN)/python tools/compile_loops.py

# Under two minutes: the tests of the files that differ from a commit, make quick BASE=main
BASE ?= HEAD
quick: .venv/.installed-test
	$(BIN)/ruff check .
	@tests=$$($(BIN)/python tools/quick_tests.py $(BASE)); \
	if [ -n "$$tests" ]; then $(PYTEST) -m "not slow" $$tests; else echo "No tested file changed."; fi

check: .venv/.installed-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --strict src
	$(BIN)/lint-imports --no-logo
	$(BIN)/codespell

# Lower the counts of words to avoid (tools/vocabulary.toml) to what is left of them.
words: .venv/.installed-test
	$(BIN)/python tools/vocabulary.py --lower

format: .venv/.installed-test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The site, every figure of the gallery drawn, a warning an error: docs/_build/html/index.html
docs: .venv/.installed-test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q docs docs/_build/html

# Everything in one go, in less than 45 minutes on two cores, loops compiled before; writes docs/benchmarks.md and README's table.
bench: .venv/.installed-bench .venv-xmc/.installed loops
	$(BIN)/python benchmarks/run.py

# With the long cases too; writes docs/benchmarks_full.md.
bench-full: .venv/.installed-bench .venv-xmc/.installed loops
	$(BIN)/python benchmarks/run.py --full

# This tree against another commit on common tasks, in 3 minutes: make bench-base BASE=main
bench-base: .venv/.installed-test
	$(BIN)/python benchmarks/compare.py $(BASE)

# Mixtures, penalties, robust covariances and prediction sets against other libraries, in 10 minutes.
bench-models: .venv/.installed-bench
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python benchmarks/model_fits.py

# What report selects, against scikit-learn and glmnet on public tables; writes docs/contest.md. Some 40
# minutes on two cores. cv.glmnet takes part where R has it (Debian: r-base-core r-cran-glmnet).
contest: .venv/.installed-contest
	$(BIN)/python benchmarks/accuracy.py

# Label trees against omikuji, napkinXC and libpecos, which have an environment of their own. Goes on
# where it stopped; make bench-xmc XMC="--sets bibtex,10k --seeds 1" is a short one.
bench-xmc: .venv/.installed-bench .venv-xmc/.installed
	$(BIN)/python benchmarks/xmc.py $(XMC)

# The test suites of scikit-learn, imbalanced-learn and statsmodels against this package; fails where
# a test is wrong or an expected failure stale. make peers PEERS="glm --list convention" is a part.
peers: .venv-peers/.installed
	.venv-peers/bin/python -m tests.peers.run $(PEERS)

# The service against clients that are not ours: Triton's and MLflow's, in an environment of their own.
service-clients: .venv-clients/.installed .venv/.installed-test
	$(BIN)/python tests/clients/run.py .venv-clients/bin/python

# CPU time of the service beside FastAPI with scikit-learn; make bench-service SERVICE="--minutes 10" is
# a load test.
bench-service: .venv-clients/.installed .venv/.installed-test
	$(BIN)/python benchmarks/service.py --peer .venv-clients/bin/python $(SERVICE)

# Everything, slow tests too, under new seeds each round; the seed is printed to repeat a failure.
soak: .venv/.installed-test
	@for round in $$(seq $(SOAK_ROUNDS)); do \
		seed=$$(( $$(date +%s) + round )); \
		echo "round $$round of $(SOAK_ROUNDS): --hypothesis-seed=$$seed"; \
		$(PYTEST) --hypothesis-seed=$$seed || exit 1; \
	done

# Damaged requests, files and bytes to the service and the studio; the seed repeats a failure:
# make fuzz-service SECONDS=600 SEED=7
SECONDS ?= 600
SEED ?= $(shell date +%s)
fuzz-service: .venv/.installed-test
	@echo "--seed $(SEED)"
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.unit.web.fuzz --seconds $(SECONDS) --seed $(SEED)

# Share of the lines that the tests run, by room: make coverage TESTS=tests/laws is a part.
TESTS ?= tests src
coverage: .venv/.installed-test
	rm -rf build/coverage && mkdir -p build/coverage
	OPENBLAS_NUM_THREADS=1 $(BIN)/coverage run -m pytest -n $(WORKERS) --dist loadgroup -m "not slow" $(TESTS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage json --quiet -o build/coverage/report.json
	$(BIN)/python tools/coverage_by_room.py build/coverage/report.json

# Modules, code lines, large folders, import cycles and repeated class names of src.
structure: .venv/.installed-test
	$(BIN)/python tools/structure.py

# Compare every number with another commit, bit for bit: make fence BASE=main~3 ULPS=0
ULPS ?= 0
fence: .venv/.installed-test
	$(BIN)/python tests/fence/compare.py $(BASE) --ulps $(ULPS)

# Print the next section of CHANGELOG.md, from changes/; make changes VERSION=0.2.0 writes it.
VERSION ?=
changes: .venv/.installed-release
	$(BIN)/towncrier build $(if $(VERSION),--yes --version $(VERSION),--draft --version unreleased)

clean:
	rm -rf .venv .venv-xmc .venv-peers .venv-clients build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	rm -rf docs/_build docs/auto_gallery docs/reference docs/sg_execution_times.rst
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# A change of the pins starts from an empty environment, unless make did not create it; a change of
# pyproject installs again.
.venv/.made: constraints.txt
	$(PYTHON) -m venv $$([ -e .venv/.made ] && echo --clear) .venv
	@touch $@

.venv/.installed: .venv/.made pyproject.toml
	$(BIN)/pip install --quiet --editable .
	@touch $@

.venv/.installed-test: .venv/.made pyproject.toml
	$(BIN)/pip install --quiet --editable ".[test,check]"
	@touch $@

.venv/.installed-release: .venv/.installed-test
	$(BIN)/pip install --quiet --editable ".[release]"
	@touch $@

.venv/.installed-bench: .venv/.installed-test
	$(BIN)/pip install --quiet --editable ".[bench]"
	@touch $@

.venv/.installed-contest: .venv/.installed-test
	$(BIN)/pip install --quiet --editable ".[contest]"
	@touch $@

# libpecos without what it asks for, 6 GB of which XR-Linear needs nothing.
.venv-xmc/.installed: benchmarks/xmc_peers.txt
	$(PYTHON) -m venv --clear .venv-xmc
	env -u PIP_CONSTRAINT -u PIP_BUILD_CONSTRAINT .venv-xmc/bin/pip install --quiet -r $<
	env -u PIP_CONSTRAINT -u PIP_BUILD_CONSTRAINT .venv-xmc/bin/pip install --quiet --no-deps libpecos==1.2.8
	@touch $@

.venv-clients/.installed: tests/clients/requirements.txt
	$(PYTHON) -m venv --clear .venv-clients
	env -u PIP_CONSTRAINT -u PIP_BUILD_CONSTRAINT .venv-clients/bin/pip install --quiet --requirement $<
	@touch $@

.venv-peers/.installed: tests/peers/requirements.txt constraints.txt pyproject.toml
	$(PYTHON) -m venv --clear .venv-peers
	.venv-peers/bin/pip install --quiet --requirement $< --editable .
	@touch $@
