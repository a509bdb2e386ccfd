//! `/v1/batches`.

use axum::{
    Extension,
    extract::{Path, Request, State},
    response::Response,
};
use serde_json::{Map, Value};
use setun::batch_file::URLS;

use super::{
    file_routes::{find, lifetime},
    page::{Page, Query},
    runner,
};
use crate::files::{
    records::{BatchStatus, BatchTimes, COMPLETION_WINDOW, Purpose, RequestCounts, StoredBatch},
    service::Requester,
};
use crate::{
    app::App,
    blocking::beside,
    error::{ApiError, json},
    excerpt::excerpt,
    fields::Fields,
    request_id::new_id,
    warnings::Warnings,
};

/// Most batches of a page, and their number by default.
pub(super) const MAX_PAGE: usize = 100;
const PAGE: usize = 20;

/// Most pairs of metadata, and the longest name and value of one, in characters.
pub(super) const MAX_METADATA: [usize; 3] = [16, 64, 512];

/// Seconds of the completion window.
const WINDOW: u64 = 24 * 60 * 60;

/// A request for a batch.
struct NewBatch {
    input_file_id: String,
    endpoint: String,
    metadata: Option<Map<String, Value>>,
    output_seconds: Option<u64>,
}

/// `POST /v1/batches`.
pub(crate) async fn create(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let (mut fields, guard) = app.accept(request).await?;
    let new = NewBatch::read(&mut fields)?;
    fields.finish(&guard.warnings)?;
    let batches = app.batches()?;
    let owner = batches.owner(guard.key());
    let input =
        find(batches, &owner, &new.input_file_id).map_err(|error| error.at("input_file_id"))?;
    if input.purpose != Purpose::Batch {
        let reason =
            format!("expected a file with the purpose batch, found {}", input.purpose.name());
        return Err(ApiError::invalid("input_file_id", reason));
    }
    let (store, batch) = (batches.store.clone(), new.batch(owner.id, batches.now()));
    let batch = beside(move || store.add_batch(batch)).await?;
    runner::spawn(&app, batches, batch.id.clone());
    Ok(json(&batch.object()))
}

/// `GET /v1/batches`.
pub(crate) async fn list(
    State(app): State<App>,
    Extension(Requester(key)): Extension<Requester>,
    Extension(warnings): Extension<Warnings>,
    request: Request,
) -> Result<Response, ApiError> {
    let batches = app.batches()?;
    let mut query = Query::of(request.uri());
    let (limit, after) = (query.count("limit", MAX_PAGE, PAGE)?, query.take("after"));
    query.finish(&warnings);
    let mut all = batches.store.batches(&batches.owner(key).id);
    all.reverse();
    let page = Page::new(&all, after.as_deref(), limit, |batch| &batch.id, StoredBatch::object)?;
    Ok(json(&page))
}

/// `GET /v1/batches/{id}`.
pub(crate) async fn retrieve(
    State(app): State<App>,
    Extension(requester): Extension<Requester>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    Ok(json(&own(&app, requester, &id)?.object()))
}

/// `POST /v1/batches/{id}/cancel`.
pub(crate) async fn cancel(
    State(app): State<App>,
    Extension(requester): Extension<Requester>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    own(&app, requester, &id)?;
    let batches = app.batches()?;
    let (store, now) = (batches.store.clone(), batches.now());
    let batch = beside(move || {
        store.change_batch(&id, |batch| match batch.status {
            status if status.is_open() => {
                batch.enter(BatchStatus::Cancelling, now);
                Ok(())
            }
            BatchStatus::Cancelling | BatchStatus::Cancelled => Ok(()),
            status => {
                let status = serde_json::to_value(status).unwrap_or_default();
                let status = status.as_str().unwrap_or_default().to_owned();
                Err(ApiError::conflict(format!("the batch is {status} and cannot be cancelled")))
            }
        })
    });
    Ok(json(&batch.await?.object()))
}

/// A batch of the key.
fn own(app: &App, Requester(key): Requester, id: &str) -> Result<StoredBatch, ApiError> {
    let batches = app.batches()?;
    let owner = batches.owner(key);
    let found = batches.store.batch(id).filter(|batch| batch.owner == owner.id);
    found.ok_or_else(|| ApiError::not_kept("batch", "batch_id", id))
}

impl NewBatch {
    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let input_file_id = fields.required_text("input_file_id")?;
        let endpoint = fields.required_text("endpoint")?;
        one_of(fields, "endpoint", &endpoint, &URLS)?;
        let window = fields.required_text("completion_window")?;
        one_of(fields, "completion_window", &window, &[COMPLETION_WINDOW])?;
        let metadata = fields.object("metadata")?.map(Fields::into_map);
        metadata.iter().try_for_each(check_metadata)?;
        let output_seconds = match fields.object("output_expires_after")? {
            None => None,
            Some(mut lasts) => {
                let anchor = lasts.required_text("anchor")?;
                let seconds = lasts.count("seconds", 0, usize::MAX)?;
                let seconds = seconds.map(|seconds| seconds.to_string()).unwrap_or_default();
                lifetime("output_expires_after", Some(&anchor), Some(&seconds))?
            }
        };
        Ok(Self { input_file_id, endpoint, metadata, output_seconds })
    }

    fn batch(self, owner: String, now: u64) -> StoredBatch {
        let expires_at = Some(now.saturating_add(WINDOW));
        StoredBatch {
            id: new_id("batch_"),
            owner,
            number: 0,
            endpoint: self.endpoint,
            input_file_id: self.input_file_id,
            status: BatchStatus::Validating,
            metadata: self.metadata,
            faults: vec![],
            output_file_id: None,
            error_file_id: None,
            answers_id: new_id("file-"),
            errors_id: new_id("file-"),
            output_seconds: self.output_seconds,
            times: BatchTimes { created_at: now, expires_at, ..BatchTimes::default() },
            counts: RequestCounts::default(),
        }
    }
}

fn one_of(fields: &Fields, field: &str, found: &str, expected: &[&str]) -> Result<(), ApiError> {
    if expected.contains(&found) {
        return Ok(());
    }
    let found = excerpt(format_args!("{found:?}"));
    let reason = format!("expected {}, found {found}", expected.join(" or "));
    Err(ApiError::invalid(&fields.name(field), reason))
}

fn check_metadata(metadata: &Map<String, Value>) -> Result<(), ApiError> {
    let [most, name_length, value_length] = MAX_METADATA;
    let is_short = |(name, value): (&String, &Value)| {
        name.chars().count() <= name_length
            && value.as_str().is_some_and(|value| value.chars().count() <= value_length)
    };
    if metadata.len() <= most && metadata.iter().all(is_short) {
        return Ok(());
    }
    let reason = format!(
        "expected at most {most} names of {name_length} characters with texts of {value_length}"
    );
    Err(ApiError::invalid("metadata", reason))
}
