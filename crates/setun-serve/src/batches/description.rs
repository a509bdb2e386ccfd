//! Schemas and routes of files and batches.

use serde_json::json;
use setun::batch_file::URLS;

use super::{
    batch_routes::{self, MAX_METADATA},
    file_routes::{self, ANCHOR, LIFETIMES},
};
use crate::description::{
    operation::{Api, RouteShape},
    schema::{
        AnySchema, ObjectShape, count, flag, list, map, named, nullable, object, one_of, size,
        text, text_within, values,
    },
};
use crate::files::records::COMPLETION_WINDOW;

/// Schemas of files and batches.
pub(crate) fn schemas() -> Vec<(&'static str, AnySchema)> {
    vec![("File", file_object()), ("Batch", batch_object())]
}

/// `POST /v1/files`.
pub(crate) fn upload() -> RouteShape {
    let form = ObjectShape::new()
        .required("file", text(), "A request of a batch a line, in JSON.")
        .required("purpose", one_of(&["batch"]), "")
        .sometimes("expires_after[anchor]", one_of(&[ANCHOR]), "What the time begins with.")
        .sometimes("expires_after[seconds]", lifetime(), "How long the file stays.");
    let shape = RouteShape::with_form("file_upload", "Uploads a file with requests", form);
    kept(shape).refuses("507", FULL).answers("The file.", named("File"))
}

/// `GET /v1/files`.
pub(crate) fn file_list() -> RouteShape {
    route("file_list", "Lists files")
        .query_parameter("after", text(), "The id of the file before the page.")
        .query_parameter("limit", count(1, file_routes::MAX_PAGE), "Files of the page.")
        .query_parameter(
            "order",
            one_of(&["asc", "desc"]),
            "By their age. Default: the newest first.",
        )
        .query_parameter("purpose", text(), "`batch` or `batch_output` alone.")
        .answers("A page of files.", page("File"))
}

/// `GET /v1/files/{id}`.
pub(crate) fn file() -> RouteShape {
    of_file("file", "One file").answers("The file.", named("File"))
}

/// `GET /v1/files/{id}/content`.
pub(crate) fn content() -> RouteShape {
    of_file("file_content", "The content of a file").answers_with(
        "200",
        "The bytes of the file.",
        &[("application/octet-stream", None)],
    )
}

/// `DELETE /v1/files/{id}`.
pub(crate) fn remove_file() -> RouteShape {
    let removed = ObjectShape::new().with([
        ("id", text()),
        ("object", one_of(&["file"])),
        ("deleted", flag()),
    ]);
    of_file("file_delete", "Deletes a file")
        .refuses("409", "A batch that has not ended needs it.")
        .answers("It is gone.", removed)
}

/// `POST /v1/batches`.
pub(crate) fn create_batch() -> RouteShape {
    let expires = ObjectShape::new().with([("anchor", one_of(&[ANCHOR])), ("seconds", lifetime())]);
    let body = ObjectShape::new()
        .required("input_file_id", text(), "A file with the purpose `batch`.")
        .required("endpoint", one_of(&URLS), "The url of all its requests.")
        .required("completion_window", one_of(&[COMPLETION_WINDOW]), "")
        .optional("metadata", metadata(), "Comes back with the batch.")
        .optional("output_expires_after", expires.into(), "How long the files of answers stay.");
    let example = json!({
        "input_file_id": "file-0123456789abcdef01234567",
        "endpoint": "/v1/completions",
        "completion_window": COMPLETION_WINDOW,
        "output_expires_after": {"anchor": ANCHOR, "seconds": 86_400},
    });
    let shape = RouteShape::with_body(
        Api::OpenAi,
        "batch_create",
        "Answers the requests of a file",
        body,
        example,
    );
    kept(shape).refuses("507", FULL).answers("The batch.", named("Batch"))
}

/// `GET /v1/batches`.
pub(crate) fn batch_list() -> RouteShape {
    route("batch_list", "Lists batches, the newest first")
        .query_parameter("after", text(), "The id of the batch before the page.")
        .query_parameter("limit", count(1, batch_routes::MAX_PAGE), "Batches of the page.")
        .answers("A page of batches.", page("Batch"))
}

