# Installs missing packages on Debian with apt. Packages are detected by program or file, so that no apt is needed if the programs were
# installed in another way. Only programs are installed: services of a package are prevented from starting, now and at the next boot.
# shellcheck shell=bash

# has_command NAME / has_file PATH: whether the program or file exists.
has_command() { command -v "$1" >/dev/null; }
has_file() { [[ -e $1 ]]; }

# missing_packages [client|tools|services]: prints the missing packages, one per line: those that the scripts need, these and those of the build,
# those of the services, or all.
missing_packages() {
    if [[ ${1:-services} == services ]]; then
        postgres_bin >/dev/null || echo postgresql
        has_command redis-server && has_command redis-cli || echo redis-server
        has_file /usr/lib/rabbitmq/bin/rabbitmq-server && has_command epmd || echo rabbitmq-server
    fi
    if [[ ${1:-} == services ]]; then return; fi
    has_command curl || echo curl
    has_command openssl || echo openssl
    # curl and cargo download by HTTPS.
    has_file /etc/ssl/certs/ca-certificates.crt || echo ca-certificates
    if [[ ${1:-} == client ]]; then return; fi
    # The linker and C compiler for Rust. g++ depends on the headers of the C library; gcc alone does not.
    has_command cc && has_command c++ && has_file /usr/include/stdio.h || echo g++
    has_command make || echo make
    # The JPEG codec is built with cmake. nasm assembles its SIMD code and that of the video encoder.
    has_command cmake || echo cmake
    has_command nasm || echo nasm
    has_command pkg-config || echo pkg-config
    if [[ ${FOR_TESTS:-} ]]; then
        # The tests check videos with an independent decoder, and install tools from PyPI into virtual environments.
        has_command ffmpeg && has_command ffprobe || echo ffmpeg
        # For tests that run a process with a wrong clock.
        has_file /usr/lib/*/faketime/libfaketime.so.1 || echo faketime
        python3 -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
    fi
}

as_root() { if ((EUID == 0)); then "$@"; else sudo "$@"; fi; }

# apt_install PACKAGE…: installs packages with apt, and nothing that they only recommend. One at a time: apt waits for dpkg's lock, but
# not while another apt reads the lists.
apt_install() (
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300)
    mkdir -p "$ROOT/.local"
    exec 6>"$ROOT/.local/apt.lock"
    flock 6
    # A service that a package starts must not hold the lock.
    as_root "${apt[@]}" update 6>&-
    as_root "${apt[@]}" install --yes --no-install-recommends "$@" 6>&-
)

# Debian's policy file that prevents services from starting during installation. An existing file belongs to the system and is kept.
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

# install_packages [client|tools|services]
install_packages() {
    local missing log=$LOCAL/log/packages${1:+-$1}.log
    mapfile -t missing < <(missing_packages "$@")
    step "Debian packages${1:+: $1}" "$log" "fix apt (network, sources), or install by hand: apt-get install ${missing[*]}"
    if ((${#missing[@]} == 0)); then
        ok "nothing missing"
        return
    fi
    if ! has_command apt-get; then die "   missing packages, and apt-get is not available: ${missing[*]}"; fi
    if ((EUID != 0)) && ! has_command sudo; then die "   missing packages, and neither root nor sudo is available: ${missing[*]}"; fi
    say "   installing ${missing[*]} (log: $log)"
    # In a subshell, so that its trap removes the policy file in every case and the caller's trap is kept.
    (
        trap allow_service_starts EXIT
        deny_service_starts
        apt_install "${missing[@]}"
        if [[ -d /run/systemd/system ]]; then disable_new_services "${missing[@]}"; fi
    ) >"$log" 2>&1 </dev/null
    ok "installed"
}

# disable_new_services PACKAGE…: disables the services that the newly installed packages enabled for the next boot.
disable_new_services() {
    local package
    for package in "$@"; do
        case $package in
            postgresql | redis-server | rabbitmq-server) as_root systemctl disable "$package" ;;
        esac
    done
}

# prepare_cargo: finds cargo even if the shell profile does not contain rustup's PATH, and makes the build independent of a DATABASE_URL
# in the environment: the queries are checked against the committed metadata (.sqlx).
prepare_cargo() {
    if ! has_command cargo; then PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH; fi
    if ! has_command cargo; then
        die "The user $(id -un) has no cargo. Install Rust (https://rustup.rs) for this user. If you started this script with sudo,
start it without: it calls sudo itself where necessary. Without Rust: deploy/local/up --release-archive FILE|URL."
    fi
    export SQLX_OFFLINE=${SQLX_OFFLINE:-true}
}

# Prints cargo's target directory, as configured.
target_directory() { cargo metadata --no-deps --format-version 1 | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p'; }
