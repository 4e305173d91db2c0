# Builds the images with buildah, starts them, and runs the demo on their root file systems. Sourced by deploy/check --images. Needs root, and
# no container engine. shellcheck shell=bash
#
# The final stages of the Dockerfile are built as they are. The binaries in BIN take the place of the build stages, which would take the time
# of a release build. The base image is pulled; if its registry does not answer, a stand-in of the same packages of Debian is made with
# debootstrap, and the output says so.

IMAGES=$TOOLS/images
BASE=$(sed -n 's/^ARG RUNTIME_IMAGE=//p' "$ROOT/deploy/docker/Dockerfile")
IMAGE_NAMES=(gateway image-worker video-worker webhook-dispatcher)

in_store() {
    local command=$1
    shift
    buildah --root "$IMAGES/storage" --runroot "$IMAGES/run" --storage-driver vfs "$command" "$@"
}

# base_stand_in: commits the packages of which gcr.io/distroless/cc consists under the name of the base image.
base_stand_in() {
    local root=$IMAGES/debian slim=$IMAGES/slim release=trixie container
    if ! has_command debootstrap; then apt_install debootstrap; fi
    rm -rf "$root" "$slim"
    debootstrap --variant=minbase --include=ca-certificates,libstdc++6,tzdata "$release" "$root"
    mkdir -p "$slim"
    (
        cd "$root"
        chroot . dpkg --listfiles base-files ca-certificates libc6 libgcc-s1 libstdc++6 tzdata | sort -u | while read -r path; do
            if [[ -f .$path || -L .$path ]]; then printf '.%s\n' "$path"; fi
        done
        printf '%s\n' ./lib ./lib64 ./etc/ld.so.cache ./etc/ssl/certs
    ) | tar -C "$root" --create --no-recursion --files-from - | tar -C "$slim" --extract
    tar -C "$root" --create ./etc/ssl/certs | tar -C "$slim" --extract
    mkdir -p "$slim/home/nonroot" "$slim/tmp" "$slim/proc" "$slim/dev"
    chown 65532:65532 "$slim/home/nonroot"
    printf 'root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n' >"$slim/etc/passwd"
    printf 'root:x:0:\nnonroot:x:65532:\n' >"$slim/etc/group"
    container=$(in_store from scratch)
    in_store add --quiet "$container" "$slim" /
    in_store commit --quiet "$container" "$BASE"
    in_store rm "$container"
    rm -rf "$root" "$slim"
}

# build_images: the final stages, with the contents of the build stages from BIN.
build_images() {
    local name context=$IMAGES/context
    rm -rf "$context"
    mkdir -p "$context/build/out/bin" "$context/build/out/blobs" "$context/console" "$context/shared/raster"
    cp "$ROOT/LICENSE" "$context"
    cp -r "$ROOT/shared/raster/fonts" "$context/shared/raster"
    chown 65532:65532 "$context/build/out/blobs"
    python3 "$ROOT/deploy/lib/notices.py" "$ROOT" >"$context/build/out/NOTICES"
    printf 'The console is not built here.\n' >"$context/console/licenses.txt"
    for name in "${IMAGE_NAMES[@]}"; do objcopy --strip-debug "$BIN/canvas-$name" "$context/build/out/bin/canvas-$name"; done
    {
        printf 'ARG RUNTIME_IMAGE=%s\nARG VERSION=check\nARG REVISION=check\n' "$BASE"
        printf 'FROM scratch AS console\nCOPY console /src/gateway/console/dist\nFROM scratch AS build\nCOPY build /\n'
        sed -n '/^FROM \S* AS process$/,$p' "$ROOT/deploy/docker/Dockerfile"
    } >"$context/Dockerfile"
    for name in "${IMAGE_NAMES[@]}"; do
        in_store build --isolation chroot --pull=never --quiet --layers=false --target "$name" --tag "localhost/canvas-$name" "$context"
    done
    rm -rf "$context"
}

