# What a fresh Debian machine lacks, installed by apt. Looked for by program or file, so that a machine that has it, however it
# got it, needs no apt at all. Programs are installed here, never services: what a package would start, now or at the next boot,
# is kept from starting.
# shellcheck shell=bash

# has_command NAME / has_file PATH: whether the machine has it.
has_command() { command -v "$1" >/dev/null; }
has_file() { [[ -e $1 ]]; }

# Prints the packages that are missing, one a line.
missing_packages() {
    postgres_bin >/dev/null || echo postgresql
    has_command redis-server && has_command redis-cli || echo redis-server
    has_file /usr/lib/rabbitmq/bin/rabbitmq-server && has_command epmd || echo rabbitmq-server
    # The linker and C compiler of Rust; g++ brings the C library's headers, which gcc alone does not.
    has_command cc && has_command c++ && has_file /usr/include/stdio.h || echo g++
    has_command make || echo make
    # The JPEG codec is built with cmake; its SIMD code, and the video encoder's, is assembled by nasm.
    has_command cmake || echo cmake
    has_command nasm || echo nasm
    has_command pkg-config || echo pkg-config
    has_command curl || echo curl
    has_command openssl || echo openssl
    # cargo fetches crates over HTTPS.
    has_file /etc/ssl/certs/ca-certificates.crt || echo ca-certificates
    if [[ ${FOR_TESTS:-} ]]; then
        # The tests have videos judged by a decoder that is not ours, and tools from PyPI in virtual environments.
        has_command ffmpeg && has_command ffprobe || echo ffmpeg
        # A process whose clock is wrong.
        has_file /usr/lib/*/faketime/libfaketime.so.1 || echo faketime
        python3 -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
    fi
}

as_root() { if ((EUID == 0)); then "$@"; else sudo "$@"; fi; }

# Debian's own switch against starting services while installing. One that exists belongs to the machine and stays.
POLICY=/usr/sbin/policy-rc.d
POLICY_MARK="# canvas: no services while installing"
deny_service_starts() {
    if [[ ! -e $POLICY ]]; then
        printf '#!/bin/sh\n%s\nexit 101\n' "$POLICY_MARK" | as_root tee "$POLICY" >/dev/null
        as_root chmod 755 "$POLICY"
    fi
}
allow_service_starts() {
    if grep -qsF "$POLICY_MARK" "$POLICY"; then as_root rm -f "$POLICY"; fi
}

install_packages() {
    local missing log=$LOCAL/log/packages.log
    mapfile -t missing < <(missing_packages)
    step "Debian packages" "$log" "mend apt (network, sources), or install by hand: apt-get install ${missing[*]}"
    if ((${#missing[@]} == 0)); then
        ok "nothing missing"
        return
    fi
    if ! has_command apt-get; then die "   missing, and there is no apt-get to install it: ${missing[*]}"; fi
    if ((EUID != 0)) && ! has_command sudo; then die "   missing, and you are neither root nor have sudo: ${missing[*]}"; fi
    say "   installing ${missing[*]} (log: $log)"
    # A subshell, so that its trap undoes the switch however it ends, and the caller's trap stays.
    (
        trap allow_service_starts EXIT
        deny_service_starts
        as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 update
        as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends "${missing[@]}"
        if [[ -d /run/systemd/system ]]; then disable_new_services "${missing[@]}"; fi
    ) >"$log" 2>&1 </dev/null
    ok "installed"
}

# disable_new_services PACKAGE…: a package just installed by us has enabled its service for the next boot.
disable_new_services() {
    local package
    for package in "$@"; do
        case $package in
            postgresql | redis-server | rabbitmq-server) as_root systemctl disable "$package" ;;
        esac
    done
}

# prepare_cargo: finds cargo also where a shell that rustup's installer did not set up misses it, and makes the build independent
# of a DATABASE_URL that happens to be set: the queries are checked against what is committed with them.
prepare_cargo() {
    if ! has_command cargo; then PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH; fi
    if ! has_command cargo; then
        die "There is no cargo for the user $(id -un). Install Rust (https://rustup.rs) for that user; or, if this was started with
sudo, start it without: it asks for sudo itself where it must."
    fi
    export SQLX_OFFLINE=${SQLX_OFFLINE:-true}
}

# Where cargo builds, wherever its configuration puts that.
target_directory() { cargo metadata --no-deps --format-version 1 | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p'; }
