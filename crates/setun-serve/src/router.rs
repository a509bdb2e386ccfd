//! Routes, and the layers that every request passes.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, Method},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::{delete, get, post},
};
use setun::Engine;
use tower_http::cors::{AllowOrigin, Any, CorsLayer};

use crate::{
    access::{Hosts, check_origin},
    api_keys::ApiKeys,
    app::AppState,
    error::ApiError,
    openai::{chat, completions, embeddings, models},
    options::ServeOptions,
    request_log::identify,
    server_metrics::ServerMetrics,
    status,
    tokenize::{detokenize, tokenize},
    ui,
};

/// Routes that need no key: those that tell whether the server runs, and the page, which asks for a
/// key where one is needed.
const OPEN: [&str; 3] = ["/health", "/ready", "/ui"];

/// Who may send requests.
struct Access {
    api_keys: ApiKeys,
    hosts: Hosts,
    is_loopback: bool,
    origins: Vec<String>,
}

/// The routes of a server over an engine, for [`serve`](crate::serve) or another router.
pub fn router(engine: Engine, options: ServeOptions) -> Router {
    let ServeOptions { aliases, api_keys, hosts, is_loopback, lifecycle, .. } = options;
    let (max_body_bytes, origins) = (options.max_body_bytes, options.origins);
    let metrics = ServerMetrics::new(options.has_vllm_metrics);
    let app = Arc::new(AppState::new(engine, aliases, lifecycle, max_body_bytes, metrics));
    let cors = cors(&origins);
    let access = Arc::new(Access { api_keys, hosts, is_loopback, origins });
    let routes = Router::new()
        .route("/v1/chat/completions", post(chat::create))
        .route("/v1/completions", post(completions::create))
        .route("/v1/embeddings", post(embeddings::create))
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*id}", get(models::retrieve))
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
    routes.layer(from_fn_with_state(access, check_access)).layer(from_fn_with_state(app, identify))
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
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if !OPEN.contains(&request.uri().path()) {
        access.api_keys.check(request.headers())?;
    }
    Ok(next.run(request).await)
}

async fn no_route(request: Request) -> Response {
    ApiError::no_route(request.uri().path()).into_response()
}

async fn wrong_method(request: Request) -> Response {
    ApiError::wrong_method(request.method().as_str(), request.uri().path()).into_response()
}
