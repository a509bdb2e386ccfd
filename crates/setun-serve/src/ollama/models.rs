//! `GET /api/tags`, `GET /api/ps` and `POST /api/show`.

use std::{
    fmt::Write as _,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use axum::{
    extract::{Request, State},
    response::Response,
};
use serde::Serialize;
use serde_json::Value;
use setun::DeviceKind;
use sha2::{Digest, Sha256};

use super::{
    details::{self, Details},
    request::{model, tagged},
    time::rfc3339,
};
use crate::{
    app::{App, AppState},
    error::{ApiError, json},
    registry::ModelView,
    served_model::ServedModel,
};

/// When a model that stays loaded ends.
const NEVER: &str = "9999-12-31T23:59:59Z";

#[derive(Serialize)]
struct ModelList {
    models: Vec<ListedModel>,
}

#[derive(Serialize)]
struct ListedModel {
    name: String,
    model: String,
    size: u64,
    /// Says which model it is. It is no checksum of a file.
    digest: String,
    details: Details,
    #[serde(flatten)]
    more: More,
}

/// What one of the lists has alone.
#[derive(Serialize)]
#[serde(untagged)]
enum More {
    Stored { modified_at: String },
    Loaded { expires_at: String, size_vram: u64, context_length: usize },
}

#[derive(Serialize)]
struct Shown<'a> {
    modelfile: &'static str,
    parameters: String,
    template: &'a str,
    details: Details,
    model_info: Value,
    capabilities: Vec<&'static str>,
    modified_at: String,
}

/// The models by each of their names.
pub(crate) async fn tags(State(app): State<App>) -> Response {
    let modified_at = modified(&app);
    let views = app.models();
    let named = views.iter().flat_map(|view| view.names().map(move |name| (view, name)));
    let listed = named.map(|(view, name)| {
        ListedModel::new(view, name, More::Stored { modified_at: modified_at.clone() })
    });
    json(&ModelList { models: listed.collect() })
}

/// The models that are loaded.
pub(crate) async fn loaded(State(app): State<App>) -> Response {
    let listed = |view: &ModelView| {
        let engine = &view.model.as_ref()?.engine;
        let is_on_gpu = engine.backend() != DeviceKind::Cpu;
        let more = More::Loaded {
            expires_at: view
                .expires_in
                .and_then(|left| SystemTime::now().checked_add(left))
                .map_or_else(|| NEVER.to_owned(), rfc3339),
            size_vram: if is_on_gpu { view.bytes } else { 0 },
            context_length: engine.context_length(),
        };
        Some(ListedModel::new(view, &view.name, more))
    };
    json(&ModelList { models: app.models().iter().filter_map(listed).collect() })
}

/// What a model is and can.
pub(crate) async fn show(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let (mut fields, _guard) = app.accept(request).await?;
    let ServedModel { engine, .. } = model(&app, &mut fields).await?;
    fields.take("verbose");
    fields.report_unknown();
    Ok(json(&Shown {
        modelfile: "",
        parameters: details::parameters(&engine),
        template: details::template(&engine),
        details: Details::new(Some(&engine)),
        model_info: details::model_info(&engine),
        capabilities: details::capabilities(&engine),
        modified_at: modified(&app),
    }))
}

impl ListedModel {
    fn new(view: &ModelView, name: &str, more: More) -> Self {
        let name = tagged(name);
        let digest = digest(&view.name);
        let details = Details::new(view.model.as_ref().map(|model| &model.engine));
        Self { model: name.clone(), name, size: view.bytes, digest, details, more }
    }
}

fn digest(name: &str) -> String {
    let bytes = Sha256::digest(name);
    bytes.iter().fold(String::new(), |mut digest, byte| {
        let _ = write!(digest, "{byte:02x}"); // a string takes all
        digest
    })
}

/// The server cannot say when a model changed: it has it since it began.
fn modified(app: &AppState) -> String {
    rfc3339(UNIX_EPOCH + Duration::from_secs(app.created))
}
