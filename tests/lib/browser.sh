# Chromium and its driver for a script. Sourced after common.sh, packages.sh and tools.sh.
# shellcheck shell=bash

# provide_browser DIRECTORY: installs Debian's headless shell and, in DIRECTORY, the packages of tests/browser.
provide_browser() {
    step "Chromium and its driver" "$1/chromium.log" "Debian's packages and npm must be reachable"
    mkdir -p "$1"
    if ! has_command chromium-headless-shell; then apt_install chromium-headless-shell >"$1/chromium.log" 2>&1 </dev/null; fi
    provide_node
    npm_packages "$1/npm" "$ROOT/tests/browser"
    rm -rf "$ROOT/tests/browser/node_modules"
    ln -s "$1/npm/node_modules" "$ROOT/tests/browser/node_modules"
    ok "$(dpkg-query --show --showformat='Chromium ${Version}' chromium-headless-shell)"
}
