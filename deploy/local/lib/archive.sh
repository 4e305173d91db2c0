# Binaries from a release archive (deploy/release-archive) in place of a build. Each archive is unpacked once, in release/<its SHA-256>, and the
# link release/current names the one that `up` starts. Sourced after common.sh, parts.sh and processes.sh. Needs curl for URLs, tar and gzip.
# shellcheck shell=bash

# is_loopback URL: whether it names this machine, so that nobody else answers.
is_loopback() {
    [[ $1 =~ ^https?://(localhost|127\.[0-9]+\.[0-9]+\.[0-9]+|\[::1\])(:[0-9]+)?(/|$) ]]
}

# checksum_of SOURCE: prints the name or URL of the file with the checksum of an archive, which is beside it.
checksum_of() {
    if [[ $1 == *://* && $1 =~ ^([^?#]*)([?#].*)$ ]]; then
        printf '%s.sha256%s' "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
    else
        printf '%s.sha256' "$1"
    fi
}

# download URL FILE: prints the HTTP status. From other machines by TLS only, also where a redirect leads.
download() {
    local options=(--location --proto '=https' --proto-redir '=https' --retry 3)
    if is_loopback "$1"; then options=(--proto '=http,https' --noproxy '*'); fi
    curl --silent --show-error --connect-timeout 20 "${options[@]}" --output "$2" --write-out '%{http_code}' -- "$1"
}

sum_of() { sha256sum <"$1" | cut -d ' ' -f 1; }

# fetch_archive SOURCE: sets ARCHIVE to the file of the archive and ARCHIVE_SUM to its SHA-256, which is that of the checksum beside it.
fetch_archive() {
    local source=$1 beside wanted="" status=200 downloads=$LOCAL/release/download
    beside=$(checksum_of "$source")
    rm -rf "$downloads"
    if [[ $source == *://* ]]; then
        mkdir -p "$downloads"
        if [[ ! $source =~ ^https:// ]] && ! is_loopback "$source"; then
            die "   $source: an archive is downloaded by https, or by http from this machine only"
        fi
        status=$(download "$beside" "$downloads/sha256") || die "   $beside cannot be downloaded"
        if [[ $status == 200 ]]; then
            wanted=$(head -c 4096 "$downloads/sha256")
        elif [[ $status != 404 ]]; then
            die "   $beside cannot be downloaded: HTTP status $status"
        elif ! is_loopback "$source"; then
            die "   $beside does not exist. The checksum is required for an archive from another machine. If you trust the archive, download
   it yourself and give the file."
        fi
    elif [[ -e $beside ]]; then
        wanted=$(head -c 4096 "$beside")
    elif [[ ! -f $source ]]; then
        die "   $source: there is no such file"
    fi
    # As sha256sum writes it, with or without the name of the file.
    if [[ $wanted && ! $wanted =~ ^([0-9a-f]{64})([[:space:]]|$) ]]; then die "   $beside does not begin with a SHA-256 in hexadecimal"; fi
    wanted=${wanted:0:64}
    ARCHIVE=$source ARCHIVE_SUM=$wanted
    if [[ $wanted && -d $LOCAL/release/$wanted && $source == *://* ]]; then return; fi
    if [[ $source == *://* ]]; then
        ARCHIVE=$downloads/archive
        status=$(download "$source" "$ARCHIVE") || die "   $source cannot be downloaded"
        if [[ $status != 200 ]]; then die "   $source cannot be downloaded: HTTP status $status"; fi
    fi
    ARCHIVE_SUM=$(sum_of "$ARCHIVE")
    if [[ ! $wanted ]]; then
        say "   there is no $beside: the archive is used without a check"
    elif [[ $ARCHIVE_SUM != "$wanted" ]]; then
        die "   $source does not match $beside: its SHA-256 is $ARCHIVE_SUM, and $wanted is expected"
    fi
}

# check_members FILE NAME: fails unless the archive has one top directory, with files and directories and nothing else in it.
check_members() {
    local list mode rest name top=""
    list=$(LC_ALL=C tar --list --verbose --gzip --force-local --absolute-names --quoting-style=escape --numeric-owner --file "$1") ||
        die "   $2 is not a complete .tar.gz archive"
    # Mode, owner, size, date, time, name.
    while read -r mode _ _ _ _ name; do
        rest=${name#./}
        if [[ $mode != [-d]* ]]; then die "   $2 is refused: its member $name is a link or a special file"; fi
        if [[ $name == /* ]]; then die "   $2 is refused: its member $name has an absolute path"; fi
        if [[ /$name/ == */../* ]]; then die "   $2 is refused: its member $name leads out of the archive's directory"; fi
        if [[ $name == *[\\]* ]]; then die "   $2 is refused: its member $name has an unusual name"; fi
        if [[ $rest == "" ]]; then continue; fi
        if [[ $mode == -* && $rest != */* || ${top:-${rest%%/*}} != "${rest%%/*}" ]]; then
            die "   $2 is refused: its member $name is not in the one top directory"
        fi
        top=${rest%%/*}
    done <<<"$list"
}

# unpack_archive FILE SUM NAME: unpacks into release/SUM, which exists only when it is complete.
unpack_archive() {
    local new=$LOCAL/release/unpack binary missing=() said
    if [[ -d $LOCAL/release/$2 ]]; then return; fi
    check_members "$1" "$3"
    rm -rf "$new"
    mkdir -p "$new"
    tar --extract --gzip --force-local --no-same-owner --no-same-permissions --strip-components=1 --directory "$new" --file "$1"
    for binary in "${BINARIES[@]}"; do
        if [[ ! -f $new/$binary || ! -x $new/$binary ]]; then missing+=("$binary"); fi
    done
    if ((${#missing[@]})); then die "   $3 is refused: it lacks ${missing[*]}"; fi
    if ! said=$("$new/canvas-gateway" --version 2>&1); then
        die "   $3 does not run on this machine ($(uname -m), $(getconf GNU_LIBC_VERSION 2>/dev/null || echo 'no glibc')): $said"
    fi
    mv -T "$new" "$LOCAL/release/$2"
}

# install_archive SOURCE: fetches, checks and unpacks an archive, and makes it the one that `up` starts.
install_archive() {
    step "Release archive" "" "give another archive, or build from source: deploy/local/up --source"
    mkdir -p "$LOCAL/release"
    fetch_archive "$1"
    unpack_archive "$ARCHIVE" "$ARCHIVE_SUM" "$1"
    rm -rf "$LOCAL/release/download"
    ln -sfn "$ARCHIVE_SUM" "$LOCAL/release/current"
    ok "unpacked in .local/release/$ARCHIVE_SUM"
}

archive_is_chosen() { [[ -L $LOCAL/release/current ]]; }

# use_archive: sets BIN to the directory of the chosen archive.
use_archive() {
    local version
    step "Binaries"
    BIN=$(readlink -e "$LOCAL/release/current") ||
        die "   The release archive that was chosen is not in .local/release any more: give --release-archive again, or --source."
    version=$(head -n 1 "$BIN/VERSION" 2>/dev/null || true)
    ok "of release ${version:-without VERSION}, not built; --source builds"
}

# use_source: forgets the chosen archive.
use_source() { rm -f "$LOCAL/release/current"; }

# delete_old_archives: deletes all unpacked archives but the chosen one and those from which a process or a supervisor runs.
delete_old_archives() {
    local directory part pid used=""
    for part in "${PROCESSES[@]}"; do
        for pid in $(pid_of "$part") $(supervisor_of "$part"); do used+=$(command_of "$pid") || true; done
    done
    for directory in "$LOCAL"/release/*/; do
        directory=${directory%/}
        if [[ ! -L $directory && ! $directory -ef $LOCAL/release/current && $used != *"$directory/"* ]]; then rm -rf "$directory"; fi
    done
}
