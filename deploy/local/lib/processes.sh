# The four processes: settings, build, start; and the demo account. Variables in the environment take precedence over the choices here.
# shellcheck shell=bash

PROCESSES=(gateway image-worker video-worker webhook-dispatcher)
# The package of a binary has its name, but for `canvas`.
BINARIES=(canvas-gateway canvas-image-worker canvas-video-worker canvas-webhook-dispatcher canvas-demo canvas)

# The settings that are chosen here unless the environment sets them: the required variables, the addresses, and the two egress settings
# that the demo's webhook receiver on loopback needs.
SETTINGS=(CANVAS_DATABASE_URL CANVAS_REDIS_URL CANVAS_AMQP_URL CANVAS_BLOB_URL CANVAS_LISTEN CANVAS_ADMIN_LISTEN CANVAS_PUBLIC_URL
    CANVAS_MASTER_KEYS CANVAS_EGRESS_ALLOW CANVAS_EGRESS_CA_FILE)

# Variables of clients, some of them in .local/env. Processes never get them, even if the shell that runs `up` has sourced that file.
CLIENT_SETTINGS=(CANVAS_BASE_URL CANVAS_TOKEN CANVAS_GATEWAY_BIN CANVAS_BIN CANVAS_PROFILE CANVAS_WEBHOOK_SECRET)

new_master_key() { printf 'k1:%s\n' "$(openssl rand -base64 32)"; }

own_setting() {
    case $1 in
        CANVAS_DATABASE_URL) postgres_url ;;
        CANVAS_REDIS_URL) redis_url ;;
        CANVAS_AMQP_URL) amqp_url ;;
        CANVAS_BLOB_URL) printf 'file://%s/data/blobs' "${LOCAL// /%20}" ;;
        CANVAS_LISTEN) printf '127.0.0.1:%s' "$(port gateway)" ;;
        CANVAS_ADMIN_LISTEN) printf '127.0.0.1:%s' "$(port gateway-admin)" ;;
        CANVAS_PUBLIC_URL) base_url ;;
        CANVAS_MASTER_KEYS) secret master-keys new_master_key ;;
        CANVAS_EGRESS_ALLOW) receiver_address ;;
        CANVAS_EGRESS_CA_FILE) printf '%s/tls/ca.pem' "$LOCAL" ;;
    esac
}

# process_role_passwords: the passwords of the database roles of the processes, for the migration of the own database.
process_role_passwords() {
    local part passwords=""
    for part in "${PROCESSES[@]}"; do passwords+=${passwords:+,}$part:$(service_password "postgres-$part"); done
    printf '%s' "$passwords"
}

# process_database_url PART: the URL of the database with the role of the process. Without one, that of all: in a database from the
# environment, and where the migration, of an older archive, has made none.
process_database_url() {
    local role=canvas_${1//-/_}
    if is_own CANVAS_DATABASE_URL "$CANVAS_DATABASE_URL" && grep -q "\"$role\"" "$LOCAL/log/migrate.log"; then
        printf 'postgres://%s:%s@127.0.0.1:%s/canvas' "$role" "$(service_password "postgres-$1")" "$(port postgres)"
    else
        printf '%s' "$CANVAS_DATABASE_URL"
    fi
}

# The address of the demo's webhook receiver.
receiver_address() { printf '127.0.0.1:%s' "$(port demo-receiver)"; }

# is_own SETTING VALUE: whether VALUE was chosen by this script, which happens if the shell has sourced .local/env. The URL of a service is
# recognized by its password, because its port may have changed.
is_own() {
    case $1 in
        CANVAS_DATABASE_URL) [[ $2 == *":$(service_password postgres)@127.0.0.1:"* ]] ;;
        CANVAS_REDIS_URL) [[ $2 == *":$(service_password redis)@127.0.0.1:"* ]] ;;
        CANVAS_AMQP_URL) [[ $2 == *":$(service_password rabbitmq)@127.0.0.1:"* ]] ;;
        *) [[ $2 == "$(own_setting "$1")" ]] ;;
    esac
}

# find_given: keeps the settings from the environment, and unsets all others until `choose_settings`.
find_given() {
    local name
    for name in "${SETTINGS[@]}"; do
        if [[ -n ${!name:-} ]] && ! is_own "$name" "${!name}"; then
            say "   $name is set in the environment: used as it is"
        else
            unset "$name"
        fi
    done
}

is_given() { [[ -n ${!1:-} ]]; }

