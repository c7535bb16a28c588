# Everything around the code. `make` alone lists the targets.

.DEFAULT_GOAL := help
SHELL := bash
PREFIX ?= $(HOME)/.local
CARGO ?= cargo
# cargo uses all cores by itself.
.NOTPARALLEL:

.PHONY: help demo test install lint fmt bench instructions linear fuzz soak sbom deny mcp clients page python dist readme-screen tui-picture clean-cache ready ready-tests build

help: ## list the targets
	@echo "forge: a temporal debugging state store with time travel"
	@echo
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)$$/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{ printf "  make %-14s %s\n", $$1, $$2 }'
	@echo
	@echo "demo and test install what is missing first, and say so. PREFIX is $(PREFIX)."

demo: build ## build forge and play a time-travel session on a recorded example
	@scripts/demo

test: ready-tests ## run all tests: units, properties, crashes, the command line, the examples in the docs
	@scripts/test

install: build ## put the binary in PREFIX/bin
	@install -d "$(DESTDIR)$(PREFIX)/bin"
	@# Without symbols, which are a fifth of the file.
	@install -s -m 755 "$$(scripts/demo --binary)" "$(DESTDIR)$(PREFIX)/bin/forge"
	@echo "installed $(DESTDIR)$(PREFIX)/bin/forge"
	@case ":$$PATH:" in *":$(PREFIX)/bin:"*) ;; *) echo "note: $(PREFIX)/bin is not on your PATH" ;; esac

lint: ready ## formatting, readability, clippy and the documentation, with warnings as errors
	@echo "== cargo fmt --check"
	@$(CARGO) fmt --all --check
	@$(CARGO) fmt --manifest-path tests/outside/Cargo.toml --check
	@echo "== scripts/readability"
	@scripts/readability --check
	@echo "== cargo clippy"
	@$(CARGO) clippy --locked --release --workspace --all-targets -- -D warnings
	@echo "== cargo doc"
	@RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --release --workspace --no-deps

bench: ready ## measure forge and update docs/benchmarks.md (15 to 40 minutes on an idle machine; PARTS=peers: only the peers)
	@scripts/bench $(PARTS) $(BENCH)

instructions: ready ## count the instructions of a small run with callgrind, into target/instructions.txt
	@scripts/instructions

linear: build ## check that ten times the input takes at most twelve times the instructions (NAMES="redact search" only these)
	@scripts/linear $(NAMES)

fmt: ## format the code
	@$(CARGO) fmt --all
	@$(CARGO) fmt --manifest-path tests/outside/Cargo.toml

fuzz: ready ## run each fuzz target for SECONDS (5); SEED, FIXED=1 and TARGETS: see scripts/fuzz
	@scripts/fuzz $(if $(FIXED),--fixed,--seconds $(or $(SECONDS),5)) $(if $(SEED),--seed $(SEED)) $(TARGETS)

soak: ready-tests ## stress the store (16 hours; SHARE=0.1: a tenth of it) and record the results in docs/reliability.md
	@scripts/soak $(if $(SHARE),--share $(SHARE)) $(if $(SEED),--seed $(SEED))

sbom: ## write the bill of materials of the binary to target/forge.cdx.json (CycloneDX)
	@scripts/sbom

deny: ready ## check licences, versions and sources of all dependencies (builds cargo-deny once, in 2 minutes)
	@scripts/deny

mcp: ready ## run the MCP conformance suite and inspector (from npm) against the server
	@scripts/mcp-conformance

clients: ready ## run the real coding agents (from npm) against stand-ins for their models (CLIENTS=codex: only one)
	@scripts/clients $(CLIENTS)

page: ready ## look at the pages of 'forge report' and 'forge serve' in headless Chromium (from Debian and npm)
	@scripts/page

python: ready ## build the wheel of the Python package into target/wheels, and say its size
	@scripts/python-wheel

dist: ## build all packages (wheels, npm, Debian, archive) into target/packages, and install each on a bare system
	@scripts/dist

readme-screen: build ## update the screen in README.md from the binary
	@scripts/demo --screen

tui-picture: build ## draw docs/tui.svg from the real screen (needs tmux)
	@scripts/tui-picture

clean-cache: ## remove the cached RocksDB, cargo-deny, agents, page, Python tests and servers (the next runs fetch and build them, in 6 to 10 minutes)
	@scripts/rocksdb --clean
	@scripts/deny --clean
	@scripts/clients --clean
	@scripts/page --clean
	@scripts/python-test --clean
	@scripts/langgraph-test --clean
	@scripts/object-servers --clean
	@scripts/database-servers --clean

# Prerequisites of the targets above.
ready:
	@scripts/setup
	@scripts/rocksdb

ready-tests:
	@scripts/setup --tests
	@scripts/rocksdb

build: ready
	@# Of the whole workspace, so that it shares its build with the tests: alone it has fewer features.
	@$(CARGO) build --locked --release --workspace --bin forge
