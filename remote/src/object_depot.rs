//! A depot on object storage.

use crate::Environment;
use crate::address::{DepotAddress, StorageKind};
use crate::configure;
use crate::failure::{CallFailure, CallKind, FailedCall};
use crate::observe::{CallRecord, look, observed};
use forge_store::Timestamp;
use forge_store::error::DepotError;
use forge_store::store::remote::{
    DEPOT_LIST_ENTRIES, Depot, DepotEntry, DepotRead, DepotTag, DepotWrite, MAX_DEPOT_OBJECT_BYTES,
    check_depot_name, check_depot_object, check_depot_prefix,
};
use futures_util::StreamExt as _;
use http::StatusCode;
use object_store::path::Path;
use object_store::{
    Error as StoreError, GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode,
    PutOptions, PutResult, UpdateVersion,
};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// The slowest accepted transfer of contents, in bytes per second. In addition to the limit, a
/// request may take as long as its contents take at this rate.
const SLOWEST_BYTES: usize = 64 << 10;
/// The maximum number of attempts to create an object while the storage refuses because of another
/// request at the same time.
const CREATE_ATTEMPTS: usize = 3;
/// The object that is requested to learn the time: the marker of a remote, which is small.
const ASKED_FOR_CLOCK: &str = "forge";

/// A [`Depot`] in a folder of a bucket. Each object is an object of the storage, with the same name
/// below that folder. Calls block, and panic in a task of an asynchronous runtime.
///
/// The tag of an object is its `ETag`, on Google Cloud Storage with its generation. The clock is
/// the date in the storage's answers, in whole seconds.
pub struct ObjectDepot {
    objects: Arc<dyn ObjectStore>,
    address: DepotAddress,
    /// The address as text, for errors.
    place: String,
    limit: Duration,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

impl fmt::Debug for ObjectDepot {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ObjectDepot").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Drop for ObjectDepot {
    fn drop(&mut self) {
        // A DNS lookup may still run. Dropping does not wait for it.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl ObjectDepot {
    /// Opens the depot at an address, configured by these environment variables. A request may take
    /// `limit`, without the time for its contents. No request is sent yet.
    ///
    /// # Errors
    /// [`DepotError::InvalidAddress`] if the address or a variable is wrong;
    /// [`DepotError::Refused`] if the AWS profile does not exist or its credentials cannot be used;
    /// [`DepotError::Unavailable`] if its file cannot be read, or the system has no resources for a
    /// connection.
    pub fn open(
        address: &str,
        environment: &Environment,
        limit: Duration,
    ) -> Result<Self, DepotError> {
        let address = DepotAddress::parse(address)?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| DepotError::Unavailable {
            what: "this machine has no resources for a connection: try again later".to_owned(),
            source: Some(Box::new(error)),
        })?;
        let objects = configure::client(&address, environment, limit)?;
        let place = address.to_string();
        Ok(Self { objects, address, place, limit, runtime: Some(runtime) })
    }

    /// Runs a call on this thread, and returns what was seen of its requests.
    fn run<T>(&self, call: impl Future<Output = T>) -> (T, CallRecord) {
        let runtime = self.runtime.as_ref().expect("only drop takes it");
        runtime.block_on(observed(call))
    }

    fn path(&self, name: &str) -> Path {
        Path::from(format!("{}{name}", self.address.folder))
    }

    const fn failed<'a>(&'a self, kind: CallKind, name: &'a str) -> FailedCall<'a> {
        FailedCall { place: self.place.as_str(), name, kind }
    }

    /// Waits for a part of a call, which may take the limit and the time for `bytes`.
    async fn within<T, E: Into<CallFailure>>(
        &self,
        bytes: usize,
        part: impl Future<Output = Result<T, E>>,
    ) -> Result<T, CallFailure> {
        let seconds = u64::try_from(bytes / SLOWEST_BYTES).unwrap_or(u64::MAX);
        let limit = self.limit.saturating_add(Duration::from_secs(seconds));
        timeout(limit, part).await.map_err(|_| CallFailure::TimedOut)?.map_err(Into::into)
    }

    fn tag(&self, e_tag: Option<String>, version: Option<String>) -> Result<DepotTag, CallFailure> {
        let missing =
            || CallFailure::Unsupported("tell the versions of an object apart".to_owned());
        let e_tag = e_tag.filter(|tag| is_usable(tag)).ok_or_else(missing)?;
        Ok(DepotTag::new(match self.address.kind {
            StorageKind::Google => format!("{} {e_tag}", version.ok_or_else(missing)?),
            StorageKind::S3 | StorageKind::Azure => e_tag,
        }))
    }

    /// Converts a tag to the version type of `object_store`. `None` if no object can have this tag.
    fn version(&self, tag: &DepotTag) -> Option<UpdateVersion> {
        let (version, e_tag) = match self.address.kind {
            StorageKind::Google => {
                let (version, e_tag) = tag.as_str().split_once(' ')?;
                (Some(version.to_owned()), e_tag)
            }
            StorageKind::S3 | StorageKind::Azure => (None, tag.as_str()),
        };
        is_usable(e_tag).then(|| UpdateVersion { e_tag: Some(e_tag.to_owned()), version })
    }

