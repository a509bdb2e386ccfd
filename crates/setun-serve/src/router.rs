//! Routes, and the layers that every request passes.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, Method},
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
};
use tower_http::cors::{AllowOrigin, Any, CorsLayer};

use crate::{
    access::{Hosts, check_origin},
    anthropic::{self, messages},
    api_keys::ApiKeys,
    app::{App, AppState},
    batches,
    description::routes::DescribedRoutes,
    error::ApiError,
    files::service::{Batches, Requester},
    limits::{Limiter, Limits},
    ollama,
    openai::{answer_description, chat, completions, embeddings, models},
    options::ServeOptions,
    own_description as own,
    registry::ModelRegistry,
    request_log::identify,
    responses::create,
    score::score,
    server_metrics::ServerMetrics,
    status::{self, HasKey},
    tokenize::{detokenize, tokenize, tokenizer_info},
    ui,
};

/// Routes that need no key: those that tell whether the server runs, and the page, which asks for a
/// key where one is needed.
pub(crate) const OPEN: [&str; 4] = ["/", "/health", "/ready", "/ui"];

/// A part of a model in Ollama's API.
const BLOB: &str = "/api/blobs/{digest}";

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
    let batches =
        options.files.map(|files| Batches::new(files, api_keys.clone(), options.clock.clone()));
    let (max_body_bytes, origins) = (options.max_body_bytes, options.origins);
    models.add_aliases(aliases);
    let limiter = Limiter::new(options.limits, options.isolates_keys, options.clock);
    let metrics = ServerMetrics::new(options.has_vllm_metrics, options.dropped_log_lines);
    let app = AppState::new(models, lifecycle, Arc::clone(&limiter), max_body_bytes, metrics);
    let app = Arc::new(app.with_spans(options.spans).with_batches(batches));
    batches::resume(&app);
    let cors = cors(&origins);
    let access = Arc::new(Access { api_keys, hosts, is_loopback, origins, limiter });
    let routes = described_routes(&access.limiter.limits)
        .build(!access.api_keys.is_empty())
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
        .layer(from_fn_with_state(Arc::clone(&app), identify))
        .layer(from_fn_with_state(app, resume_batches))
}

/// Continues batches with the first request where the router was made without a runtime.
async fn resume_batches(State(app): State<App>, request: Request, next: Next) -> Response {
    batches::resume(&app);
    next.run(request).await
}

fn described_routes(limits: &Limits) -> DescribedRoutes {
    use crate::{
        anthropic::description as anthropic, openai::description as openai,
        responses::description as responses,
    };

    let routes = DescribedRoutes::default()
        .schemas(openai::schemas())
        .schemas(answer_description::schemas())
        .schemas(responses::schemas())
        .schemas(anthropic::schemas())
        .schemas(ollama::description::schemas())
        .schemas(own::schemas())
        .post("/v1/chat/completions", chat::create, openai::chat(limits))
        .post("/v1/completions", completions::create, openai::completions(limits))
        .post("/v1/embeddings", embeddings::create, openai::embeddings())
        .get("/v1/models", models::list, openai::model_list())
        .get("/v1/models/{*id}", models::retrieve, openai::model())
        .post("/v1/responses", create::create, responses::create(limits))
        .post("/v1/responses/input_tokens", create::input_tokens, responses::input_tokens())
        .post("/v1/messages", messages::create, anthropic::messages(limits))
        .post("/v1/messages/count_tokens", messages::count_tokens, anthropic::count_tokens());
    own_routes(ollama_routes(batch_routes(routes), limits), limits)
}

fn batch_routes(routes: DescribedRoutes) -> DescribedRoutes {
    use batches::{batch_routes as batch, description, file_routes as file};

    routes
        .schemas(description::schemas())
        .post("/v1/files", file::create, description::upload())
        .get("/v1/files", file::list, description::file_list())
        .get("/v1/files/{id}", file::retrieve, description::file())
        .get("/v1/files/{id}/content", file::content, description::content())
        .delete("/v1/files/{id}", file::remove, description::remove_file())
        .post("/v1/batches", batch::create, description::create_batch())
        .get("/v1/batches", batch::list, description::batch_list())
        .get("/v1/batches/{id}", batch::retrieve, description::batch())
        .post("/v1/batches/{id}/cancel", batch::cancel, description::cancel_batch())
}

fn own_routes(routes: DescribedRoutes, limits: &Limits) -> DescribedRoutes {
    routes
        .post("/score", score, own::score())
        .post("/tokenize", tokenize, own::tokenize(limits))
        .post("/detokenize", detokenize, own::detokenize())
        .get("/tokenizer_info", tokenizer_info, own::tokenizer_info())
        .get("/health", status::health, own::health())
        .get("/ready", status::ready, own::ready())
        .get("/version", status::version, own::version())
        .get("/metrics", status::metrics, own::metrics())
        .get("/ui", ui::page, own::page())
        .get("/ui/requests", ui::requests, own::requests())
        .delete("/ui/requests/{id}", ui::cancel, own::cancel())
}

fn ollama_routes(routes: DescribedRoutes, limits: &Limits) -> DescribedRoutes {
    use ollama::{chat, description, embed, generate, models, root};

    let routes = routes
        .get("/", root::root, description::root())
        .post("/api/generate", generate::create, description::generate(limits))
        .post("/api/chat", chat::create, description::chat(limits))
        .post("/api/embed", embed::create, description::embed())
        .post("/api/embeddings", embed::create_one, description::embed_one())
        .get("/api/tags", models::tags, description::tags())
        .get("/api/ps", models::loaded, description::running())
        .post("/api/show", models::show, description::show())
        .get("/api/version", root::version, description::version())
        .delete("/api/delete", root::refuse, description::refusal("ollama_delete"))
        .head(BLOB, root::refuse, description::blob_refusal("ollama_has_blob"))
        .post(BLOB, root::refuse, description::blob_refusal("ollama_blob"));
    ["pull", "push", "create", "copy"].iter().fold(routes, |routes, name| {
        let shape = description::refusal(&format!("ollama_{name}"));
        routes.post(&format!("/api/{name}"), root::refuse, shape)
    })
}

/// Leave for the pages of some origins; none by default.
fn cors(origins: &[String]) -> Option<CorsLayer> {
    let given: Vec<HeaderValue> = origins.iter().filter_map(|one| one.parse().ok()).collect();
    let origin = match &given[..] {
        [] => return None,
        given if given.iter().any(|one| one == "*") => AllowOrigin::any(),
        _ => AllowOrigin::list(given),
    };
    let methods = [Method::GET, Method::POST, Method::DELETE];
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
    if OPEN.contains(&request.uri().path()) {
        let has_key = access.api_keys.check(request.headers()).is_ok();
        request.extensions_mut().insert(HasKey(has_key));
    } else {
        let key = access.api_keys.check(request.headers())?;
        request.extensions_mut().insert(Requester(key));
        if request.method() == Method::POST {
            let guard = access.limiter.begin(key, access.api_keys.are_several())?;
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
