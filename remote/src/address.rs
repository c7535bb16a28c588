//! The address of a depot on object storage.

use forge_store::error::DepotError;
use forge_store::store::remote::check_depot_name;
use std::fmt;

/// A kind of object storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StorageKind {
    /// Amazon S3, or a server with its protocol.
    S3,
    /// Google Cloud Storage.
    Google,
    /// Azure Blob Storage.
    Azure,
}

/// The address of a depot, such as `s3://BUCKET/FOLDER`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DepotAddress {
    pub(crate) kind: StorageKind,
    /// The bucket, or the container on Azure.
    pub(crate) bucket: String,
    /// The folder in the bucket with a `/` at its end; empty for the whole bucket.
    pub(crate) folder: String,
}

impl StorageKind {
    const ALL: [Self; 3] = [Self::S3, Self::Google, Self::Azure];

    const fn scheme(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Google => "gs",
            Self::Azure => "az",
        }
    }

    /// Returns the kind of storage of an address, by its scheme.
    pub(crate) fn of(address: &str) -> Option<Self> {
        let (scheme, _) = address.split_once("://")?;
        Self::ALL.into_iter().find(|kind| kind.scheme() == scheme)
    }
}

impl DepotAddress {
    /// Reads an address.
    ///
    /// # Errors
    /// [`DepotError::InvalidAddress`].
    pub(crate) fn parse(text: &str) -> Result<Self, DepotError> {
        let wrong = |reason: &str| {
            // A password in an address must not be shown.
            let address = if text.contains('@') { "the address" } else { text };
            invalid_address(address, reason)
        };
        let Some((kind, (_, rest))) = StorageKind::of(text).zip(text.split_once("://")) else {
            return Err(wrong("it begins with none of s3://, gs:// and az://"));
        };
        if rest.contains('@') {
            return Err(wrong(
                "it has credentials: leave them out, they are read from the environment",
            ));
        }
        let (bucket, folder) = rest.split_once('/').unwrap_or((rest, ""));
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if bucket.is_empty() || !bucket.bytes().all(is_plain) {
            return Err(wrong("write it as s3://BUCKET/FOLDER, with the name of a bucket"));
        }
        let folder = folder.trim_end_matches('/');
        if !folder.is_empty()
            && let Err(DepotError::InvalidName { reason, .. }) = check_depot_name(folder)
        {
            return Err(wrong(&format!("its folder cannot be used: {reason}")));
        }
        let folder = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        Ok(Self { kind, bucket: bucket.to_owned(), folder })
    }
}

impl fmt::Display for DepotAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = self.folder.trim_end_matches('/');
        let slash = if folder.is_empty() { "" } else { "/" };
        write!(out, "{}://{}{slash}{folder}", self.kind.scheme(), self.bucket)
    }
}

/// Makes the error for an address or a configuration that cannot be used.
pub(crate) fn invalid_address(address: impl fmt::Display, reason: impl fmt::Display) -> DepotError {
    DepotError::InvalidAddress { address: address.to_string(), reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_bucket_and_a_folder() {
        for (text, kind, bucket, folder) in [
            ("s3://team", StorageKind::S3, "team", ""),
            ("s3://team/", StorageKind::S3, "team", ""),
            ("gs://team.forge/a/b", StorageKind::Google, "team.forge", "a/b/"),
            ("az://team/a-b_c/", StorageKind::Azure, "team", "a-b_c/"),
        ] {
            let address = DepotAddress::parse(text).unwrap();
            let expected =
                DepotAddress { kind, bucket: bucket.to_owned(), folder: folder.to_owned() };
            assert_eq!(address, expected);
            assert_eq!(address.to_string(), text.trim_end_matches('/'));
        }
    }

    #[test]
    fn another_address_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "none of s3://"),
            ("team", "none of s3://"),
            ("https://bucket.s3.amazonaws.com", "none of s3://"),
            ("S3://team", "none of s3://"),
            ("s3://", "name of a bucket"),
            ("s3:///a", "name of a bucket"),
            ("s3://te am", "name of a bucket"),
            ("s3://team?region=x", "name of a bucket"),
            ("s3://team/a//b", "empty part"),
            ("s3://team/../b", "begins with '.'"),
            ("s3://team/a?b", "other characters"),
        ] {
            let error = DepotAddress::parse(text).unwrap_err();
            assert!(matches!(error, DepotError::InvalidAddress { .. }), "{text}: {error:?}");
            assert!(error.to_string().contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn credentials_in_an_address_are_refused_and_not_shown() {
        let error = DepotAddress::parse("s3://name:hidden@team/a").unwrap_err().to_string();
        assert!(error.contains("has credentials") && !error.contains("hidden"), "{error}");
    }
}