    async fn read(&self, name: &str, known: Option<&DepotTag>) -> Result<DepotRead, CallFailure> {
        let if_none_match = known.and_then(|tag| self.version(tag)).and_then(|known| known.e_tag);
        let options = GetOptions { if_none_match, ..GetOptions::default() };
        let path = self.path(name);
        let found = match self.within(0, self.objects.get_opts(&path, options)).await {
            Ok(found) => found,
            Err(CallFailure::Store(StoreError::NotModified { .. })) => {
                return Ok(DepotRead::Unchanged);
            }
            Err(CallFailure::Store(StoreError::NotFound { .. }))
                if !look(|_| ()).lacks_bucket() =>
            {
                return Ok(DepotRead::Absent);
            }
            Err(failure) => return Err(failure),
        };
        let bytes = found.meta.size;
        let size = usize::try_from(bytes).ok().filter(|size| *size <= MAX_DEPOT_OBJECT_BYTES);
        let size = size.ok_or_else(|| {
            CallFailure::Damaged(format!("it has {bytes} bytes, which no object of forge has"))
        })?;
        let tag = self.tag(found.meta.e_tag.clone(), found.meta.version.clone())?;
        let mut contents = Vec::new();
        let mut parts = found.into_stream();
        let collect = async {
            while let Some(part) = parts.next().await {
                contents.extend_from_slice(&part?);
                if contents.len() > size {
                    break;
                }
            }
            Ok::<_, StoreError>(())
        };
        self.within(size, collect).await?;
        if contents.len() != size {
            let got = contents.len();
            return Err(CallFailure::Damaged(format!("{got} bytes arrived instead of {size}")));
        }
        Ok(DepotRead::Whole { bytes: contents, tag })
    }

    async fn put(
        &self,
        name: &str,
        mode: PutMode,
        bytes: &bytes::Bytes,
    ) -> Result<PutResult, CallFailure> {
        let path = self.path(name);
        let options = PutOptions { mode, ..PutOptions::default() };
        let put = self.objects.put_opts(&path, bytes.clone().into(), options);
        self.within(bytes.len(), put).await
    }

    fn done(&self, name: &str, put: PutResult) -> Result<DepotWrite, DepotError> {
        match self.tag(put.e_tag, put.version) {
            Ok(tag) => Ok(DepotWrite::Done(tag)),
            Err(_) => Err(DepotError::Unsure {
                name: name.to_owned(),
                source: "the storage did not say which version it wrote".into(),
            }),
        }
    }

