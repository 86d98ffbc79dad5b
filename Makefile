# The commands people type; each is a thin line over CMake, ctest or the program itself.
BUILD := build/release
ASSAY := $(BUILD)/assay
DEMO_STUDY ?= studies/demo.yaml
DEMO_BUNDLE ?= bundles/demo-$(shell date -u +%Y%m%dT%H%M%SZ)

.PHONY: demo build test test-asan soak soak-asan fuzz bench bench-torch bench-analysis bench-judgements bench-pairs bench-percent format tidy install torch-env cuda-libs clean

demo: build
	@test -d models/gpt2-25m || $(ASSAY) model make gpt2-25m -o models/gpt2-25m
	$(ASSAY) run $(DEMO_STUDY) -o $(DEMO_BUNDLE)

# Release, the program alone: what demo and install need. A build folder that has the tests keeps them.
build:
	@scripts/install-deps build
	@test -f $(BUILD)/CMakeCache.txt || \
	  cmake --preset release -DASSAY_BUILD_TESTS=OFF -DASSAY_BUILD_BENCH=OFF >/dev/null
	cmake --build --preset release --target assay

test:
	@scripts/install-deps test
	@scripts/torch-env || echo "no torch environment: the parity tests will be reported as skipped"
	@cmake --preset release -DASSAY_BUILD_TESTS=ON -DASSAY_BUILD_BENCH=ON >/dev/null
	cmake --build --preset release
	ctest --preset release -j $$(nproc)

test-asan:
	@scripts/install-deps test
	@cmake --preset asan >/dev/null
	cmake --build --preset asan
	ctest --preset asan -j $$(nproc)

# The long trials: random kills with resume, a minute of each fuzzer.
soak:
	@scripts/install-deps test
	@cmake --preset release -DASSAY_BUILD_TESTS=ON >/dev/null
	cmake --build --preset release
	ctest --preset soak

# Ten minutes of the hostile load on `assay serve`, with the sanitizers of test-asan; of it the program alone is built.
soak-asan:
	@scripts/install-deps test
	@cmake --preset asan >/dev/null
	cmake --build --preset asan --target assay
	ctest --preset soak-asan

FUZZ_SECONDS ?= 60
fuzz:
	scripts/fuzz $(FUZZ_SECONDS)

bench:
	@scripts/install-deps test
	@cmake --preset release -DASSAY_BUILD_BENCH=ON >/dev/null
	cmake --build --preset release
	@for program in $(BUILD)/bench_*; do echo "== $$(basename $$program)"; $$program || exit; done
	@echo "== slower_forms"; bench/slower_forms.py --build $(BUILD) $(BENCH_FORMS_ARGS)

# The engine beside PyTorch on the same checkpoints; BENCH_TORCH_ARGS="--quick --models gpt2-100m" for a look.
bench-torch:
	@scripts/install-deps test
	@cmake --preset release -DASSAY_BUILD_BENCH=ON >/dev/null
	cmake --build --preset release --target assay engine_peer
	bench/engine_vs_torch --build $(BUILD) $(BENCH_TORCH_ARGS)

# `assay analyze` beside pandas, SciPy and NumPy, and its cost on up to 5,000,000 rows.
bench-analysis:
	@scripts/install-deps test
	@cmake --preset release -DASSAY_BUILD_BENCH=ON >/dev/null
	cmake --build --preset release --target assay synthetic_study
	bench/analysis_vs_python --build $(BUILD) $(BENCH_ANALYSIS_ARGS)

# Each judgement of 20 bundles of 52,410 rows.
bench-judgements:
	@scripts/install-deps test
	@cmake --preset release -DASSAY_BUILD_BENCH=ON >/dev/null
	cmake --build --preset release --target assay synthetic_study
	bench/judgements --build $(BUILD) $(BENCH_JUDGEMENTS_ARGS)

# False alarms and planted slowdowns of `assay compare` on real runs; BENCH_PAIRS_ARGS="--pairs 10" for a look.
bench-pairs:
	@scripts/install-deps test
	@cmake --preset release -DASSAY_BUILD_BENCH=ON >/dev/null
	cmake --build --preset release --target assay slower_bundle
	bench/aa_pairs --build $(BUILD) $(BENCH_PAIRS_ARGS)

# 1 % planted in decode, found by `assay compare --run`, and nothing found in equal programs: a quarter of an hour.
bench-percent:
	@scripts/install-deps test
	@cmake --preset release -DASSAY_BUILD_TESTS=ON >/dev/null
	cmake --build --preset release --target assay_planted_nothing assay_planted_percent
	bench/planted_percent --build $(BUILD) $(BENCH_PERCENT_ARGS)

format:
	scripts/format

tidy:
	@scripts/install-deps fuzz
	@cmake --preset release -B build/tidy -DASSAY_UNITY=OFF >/dev/null
	@cmake --build build/tidy --target assay_code_version >/dev/null
	scripts/tidy

PREFIX ?= build/install
install: build
	cmake --install $(BUILD) --prefix $(PREFIX)

torch-env:
	@scripts/install-deps test
	scripts/torch-env

# NVRTC and cuBLASLt for a GPU's machine that has neither; the program finds them where this puts them.
cuda-libs:
	scripts/cuda-libs

clean:
	rm -rf build
