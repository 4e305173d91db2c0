//! Compiles the crate again when a migration is added, which the macro `migrate!` does not notice.

fn main() {
    println!("cargo::rerun-if-changed=migrations");
}
