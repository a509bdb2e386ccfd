//! `/v1/files`.

use std::io;

use axum::{
    Extension,
    body::{Body, Bytes},
    extract::{Path, Request, State},
    http::{
        HeaderName, HeaderValue,
        header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
    },
    response::{IntoResponse, Response},
};
use futures::stream;
use serde::Serialize;
use tokio::{fs::File, io::AsyncReadExt};

use super::{
    form::{Form, FormField},
    page::{Page, Query},
};
use crate::files::{
    new_file::NewFile,
    records::{Purpose, StoredFile},
    service::{Batches, Owner, Requester},
};
use crate::{
    app::App,
    blocking::beside,
    error::{ApiError, json},
    excerpt::excerpt,
    warnings::Warnings,
};

/// Most files of a page, and their number by default.
pub(super) const MAX_PAGE: usize = 10_000;

/// Bytes of a form beside those of its file.
const FORM_BYTES: u64 = 1 << 20;

/// Longest name of a file, in bytes.
const MAX_NAME: usize = 255;

/// Seconds that a file may be asked to stay.
pub(super) const LIFETIMES: [u64; 2] = [3_600, 2_592_000];

/// The event after which they are counted.
pub(super) const ANCHOR: &str = "created_at";

/// Fields of a form.
const EXPIRES_ANCHOR: &str = "expires_after[anchor]";
const EXPIRES_SECONDS: &str = "expires_after[seconds]";

/// Bytes of a piece of a download.
const PIECE: usize = 64 << 10;

/// Headers of a content: a browser saves it, and shows nothing of it.
const CONTENT_HEADERS: [(HeaderName, HeaderValue); 3] = [
    (CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
    (CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
];

/// An upload, as far as it has come.
#[derive(Default)]
struct Upload {
    file: Option<(NewFile, String)>,
    purpose: Option<String>,
    anchor: Option<String>,
    seconds: Option<String>,
}

#[derive(Serialize)]
struct Removed<'a> {
    id: &'a str,
    object: &'static str,
    deleted: bool,
}

/// `POST /v1/files`.
pub(crate) async fn create(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let mut request = request;
    let guard = app.begin(&mut request)?;
    let batches = app.batches()?;
    let (store, owner) = (&batches.store, batches.owner(guard.key()));
    let most = store.limits().file_bytes.saturating_add(FORM_BYTES);
    let mut form = Form::of(request, most, app.limiter().limits.body_timeout)?;
    remove_expired(batches).await?;
    let mut upload = Upload::default();
    while let Some(field) = form.next().await? {
        upload.take(field, batches, &owner, &guard.warnings).await?;
    }
    let now = batches.now();
    let Upload { file, purpose, anchor, seconds } = upload;
    check_purpose(purpose.as_deref())?;
    let expires_at = lifetime("expires_after", anchor.as_deref(), seconds.as_deref())?;
    let expires_at = expires_at.map(|seconds| now.saturating_add(seconds));
    let (file, name) = file.ok_or_else(|| ApiError::missing("file", "a file"))?;
    if file.bytes() == 0 {
        return Err(ApiError::invalid("file", "it is empty"));
    }
    Ok(json(&file.keep(name, expires_at, now).await?.object()))
}

/// `GET /v1/files`.
pub(crate) async fn list(
    State(app): State<App>,
    Extension(Requester(key)): Extension<Requester>,
    Extension(warnings): Extension<Warnings>,
    request: Request,
) -> Result<Response, ApiError> {
    let batches = app.batches()?;
    let mut query = Query::of(request.uri());
    let limit = query.count("limit", MAX_PAGE, MAX_PAGE)?;
    let is_ascending = query.is_second("order", ["desc", "asc"])?;
    let (after, purpose) = (query.take("after"), query.take("purpose"));
    query.finish(&warnings);
    remove_expired(batches).await?;
    let mut files = batches.store.files(&batches.owner(key).id, batches.now());
    files.retain(|file| purpose.as_ref().is_none_or(|purpose| purpose == file.purpose.name()));
    if !is_ascending {
        files.reverse();
    }
    let page = Page::new(&files, after.as_deref(), limit, |file| &file.id, StoredFile::object)?;
    Ok(json(&page))
}

/// `GET /v1/files/{id}`.
pub(crate) async fn retrieve(
    State(app): State<App>,
    Extension(Requester(key)): Extension<Requester>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let batches = app.batches()?;
    Ok(json(&find(batches, &batches.owner(key), &id)?.object()))
}

/// `DELETE /v1/files/{id}`.
pub(crate) async fn remove(
    State(app): State<App>,
    Extension(Requester(key)): Extension<Requester>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let batches = app.batches()?;
    let (store, owner) = (batches.store.clone(), batches.owner(key));
    beside(move || {
        if store.remove_file(&owner.id, &id)? {
            Ok(json(&Removed { id: &id, object: "file", deleted: true }))
        } else {
            Err(ApiError::not_kept("file", "file_id", &id))
        }
    })
    .await
}

/// `GET /v1/files/{id}/content`.
pub(crate) async fn content(
    State(app): State<App>,
    Extension(Requester(key)): Extension<Requester>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let batches = app.batches()?;
    let found = find(batches, &batches.owner(key), &id)?;
    let opened = async {
        let file = File::open(batches.store.content(&found.id)).await?;
        let bytes = file.metadata().await?.len();
        Ok::<_, io::Error>((file, bytes))
    };
    let damaged =
        |what: &str| ApiError::internal(format!("the content of {} is damaged: {what}", found.id));
    let (file, bytes) = match opened.await {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(damaged("it is missing"));
        }
        Err(error) => return Err(ApiError::of_storage(&error)),
    };
    if bytes != found.bytes {
        return Err(damaged(&format!("expected {} bytes, found {bytes}", found.bytes)));
    }
    let pieces = stream::try_unfold(file, |mut file| async move {
        let mut piece = vec![0; PIECE];
        let length = file.read(&mut piece).await?;
        piece.truncate(length);
        Ok::<_, io::Error>((length > 0).then(|| (Bytes::from(piece), file)))
    });
    let length = [(CONTENT_LENGTH, HeaderValue::from(bytes))];
    Ok((CONTENT_HEADERS, length, Body::from_stream(pieces)).into_response())
}

