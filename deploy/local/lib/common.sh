# Shared functions of the scripts in deploy and tests: steps, failure reports, waiting, secrets. Source this file; do not run it.
# shellcheck shell=bash

# The root of the checkout, independent of the caller's working directory.
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd -P)

STEP="" STEP_LOG="" STEP_HINT="" STEP_BEGAN=0

say() { printf '%s\n' "$*"; }

# The current time in microseconds. The decimal separator depends on the locale.
now_us() { printf '%s' "${EPOCHREALTIME/[.,]/}"; }

# seconds_since MICROSECONDS: "0.8 s".
seconds_since() {
    local tenths=$((($(now_us) - $1) / 100000))
    printf '%d.%d s' $((tenths / 10)) $((tenths % 10))
}

# step WHAT [LOG [HINT]]: begins a step. Until `ok` ends it, any failure is reported as a failure of this step.
step() {
    STEP=$1 STEP_LOG=${2:-} STEP_HINT=${3:-fix the cause and run the same command again}
    STEP_BEGAN=$(now_us)
    printf -- '-> %s\n' "$STEP"
}

# ok [RESULT]: ends the step and prints how long it took.
ok() {
    printf '   %s (%s)\n' "${1:-done}" "$(seconds_since "$STEP_BEGAN")"
    STEP=""
}

# without_password URL: sets DATABASE to the URL without its password, because every user of the machine can read command lines, and
# PGPASSWORD, which libpq reads, to the password.
without_password() {
    DATABASE=$1
    if [[ $1 =~ ^([a-z]+://[^:/@?]*):([^@/?]*)@(.*)$ ]]; then
        DATABASE=${BASH_REMATCH[1]}@${BASH_REMATCH[3]}
        local encoded=${BASH_REMATCH[2]//\\/\\\\}
        printf -v PGPASSWORD '%b' "${encoded//%/\\x}"
        export PGPASSWORD
    fi
}

die() {
    printf '%s\n' "$*" >&2
    exit 1
}

# Reports the failed step, the end of its log and how to continue.
report_failure() {
    local status=$1
    ((status != 0)) && [[ -n $STEP ]] || return 0
    {
        if ((status == 130 || status == 143)); then
            printf '\nINTERRUPTED in: %s\nTo continue: run the same command again. Running parts stay up.\n' "$STEP"
            return
        else
            printf '\nFAILED: %s (after %s)\n' "$STEP" "$(seconds_since "$STEP_BEGAN")"
        fi
        if [[ -n $STEP_LOG && -s $STEP_LOG ]]; then
            printf 'The last lines of %s:\n' "$STEP_LOG"
            tail -n 15 "$STEP_LOG" | cut -c -400 | sed 's/^/    /'
        fi
        printf 'Free disk space: %s.\nTo continue: %s.\n' "$(free_space)" "$STEP_HINT"
    } >&2
}

# Prints the free space of the file systems that hold the checkout and temporary files. Without it PostgreSQL, RabbitMQ and Python fail in
# ways that do not name the cause.
free_space() {
    local tmp=${TMPDIR:-/tmp}
    printf '%s for %s, %s for %s' "$(available "$ROOT")" "$ROOT" "$(available "$tmp")" "$tmp"
}
available() { df -h --output=avail "$1" | tail -n 1 | tr -d ' '; }

# on_exit FUNCTION: calls FUNCTION with the exit status when the script ends for any reason. Signals become ordinary exits, so that cleanup
# always runs.
on_exit() {
    # shellcheck disable=SC2064 # expand the name now
    trap "$1 \$?" EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
}

# wait_until SECONDS COMMAND…: polls COMMAND until it succeeds.
wait_until() {
    local deadline=$(($(now_us) + $1 * 1000000))
    shift
    until "$@"; do
        (($(now_us) < deadline)) || return 1
        sleep 0.1
    done
}

# lock FILE: takes an exclusive lock; other scripts wait. Descriptor 9 holds it, and children must not inherit it (`spawn` closes it).
lock() {
    exec 9>"$1"
    flock -n 9 && return
    say "Waiting for another up, down or tests/run in this directory to finish."
    flock 9
}

# secret NAME COMMAND…: prints the secret stored under NAME. The first time, COMMAND creates it. Only its owner can read the file.
secret() {
    local file=$LOCAL/secrets/$1
    shift
    if [[ ! -s $file ]]; then
        (
            umask 077
            mkdir -p "$LOCAL/secrets"
            "$@" >"$file.new"
            mv "$file.new" "$file"
        )
    fi
    cat "$file"
}
