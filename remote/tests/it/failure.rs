//! How a depot handles each answer, a lost answer, and no answer.

use crate::scripted::{Reply, ScriptedServer, depot};
use forge_remote::ObjectDepot;
use forge_store::Timestamp;
use forge_store::error::DepotError;
use forge_store::store::remote::{Depot, DepotRead, DepotTag, DepotWrite};
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(500);

fn tag() -> DepotTag {
    DepotTag::new("\"tag\"")
}

/// Runs each call of a depot and returns the errors by the name of the call.
fn errors(depot: &ObjectDepot) -> Vec<(&'static str, DepotError)> {
    let failed = [
        ("get", depot.get("a", None).err()),
        ("list", depot.list("", "").err()),
        ("now", depot.now().err()),
        ("put_new", depot.put_new("a", b"1").err()),
        ("swap", depot.swap("a", &tag(), b"1").err()),
        ("remove", depot.remove("a").err()),
    ];
    failed.into_iter().map(|(call, error)| (call, error.expect(call))).collect()
}

fn is_write(call: &str) -> bool {
    ["put_new", "swap", "remove"].contains(&call)
}

#[test]
fn a_write_whose_answer_is_lost_is_unsure() {
    for reply in [Reply::Cut, Reply::Silence, Reply::of(500, "InternalError"), Reply::of(503, "")] {
        let server = ScriptedServer::start(std::slice::from_ref(&reply));
        for (call, error) in errors(&server.depot_within(SHORT)) {
            match error {
                DepotError::Unsure { name, .. } => assert!(is_write(call) && name == "a"),
                DepotError::Unavailable { .. } => assert!(!is_write(call), "{reply:?} {call}"),
                other => panic!("{reply:?} {call}: {other:?}"),
            }
        }
    }
}

#[test]
fn a_refusal_of_the_storage_is_named() {
    for (reply, kind) in [
        (Reply::of(401, "Unauthorized"), "Refused"),
        (Reply::of(403, "AccessDenied"), "Refused"),
        (Reply::of(404, "NoSuchBucket"), "Unavailable"),
        (Reply::of(429, ""), "Busy"),
        (Reply::of(503, "SlowDown"), "Busy"),
        (Reply::of(501, "NotImplemented"), "Unsupported"),
    ] {
        let server = ScriptedServer::start(std::slice::from_ref(&reply));
        for (call, error) in errors(&server.depot_within(SHORT)) {
            let got = format!("{error:?}");
            assert!(got.starts_with(kind), "{reply:?} {call}: {got}");
        }
    }
}

#[test]
fn a_busy_storage_says_how_long_to_wait() {
    let body = "<Error><Code>SlowDown</Code></Error>".to_owned();
    let server = ScriptedServer::start(&[Reply::Answer(503, &[("retry-after", "7")], body)]);
    let error = server.depot_within(SHORT).put_new("a", b"1").unwrap_err();
    let DepotError::Busy { after } = error else { panic!("{error:?}") };
    assert_eq!(after, Some(Duration::from_secs(7)));
}

#[test]
fn an_error_after_a_lost_attempt_leaves_the_outcome_unknown() {
    let lost = Reply::of(500, "InternalError");
    let server = ScriptedServer::start(&[lost.clone(), Reply::of(403, "AccessDenied")]);
    let error = server.depot().put_new("a", b"1").unwrap_err();
    assert!(matches!(error, DepotError::Unsure { .. }), "{error:?}");
    // The object may be there because of the first attempt of this call.
    let server = ScriptedServer::start(&[lost.clone(), Reply::of(412, "PreconditionFailed")]);
    assert_eq!(server.depot().put_new("a", b"1").unwrap(), DepotWrite::Conflict);
    let server = ScriptedServer::start(&[lost, Reply::of(200, "")]);
    assert_eq!(server.depot().put_new("a", b"1").unwrap(), DepotWrite::Done(tag()));
}

#[test]
fn a_conflict_with_a_concurrent_request_is_tried_again() {
    let beside = Reply::of(409, "ConditionalRequestConflict");
    let requests = ["PUT /team/forge/a", "HEAD /team/forge/a", "PUT /team/forge/a"];
    let server = ScriptedServer::start(&[beside.clone(), Reply::of(404, ""), Reply::of(200, "")]);
    assert_eq!(server.depot().put_new("a", b"1").unwrap(), DepotWrite::Done(tag()));
    assert_eq!(server.take_requests(), requests);
    let there = Reply::Answer(200, &[("etag", "\"x\""), LAST_MODIFIED], String::new());
    let server = ScriptedServer::start(&[beside.clone(), there]);
    assert_eq!(server.depot().put_new("a", b"1").unwrap(), DepotWrite::Conflict);
    assert_eq!(server.take_requests(), requests[..2]);
    let again = [beside.clone(), Reply::of(404, "")];
    let server = ScriptedServer::start(&[again.clone(), again.clone(), again].concat());
    let error = server.depot().put_new("a", b"1").unwrap_err();
    assert!(matches!(error, DepotError::Busy { .. }), "{error:?}");
    assert_eq!(server.take_requests().len(), 6);
    let server = ScriptedServer::start(&[beside]);
    let error = server.depot_within(SHORT).swap("a", &tag(), b"1").unwrap_err();
    assert!(matches!(error, DepotError::Busy { .. }), "{error:?}");
}

