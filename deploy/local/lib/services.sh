# Private instances of PostgreSQL, Redis and RabbitMQ, with their own data directories, ports and passwords, on loopback only. The services
# of the system are neither needed nor changed.
# shellcheck shell=bash

SERVICES=(postgres redis rabbitmq)

# service_password SERVICE: the services listen on loopback only, but every user of the machine can connect to loopback.
service_password() { secret "$1-password" openssl rand -hex 16; }

postgres_url() { printf 'postgres://canvas:%s@127.0.0.1:%s/canvas' "$(service_password postgres)" "$(port postgres)"; }
redis_url() { printf 'redis://default:%s@127.0.0.1:%s/0' "$(service_password redis)" "$(port redis)"; }
amqp_url() { printf 'amqp://canvas:%s@127.0.0.1:%s/%%2f' "$(service_password rabbitmq)" "$(port rabbitmq)"; }

# The programs of the newest installed PostgreSQL, which Debian does not add to PATH. 15 is the oldest supported version.
postgres_bin() {
    local dir version best=""
    for dir in /usr/lib/postgresql/*/bin; do
        version=${dir#/usr/lib/postgresql/} version=${version%/bin}
        if [[ -x $dir/postgres && ${version%%.*} -ge 15 && ${version%%.*} -gt ${best:-0} ]]; then best=${version%%.*}; fi
    done
    [[ -n $best ]] && printf '/usr/lib/postgresql/%s/bin' "$best"
}

# PostgreSQL refuses to run as root. setpriv, unlike runuser, replaces itself with the program, so the stored pid is the server's.
AS_POSTGRES=()
if ((EUID == 0)); then AS_POSTGRES=(setpriv --reuid=postgres --regid=postgres --init-groups --); fi

# memory_has_room: whether 2 GiB fit into /dev/shm, which a container may have made small, and leave the machine as much.
memory_has_room() {
    local free
    free=$(df --output=avail --block-size=1M /dev/shm 2>/dev/null | tail -n 1) && ((free > 2048)) &&
        (($(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo) > 4 * 1024 * 1024))
}

# postgres_home: prints the directory to keep the data in, if it is not to be below .local: in memory with POSTGRES_IN_MEMORY, where there
# is room; under /var/lib if the checkout belongs to root and the user postgres cannot access it (for example below /root).
postgres_home() {
    if [[ ${POSTGRES_IN_MEMORY:-} ]] && memory_has_room; then
        printf '/dev/shm/%s' "$INSTANCE"
    elif ((EUID == 0)) && ! (cd / && "${AS_POSTGRES[@]}" test -x "$LOCAL/data"); then
        printf '/var/lib/%s' "$INSTANCE"
    fi
}

# Prints the data directory, and creates it if it is missing: data/postgres, which is a link if the data is elsewhere.
postgres_data() {
    local data=$LOCAL/data/postgres home owner=()
    if [[ ! -e $data ]]; then
        if ((EUID == 0)); then owner=(-o postgres -g postgres); fi
        rm -f "$data" "$LOCAL/data/postgres.ready"
        home=$(postgres_home)
        if [[ $home ]]; then
            install -d "${owner[@]}" -m 700 "$home/postgres"
            ln -sfn "$home/postgres" "$data"
        else
            install -d "${owner[@]}" -m 700 "$data"
        fi
    fi
    readlink -f "$data"
}

# After a crash postmaster.pid remains. If its pid now belongs to another program, for example after a reboot, the server would refuse to
# start.
drop_stale_postmaster_pid() {
    local file=$1/postmaster.pid pid
    pid=$(head -n 1 "$file" 2>/dev/null) || return 0
    if [[ -r /proc/$pid/cmdline ]] && ! grep -qa postgres "/proc/$pid/cmdline"; then rm -f "$file"; fi
}

# Creates the cluster with one superuser and one database, both named `canvas`. Single-user mode needs no running server and no login.
postgres_initialise() {
    local bin=$1 data=$2
    find "$data" -mindepth 1 -delete
    (
        cd /
        "${AS_POSTGRES[@]}" "$bin/initdb" -D "$data" --username=canvas --encoding=UTF8 --locale=C.UTF-8 \
            --auth-host=scram-sha-256 --auth-local=reject --no-instructions
        "${AS_POSTGRES[@]}" "$bin/postgres" --single -D "$data" -c exit_on_error=true postgres <<SQL
ALTER ROLE canvas PASSWORD '$(service_password postgres)';
CREATE DATABASE canvas;
SQL
    ) >>"$LOCAL/log/postgres.log" 2>&1
    touch "$LOCAL/data/postgres.ready"
}

postgres_answers() { "$(postgres_bin)/pg_isready" -q -h 127.0.0.1 -p "$(port postgres)"; }

# postgres_start SETTING=VALUE…
postgres_start() {
    step "PostgreSQL" "$LOCAL/log/postgres.log"
    local bin data setting settings=() try
    bin=$(postgres_bin)
    if is_up postgres; then
        await_part postgres 60 postgres_answers
        ok "already up on port $(port postgres)"
        return
    fi
    data=$(postgres_data)
    reserve_port postgres
    # An initialization that was interrupted is repeated from the start.
    if [[ ! -e $LOCAL/data/postgres.ready ]]; then postgres_initialise "$bin" "$data"; fi
    for setting in "$@"; do settings+=(-c "$setting"); done
    drop_stale_postmaster_pid "$data"
    # After a SIGKILL of the server, its children take a moment to release the shared memory, so the start is retried.
    for try in 1 2 3; do
        spawn postgres "${AS_POSTGRES[@]}" "$bin/postgres" -D "$data" -p "$(port postgres)" -c listen_addresses=127.0.0.1 \
            -c unix_socket_directories= "${settings[@]}"
        if await_part postgres 60 postgres_answers; then break; fi
        ((try < 3))
        sleep 2
    done
    ok "up on 127.0.0.1:$(port postgres)"
}

redis_answers() { [[ $(REDISCLI_AUTH=$(service_password redis) redis-cli -h 127.0.0.1 -p "$(port redis)" ping 2>&1) == PONG ]]; }

redis_start() {
    step "Redis" "$LOCAL/log/redis.log"
    if is_up redis; then
        await_part redis 20 redis_answers
        ok "already up on port $(port redis)"
        return
    fi
    reserve_port redis
    mkdir -p "$LOCAL/data/redis"
    # No persistence: Redis holds no durable data. The process title stays unchanged, because it identifies the process (marker_of).
    (
        umask 077
        cat >"$LOCAL/data/redis/redis.conf" <<CONF
bind 127.0.0.1
port $(port redis)
dir "$LOCAL/data/redis"
requirepass $(service_password redis)
save ""
appendonly no
set-proc-title no
CONF
    )
    spawn redis redis-server "$LOCAL/data/redis/redis.conf"
    await_part redis 20 redis_answers
    ok "up on 127.0.0.1:$(port redis)"
}

# Succeeds if RabbitMQ responds to the protocol header with a method frame (type 1).
rabbitmq_answers() {
    local frame
    {
        exec 3<>"/dev/tcp/127.0.0.1/$(port rabbitmq)" || return 1
        printf 'AMQP\0\0\11\1' >&3
        IFS= read -r -t 2 -N 1 -u 3 frame
        exec 3>&-
    } 2>/dev/null
    [[ $frame == $'\1' ]]
}

# rabbitmq_spawn: starts a private node. All paths of the system's RabbitMQ (environment file, configuration, plugins, cookie, port mapper)
# are overridden. RUNNING_UNDER_SYSTEMD makes the start script replace itself with the server instead of waiting for it, so the stored
# pid is the server's.
rabbitmq_spawn() {
    local data=$LOCAL/data/rabbitmq
    spawn rabbitmq env \
        HOME="$data" \
        RABBITMQ_NODENAME="$INSTANCE@localhost" \
        RABBITMQ_CONF_ENV_FILE="$data/rabbitmq-env.conf" \
        RABBITMQ_CONFIG_FILE="$data/rabbitmq" \
        RABBITMQ_CONFIG_FILES="$data/conf.d" \
        RABBITMQ_ADVANCED_CONFIG_FILE="$data/advanced.config" \
        RABBITMQ_ENABLED_PLUGINS_FILE="$data/enabled_plugins" \
        RABBITMQ_MNESIA_BASE="$data/mnesia" \
        RABBITMQ_LOG_BASE="$LOCAL/log" \
        RABBITMQ_LOGS=- \
        RABBITMQ_DIST_PORT="$(port rabbitmq-dist)" \
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1} -instance $INSTANCE" \
        ERL_EPMD_PORT="$(port epmd)" \
        ERL_EPMD_ADDRESS=127.0.0.1 \
        RUNNING_UNDER_SYSTEMD=true \
        /usr/lib/rabbitmq/bin/rabbitmq-server
}

rabbitmq_start() {
    step "RabbitMQ" "$LOCAL/log/rabbitmq.log"
    if is_up rabbitmq; then
        await_part rabbitmq 90 rabbitmq_answers
        ok "already up on port $(port rabbitmq)"
        return
    fi
    local data=$LOCAL/data/rabbitmq
    if ! is_up epmd; then
        reserve_port epmd
        # epmd is started here, because a node that starts it leaves it running, and this script could not stop it.
        spawn epmd epmd -port "$(port epmd)" -address 127.0.0.1
        await_part epmd 10 port_is_taken "$(port epmd)"
    fi
    reserve_port rabbitmq
    reserve_port rabbitmq-dist
    mkdir -p "$data/conf.d" "$data/mnesia"
    : >"$data/rabbitmq-env.conf"
    printf '[].\n' | tee "$data/enabled_plugins" >"$data/advanced.config"
    (
        umask 077
        cat >"$data/rabbitmq.conf" <<CONF
listeners.tcp.1 = 127.0.0.1:$(port rabbitmq)
default_user = canvas
default_pass = $(service_password rabbitmq)
CONF
    )
    rabbitmq_spawn
    await_part rabbitmq 90 rabbitmq_answers
    ok "up on 127.0.0.1:$(port rabbitmq)"
}

services_stop() {
    # SIGINT is PostgreSQL's fast shutdown, which does not wait for clients. RabbitMQ's port mapper is stopped last.
    stop_parts TERM 30 rabbitmq redis
    stop_parts INT 30 postgres
    stop_parts TERM 10 epmd
}

# delete_data: deletes all data of the stopped services, including that of PostgreSQL where it is elsewhere. Ports and passwords are kept,
# so that a shell that has sourced the old environment file can still connect after the next start.
delete_data() {
    if [[ -L $LOCAL/data/postgres ]]; then rm -rf "/var/lib/$INSTANCE" "/dev/shm/$INSTANCE"; fi
    rm -rf "$LOCAL/data" "$LOCAL/log" "$LOCAL/run"
}
