# Steps, failures, waiting, secrets: what every script under deploy/local and tests/run share. Sourced, never run.
# shellcheck shell=bash

# The checkout, wherever the caller stands.
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd -P)

STEP="" STEP_LOG="" STEP_HINT="" STEP_BEGAN=0

say() { printf '%s\n' "$*"; }

# The time now in microseconds; the separator follows the locale.
now_us() { printf '%s' "${EPOCHREALTIME/[.,]/}"; }

# seconds_since MICROSECONDS: "0.8 s".
seconds_since() {
    local tenths=$((($(now_us) - $1) / 100000))
    printf '%d.%d s' $((tenths / 10)) $((tenths % 10))
}

# step WHAT [LOG [HINT]]: begins a step. Until `ok` closes it, a failure anywhere is reported as a failure of this step.
step() {
    STEP=$1 STEP_LOG=${2:-} STEP_HINT=${3:-mend the cause and run the same command again}
    STEP_BEGAN=$(now_us)
    printf -- '-> %s\n' "$STEP"
}

# ok [RESULT]: ends the step and prints how long it took.
ok() {
    printf '   %s (%s)\n' "${1:-done}" "$(seconds_since "$STEP_BEGAN")"
    STEP=""
}

# without_password URL: sets DATABASE to the URL without its password, for command lines, which every user of the machine may read, and
# PGPASSWORD to the password, which libpq takes from there.
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

# Names the step that failed, shows the end of its log and says how to go on.
report_failure() {
    local status=$1
    ((status != 0)) && [[ -n $STEP ]] || return 0
    {
        if ((status == 130 || status == 143)); then
            printf '\nINTERRUPTED in: %s\nTo go on: run the same command again; what is up stays up.\n' "$STEP"
            return
        else
            printf '\nFAILED: %s (after %s)\n' "$STEP" "$(seconds_since "$STEP_BEGAN")"
        fi
        if [[ -n $STEP_LOG && -s $STEP_LOG ]]; then
            printf 'The last lines of %s:\n' "$STEP_LOG"
            tail -n 15 "$STEP_LOG" | cut -c -400 | sed 's/^/    /'
        fi
        printf 'To go on: %s.\n' "$STEP_HINT"
    } >&2
}

# on_exit FUNCTION: FUNCTION gets the exit status, whichever way the script ends. A signal becomes an ordinary exit, so that
# there is one way out and it always cleans up.
on_exit() {
    # shellcheck disable=SC2064 # the name is to be expanded now
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

# lock FILE: one script at a time; the other waits. Held by descriptor 9, which children must not inherit (`spawn` closes it).
lock() {
    exec 9>"$1"
    flock -n 9 && return
    say "Another up, down or tests/run is at work here; waiting for it."
    flock 9
}

# secret NAME COMMAND…: the secret kept under NAME, made by COMMAND the first time. Readable by its owner alone.
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
