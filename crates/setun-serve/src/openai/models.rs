//! `GET /v1/models`.

use axum::{
    extract::{Path, State},
    response::Response,
};
use serde::Serialize;

use crate::{
    app::{App, AppState},
    error::{ApiError, json},
    served_model::ServedModel,
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
    max_model_len: usize,
}

/// The model by each of its names.
pub(crate) async fn list(State(app): State<App>) -> Response {
    let models = app.models();
    let data = models.iter().map(|model| ModelObject::new(&app, model)).collect();
    json(&ModelList { object: "list", data })
}

/// The model of a name.
pub(crate) async fn retrieve(
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let model = app.find(id).await?;
    Ok(json(&ModelObject::new(&app, &model)))
}

impl<'a> ModelObject<'a> {
    fn new(app: &AppState, model: &'a ServedModel) -> Self {
        Self {
            id: &model.name,
            object: "model",
            created: app.created,
            owned_by: "setun",
            max_model_len: model.engine.context_length(),
        }
    }
}
