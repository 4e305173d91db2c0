# Parts are the programs that run under .local. Each has its pid in run/<part>.pid, its log in log/<part>.log and its port in `ports`.
# A part is never started twice and never stopped by name: a pid is valid only while /proc shows that it is that program of this checkout.
# A process of the service also has a supervisor (supervise), whose pid is in run/<part>.supervisor.pid.
# shellcheck shell=bash

SUPERVISE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)/supervise

# prepare_local DIRECTORY: sets LOCAL, the directory that contains all files of this instance.
prepare_local() {
    LOCAL=$1
    mkdir -p "$LOCAL/run" "$LOCAL/log" "$LOCAL/data"
    touch "$LOCAL/ports"
    # A name that is unique for each checkout, and for the services of the tests and of `up`.
    INSTANCE=canvas-$(printf '%s' "$LOCAL" | cksum | cut -d ' ' -f 1)
}

# marker_of PART: a string that only the command line of this part contains. The command line can be read without ptrace rights, which
# root lacks in a default container when the part runs as another user.
marker_of() {
    case $1 in
        postgres) printf -- '-D %s ' "$(readlink -f "$LOCAL/data/postgres")" ;;
        redis) printf '%s' "$LOCAL/data/redis/redis.conf" ;;
        rabbitmq) printf -- '-instance %s ' "$INSTANCE" ;;
        oidc) printf '/provider.mjs %s/oidc ' "$LOCAL" ;;
        epmd) printf -- '-port %s ' "$(remembered_port epmd)" ;;
        *) printf '/canvas-%s ' "$1" ;;
    esac
}

