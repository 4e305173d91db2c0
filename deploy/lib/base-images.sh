#!/usr/bin/env bash
# Resolves the external images of the Dockerfile to digests, as build arguments: NAME=IMAGE:TAG@DIGEST, one a line.
#
#   deploy/lib/base-images.sh >base-images.txt
#
# A release runs it once and passes the same lines to the build of each image, so that a tag that moves in between cannot give them
# different bases. The digest is that of the index of all platforms. BUILDKIT_SYNTAX replaces the image of the first line of the
# Dockerfile, which interprets the file. Needs docker with buildx. Fails unless every image has a digest.
set -euo pipefail
dockerfile=$(dirname "${BASH_SOURCE[0]}")/../docker/Dockerfile

while read -r name image; do
    # With `json`, because buildx answers a format that begins with {{.Manifest with its own table.
    digest=$(docker buildx imagetools inspect --format '{{json .Manifest.Digest}}' "$image")
    digest=${digest//\"/}
    if [[ ! $digest =~ ^sha256:[0-9a-f]{64}$ ]]; then
        printf '%s has no digest, but: %s\n' "$image" "$digest" >&2
        exit 1
    fi
    printf '%s=%s@%s\n' "$name" "$image" "$digest"
done < <(sed -n 's/^# syntax=/BUILDKIT_SYNTAX /p; s/^ARG \([A-Z]*_IMAGE\)=/\1 /p' "$dockerfile")
