//! Converts the failures of requests to the errors of a depot.

use crate::observe::CallRecord;
use forge_store::error::DepotError;
use http::StatusCode;
use object_store::Error as StoreError;

/// The reason why a call of a depot failed.
#[derive(Debug)]
pub(crate) enum CallFailure {
    /// An error of `object_store`.
    Store(StoreError),
    /// There was no answer within the time limit.
    TimedOut,
    /// An object cannot be what was written. Contains the reason.
    Damaged(String),
    /// The storage lacks an ability. Contains the missing ability, as a verb with its object.
    Unsupported(String),
}

impl From<StoreError> for CallFailure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// A call that failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailedCall<'a> {
    /// The address of the depot.
    pub(crate) place: &'a str,
    /// The name of the object or the folder.
    pub(crate) name: &'a str,
    pub(crate) kind: CallKind,
}

/// The kind of a call of a depot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallKind {
    Read,
    List,
    Write,
    Remove,
}

impl CallKind {
    const fn verb(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::List => "list",
            Self::Write => "write",
            Self::Remove => "remove",
        }
    }

    const fn changes(self) -> bool {
        matches!(self, Self::Write | Self::Remove)
    }
}

impl FailedCall<'_> {
    /// Converts the failure of this call to an error, by what was seen of its requests.
    pub(crate) fn error(self, failure: CallFailure, seen: &CallRecord) -> DepotError {
        let name = self.name.to_owned();
        match failure {
            CallFailure::Damaged(reason) => DepotError::Damaged { name, reason },
            CallFailure::Unsupported(what) => DepotError::Unsupported { what },
            CallFailure::TimedOut => self.request_error(seen, Box::new(TimeIsOver)),
            CallFailure::Store(StoreError::NotImplemented { operation, .. }) => {
                DepotError::Unsupported { what: operation }
            }
            CallFailure::Store(error) => self.request_error(seen, Box::new(error)),
        }
    }

    fn request_error(
        self,
        seen: &CallRecord,
        source: Box<dyn std::error::Error + Send + Sync>,
    ) -> DepotError {
        let place = self.place;
        let unavailable = |what| DepotError::Unavailable { what, source: None };
        if self.kind.changes() && (seen.maybe_done || seen.is_waiting && !seen.for_credentials) {
            return DepotError::Unsure { name: self.name.to_owned(), source };
        }
        if !seen.has_begun {
            // No request was made, so the cause is on this machine: for example, a file of
            // credentials that cannot be read.
            let action = format!("use {place} ({source})");
            return DepotError::Refused { action, source };
        }
        if seen.for_credentials {
            let action = match seen.status {
                // No service answered: no credentials are configured, and the machine has no role
                // that gives some.
                None => format!("use {place} without credentials"),
                Some(_) => format!("use {place}: no credentials were given"),
            };
            return DepotError::Refused { action, source };
        }
        if seen.is_busy() {
            return DepotError::Busy { after: seen.retry_after };
        }
        let Some(status) = seen.status else {
            let cause = first_cause(&*source);
            let what =
                format!("{place} cannot be reached ({cause}): check the network and the address");
            return DepotError::Unavailable { what, source: Some(source) };
        };
        let code = if seen.code.is_empty() { status.as_str() } else { &seen.code };
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let action = format!("{} {place}/{} ({code})", self.kind.verb(), self.name);
                DepotError::Refused { action, source }
            }
            StatusCode::NOT_FOUND => unavailable(format!(
                "there is no bucket for {place} ({code}): make it, or correct the address"
            )),
            StatusCode::NOT_IMPLEMENTED => {
                let what = match self.kind {
                    CallKind::Write => "write an object on a condition".to_owned(),
                    kind => format!("{} objects", kind.verb()),
                };
                DepotError::Unsupported { what }
            }
            StatusCode::CONFLICT => DepotError::Busy { after: seen.retry_after },
            _ if status.is_redirection() || code == "AuthorizationHeaderMalformed" => {
                unavailable(format!("{place} is in another region ({code}): set AWS_REGION"))
            }
            _ => {
                let verb = self.kind.verb();
                let what = format!(
                    "{place} answered {code} to a request to {verb}: try again later, or check the \
                     address and the service"
                );
                DepotError::Unavailable { what, source: Some(source) }
            }
        }
    }
}