# command_of PID: prints the command line of a process.
command_of() { tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline"; }

# live_pid FILE MARKER: prints the pid in FILE. Fails if there is none, or if its command line does not contain MARKER (a stale pid, a zombie,
# a pid that now belongs to another program).
live_pid() {
    local pid command=""
    pid=$(cat "$1" 2>/dev/null) && [[ $pid =~ ^[0-9]+$ ]] || return 1
    command=$(command_of "$pid") || return 1
    [[ $command == *"$2"* ]] || return 1
    printf '%s' "$pid"
}

# pid_of PART: prints its pid. Fails if it does not run.
pid_of() { live_pid "$LOCAL/run/$1.pid" "$(marker_of "$1")"; }

# supervisor_of PART: prints the pid of its supervisor. Fails if it has none.
supervisor_of() { live_pid "$LOCAL/run/$1.supervisor.pid" "/supervise $LOCAL $1 "; }

is_up() { pid_of "$1" >/dev/null; }

# spawn PART COMMAND…: runs COMMAND in its own session (Ctrl-C here does not reach it), without stdin, with output to its log file. The
# child writes its own pid before it executes COMMAND, so that it never runs without a pid file. Descriptors 8 and 9 are locks (here and
# in tests/run); they are closed, because otherwise the part would hold the locks.
spawn() {
    local part=$1
    shift
    rm -f "$LOCAL/run/$part.pid"
    # shellcheck disable=SC2016 # expanded by the child
    (setsid bash -c 'echo "$$" >"$1"; shift; exec "$@"' spawn "$LOCAL/run/$part.pid" "$@" \
        </dev/null >>"$LOCAL/log/$part.log" 2>&1 8>&- 9>&- &)
    wait_until 10 test -s "$LOCAL/run/$part.pid"
}

# spawn_supervised PART COMMAND…: the same under a supervisor, which restarts the part once it was ready (`is_ready`).
spawn_supervised() {
    local part=$1
    shift
    stop_supervisors "$part"
    rm -f "$LOCAL/run/$part.pid"
    (setsid "$SUPERVISE" "$LOCAL" "$part" "$@" </dev/null >>"$LOCAL/log/$part.log" 2>&1 8>&- 9>&- &)
    wait_until 10 test -s "$LOCAL/run/$part.pid"
}

# is_ready PART: notes that the part was ready. From now on its supervisor restarts it.
is_ready() { touch "$LOCAL/run/$1.ready"; }

has_no_supervisor() { ! supervisor_of "$1" >/dev/null; }

# stop_supervisors PART…: ends the supervisors. The parts go on if they run, and nothing restarts them.
stop_supervisors() {
    local part pid
    for part in "$@"; do
        if pid=$(supervisor_of "$part"); then kill -s TERM "$pid" 2>/dev/null || true; fi
    done
    for part in "$@"; do
        if ! wait_until 10 has_no_supervisor "$part" && pid=$(supervisor_of "$part"); then
            kill -s KILL "$pid" 2>/dev/null || true
            wait_until 10 has_no_supervisor "$part"
        fi
        rm -f "$LOCAL/run/$part.ready" "$LOCAL/run/$part.supervisor.pid"
    done
}

# retire_supervisor PART: if the part is down, ends the supervisor that waits to restart it. Afterwards the part either runs, or is down and
# nothing starts it.
retire_supervisor() {
    if ! wait_until 10 is_retired "$1"; then stop_supervisors "$1"; fi
}

is_retired() {
    local pid
    if is_up "$1" || ! pid=$(supervisor_of "$1"); then return; fi
    kill -s USR1 "$pid" 2>/dev/null || true
    return 1
}

# is_running PART: whether the spawned pid still runs, whatever program it is: a start script does not have the server's command line yet.
is_running() {
    local pid state
    pid=$(cat "$LOCAL/run/$1.pid") && state=$(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null) && [[ $state != Z* ]]
}

ready_or_dead() {
    local part=$1
    shift
    "$@" >/dev/null 2>&1 || ! is_running "$part"
}

# await_part PART SECONDS COMMAND…: waits until COMMAND succeeds; fails early if the part exits.
await_part() {
    local part=$1 seconds=$2
    shift 2
    if ! wait_until "$seconds" ready_or_dead "$part" "$@"; then
        say "   $part was not ready within $seconds s" >&2
        return 1
    fi
    if ! is_up "$part"; then
        say "   $part exited before it was ready" >&2
        return 1
    fi
}

# stop_parts SIGNAL SECONDS PART…: signals all running parts at once, waits up to SECONDS for each, and kills those that remain.
stop_parts() {
    local signal=$1 seconds=$2 part pid
    shift 2
    local -A pids=()
    for part in "$@"; do
        if pid=$(pid_of "$part"); then
            pids[$part]=$pid
            kill -s "$signal" "$pid" 2>/dev/null || true
        fi
    done
    for part in "$@"; do
        if [[ -n ${pids[$part]:-} ]] && ! wait_until "$seconds" is_down "$part"; then
            say "   $part did not stop within $seconds s: killed" >&2
            kill -KILL "${pids[$part]}" 2>/dev/null || true
            wait_until 10 is_down "$part" || true
        fi
        rm -f "$LOCAL/run/$part.pid"
    done
}

is_down() { ! is_up "$1"; }

# port_is_taken PORT: whether a program listens on PORT, on any address. It reads /proc, so it needs no tool.
port_is_taken() {
    local hex
    printf -v hex '%04X' "$1"
    awk -v port="$hex" '{ n = split($2, a, ":"); if (a[n] == port && $4 == "0A") found = 1 } END { exit !found }' \
        /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

remembered_port() { sed -n "s/^$1=//p" "$LOCAL/ports"; }

# port NAME: prints the port of NAME. It is chosen once, below the kernel's ephemeral port range, and stored.
port() {
    local chosen
    chosen=$(remembered_port "$1")
    while [[ -z $chosen ]]; do
        chosen=$((20000 + SRANDOM % 12000))
        if port_is_taken "$chosen" || grep -q "=$chosen\$" "$LOCAL/ports"; then
            chosen=""
        else
            printf '%s=%s\n' "$1" "$chosen" >>"$LOCAL/ports"
        fi
    done
    printf '%s' "$chosen"
}

# reserve_port NAME: call this while the part that uses the port is down. If another program has taken the stored port, a new one is chosen
# and the file run/ports-moved is created, because processes that know the old port must be restarted.
reserve_port() {
    local old
    old=$(remembered_port "$1")
    if [[ -n $old ]] && port_is_taken "$old"; then
        sed -i "/^$1=/d" "$LOCAL/ports"
        touch "$LOCAL/run/ports-moved"
        say "   port $old is taken by another program: moving to $(port "$1")"
    fi
    port "$1" >/dev/null
}

# http_ok URL: whether URL returns a success status.
http_ok() { curl -fsS -o /dev/null --noproxy '*' --max-time 3 "$1"; }