choose_settings() {
    local name
    for name in "${SETTINGS[@]}"; do
        if ! is_given "$name"; then printf -v "$name" '%s' "$(own_setting "$name")"; fi
        export "${name?}"
    done
    unset "${CLIENT_SETTINGS[@]}"
}

# reachable ADDRESS: prints the address for clients on this machine; replaces a wildcard address by loopback.
reachable() {
    case $1 in
        0.0.0.0:* | '[::]':*) printf '127.0.0.1:%s' "${1##*:}" ;;
        *) printf '%s' "$1" ;;
    esac
}

base_url() { printf 'http://%s' "$(reachable "${CANVAS_LISTEN:-$(own_setting CANVAS_LISTEN)}")"; }

# admin_listen PROCESS: prints its admin address. A CANVAS_ADMIN_LISTEN from the environment applies to the gateway only, because four
# processes cannot share one address.
admin_listen() {
    case $1 in
        gateway) printf '%s' "${CANVAS_ADMIN_LISTEN:-$(own_setting CANVAS_ADMIN_LISTEN)}" ;;
        *) printf '127.0.0.1:%s' "$(port "$1-admin")" ;;
    esac
}
admin_url() { printf 'http://%s' "$(reachable "$(admin_listen "$1")")"; }

# Webhooks require HTTPS. Creates a certificate for loopback and a temporary CA that the gateway and the dispatcher trust. The key of the CA
# is deleted after it has signed the certificate.
make_receiver_certificate() {
    local tls=$LOCAL/tls
    if [[ -e $tls/receiver.pem ]]; then return; fi
    step "Certificate of the demo's webhook receiver" "$LOCAL/log/openssl.log"
    (
        umask 077
        mkdir -p "$tls"
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=Canvas demo CA" \
            -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign \
            -keyout "$tls/ca.key" -out "$tls/ca.pem"
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=Canvas demo receiver" \
            -CA "$tls/ca.pem" -CAkey "$tls/ca.key" -addext basicConstraints=critical,CA:FALSE \
            -addext subjectAltName=IP:127.0.0.1 -keyout "$tls/receiver.key" -out "$tls/receiver.new"
        rm "$tls/ca.key"
        mv "$tls/receiver.new" "$tls/receiver.pem"
    ) >"$LOCAL/log/openssl.log" 2>&1
    ok "created"
}

# build_processes [PROFILE]: builds the binaries, by default with the profile for local use, and sets BIN to their directory.
build_processes() {
    local profile=${1:-local}
    step "Build (the first one takes minutes)" "" "read cargo's message above, fix the cause, and run the same command again"
    local args=() binary
    # By package: without it, cargo takes the features that the tests need.
    for binary in "${BINARIES[@]}"; do args+=(--package "${binary/%canvas/canvas-cli}"); done
    # Files are in a directory here, so the clients of buckets are left out.
    if [[ $profile == local && ${CANVAS_BLOB_URL:-file:} == file:* ]]; then args+=(--no-default-features); fi
    cargo build --profile "$profile" --locked --bins "${args[@]}" 9>&-
    BIN=$(target_directory)/$profile
    ok "built in $BIN"
}

migrate() {
    step "Database schema" "$LOCAL/log/migrate.log"
    local passwords=${CANVAS_DATABASE_PASSWORDS:-}
    if is_own CANVAS_DATABASE_URL "$CANVAS_DATABASE_URL"; then passwords=$(process_role_passwords); fi
    CANVAS_DATABASE_PASSWORDS=$passwords "$BIN/canvas-gateway" migrate >"$LOCAL/log/migrate.log" 2>&1 9>&-
    ok "current"
}

# process_start PART: starts a process under a supervisor, unless it runs.
process_start() {
    local part=$1 binary=$BIN/canvas-$1 arguments=() ready pid
    step "canvas-$part" "$LOCAL/log/$part.log"
    ready=$(admin_url "$part")/readyz
    # One that runs may be about to end, and one that is down may be about to be restarted.
    if is_up "$part" && ! wait_until 60 ready_or_dead "$part" http_ok "$ready"; then die "   $part is not ready within 60 s"; fi
    retire_supervisor "$part"
    if pid=$(pid_of "$part"); then
        await_part "$part" 60 http_ok "$ready"
        is_ready "$part"
        if [[ $(command_of "$pid") != *"$binary "* || $binary -nt $LOCAL/run/$part.pid ]]; then
            say "   another build runs; to replace it: kill $pid && deploy/local/up"
        fi
        if has_no_supervisor "$part"; then
            say "   it has no supervisor, and is not restarted if it dies; to change that: kill $pid && deploy/local/up"
        fi
        ok "already up"
        return
    fi
    if [[ $part == gateway ]]; then arguments=(serve); fi
    # In the environment, because every user of the machine can read arguments.
    CANVAS_DATABASE_URL=$(process_database_url "$part") \
        spawn_supervised "$part" env CANVAS_ADMIN_LISTEN="$(admin_listen "$part")" "$binary" "${arguments[@]}"
    await_part "$part" 60 http_ok "$ready"
    is_ready "$part"
    ok "up and ready"
}

