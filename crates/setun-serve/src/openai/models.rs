//! `GET /v1/models`.

use axum::{
    extract::{Path, State},
    response::Response,
};
use serde::Serialize;

use crate::{
    app::{App, AppState},
    error::{ApiError, json},
    registry::{LATEST, ModelView},
};

#[derive(Serialize)]
struct ModelList<'a> {
    object: &'static str,
    data: Vec<ModelObject<'a>>,
}

#[derive(Serialize)]
struct ModelObject<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    owned_by: &'static str,
    /// Null until the model has been loaded.
    max_model_len: Option<usize>,
    /// The model's own name.
    root: &'a str,
    state: &'static str,
}

/// The models by each of their names, loaded or not.
pub(crate) async fn list(State(app): State<App>) -> Response {
    let models = app.models();
    let data = models.iter().flat_map(|model| objects(&app, model)).collect();
    json(&ModelList { object: "list", data })
}

/// The model of a name, loaded or not.
pub(crate) async fn retrieve(
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let models = app.models();
    let named = |id: &str| {
        let mut all = models.iter().flat_map(|model| objects(&app, model));
        all.find(|object| object.id == id)
    };
    if let Some(object) = named(&id).or_else(|| id.strip_suffix(LATEST).and_then(named)) {
        return Ok(json(&object));
    }
    let known: Vec<_> = models.iter().flat_map(ModelView::names).map(str::to_owned).collect();
    Err(ApiError::unknown_model(&id, &known))
}

fn objects<'a>(app: &AppState, model: &'a ModelView) -> impl Iterator<Item = ModelObject<'a>> {
    let created = app.created;
    model.names().map(move |id| ModelObject {
        id,
        object: "model",
        created,
        owned_by: "setun",
        max_model_len: model.context_length,
        root: &model.name,
        state: model.state.as_str(),
    })
}
