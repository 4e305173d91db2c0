# Private PostgreSQL, Redis and RabbitMQ: own data directories, own ports, own passwords, loopback only. The machine's own
# services are neither needed nor touched.
# shellcheck shell=bash

SERVICES=(postgres redis rabbitmq)

# A password for a service. The services are bound to loopback, but every user of the machine reaches loopback.
service_password() { secret "$1-password" openssl rand -hex 16; }

postgres_url() { printf 'postgres://canvas:%s@127.0.0.1:%s/canvas' "$(service_password postgres)" "$(port postgres)"; }
redis_url() { printf 'redis://default:%s@127.0.0.1:%s/0' "$(service_password redis)" "$(port redis)"; }
amqp_url() { printf 'amqp://canvas:%s@127.0.0.1:%s/%%2f' "$(service_password rabbitmq)" "$(port rabbitmq)"; }

# The newest installed PostgreSQL; Debian keeps its programs off PATH. 15 is the least we support.
postgres_bin() {
    local dir version best=""
    for dir in /usr/lib/postgresql/*/bin; do
        version=${dir#/usr/lib/postgresql/} version=${version%/bin}
        if [[ -x $dir/postgres && ${version%%.*} -ge 15 && ${version%%.*} -gt ${best:-0} ]]; then best=${version%%.*}; fi
    done
    [[ -n $best ]] && printf '/usr/lib/postgresql/%s/bin' "$best"
}

# PostgreSQL refuses to run as root. setpriv, not runuser: it becomes the program, so that the pid on file is the server's.
AS_POSTGRES=()
if ((EUID == 0)); then AS_POSTGRES=(setpriv --reuid=postgres --regid=postgres --init-groups --); fi

# Prints the data directory, made when missing. It is data/postgres, unless root's checkout lies where the user postgres may not
# go (below /root, say): then data/postgres is a link to a directory under /var/lib.
postgres_data() {
    local data=$LOCAL/data/postgres
    if ((EUID == 0)) && [[ ! -e $data ]]; then
        install -d -o postgres -g postgres -m 700 "$data"
        if ! (cd / && "${AS_POSTGRES[@]}" test -w "$data"); then
            rmdir "$data"
            install -d -o postgres -g postgres -m 700 "/var/lib/$INSTANCE/postgres"
            ln -sfn "/var/lib/$INSTANCE/postgres" "$data"
        fi
    fi
    mkdir -p "$(readlink -m "$data")"
    readlink -f "$data"
}

# A crash leaves postmaster.pid behind, and after a reboot its number may be anybody's: the server would then refuse to start.
drop_stale_postmaster_pid() {
    local file=$1/postmaster.pid pid
    pid=$(head -n 1 "$file" 2>/dev/null) || return 0
    if [[ -r /proc/$pid/cmdline ]] && ! grep -qa postgres "/proc/$pid/cmdline"; then rm -f "$file"; fi
}

# Makes the cluster: one superuser and one database, both `canvas`. Single-user mode needs no server and no way in.
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
    # Interrupted in the middle, the making begins anew.
    if [[ ! -e $LOCAL/data/postgres.ready ]]; then postgres_initialise "$bin" "$data"; fi
    for setting in "$@"; do settings+=(-c "$setting"); done
    drop_stale_postmaster_pid "$data"
    # After a SIGKILL of the server its children need a moment to let go of its memory: it is tried more than once.
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
    # No persistence: nothing that must last is kept there. The title stays as started, it is what the pid is verified by.
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

# Whether RabbitMQ answers the protocol header with a method frame (type 1).
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

# rabbitmq_spawn: starts our node. Everything of the machine's own RabbitMQ that could leak in (its environment file,
# configuration, plugins, cookie, port mapper) is named away. "Under systemd" only means that the start script becomes the server
# instead of waiting for it: the pid on file is the server's.
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
        # Started here, not by the node, so that it is ours to stop: a node leaves it behind.
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
    # SIGINT is PostgreSQL's fast stop: it does not wait for clients to leave. RabbitMQ's port mapper goes last.
    stop_parts TERM 30 rabbitmq redis
    stop_parts INT 30 postgres
    stop_parts TERM 10 epmd
}

# delete_data: everything the services keep, after they were stopped; PostgreSQL's also where it lies elsewhere. Ports and
# passwords stay: a shell that has read the old environment file goes on reaching what comes up next.
delete_data() {
    if [[ -L $LOCAL/data/postgres ]]; then rm -rf "/var/lib/$INSTANCE"; fi
    rm -rf "$LOCAL/data" "$LOCAL/log" "$LOCAL/run"
}
