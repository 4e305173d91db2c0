# Databases of the test server for builds that check their queries against a schema instead of .sqlx. To be sourced, with
# TEST_DATABASE_URL set.
# shellcheck shell=bash

# create_schema NAME CHECKOUT: creates a database with the migrations of this checkout, each in a transaction, and sets what makes cargo use it.
create_schema() {
    local migration
    psql "$TEST_DATABASE_URL" -qc "CREATE DATABASE $1"
    export DATABASE_URL=${TEST_DATABASE_URL%/*}/$1 SQLX_OFFLINE=false
    for migration in "$2"/shared/db/migrations/*.sql; do
        psql "$DATABASE_URL" -q1 -v ON_ERROR_STOP=1 -f "$migration"
    done
}

drop_schema() { psql "$TEST_DATABASE_URL" -qc "DROP DATABASE IF EXISTS $1 WITH (FORCE)"; }
