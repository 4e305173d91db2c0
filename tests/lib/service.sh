# Starts a service for a script: real processes on the services of tests/run, with an account, a token and resources of every kind.
# Sourced after common.sh and packages.sh.
# shellcheck shell=bash

# use_test_services: uses the services of tests/run. If its environment is not set, they are started and left running.
use_test_services() {
    prepare_cargo
    if [[ -z ${TEST_DATABASE_URL:-} ]]; then
        "$ROOT/tests/run" --services-only
        source "$ROOT/.local/test/env"
    fi
}

# start_service LOG [PROFILE]: starts canvas-contract (tests/src/bin/canvas-contract.rs), which logs to LOG. It runs until this script closes
# its standard input or ends. The builds are debug builds, or those of PROFILE, or the binaries in the directory BIN.
start_service() {
    local binary profile=${2:-debug}
    if [[ -z ${BIN:-} ]]; then
        cargo build --locked --quiet --workspace --bins --profile "${profile/#debug/dev}"
        BIN=$(target_directory)/$profile
    fi
    binary=$BIN/canvas-contract
    mkdir -p "${1%/*}"
    # Set before the coprocess starts, which reads it.
    SERVICE_LOG=$1
    coproc SERVICE { exec "$binary" 2>"$SERVICE_LOG"; }
    if ! read -r -u "${SERVICE[0]}" SERVICE_SETTING; then
        tail -n 20 "$SERVICE_LOG" >&2
        return 1
    fi
}

# service_setting NAME: prints a member of the output of canvas-contract, for example token.
service_setting() { python3 -c 'import json, sys; print(json.loads(sys.argv[1])[sys.argv[2]])' "$SERVICE_SETTING" "$1"; }

# export_service: tells the programs of tests/agents of the service.
export_service() {
    export CANVAS_SERVICE=$SERVICE_SETTING CANVAS_SERVICE_PID=$SERVICE_PID CANVAS_GATEWAY=$BIN/canvas-gateway
}