# reserve_process_ports: keeps or changes the ports of processes that are down and that nothing restarts meanwhile, before other settings derive from them. No other process
# uses these ports, so a change affects no running process. (The receiver's port is not changed: a demo may be using it.)
reserve_process_ports() {
    local part known=""
    if [[ -e $LOCAL/run/ports-moved ]]; then known=yes; fi
    for part in "${PROCESSES[@]}"; do
        retire_supervisor "$part"
        if is_up "$part"; then continue; fi
        reserve_port "$part-admin"
        if [[ $part == gateway ]]; then reserve_port gateway; fi
    done
    if [[ -z $known ]]; then rm -f "$LOCAL/run/ports-moved"; fi
}

processes_stop() {
    # First, so that nothing is restarted.
    stop_supervisors "${PROCESSES[@]}"
    # On SIGTERM the gateway finishes its responses within 60 s, and the others finish or release their work within 25 s.
    stop_parts TERM 65 gateway
    stop_parts TERM 30 image-worker video-worker webhook-dispatcher
}

# The token is passed through a file descriptor, because every user of the machine can read arguments.
token_works() {
    [[ -s $LOCAL/token ]] && curl -fsS -o /dev/null --noproxy '*' --max-time 5 "$(base_url)/api/canvas-agent/v1/auth/status" \
        --config - <<<"header = \"Authorization: Bearer $(cat "$LOCAL/token")\"" 2>/dev/null
}

DEMO_ACCOUNT=demo@example.com

# Creates the demo account and its token, unless the stored token works.
ensure_account() {
    local log=$LOCAL/log/admin.log created
    step "Account $DEMO_ACCOUNT" "$log"
    if token_works; then
        ok "its token works"
        return
    fi
    # The account may exist already, in a database from the environment or after the token was deleted. Then only the token is created.
    "$BIN/canvas-gateway" admin account create --email "$DEMO_ACCOUNT" --credits 1000 >"$log" 2>&1 || true
    created=$("$BIN/canvas-gateway" admin token create --account "$DEMO_ACCOUNT" --label "deploy/local/up" --scopes all 2>>"$log")
    (
        umask 077
        sed -n 's/.*"token": *"\([^"]*\)".*/\1/p' <<<"$created" >"$LOCAL/token"
    )
    token_works
    ok "created, with 1000 credits and a token of all scopes"
}

# signin_link: prints a link that signs in to the console as the demo account.
signin_link() {
    "$BIN/canvas-gateway" admin session link --account "$DEMO_ACCOUNT" | sed -n 's/.*"url": *"\([^"]*\)".*/\1/p'
}

# write_env: writes .local/env, the variables that a shell needs to use the service. It is written atomically, readable by its owner only.
write_env() {
    local name part
    mkdir -p "$LOCAL/bin"
    ln -sf "$BIN/canvas" "$LOCAL/bin/canvas"
    (
        umask 077
        {
            for name in $(compgen -e CANVAS_); do
                # A failpoint applies only to the start for which it was set.
                if [[ $name != CANVAS_FAILPOINT* ]]; then printf 'export %s=%q\n' "$name" "${!name}"; fi
            done
            printf 'export CANVAS_BASE_URL=%q\n' "$(base_url)"
            printf 'export CANVAS_TOKEN=%q\n' "$(cat "$LOCAL/token")"
            printf 'export CANVAS_GATEWAY_BIN=%q\n' "$BIN/canvas-gateway"
            printf 'export CANVAS_BIN=%q\n' "$LOCAL/bin/canvas"
            # The command line can be called by its name.
            printf 'case :$PATH: in *:%q:*) ;; *) export PATH=%q:$PATH ;; esac\n' "$LOCAL/bin" "$LOCAL/bin"
            for part in "${PROCESSES[@]}"; do
                name=${part^^}
                printf 'export %s_ADMIN_URL=%q\n' "${name//-/_}" "$(admin_url "$part")"
            done
        } >"$LOCAL/env.new"
    )
    mv "$LOCAL/env.new" "$LOCAL/env"
}
