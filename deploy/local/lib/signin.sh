# The OpenID provider of `up --sign-in`: part oidc, with the packages of deploy/local/oidc in .local/oidc. Sourced after parts.sh and
# tools.sh. The choice is kept in .local/sign-in, so that a later `up` goes on with the provider.
# shellcheck shell=bash

sign_in_is_chosen() { [[ -e $LOCAL/sign-in ]]; }

oidc_issuer() { printf 'http://localhost:%s' "$(port oidc)"; }
oidc_answers() { http_ok "$(oidc_issuer)/.well-known/openid-configuration"; }

# choose_sign_in: lets the gateway sign people in with the provider. One that runs without it is stopped, to be started again.
choose_sign_in() {
    if ! sign_in_is_chosen; then
        touch "$LOCAL/sign-in"
        stop_supervisors gateway
        stop_parts TERM 65 gateway
    fi
    if ! is_up oidc; then reserve_port oidc; fi
    export CANVAS_OIDC_ISSUER CANVAS_OIDC_CLIENT_ID=canvas CANVAS_OIDC_NAME="Local provider" CANVAS_OIDC_ADMIT=anyone \
        CANVAS_OIDC_ADMIN_GROUPS=canvas-admins CANVAS_OIDC_NEW_CREDITS=1000
    CANVAS_OIDC_ISSUER=$(oidc_issuer)
}

oidc_start() {
    step "OpenID provider" "$LOCAL/log/oidc.log"
    if is_up oidc; then
        await_part oidc 20 oidc_answers
        ok "already up at $(oidc_issuer)"
        return
    fi
    provide_node
    npm_packages "$LOCAL/oidc" "$ROOT/deploy/local/oidc"
    spawn oidc node "$ROOT/deploy/local/oidc/provider.mjs" "$LOCAL/oidc" "$(port oidc)" "$CANVAS_PUBLIC_URL"
    await_part oidc 20 oidc_answers
    ok "up at $(oidc_issuer)"
}

oidc_stop() { stop_parts TERM 10 oidc; }
