# Common commands; each calls a script that works without just. `just` alone lists them.
# Arguments are passed on: just test --keep -E 'test(recipes)'

set positional-arguments

# The build checks queries against .sqlx/, not against a database.
export SQLX_OFFLINE := env_var_or_default("SQLX_OFFLINE", "true")

_default:
    @just --list --unsorted

# Start everything on this machine and run the demo (--no-demo leaves it out)
up *args:
    deploy/local/up "$@"

# Stop what `up` started (--wipe deletes its data)
down *args:
    deploy/local/down "$@"

# Run the demo again, or `demo actions`
demo *args:
    deploy/local/demo "$@"

# Run the default test tier, or the tests that match the arguments
test *args:
    tests/run "$@"

# Run everything: fault tests, contract, SDKs, restore, deploy and document checks
test-all:
    tests/run --all

# Start the test services and keep them: then `source .local/test/env`
services:
    tests/run --services-only

# Stop the test services and delete their data
services-stop:
    tests/run --stop

# Check formatting and lints, as CI does
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- -D warnings

# Format the Rust code
fmt:
    cargo fmt --all

# Update .sqlx/ after a change of a query or a migration
prepare-sql:
    shared/db/prepare

# Update gateway/openapi.json after a change of a route or a type
openapi:
    UPDATE_OPENAPI=1 cargo test --locked -p canvas-gateway the_committed

# Build the console (gateway/console), which the gateway serves
console *args:
    gateway/console/build "$@"

# Test the console in Chromium, against a real service
browser *args:
    tests/browser/run "$@"

# Check deploy/ (--update regenerates its tables first)
deploy-check *args:
    deploy/check "$@"

# Everything that CI runs
ci:
    .ci/run

# Measure the service (--only reads,batches,…; --only images)
bench *args:
    tests/bench "$@"

# Test the service against its contract document (--examples N --seed S)
contract *args:
    tests/contract "$@"

# Run figures of docs/reliability.md at full size (R1,R3,…; --list)
campaign *args:
    tests/campaign "$@"

# Attack a service and measure what innocent accounts notice (--only ROW,…; --short; --list)
abuse *args:
    tests/abuse "$@"

# Remove guards one at a time and expect red tests (all unless named)
mutants *args:
    tests/mutants/run "$@"

# Run the previous release's processes on this schema, under load
upgrade *args:
    tests/upgrade "$@"

# Drive the provider simulators with the vendors' own SDKs
sdk:
    tests/sdk

# Start the provider simulators on loopback
simulators *args:
    cargo run --locked -p canvas-e2e --bin canvas-simulators -- "$@"

# Fuzz one target with coverage (decode, transform or params); needs cargo-fuzz and nightly
fuzz target="decode":
    cargo +nightly fuzz run "$1"

# Check the licenses, bans, sources and known vulnerabilities of dependencies
deny:
    cargo deny --locked check