# image_faults NAME ROOT: prints what is wrong with an image.
image_faults() {
    local config file
    config=$(in_store inspect --type image --format '{{.OCIv1.Config.User}} {{.OCIv1.Config.StopSignal}} {{.OCIv1.Config.Entrypoint}}' \
        "localhost/canvas-$1")
    if [[ $config != "65532:65532 SIGTERM [/usr/local/bin/canvas-$1]" ]]; then echo "$1: user, signal and entry point are $config"; fi
    for file in {LICENSES.md,LICENSE,OFL.txt,NOTICES}; do
        if [[ ! -s $2/usr/share/doc/canvas-service/$file ]]; then echo "$1: the image has no $file"; fi
    done
    if [[ $(VARIABLES=() && in_image "$2" "/usr/local/bin/canvas-$1" --version) != "canvas-$1 "* ]]; then echo "$1: does not start"; fi
}

# in_image ROOT COMMAND…: becomes a command with the variables VARIABLES, as the user of the image, on its root file system, which is
# read-only but for the blobs. Call it in a subshell or in the background.
in_image() {
    # shellcheck disable=SC2016 # the inner shell expands
    exec env "${VARIABLES[@]}" unshare --mount bash -euc '
        root=$1 blobs=$2
        shift 2
        mount --make-rprivate /
        mount --bind "$root" "$root"
        if [[ -d $root/var/lib/canvas/blobs ]]; then mount --bind "$blobs" "$root/var/lib/canvas/blobs"; fi
        mount -o remount,bind,ro "$root"
        exec chroot --userspec=65532:65532 "$root" "$@"
    ' bash "$1" "$IMAGES/blobs" "${@:2}"
}