    /// Creates an object; returns `None` if it exists. A storage may also refuse because of another
    /// request at the same time. If no object exists after that, it is created again.
    async fn create(
        &self,
        name: &str,
        bytes: &bytes::Bytes,
    ) -> Result<Option<PutResult>, CallFailure> {
        let mut attempt = 1;
        loop {
            match self.put(name, PutMode::Create, bytes).await {
                Ok(put) => return Ok(Some(put)),
                Err(CallFailure::Store(error @ StoreError::AlreadyExists { .. })) => {
                    let seen = look(|_| ());
                    let is_certain = seen.status != Some(StatusCode::CONFLICT)
                        || seen.code == "BlobAlreadyExists";
                    if is_certain || self.exists(name).await? {
                        return Ok(None);
                    }
                    if attempt == CREATE_ATTEMPTS {
                        look(|after| {
                            after.status = seen.status;
                            after.code.clone_from(&seen.code);
                        });
                        return Err(CallFailure::Store(error));
                    }
                    attempt += 1;
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    async fn exists(&self, name: &str) -> Result<bool, CallFailure> {
        let path = self.path(name);
        match self.within(0, self.objects.head(&path)).await {
            Ok(_) => Ok(true),
            Err(CallFailure::Store(StoreError::NotFound { .. })) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    async fn entries(&self, prefix: &str, after: &str) -> Result<Vec<DepotEntry>, CallFailure> {
        let folder = format!("{}{prefix}", self.address.folder);
        let folder = (!folder.is_empty()).then(|| Path::from(folder.trim_end_matches('/')));
        // Some storages can begin a list only after a name in the listed folder.
        let mut listed = if after >= prefix && check_depot_name(after).is_ok() {
            self.objects.list_with_offset(folder.as_ref(), &self.path(after))
        } else {
            self.objects.list(folder.as_ref())
        };
        let mut entries: Vec<DepotEntry> = Vec::new();
        let next = async |listed: &mut futures_util::stream::BoxStream<'_, _>| {
            self.within(0, async { Ok::<_, CallFailure>(listed.next().await) }).await
        };
        while let Some(meta) = next(&mut listed).await? {
            let Some(entry) = self.entry(meta?, prefix, after) else { continue };
            if entries.last().is_some_and(|last| last.name >= entry.name) {
                return Err(CallFailure::Unsupported(
                    "list objects in the order of names".to_owned(),
                ));
            }
            entries.push(entry);
            if entries.len() == DEPOT_LIST_ENTRIES {
                break;
            }
        }
        Ok(entries)
    }

    /// Returns the entry of an object; `None` if it is not in the requested range, or not forge's.
    fn entry(&self, meta: ObjectMeta, prefix: &str, after: &str) -> Option<DepotEntry> {
        let name = meta.location.as_ref().strip_prefix(&self.address.folder)?;
        let is_wanted = name.starts_with(prefix) && name > after && check_depot_name(name).is_ok();
        let tag = match self.address.kind {
            StorageKind::S3 => meta.e_tag,
            // In a list, the tag lacks the quotes that it has in other answers.
            StorageKind::Azure => meta.e_tag.map(|tag| format!("\"{}\"", tag.trim_matches('"'))),
            // A list does not contain generations.
            StorageKind::Google => None,
        };
        is_wanted.then(|| DepotEntry {
            name: name.to_owned(),
            tag: tag.map(DepotTag::new),
            bytes: meta.size,
            changed: meta.last_modified.into(),
        })
    }
}

impl Depot for ObjectDepot {
    fn get(&self, name: &str, known: Option<&DepotTag>) -> Result<DepotRead, DepotError> {
        check_depot_name(name)?;
        let (read, seen) = self.run(self.read(name, known));
        read.map_err(|failure| self.failed(CallKind::Read, name).error(failure, &seen))
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<DepotWrite, DepotError> {
        check_depot_name(name)?;
        check_depot_object(bytes)?;
        let bytes = bytes::Bytes::copy_from_slice(bytes);
        let (created, seen) = self.run(self.create(name, &bytes));
        match created {
            Ok(Some(put)) => self.done(name, put),
            Ok(None) => Ok(DepotWrite::Conflict),
            Err(failure) => Err(self.failed(CallKind::Write, name).error(failure, &seen)),
        }
    }

    fn swap(
        &self,
        name: &str,
        expected: &DepotTag,
        bytes: &[u8],
    ) -> Result<DepotWrite, DepotError> {
        check_depot_name(name)?;
        check_depot_object(bytes)?;
        let Some(version) = self.version(expected) else { return Ok(DepotWrite::Conflict) };
        let bytes = bytes::Bytes::copy_from_slice(bytes);
        let (put, seen) = self.run(self.put(name, PutMode::Update(version), &bytes));
        match put {
            Ok(put) => self.done(name, put),
            Err(CallFailure::Store(
                StoreError::Precondition { .. } | StoreError::NotFound { .. },
            )) if !seen.lacks_bucket() => Ok(DepotWrite::Conflict),
            Err(failure) => Err(self.failed(CallKind::Write, name).error(failure, &seen)),
        }
    }

    fn list(&self, prefix: &str, after: &str) -> Result<Vec<DepotEntry>, DepotError> {
        check_depot_prefix(prefix)?;
        let (entries, seen) = self.run(self.entries(prefix, after));
        entries.map_err(|failure| self.failed(CallKind::List, prefix).error(failure, &seen))
    }

    fn remove(&self, name: &str) -> Result<(), DepotError> {
        check_depot_name(name)?;
        let path = self.path(name);
        let (removed, seen) = self.run(self.within(0, self.objects.delete(&path)));
        match removed {
            Ok(()) => {}
            Err(CallFailure::Store(StoreError::NotFound { .. })) if !seen.lacks_bucket() => {}
            Err(failure) => {
                return Err(self.failed(CallKind::Remove, name).error(failure, &seen));
            }
        }
        if seen.left_versions {
            let what = "remove an object with its earlier versions, because its bucket keeps them \
                        (suspend the versioning of the bucket)";
            return Err(DepotError::Unsupported { what: what.to_owned() });
        }
        Ok(())
    }

    fn now(&self) -> Result<Timestamp, DepotError> {
        let call = self.failed(CallKind::Read, ASKED_FOR_CLOCK);
        let path = self.path(ASKED_FOR_CLOCK);
        let request = self.within(0, self.objects.get_opts(&path, GetOptions::default()));
        let (found, seen) = self.run(request);
        match found {
            Ok(_) => {}
            Err(CallFailure::Store(StoreError::NotFound { .. })) if !seen.lacks_bucket() => {}
            Err(failure) => return Err(call.error(failure, &seen)),
        }
        seen.date.ok_or_else(|| DepotError::Unsupported { what: "tell its time".to_owned() })
    }
}

/// Returns whether a text can be an `ETag`. In a condition, an empty text and `*` mean something
/// else.
fn is_usable(e_tag: &str) -> bool {
    !e_tag.is_empty() && e_tag != "*" && e_tag.bytes().all(|byte| byte.is_ascii_graphic())
}