/// Returns the text of the innermost cause of an error, such as a refused certificate.
fn first_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// The error of a call that took too long.
#[derive(Debug, thiserror::Error)]
#[error("there was no answer in time")]
struct TimeIsOver;

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(status: u16, code: &str) -> CallRecord {
        let status = StatusCode::from_u16(status).ok();
        CallRecord { has_begun: true, status, code: code.to_owned(), ..CallRecord::default() }
    }

    fn error(kind: CallKind, seen: &CallRecord) -> DepotError {
        FailedCall { place: "s3://team/forge", name: "refs/a", kind }
            .error(CallFailure::TimedOut, seen)
    }

    #[test]
    fn the_outcome_of_a_write_is_unknown_only_if_it_may_have_happened() {
        let may = CallRecord { maybe_done: true, ..seen(500, "InternalError") };
        let waits = CallRecord { is_waiting: true, ..seen(0, "") };
        let then_refused = CallRecord { maybe_done: true, ..seen(403, "AccessDenied") };
        for seen in [&may, &waits, &then_refused] {
            for kind in [CallKind::Write, CallKind::Remove] {
                let error = error(kind, seen);
                assert!(matches!(error, DepotError::Unsure { .. }), "{error:?}");
            }
        }
        for seen in [&may, &waits] {
            let error = error(CallKind::Read, seen);
            assert!(matches!(error, DepotError::Unavailable { .. }), "{error:?}");
        }
    }

    #[test]
    fn each_refusal_of_the_storage_gives_the_matching_error() {
        let error = |kind, status, code| error(kind, &seen(status, code));
        for (status, code, kind) in [
            (401, "", "Refused"),
            (403, "SignatureDoesNotMatch", "Refused"),
            (429, "", "Busy"),
            (503, "SlowDown", "Busy"),
            (503, "ServerBusy", "Busy"),
            (409, "OperationAborted", "Busy"),
            (404, "NoSuchBucket", "Unavailable"),
            (301, "", "Unavailable"),
            (400, "AuthorizationHeaderMalformed", "Unavailable"),
            (500, "InternalError", "Unavailable"),
            (0, "", "Unavailable"),
            (501, "NotImplemented", "Unsupported"),
        ] {
            let got = format!("{:?}", error(CallKind::Write, status, code));
            assert!(got.starts_with(kind), "{status} {code}: {got}");
        }
        let message = |status, code| error(CallKind::Write, status, code).to_string();
        for (message, expected) in [
            (message(404, "NoSuchBucket"), "no bucket for s3://team/forge (NoSuchBucket): make it"),
            (message(301, ""), "another region (301): set AWS_REGION"),
            (
                message(403, "AccessDenied"),
                "permit forge to write s3://team/forge/refs/a (AccessDenied): check",
            ),
            (message(501, ""), "cannot write an object on a condition: use another one"),
            (
                message(500, "InternalError"),
                "answered InternalError to a request to write: try again later",
            ),
            (message(0, ""), "cannot be reached (there was no answer in time): check"),
        ] {
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn missing_credentials_are_named() {
        let waiting = CallRecord { for_credentials: true, is_waiting: true, ..seen(0, "") };
        let error = error(CallKind::Write, &waiting);
        assert!(matches!(error, DepotError::Refused { .. }), "{error:?}");
        let expected = "the remote does not permit forge to use s3://team/forge without \
                        credentials: check its credentials and permissions";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_failure_before_any_request_is_reported_as_one_of_the_credentials() {
        let error = error(CallKind::Read, &CallRecord::default());
        let expected = "the remote does not permit forge to use s3://team/forge (there was no \
                        answer in time): check its credentials and permissions";
        assert_eq!(error.to_string(), expected);
    }
}
