//! Routes, and the layers that every request passes.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, Method},
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::{any, delete, get, post},
};
use tower_http::cors::{AllowOrigin, Any, CorsLayer};

use crate::{
    access::{Hosts, check_origin},
    anthropic::{self, messages},
    api_keys::ApiKeys,
    app::{App, AppState},
    error::ApiError,
    limits::Limiter,
    ollama,
    openai::{chat, completions, embeddings, models},
    options::ServeOptions,
    registry::ModelRegistry,
    request_log::identify,
    responses::create,
    score::score,
    server_metrics::ServerMetrics,
    status,
    tokenize::{detokenize, tokenize},
    ui,
};

/// Routes that need no key: those that tell whether the server runs, and the page, which asks for a
/// key where one is needed.
const OPEN: [&str; 4] = ["/", "/health", "/ready", "/ui"];

/// Who may send requests.
struct Access {
    api_keys: ApiKeys,
    hosts: Hosts,
    is_loopback: bool,
    origins: Vec<String>,
    limiter: Arc<Limiter>,
}

/// The routes of a server over an engine, or several models, for [`serve`](crate::serve) or another
/// router.
pub fn router(models: impl Into<ModelRegistry>, options: ServeOptions) -> Router {
    routes(models.into(), options)
}

fn routes(models: ModelRegistry, options: ServeOptions) -> Router {
    let ServeOptions { aliases, api_keys, hosts, is_loopback, lifecycle, .. } = options;
    let (max_body_bytes, origins) = (options.max_body_bytes, options.origins);
    models.add_aliases(aliases);
    let limiter = Limiter::new(options.limits, options.isolates_keys);
    let metrics = ServerMetrics::new(options.has_vllm_metrics);
    let app = AppState::new(models, lifecycle, Arc::clone(&limiter), max_body_bytes, metrics);
    let app = Arc::new(app.with_spans(options.spans));
    let cors = cors(&origins);
    let access = Arc::new(Access { api_keys, hosts, is_loopback, origins, limiter });
    let routes = Router::new()
        .route("/v1/chat/completions", post(chat::create))
        .route("/v1/completions", post(completions::create))
        .route("/v1/embeddings", post(embeddings::create))
        .route("/v1/responses", post(create::create))
        .route("/v1/responses/input_tokens", post(create::input_tokens))
        .route("/v1/messages", post(messages::create))
        .route("/v1/messages/count_tokens", post(messages::count_tokens))
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*id}", get(models::retrieve))
        .merge(ollama_routes())
        .route("/score", post(score))
        .route("/tokenize", post(tokenize))
        .route("/detokenize", post(detokenize))
        .route("/health", get(status::health))
        .route("/ready", get(status::ready))
        .route("/version", get(status::version))
        .route("/metrics", get(status::metrics))
        .route("/ui", get(ui::page))
        .route("/ui/requests", get(ui::requests))
        .route("/ui/requests/{id}", delete(ui::cancel))
        .fallback(no_route)
        .method_not_allowed_fallback(wrong_method)
        .with_state(Arc::clone(&app))
        .layer(from_fn_with_state(Arc::clone(&access), check_key));
    let routes = match cors {
        Some(cors) => routes.layer(cors),
        None => routes,
    };
    routes
        .layer(from_fn_with_state(access, check_access))
        .layer(from_fn(anthropic::errors::shape_errors))
        .layer(from_fn(ollama::error_shape::shape_errors))
        .layer(from_fn_with_state(app, identify))
}

fn ollama_routes() -> Router<App> {
    use ollama::{chat, embed, generate, models, root};

    let refused = ["pull", "push", "create", "copy", "delete", "blobs/{digest}"];
    let routes = Router::new()
        .route("/", get(root::root))
        .route("/api/generate", post(generate::create))
        .route("/api/chat", post(chat::create))
        .route("/api/embed", post(embed::create))
        .route("/api/embeddings", post(embed::create_one))
        .route("/api/tags", get(models::tags))
        .route("/api/ps", get(models::loaded))
        .route("/api/show", post(models::show))
        .route("/api/version", get(root::version));
    refused
        .iter()
        .fold(routes, |routes, path| routes.route(&format!("/api/{path}"), any(root::refuse)))
}

/// Leave for the pages of some origins; none by default.
fn cors(origins: &[String]) -> Option<CorsLayer> {
    let given: Vec<HeaderValue> = origins.iter().filter_map(|one| one.parse().ok()).collect();
    let origin = match &given[..] {
        [] => return None,
        given if given.iter().any(|one| one == "*") => AllowOrigin::any(),
        _ => AllowOrigin::list(given),
    };
    let methods = [Method::GET, Method::POST];
    // `*` as allowed headers would leave out `authorization`.
    let headers = tower_http::cors::AllowHeaders::mirror_request();
    let cors = CorsLayer::new().allow_origin(origin).allow_methods(methods);
    Some(cors.allow_headers(headers).expose_headers(Any))
}

async fn check_access(
    State(access): State<Arc<Access>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let (uri, headers) = (request.uri(), request.headers());
    access.hosts.check(uri, headers, access.is_loopback)?;
    check_origin(headers, &access.origins)?;
    Ok(next.run(request).await)
}

async fn check_key(
    State(access): State<Arc<Access>>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if !OPEN.contains(&request.uri().path()) {
        let key = access.api_keys.check(request.headers())?;
        if request.method() == Method::POST {
            let guard = access.limiter.begin(key)?;
            request.extensions_mut().insert(guard);
        }
    }
    Ok(next.run(request).await)
}

async fn no_route(request: Request) -> Response {
    ApiError::no_route(request.uri().path()).into_response()
}

async fn wrong_method(request: Request) -> Response {
    ApiError::wrong_method(request.method().as_str(), request.uri().path()).into_response()
}
