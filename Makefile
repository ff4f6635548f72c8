# Shortcuts for people. `make run` and `make test` install missing packages and build first.
.PHONY: all run install deb tarball image sbom packages packages-test test test-postgres test-nodes asan tsan fuzz sim mutants coverage soak long faults bench flame instructions tidy format bootstrap clean

BUILD = build
LISTEN ?= 127.0.0.1:7295
DATA ?= pawl-data
ROUNDS ?= 3
PREFIX ?= /usr/local

all: bootstrap
	@cmake -G Ninja -B $(BUILD) $(if $(CI),-DPAWL_WERROR=ON) >/dev/null
	@ninja -C $(BUILD) --quiet

bootstrap:
	@tools/bootstrap.sh

run: all
	@tools/run.sh $(BUILD)/pawl $(LISTEN) $(DATA)

install: all
	@cmake -B $(BUILD) -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null && ninja -C $(BUILD) --quiet
	@DESTDIR=$(abspath $(DESTDIR)) cmake --install $(BUILD) >/dev/null

# Packages, into build/packages; docs/install.md. The same commit gives the same bytes.
deb tarball image sbom: all
	@tools/bootstrap.sh packages
	@python3 packaging/build.py --build $(BUILD) $@

packages: all
	@tools/bootstrap.sh packages
	@python3 packaging/build.py --build $(BUILD) deb tarball image sbom libraries

# Installs and starts every package: in a clean Debian, as a container, from the tarball.
packages-test: all
	@tools/bootstrap.sh packages
	@tools/bootstrap.sh test
	@PAWL_BUILD=$(abspath $(BUILD)) python3 -m pytest -q -p no:cacheprovider packaging/tests

test:
	@tools/bootstrap.sh test
	@python3 tools/test.py

# All end-to-end tests, and the unit tests that have a store, on PostgreSQL. `make test` runs a part of them.
test-postgres:
	@tools/bootstrap.sh test
	@python3 tools/test.py --only postgres

# All end-to-end tests on three nodes behind a round-robin, on PostgreSQL. `make test` runs a part of them.
test-nodes:
	@tools/bootstrap.sh test
	@python3 tools/test.py --only nodes

asan:
	@tools/bootstrap.sh test
	@python3 tools/test.py --only asan

tsan:
	@tools/bootstrap.sh test
	@python3 tools/test.py --only tsan

# Runs each fuzz program for SECONDS. The corpus in build-fuzz/corpus grows from run to run.
fuzz: SECONDS ?= 60
fuzz:
	@tools/bootstrap.sh test
	@cmake -G Ninja -B build-fuzz -DCMAKE_C_COMPILER=clang-14 -DPAWL_FUZZ=ON >/dev/null
	@ninja -C build-fuzz --quiet
	@python3 tests/fuzz/run.py --build build-fuzz --seconds $(SECONDS) --jobs $$(nproc)

# The public benchmark (docs/performance.md): a table here, lines of JSON in $(BUILD)/bench/results.jsonl, plots beside them.
# Some parts of it: make bench ONLY=starts,growth SECONDS=10 ROUNDS=5 GROWTH=1000000,10000000 SIGNALS=1000000 PEERS=../peers
bench: SECONDS ?= 3
bench: all
	@tools/bootstrap.sh test
	@python3 bench/run.py --pawl $(BUILD)/pawl --tools $(BUILD)/bench --seconds $(SECONDS) --rounds $(ROUNDS) $(if $(ONLY),--only $(ONLY)) \
	  $(if $(GROWTH),--growth $(GROWTH)) $(if $(SIGNALS),--signals $(SIGNALS)) $(if $(PEERS),--peers $(PEERS))
	@python3 bench/report.py $(BUILD)/bench/results.jsonl --svg $(BUILD)/bench >$(BUILD)/bench/results.md
	@echo "tables: $(BUILD)/bench/results.md, plots: $(BUILD)/bench/*.svg"

# Where the time of a start goes, as a flame graph. Needs perf (Debian: linux-perf).
flame: SECONDS ?= 5
flame: all
	@python3 bench/flame.py --pawl $(BUILD)/pawl --tools $(BUILD)/bench --seconds $(SECONDS) --out $(BUILD)/bench/flame.svg
	@echo "flame graph: $(BUILD)/bench/flame.svg"

# Counts the instructions of a start, a replay, a claim with its completion and a signal, and compares them with
# bench/instructions.json.
instructions: all
	@tools/bootstrap.sh test
	@python3 bench/instructions.py --pawl $(BUILD)/pawl --tools $(BUILD)/bench --check bench/instructions.json

# Random histories of the whole server in one process; a failing one is shrunk and printed step by step. See docs/testing.md.
# One history: build/sim --seed 4711. Of three nodes instead of one server: make sim NODES=--nodes
sim: SEEDS ?= 1..10000
sim: NODES ?=
sim: all
	@$(BUILD)/sim --seeds $(SEEDS) --jobs $$(nproc) --cover $(NODES)

# Puts each deliberate defect of tests/mutants into a copy of the sources and shows that the simulator finds it.
# For some of them: make mutants NAMES='stale-lease-accepted answer-before-commit'
mutants: SEEDS ?= 10000
mutants: all
	@python3 tests/mutants/run.py --seeds $(SEEDS) $(NAMES)

