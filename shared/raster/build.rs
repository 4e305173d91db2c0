//! Compiles the rows of a JPEG (`src/decode/jpeg_rows.c`) against the libjpeg-turbo that `turbojpeg-sys` built.

fn main() {
    println!("cargo:rerun-if-changed=src/decode/jpeg_rows.c");
    let mut build = cc::Build::new();
    // Separated by commas, as its build script says.
    for path in std::env::var("DEP_TURBOJPEG_INCLUDE").unwrap_or_default().split(',') {
        build.include(path);
    }
    build.file("src/decode/jpeg_rows.c").warnings_into_errors(true).compile("raster_jpeg_rows");
}
