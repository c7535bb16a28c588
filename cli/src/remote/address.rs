//! Addresses of depots on the command line: URLs, and paths of folders.

use crate::error::CommandError;
use forge_store::error::{DepotError, Error};
use forge_store::store::remote::{Depot, FolderDepot};
use percent_encoding::percent_decode_str;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The scheme of a folder.
const FILE: &str = "file";
/// The schemes that [`open_depot`] can open, for its error message.
#[cfg(feature = "network")]
const KNOWN: &str = "file:, s3:, gs: and az:";
/// The schemes that [`open_depot`] can open, for its error message.
#[cfg(not(feature = "network"))]
const KNOWN: &str = "file: (it was built without the feature 'network')";

/// Opens the depot at a URL that [`depot_url`] returned.
///
/// # Errors
/// Invalid if the scheme is not known or the URL is not valid; any error of the depot.
pub fn open_depot(url: &str) -> Result<Arc<dyn Depot>, CommandError> {
    opened(url).map_err(|error| with_credentials_hint(url, error))
}

fn opened(url: &str) -> Result<Arc<dyn Depot>, CommandError> {
    match scheme_of(url) {
        Some((FILE, rest)) => {
            let depot = FolderDepot::open(&folder_in(rest)?);
            Ok(Arc::new(depot.map_err(Error::from)?))
        }
        #[cfg(feature = "network")]
        Some(_) if forge_remote::is_address(url) => {
            Ok(forge_remote::open(url).map_err(Error::from)?)
        }
        Some((scheme, _)) => Err(CommandError::invalid(format!(
            "'{scheme}:' is not a kind of remote that this forge can open: it knows {KNOWN}"
        ))
        .hinted("name a folder that the machines share, such as file:///mnt/team/forge")),
        None => Err(no_address(url)),
    }
}

/// Returns the URL of a depot from a text on the command line: the text itself if it is a URL, or
/// the `file:` URL of a folder's path.
///
/// # Errors
/// Invalid if it is neither a URL nor a path with a slash.
pub fn depot_url(text: &str, cwd: &Path) -> Result<String, CommandError> {
    if scheme_of(text).is_some() {
        return Ok(text.to_owned());
    }
    if !is_address(text) {
        return Err(no_address(text));
    }
    let path = cwd.join(text);
    // A missing folder is no error here: opening the depot reports it, with its path.
    let path = path.canonicalize().unwrap_or(path);
    Ok(format!("{FILE}://{}", encoded(&path)))
}

/// Whether a text is the address of a depot, and not the name of a remote.
pub fn is_address(text: &str) -> bool {
    text.contains('/') || scheme_of(text).is_some()
}

/// Returns a URL for display, without credentials.
pub fn shown_url(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let host = match scheme {
        FILE => rest.split('/').next().unwrap_or_default(),
        // A secret key can contain a slash, so the first slash does not end the credentials.
        _ => rest,
    };
    match host.rsplit_once('@').and_then(|(credentials, _)| rest.get(credentials.len()..)) {
        Some(shown) => format!("{scheme}://***{shown}"),
        None => url.to_owned(),
    }
}

/// Adds a hint to the error of a storage that refused the credentials: where they are looked for.
pub fn with_credentials_hint(url: &str, error: CommandError) -> CommandError {
    match (error.store_error(), credentials_hint(url)) {
        (Some(Error::Depot(DepotError::Refused { .. })), Some(hint))
            if !error.hints().contains(&hint) =>
        {
            error.hinted(hint)
        }
        _ => error,
    }
}

/// Returns a hint that says where credentials for this URL are looked for; `None` if the scheme
/// needs none.
fn credentials_hint(url: &str) -> Option<String> {
    let places = match scheme_of(url)?.0 {
        "s3" => {
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the profile that AWS_PROFILE names in \
             ~/.aws, and the role of the machine"
        }
        "gs" => {
            "GOOGLE_SERVICE_ACCOUNT, GOOGLE_APPLICATION_CREDENTIALS, what 'gcloud auth \
             application-default login' stored, and the role of the machine"
        }
        "az" => {
            "AZURE_STORAGE_ACCOUNT_NAME with AZURE_STORAGE_ACCOUNT_KEY or another key, and the \
             identity of the machine"
        }
        _ => return None,
    };
    Some(format!("credentials are looked for in {places}"))
}

fn no_address(text: &str) -> CommandError {
    CommandError::invalid(format!("'{text}' is neither a URL nor a path with a slash"))
        .hinted(format!("a folder here is ./{text}"))
}

/// Splits a URL into its scheme and what follows the colon.
fn scheme_of(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    is_scheme.then_some((scheme, rest))
}

/// Returns the path in a `file:` URL.
fn folder_in(rest: &str) -> Result<PathBuf, CommandError> {
    let wrong = || {
        let url = shown_url(&format!("{FILE}:{rest}"));
        CommandError::invalid(format!("'{url}' is not the URL of a folder"))
            .hinted("write file:///path/of/the/folder, or the path alone")
    };
    let path = match rest.strip_prefix("//") {
        Some(rest) => rest.strip_prefix("localhost").unwrap_or(rest),
        None => rest,
    };
    if !path.starts_with('/') {
        return Err(wrong());
    }
    decoded(path).map(PathBuf::from).ok_or_else(wrong)
}

fn encoded(path: &Path) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~+,@=".contains(&byte);
    let encode = |byte: &u8| match *byte {
        byte if is_plain(byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    path.as_os_str().as_bytes().iter().map(encode).collect()
}

fn decoded(text: &str) -> Option<OsString> {
    let is_code = |part: &str| {
        part.get(..2).is_some_and(|code| code.bytes().all(|digit| digit.is_ascii_hexdigit()))
    };
    let is_valid = text.split('%').skip(1).all(is_code);
    is_valid.then(|| OsString::from_vec(percent_decode_str(text).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_in_a_url_are_not_shown() {
        for (url, shown) in [
            ("s3://name:hid/den@team/forge", "s3://***@team/forge"),
            ("file://name:hidden@host/a@b", "file://***@host/a@b"),
            ("file:///mnt/a@b", "file:///mnt/a@b"),
            ("s3://team/forge", "s3://team/forge"),
        ] {
            assert_eq!(shown_url(url), shown);
        }
    }

    #[test]
    fn a_path_becomes_a_url_and_is_read_back() {
        let cwd = Path::new("/w/a project");
        for (text, url) in [
            ("/mnt/forge", "file:///mnt/forge"),
            ("./x%y", "file:///w/a%20project/./x%25y"),
            ("file:///mnt/forge", "file:///mnt/forge"),
            ("s3://bucket/x", "s3://bucket/x"),
        ] {
            assert_eq!(depot_url(text, cwd).unwrap(), url);
        }
        assert!(depot_url("shared", cwd).is_err() && !is_address("shared"));
        let folder = |url: &str| folder_in(scheme_of(url).unwrap().1).ok();
        let path = |path: &str| Some(PathBuf::from(path));
        assert_eq!(folder("file:///w/a%20project/./x%25y"), path("/w/a project/./x%y"));
        assert_eq!(folder("file:/mnt"), path("/mnt"));
        assert_eq!(folder("file://localhost/mnt"), path("/mnt"));
        for wrong in ["file:mnt", "file://host/mnt", "file:///a%2", "file:///a%zz", "file:///a%+f"]
        {
            assert_eq!(folder(wrong), None, "{wrong}");
        }
    }
}