# Branches and lines of src that the unit tests and some seeds of the simulator take. Lists those that no test takes, and
# fails under 95% of the branches of domain or core.
coverage:
	@tools/bootstrap.sh test
	@python3 tools/coverage.py --fail-under 95

# Simulator, chaos on the real binary and fuzzing for SECONDS in total, with seeds that were not used before.
soak: SECONDS ?= 600
soak: all
	@tools/bootstrap.sh test
	@python3 tools/soak.py --seconds $(SECONDS)

# Faults on three nodes over PostgreSQL with a synchronous standby, under load: docs/testing.md.
faults: KILLS ?= 50
faults: PAUSES ?= 10
faults: RESTARTS ?= 10
faults: PROMOTIONS ?= 3
faults: OTHERS ?= 6
faults: all
	@tools/bootstrap.sh test
	@cd tests/e2e && PAWL_BIN=$(abspath $(BUILD))/pawl PAWL_FAULT_KILLS=$(KILLS) PAWL_FAULT_PAUSES=$(PAUSES) PAWL_FAULT_RESTARTS=$(RESTARTS) \
	  PAWL_FAULT_PROMOTIONS=$(PROMOTIONS) PAWL_FAULT_OTHERS=$(OTHERS) PAWL_PATIENCE_S=60 python3 -m pytest -q -s -p no:cacheprovider chaos/test_cluster_faults.py

# Tests of `make test` with larger numbers, and all end-to-end tests over TLS.
long: KILLS ?= 1000
long: HISTORIES ?= 50000
long: RUNS ?= 5000
long: EVENTS ?= 300000
long: SIGNALS ?= 1000000
long: all
	@PAWL_HISTORIES=$(HISTORIES) $(BUILD)/tests/engine_test_admission_model
	@cd tests/e2e && PAWL_BIN=$(abspath $(BUILD))/pawl PAWL_KILLS=$(KILLS) python3 -m pytest -q admission/test_kill_limits.py
	@cd tests/e2e && PAWL_BIN=$(abspath $(BUILD))/pawl PAWL_RUNS=$(RUNS) python3 -m pytest -q cli/test_worker_command.py -k kills_of_server_and_workers
	@cd tests/e2e && PAWL_BIN=$(abspath $(BUILD))/pawl PAWL_NATS_WAITING=$(EVENTS) PAWL_NATS_KILLS=50 python3 -m pytest -q events/test_nats.py -k 'away or killed'
	@cd tests/e2e && PAWL_BIN=$(abspath $(BUILD))/pawl PAWL_SIGNALS=$(SIGNALS) python3 -m pytest -q entities/test_entity_soak.py
	@cd tests/e2e && PAWL_BIN=$(abspath $(BUILD))/pawl PAWL_MOVES=20 PAWL_PATIENCE_S=300 python3 -m pytest -q cluster/test_move_tenant.py -k under_load
	@PAWL_BIN=$(abspath $(BUILD))/pawl PAWL_STORY_ORDERS=150 PAWL_STORY_KILLS=50 PAWL_PATIENCE_S=300 python3 sdk/python/tools/check.py tests/test_story.py
	@PAWL_BIN=$(abspath $(BUILD))/pawl PAWL_STORY_ORDERS=150 PAWL_STORY_KILLS=50 node sdk/typescript/tools/check.mjs story
	@PAWL_STORY_ORDERS=150 PAWL_STORY_KILLS=50 PAWL_PATIENCE_S=300 python3 -m pytest -q -p no:cacheprovider sdk/c/tests/test_story.py
	@PAWL_BIN=$(abspath $(BUILD))/pawl PAWL_STORY_ORDERS=150 PAWL_STORY_KILLS=50 PAWL_PATIENCE_S=300 tests/tools/with_postgres.py python3 sdk/python/tools/check.py tests/test_story.py
	@PAWL_BIN=$(abspath $(BUILD))/pawl PAWL_STORY_ORDERS=150 PAWL_STORY_KILLS=50 tests/tools/with_postgres.py node sdk/typescript/tools/check.mjs story
	@PAWL_STORY_ORDERS=150 PAWL_STORY_KILLS=50 PAWL_PATIENCE_S=300 tests/tools/with_postgres.py python3 -m pytest -q -p no:cacheprovider sdk/c/tests/test_story.py
	@$(MAKE) faults KILLS=50
	@cd tests/e2e && PAWL_BIN=$(abspath $(BUILD))/pawl PAWL_E2E_TLS=1 python3 -m pytest -q

tidy:
	@tools/bootstrap.sh test
	@python3 tools/test.py --only lint

format:
	@tools/bootstrap.sh test
	@git ls-files 'src/*.[ch]' 'tests/*.[ch]' 'bench/*.[ch]' 'sdk/c/*.[ch]' | xargs clang-format-14 -i

clean:
	@rm -rf build build-asan build-tsan build-fuzz build-coverage console/dist console/node_modules sdk/typescript/build sdk/typescript/dist sdk/typescript/node_modules
