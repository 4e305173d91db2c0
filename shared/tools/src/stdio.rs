//! The server over standard input and output, for one caller on this machine, and the files that this caller may name.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use client::Client;
use rmcp::ServiceExt;

use crate::lines::Lines;
use crate::server::Server;

/// Serves the tools of `client` on standard input and output until the input ends. Tools may read the files below `root`. People
/// reach the service at `public_url`.
pub async fn serve(client: Client, root: Root, public_url: &str) -> io::Result<()> {
    let lines = Lines::new(tokio::io::stdin(), tokio::io::stdout());
    let service = Server::local(client, root, public_url).serve(lines).await.map_err(io::Error::other)?;
    service.waiting().await.map_err(io::Error::other)?;
    Ok(())
}

/// A directory whose files may be read, and in which folders may be made and filled.
#[derive(Clone, Debug)]
pub struct Root(Arc<Path>);

impl Root {
    /// The directory `path`.
    pub fn new(path: &Path) -> io::Result<Self> {
        Ok(Self(fs::canonicalize(path)?.into()))
    }

    /// Reads a file of at most `bytes_max`. `Err` says why it is not read: it is outside of the root, also by a symbolic link, or is
    /// no ordinary file. It is not opened then.
    pub fn read(&self, path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
        let shown = path.display();
        let failed = |error: io::Error| format!("{shown} cannot be read: {error}");
        let resolved: PathBuf = fs::canonicalize(self.0.join(path)).map_err(failed)?;
        if !resolved.starts_with(&self.0) {
            return Err(format!("{shown} is outside of {}", self.0.display()));
        }
        let seen = fs::symlink_metadata(&resolved).map_err(failed)?;
        if !seen.is_file() {
            return Err(format!("{shown} is no ordinary file"));
        }
        let file = File::open(&resolved).map_err(failed)?;
        let opened = file.metadata().map_err(failed)?;
        // A file that replaced it since then is not read.
        if (opened.dev(), opened.ino()) != (seen.dev(), seen.ino()) {
            return Err(format!("{shown} was replaced"));
        }
        if opened.len() > bytes_max {
            return Err(format!("{shown} has more than {bytes_max} bytes"));
        }
        let mut bytes = Vec::new();
        file.take(bytes_max).read_to_end(&mut bytes).map_err(failed)?;
        Ok(bytes)
    }

    /// The folder `path`, which is made if it is missing. `Err` says why there is none: it is outside of the root, also by a symbolic
    /// link, or is no folder. Nothing is made outside of the root.
    pub fn folder(&self, path: &Path) -> Result<PathBuf, String> {
        let shown = path.display();
        let failed = |error: io::Error| format!("{shown} cannot be made: {error}");
        let mut folder = self.0.to_path_buf();
        for part in path.components() {
            match part {
                Component::CurDir => continue,
                Component::Normal(name) => folder.push(name),
                _ => return Err(format!("{shown} must be a folder below {}, without ..", self.0.display())),
            }
            match fs::create_dir(&folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
                _ => {}
            }
            folder = fs::canonicalize(&folder).map_err(failed)?;
            if !folder.starts_with(&self.0) {
                return Err(format!("{shown} is outside of {}", self.0.display()));
            }
        }
        match folder.is_dir() {
            true => Ok(folder),
            false => Err(format!("{shown} is no folder")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_ordinary_files_below_the_root_are_read() {
        let directory = std::env::temp_dir().join(format!("canvas-tools-{}", std::process::id()));
        let inside = directory.join("inside");
        fs::create_dir_all(inside.join("sub")).expect("makes directories");
        fs::write(directory.join("secret"), "secret").expect("writes");
        fs::write(inside.join("sub/a.png"), "picture").expect("writes");
        for (target, link) in
            [("../secret", "out"), ("sub/a.png", "link"), ("/dev/null", "null"), ("/etc", "etc"), ("loop", "loop")]
        {
            symlink(target, inside.join(link)).expect("links");
        }
        let root = Root::new(&inside).expect("a directory");
        let read = |path: &str| root.read(Path::new(path), 100);
        for path in ["sub/a.png", "link", "sub/../sub/a.png", inside.join("sub/a.png").to_str().expect("UTF-8")] {
            assert_eq!(read(path).as_deref(), Ok(&b"picture"[..]), "{path}");
        }
        for path in ["out", "../secret", "null", "etc/passwd", "loop", "sub", "/dev/zero", "/etc/passwd", "none", ""] {
            assert!(read(path).is_err(), "{path}");
        }
        assert!(root.read(Path::new("sub/a.png"), 6).is_err());
        for path in ["", ".", "sub", "new/deeper", "./new"] {
            let folder = root.folder(Path::new(path)).expect(path);
            assert!(folder.is_dir() && folder.starts_with(fs::canonicalize(&inside).expect("is there")), "{path}");
        }
        symlink("..", inside.join("up")).expect("links");
        for path in ["..", "new/../..", "/tmp", "up", "up/escaped", "etc/escaped", "sub/a.png"] {
            assert!(root.folder(Path::new(path)).is_err(), "{path}");
        }
        assert!(!directory.join("escaped").exists());
        fs::remove_dir_all(directory).expect("removes");
    }
}