# demo_on_images PORT: the four processes on the root file systems, each with the variables that it requires, and the demo.
demo_on_images() {
    local base=$1 tls=$IMAGES/tls name number=0 database=canvas_images_$$ pids=() url
    local -A root
    rm -rf "$IMAGES/demo" "$tls"
    mkdir -p "$tls"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=CA" -addext basicConstraints=critical,CA:TRUE \
        -addext keyUsage=critical,keyCertSign -keyout "$tls/ca.key" -out "$tls/ca.pem"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=receiver" -CA "$tls/ca.pem" \
        -CAkey "$tls/ca.key" -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=IP:127.0.0.1 \
        -keyout "$tls/receiver.key" -out "$tls/receiver.pem"
    psql "$TEST_DATABASE_URL" -qc "CREATE DATABASE $database"
    url=${TEST_DATABASE_URL%/*}/$database
    local -a few=("CANVAS_DATABASE_URL=$url" "CANVAS_MASTER_KEYS=k1:$(openssl rand -base64 32)")
    local installation; installation=CANVAS_INSTALLATION_KEYS=i1:$(openssl rand -base64 32)
    local -a running=("${few[@]}" "CANVAS_AMQP_URL=$TEST_AMQP_URL" "CANVAS_EGRESS_ALLOW=127.0.0.1:$((base + 9))")
    local -a storing=("${running[@]}" "CANVAS_REDIS_URL=$TEST_REDIS_URL" CANVAS_BLOB_URL=file:///var/lib/canvas/blobs
        "CANVAS_PUBLIC_URL=http://127.0.0.1:$base" "CANVAS_LISTEN=127.0.0.1:$base")
    for name in "${IMAGE_NAMES[@]}"; do root[$name]=$(in_store mount "$(in_store from --pull-never "localhost/canvas-$name")"); done
    # These trust the certificate of the demo's receiver and page, which a container would have in a volume.
    for name in webhook-dispatcher image-worker; do install -m 644 "$tls/ca.pem" "${root[$name]}/etc/receiver.pem"; done
    for name in "${IMAGE_NAMES[@]}"; do image_faults "$name" "${root[$name]}"; done >"$IMAGES/faults"
    if [[ -s $IMAGES/faults ]]; then die "$(cat "$IMAGES/faults")"; fi
    (VARIABLES=("${few[@]}" "$installation") && in_image "${root[gateway]}" /usr/local/bin/canvas-gateway migrate)
    for name in "${IMAGE_NAMES[@]}"; do
        number=$((number + 1))
        local -a VARIABLES=("${storing[@]}") arguments=()
        if [[ $name == webhook-dispatcher ]]; then VARIABLES=("${running[@]}"); fi
        if [[ $name == webhook-dispatcher || $name == image-worker ]]; then VARIABLES+=(CANVAS_EGRESS_CA_FILE=/etc/receiver.pem); fi
        if [[ $name == gateway ]]; then arguments=(serve) VARIABLES+=("$installation"); fi
        VARIABLES+=("CANVAS_ADMIN_LISTEN=127.0.0.1:$((base + number))")
        in_image "${root[$name]}" "/usr/local/bin/canvas-$name" "${arguments[@]}" >"$IMAGES/$name.log" 2>&1 &
        pids+=($!)
    done
    IMAGE_PIDS=${pids[*]}
    for number in 1 2 3 4; do
        local tries=0
        until curl -fsS --noproxy '*' --max-time 5 -o /dev/null "http://127.0.0.1:$((base + number))/readyz"; do
            if ((++tries > 120)); then die "an image is not ready: $IMAGES/*.log"; fi
            sleep 0.5
        done
    done
    env "${storing[@]}" "$installation" "$BIN/canvas-gateway" admin account create --email demo@example.com --credits 1000
    CANVAS_TOKEN=$(env "${storing[@]}" "$installation" "$BIN/canvas-gateway" admin token create --account demo@example.com --label check --scopes all |
        sed -n 's/.*"token": *"\([^"]*\)".*/\1/p')
    env "${storing[@]}" "$installation" "CANVAS_TOKEN=$CANVAS_TOKEN" "CANVAS_BASE_URL=http://127.0.0.1:$base" NO_PROXY='*' no_proxy='*' \
        "$BIN/canvas-demo" --photo "$ROOT/deploy/local/demo-photo.jpg" --out "$IMAGES/demo" --receiver "127.0.0.1:$((base + 9))" \
        --certificate "$tls/receiver.pem" --key "$tls/receiver.key" >&3
    # SIGTERM ends each process with status 0.
    kill "${pids[@]}"
    for number in "${pids[@]}"; do wait "$number"; done
    IMAGE_PIDS=
    psql "$TEST_DATABASE_URL" -qc "DROP DATABASE $database"
}

check_images() {
    if ((EUID != 0)); then die "--images needs root, because it mounts"; fi
    if [[ -z ${BIN:-} ]]; then die "--images needs BIN, a directory with the five binaries (cargo build --release --bins)"; fi
    : "${TEST_DATABASE_URL:?tests/run --services-only, then source .local/test/env}" "${TEST_REDIS_URL:?}" "${TEST_AMQP_URL:?}"
    # The output of the demo and the report of a failure are shown, although the steps write to logs.
    exec 3>&1 4>&2
    IMAGE_PIDS=
    # shellcheck disable=SC2086 # a list of pids
    stop_images() {
        report_failure "$1" 2>&4
        if [[ $IMAGE_PIDS ]]; then kill $IMAGE_PIDS; fi
    }
    on_exit stop_images
    # Everything but the base is made again.
    mkdir -p "$IMAGES/blobs"
    chown 65532:65532 "$IMAGES/blobs"
    step "Base image" "$IMAGES/base.log"
    if ! has_command buildah; then apt_install buildah >"$IMAGES/base.log" 2>&1 </dev/null; fi
    if [[ $(cat "$IMAGES/stand-in" 2>/dev/null) == "$BASE" ]]; then
        ok "a stand-in for $BASE, made by an earlier run"
    elif timeout 60 buildah --root "$IMAGES/storage" --runroot "$IMAGES/run" --storage-driver vfs pull --quiet "$BASE" >"$IMAGES/base.log" 2>&1; then
        ok "$BASE"
    else
        base_stand_in >"$IMAGES/base.log" 2>&1 </dev/null
        printf '%s\n' "$BASE" >"$IMAGES/stand-in"
        ok "a stand-in for $BASE, whose registry does not answer"
    fi
    # Images that an interrupted run left.
    in_store rm --all >/dev/null
    step "Images" "$IMAGES/build.log"
    build_images >"$IMAGES/build.log" 2>&1
    ok "built by buildah from the final stages; the binaries are those in $BIN"
    step "Demo on the images" "$IMAGES/demo.log"
    demo_on_images "${IMAGES_PORT:-41800}" >"$IMAGES/demo.log" 2>&1
    in_store rm --all >/dev/null
    in_store rmi --prune >/dev/null
    ok "ran, with read-only root file systems and the user of the images"
}
