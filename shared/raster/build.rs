//! Compiles `src/decode/jpeg_rows.c`, which decodes the rows of a JPEG, against the libjpeg-turbo
//! that `turbojpeg-sys` has built.

fn main() {
    println!("cargo:rerun-if-changed=src/decode/jpeg_rows.c");
    let mut build = cc::Build::new();
    // The build script of `turbojpeg-sys` separates the paths by commas.
    for path in std::env::var("DEP_TURBOJPEG_INCLUDE").unwrap_or_default().split(',') {
        build.include(path);
    }
    build.file("src/decode/jpeg_rows.c").warnings_into_errors(true).compile("raster_jpeg_rows");
}