/// `GET /v1/batches/{id}`.
pub(crate) fn batch() -> RouteShape {
    of_batch("batch", "One batch").answers("The batch.", named("Batch"))
}

/// `POST /v1/batches/{id}/cancel`.
pub(crate) fn cancel_batch() -> RouteShape {
    of_batch("batch_cancel", "Cancels a batch")
        .refuses("409", "It has ended.")
        .refuses("429", "A limit is full; `retry-after-ms` says when to come again.")
        .answers("The batch.", named("Batch"))
}

/// Seconds that a file may be asked to stay.
fn lifetime() -> AnySchema {
    let [least, most] = LIFETIMES.map(|seconds| usize::try_from(seconds).unwrap_or(usize::MAX));
    count(least, most)
}

/// Why nothing more is stored.
const FULL: &str = "The disk or a limit of the server's files is full.";

fn route(id: &str, summary: &str) -> RouteShape {
    kept(RouteShape::without_body(Api::OpenAi, id, summary)).refuses("400", "A parameter is wrong.")
}

fn of_file(id: &str, summary: &str) -> RouteShape {
    route(id, summary).path_parameter("id", "The file's id.")
}

fn of_batch(id: &str, summary: &str) -> RouteShape {
    route(id, summary).path_parameter("id", "The batch's id.")
}

/// With what all routes of files are refused with.
fn kept(shape: RouteShape) -> RouteShape {
    shape
        .refuses("404", "There is no such file or batch, or the server keeps none (`--files`).")
        .refuses("500", "A file of the server cannot be read or written.")
}

fn page(item: &str) -> ObjectShape {
    ObjectShape::new().with([
        ("object", one_of(&["list"])),
        ("data", list(named(item))),
        ("first_id", nullable(text())),
        ("last_id", nullable(text())),
        ("has_more", flag()),
    ])
}

fn file_object() -> AnySchema {
    ObjectShape::new()
        .with([
            ("id", text()),
            ("object", one_of(&["file"])),
            ("bytes", size()),
            ("created_at", size()),
            ("expires_at", nullable(size())),
            ("filename", text()),
            ("purpose", one_of(&["batch", "batch_output"])),
            ("status", one_of(&["processed"])),
            ("status_details", values([json!(null)])),
        ])
        .into()
}

fn batch_object() -> AnySchema {
    let statuses = [
        "validating",
        "in_progress",
        "finalizing",
        "completed",
        "failed",
        "cancelling",
        "cancelled",
        "expired",
    ];
    let fault = ObjectShape::new().with([
        ("code", text()),
        ("message", text()),
        ("param", nullable(text())),
        ("line", nullable(size())),
    ]);
    let faults =
        ObjectShape::new().with([("object", one_of(&["list"])), ("data", list(fault.into()))]);
    let counts =
        ObjectShape::new().with([("total", size()), ("completed", size()), ("failed", size())]);
    let times = ["in_progress_at", "expires_at", "finalizing_at", "completed_at", "failed_at"];
    let ends = ["expired_at", "cancelling_at", "cancelled_at"];
    let times = times.into_iter().chain(ends).map(|name| (name, nullable(size())));
    ObjectShape::new()
        .with([
            ("id", text()),
            ("object", one_of(&["batch"])),
            ("endpoint", text()),
            ("errors", nullable(faults.into())),
            ("input_file_id", text()),
            ("completion_window", one_of(&[COMPLETION_WINDOW])),
            ("status", one_of(&statuses)),
            ("output_file_id", nullable(text())),
            ("error_file_id", nullable(text())),
            ("created_at", size()),
        ])
        .with(times)
        .with([("request_counts", counts.into()), ("metadata", nullable(object()))])
        .into()
}

fn metadata() -> AnySchema {
    let [_, name, value] = MAX_METADATA;
    map(Some(&format!("^.{{0,{name}}}$")), text_within(value))
}