const LAST_MODIFIED: (&str, &str) = ("last-modified", "Fri, 27 Nov 2026 15:40:48 GMT");
const DATE: (&str, &str) = ("date", "Fri, 27 Nov 2026 15:40:49 GMT");

#[test]
fn each_call_of_a_depot_is_one_request() {
    let whole = Reply::Answer(200, &[("etag", "\"tag\""), LAST_MODIFIED, DATE], "text".to_owned());
    let server = ScriptedServer::start(&[whole]);
    let depot = server.depot();
    let expected = DepotRead::Whole { bytes: b"text".to_vec(), tag: tag() };
    assert_eq!(depot.get("a", None).unwrap(), expected);
    assert_eq!(depot.put_new("a", b"1").unwrap(), DepotWrite::Done(tag()));
    assert_eq!(depot.swap("a", &tag(), b"1").unwrap(), DepotWrite::Done(tag()));
    depot.remove("a").unwrap();
    assert_eq!(depot.now().unwrap(), Timestamp::from_micros(1_795_794_049_000_000));
    let requests = [
        "GET /team/forge/a", "PUT /team/forge/a", "PUT /team/forge/a", "DELETE /team/forge/a",
        "GET /team/forge/forge",
    ];
    assert_eq!(server.take_requests(), requests);
    // A tag that no storage gives cannot be the tag of the object, so no request is sent.
    for odd in ["", "*", "a b", "a\n"] {
        assert_eq!(depot.swap("a", &DepotTag::new(odd), b"1").unwrap(), DepotWrite::Conflict);
    }
    assert_eq!(server.take_requests(), [""; 0]);
}

#[test]
fn a_list_is_one_request_and_must_be_sorted() {
    let listed = |names: &[&str]| {
        let entry = |name: &&str| {
            format!(
                "<Contents><Key>forge/{name}</Key><LastModified>2026-11-27T15:40:48.000Z\
                 </LastModified><ETag>\"tag\"</ETag><Size>4</Size></Contents>"
            )
        };
        let entries: String = names.iter().map(entry).collect();
        let body = format!("<ListBucketResult>{entries}</ListBucketResult>");
        ScriptedServer::start(&[Reply::Answer(200, &[DATE], body)])
    };
    // Names that forge cannot have written are left out.
    let server = listed(&["a/b", "a/c d", "a/d", "b"]);
    let found = server.depot().list("a/", "").unwrap();
    let names: Vec<_> = found.iter().map(|entry| (&*entry.name, entry.bytes)).collect();
    assert_eq!(names, [("a/b", 4), ("a/d", 4)]);
    assert_eq!(
        (&found[0].tag, found[0].changed.as_micros()),
        (&Some(tag()), 1_795_794_048_000_000)
    );
    assert_eq!(server.take_requests(), ["GET /team?list-type=2&prefix=forge%2Fa%2F"]);
    let error = listed(&["a/d", "a/b"]).depot().list("a/", "").unwrap_err();
    let expected = "the remote cannot list objects in the order of names: use another one";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn an_object_that_is_too_large_is_not_read() {
    let headers = &[("etag", "\"tag\""), LAST_MODIFIED, ("content-length", "134217729")];
    let server = ScriptedServer::start(&[Reply::Answer(200, headers, "text".to_owned())]);
    let error = server.depot().get("a", None).unwrap_err();
    let expected =
        "'a' on the remote is damaged: it has 134217729 bytes, which no object of forge has";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn an_object_that_leaves_versions_is_not_removed() {
    let marked = Reply::Answer(204, &[("x-amz-delete-marker", "true")], String::new());
    let error = ScriptedServer::start(&[marked]).depot().remove("a").unwrap_err();
    assert!(matches!(error, DepotError::Unsupported { .. }), "{error:?}");
    assert!(error.to_string().contains("suspend the versioning of the bucket"), "{error}");
}

#[test]
fn a_machine_that_cannot_be_reached_is_named() {
    let endpoint = {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", server.local_addr().unwrap())
    };
    let variables = [
        ("AWS_ENDPOINT_URL", &*endpoint),
        ("AWS_ACCESS_KEY_ID", "a"),
        ("AWS_SECRET_ACCESS_KEY", "b"),
    ];
    for (call, error) in errors(&depot(&variables, SHORT)) {
        assert!(matches!(error, DepotError::Unavailable { .. }), "{call}: {error:?}");
        let expected = "s3://team/forge cannot be reached (Connection refused";
        assert!(error.to_string().contains(expected), "{call}: {error}");
    }
}

#[test]
fn missing_credentials_are_named() {
    // The metadata service, which can give credentials to a machine, has none.
    let server = ScriptedServer::start(&[Reply::of(404, "")]);
    let endpoint = server.endpoint();
    let variables = [("AWS_ENDPOINT_URL", &*endpoint), ("AWS_METADATA_ENDPOINT", &endpoint)];
    for (call, error) in errors(&depot(&variables, SHORT)) {
        assert!(matches!(error, DepotError::Refused { .. }), "{call}: {error:?}");
        let expected = "use s3://team/forge: no credentials were given";
        assert!(error.to_string().contains(expected), "{call}: {error}");
    }
    assert!(server.take_requests().iter().all(|request| !request.contains("/team/")));
}