impl Upload {
    async fn take(
        &mut self,
        mut field: FormField,
        batches: &Batches,
        owner: &Owner,
        warnings: &Warnings,
    ) -> Result<(), ApiError> {
        let name = field.name();
        let place = match &*name {
            "file" => {
                if self.file.is_some() {
                    return Err(ApiError::invalid("file", "given twice"));
                }
                let filename = filename(field.filename())?;
                let mut file = NewFile::create(&batches.store, owner.clone()).await?;
                while let Some(piece) = field.piece().await? {
                    file.write(&piece).await?;
                }
                self.file = Some((file, filename));
                return Ok(());
            }
            "purpose" => &mut self.purpose,
            EXPIRES_ANCHOR => &mut self.anchor,
            EXPIRES_SECONDS => &mut self.seconds,
            other => {
                warnings.add(&[format!("`{}` is unknown and is ignored", excerpt(other))]);
                return field.text().await.map(drop);
            }
        };
        if place.replace(field.text().await?).is_some() {
            return Err(ApiError::invalid(&name, "given twice"));
        }
        if name == "purpose" {
            check_purpose(self.purpose.as_deref())?; // before a large file that nobody takes
        }
        Ok(())
    }
}

/// The last part of a name that may have folders.
fn filename(given: Option<&str>) -> Result<String, ApiError> {
    let given = given.unwrap_or("upload");
    let name = given.rsplit(['/', '\\']).next().unwrap_or_default();
    if matches!(name, "" | "." | "..") || name.len() > MAX_NAME {
        let found = excerpt(format_args!("{given:?}"));
        let reason = format!("expected a file name of 1 to {MAX_NAME} bytes, found {found}");
        return Err(ApiError::invalid("file", reason));
    }
    Ok(name.to_owned())
}

fn check_purpose(given: Option<&str>) -> Result<(), ApiError> {
    let expected = Purpose::Batch.name();
    match given {
        Some(given) if given == expected => Ok(()),
        Some(given) => {
            let found = excerpt(format_args!("{given:?}"));
            Err(ApiError::invalid("purpose", format!("expected {expected}, found {found}")))
        }
        None => Err(ApiError::missing("purpose", expected)),
    }
}

/// The seconds that a file is to stay.
pub(super) fn lifetime(
    field: &str,
    anchor: Option<&str>,
    seconds: Option<&str>,
) -> Result<Option<u64>, ApiError> {
    let refused = |part: &str, expected: &str, found: &str| {
        let found = excerpt(format_args!("{found:?}"));
        ApiError::invalid(&format!("{field}.{part}"), format!("expected {expected}, found {found}"))
    };
    if anchor.is_none() && seconds.is_none() {
        return Ok(None);
    }
    let anchor = anchor.unwrap_or_default();
    if anchor != ANCHOR {
        return Err(refused("anchor", ANCHOR, anchor));
    }
    let ([least, most], seconds) = (LIFETIMES, seconds.unwrap_or_default());
    let count = seconds.parse().ok().filter(|count| (least..=most).contains(count));
    let expected = format!("an integer from {least} to {most}");
    count.map(Some).ok_or_else(|| refused("seconds", &expected, seconds))
}

pub(super) fn find(batches: &Batches, owner: &Owner, id: &str) -> Result<StoredFile, ApiError> {
    let found = batches.store.file(&owner.id, id, batches.now());
    found.ok_or_else(|| ApiError::not_kept("file", "file_id", id))
}

async fn remove_expired(batches: &Batches) -> Result<(), ApiError> {
    let (store, now) = (batches.store.clone(), batches.now());
    beside(move || {
        store.remove_expired(now);
        Ok(())
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_folders() {
        for (given, expected) in [
            ("a.jsonl", "a.jsonl"),
            ("../../etc/passwd", "passwd"),
            ("C:\\files\\a.jsonl", "a.jsonl"),
            ("/tmp/é x", "é x"),
        ] {
            assert_eq!(filename(Some(given)).as_deref(), Ok(expected));
        }
        for given in ["", "..", "a/", "a/..", &"é".repeat(128)] {
            assert!(filename(Some(given)).is_err(), "{given}");
        }
    }

    #[test]
    fn a_lifetime_has_an_anchor_and_bounds() {
        let of = |anchor, seconds| lifetime("expires_after", anchor, seconds);
        assert_eq!(of(None, None), Ok(None));
        assert_eq!(of(Some("created_at"), Some("3600")), Ok(Some(3600)));
        for (anchor, seconds) in [
            (None, Some("3600")),
            (Some("last_active_at"), Some("3600")),
            (Some("created_at"), None),
            (Some("created_at"), Some("3599")),
            (Some("created_at"), Some("2592001")),
            (Some("created_at"), Some("-1")),
        ] {
            assert!(of(anchor, seconds).is_err(), "{anchor:?} {seconds:?}");
        }
    }
}
