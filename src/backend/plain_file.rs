//! Opening regular files without blocking, and reading them up to a limit. A path under another
//! user's control may be a pipe without a writer, a device that never ends, or a file larger than
//! memory.

use super::Error;
use super::files::if_there;
use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Opens a file for reading if it is a regular file. Symbolic links are followed.
///
/// # Errors
/// [`io::ErrorKind::IsADirectory`]; [`io::ErrorKind::InvalidInput`], naming the kind, for anything
/// else that is not a file; errors of the system.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(path, OpenOptions::new().read(true))
}

/// Opens a regular file like [`open`], with these options.
pub fn open_with(path: &Path, options: &OpenOptions) -> io::Result<File> {
    // Opening a pipe would otherwise block until its other end is opened.
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = options.clone().custom_flags(nonblocking).open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// Returns whether a file could not be read because of its type or size.
#[must_use]
pub fn is_odd(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, IsADirectory};
    matches!(error.kind(), InvalidData | InvalidInput | IsADirectory)
}

/// Returns whether a file could not be read because it, or its folder, is something else.
#[must_use]
pub fn is_no_file(error: &io::Error) -> bool {
    is_odd(error) || error.kind() == io::ErrorKind::NotADirectory
}

/// Reads a file of at most `most` bytes. Symbolic links are followed.
///
/// # Errors
/// See [`open`]; [`io::ErrorKind::InvalidData`], naming the size, if the file is larger.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_opened(open(path)?, most)
}

/// Reads a file like [`read`]. `None` if there is none.
pub(crate) fn read_if_there(path: &Path, most: u64) -> Result<Option<Vec<u8>>, Error> {
    if_there(read(path, most)).map_err(Error::io("read", path))
}

/// Reads an open file of at most `most` bytes, if it is a regular file.
///
/// # Errors
/// See [`read`].
pub fn read_opened(file: File, most: u64) -> io::Result<Vec<u8>> {
    let about = file.metadata()?;
    check(&about)?;
    let bytes = about.len();
    if bytes > most {
        return Err(too_large(&format!("{bytes} bytes"), most));
    }
    let mut content = Vec::with_capacity(usize::try_from(bytes).unwrap_or_default());
    // The file may grow while it is read.
    file.take(most.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > most {
        return Err(too_large("more bytes", most));
    }
    Ok(content)
}

/// Size above which a file is not read if it was mostly never written: it would fill the memory
/// with zeros.
const MOST_UNWRITTEN_BYTES: u64 = 1 << 30;

/// Returns whether a file is large and less than a sixteenth of it was ever written. No file of a
/// store is like that: a file system that compresses makes files only a few times smaller.
pub(crate) fn is_hollow(about: &Metadata) -> bool {
    const BLOCK_BYTES: u64 = 512;
    about.len() > MOST_UNWRITTEN_BYTES
        && about.blocks().saturating_mul(BLOCK_BYTES) < about.len() / 16
}

/// Reads a file of a damaged store, of any size. Symbolic links are followed.
///
/// # Errors
/// See [`open`]; [`io::ErrorKind::InvalidData`] if the file was mostly never written.
pub(crate) fn read_written(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let about = file.metadata()?;
    if is_hollow(&about) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("most of its {} bytes were never written", about.len()),
        ));
    }
    let mut content = Vec::with_capacity(usize::try_from(about.len()).unwrap_or_default());
    file.read_to_end(&mut content)?;
    Ok(content)
}

/// Reads a text file like [`read`].
///
/// # Errors
/// See [`read`]; [`io::ErrorKind::InvalidData`] if it is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

fn too_large(has: &str, most: u64) -> io::Error {
    let text = format!("it has {has}, and at most {most} are read");
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// Rejects anything that is not a regular file.
fn check(about: &Metadata) -> io::Result<()> {
    if about.is_file() {
        return Ok(());
    }
    let kind =
        if about.is_dir() { io::ErrorKind::IsADirectory } else { io::ErrorKind::InvalidInput };
    Err(io::Error::new(kind, format!("it is {}, not a file", kind_of(about.file_type()))))
}

/// Describes the type of a directory entry.
#[must_use]
pub fn kind_of(kind: FileType) -> &'static str {
    match kind {
        kind if kind.is_file() => "a file",
        kind if kind.is_dir() => "a directory",
        kind if kind.is_symlink() => "a link",
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_large_sparse_file_is_refused_before_reading() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, b"12345").unwrap();
        assert_eq!(read_written(&path).unwrap(), b"12345");
        File::options().write(true).open(&path).unwrap().set_len(8 << 30).unwrap();
        let error = read_written(&path).unwrap_err();
        assert_eq!(error.to_string(), "most of its 8589934592 bytes were never written");
    }

    #[test]
    fn a_file_within_the_limit_is_read_and_a_larger_one_is_refused_by_its_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, b"12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        let error = read(&path, 4).unwrap_err();
        assert_eq!(error.to_string(), "it has 5 bytes, and at most 4 are read");
        // A sparse file without blocks on disk has a size too.
        File::create(&path).unwrap().set_len(1 << 30).unwrap();
        assert_eq!(read(&path, 1 << 20).unwrap_err().kind(), io::ErrorKind::InvalidData);
        fs::write(&path, b"\xff").unwrap();
        assert_eq!(read_text(&path, 9).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn special_files_are_refused_with_their_kind() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let error_of = |path: &Path| read(path, 9).unwrap_err().to_string();
        assert_eq!(error_of(&pipe), "it is a pipe, not a file");
        assert_eq!(error_of(folder.path()), "it is a directory, not a file");
        assert_eq!(error_of(Path::new("/dev/zero")), "it is a device, not a file");
        let both = OpenOptions::new().read(true).write(true).clone();
        assert_eq!(open_with(&pipe, &both).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(open(&folder.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
