//! Routes that are described as they are added.

use std::sync::Arc;

use axum::{
    Router,
    handler::Handler,
    routing::{MethodRouter, delete, get, head, post},
};
use utoipa::openapi::{
    Components, InfoBuilder, License, OpenApi, OpenApiBuilder, Tag,
    path::{HttpMethod, PathItem, Paths, PathsBuilder},
    security::{
        ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
    },
};

use super::{
    components::components,
    operation::{Api, RouteShape},
    schema::{AnySchema, object},
};
use crate::{app::App, error::json_bytes};

/// The route of the description itself.
const PATH: &str = "/openapi.json";

/// What is said of the whole.
const WORDS: &str = "The APIs of OpenAI, Anthropic and Ollama over models with ternary weights. \
    Fields that are not described are ignored, and null counts as absent. Every answer has \
    `x-request-id`. What a request asks for and its answer is not held to is a header \
    `x-setun-warning`.";

/// A router, and what is said of its routes.
#[derive(Default)]
pub(crate) struct DescribedRoutes {
    router: Router<App>,
    paths: PathsBuilder,
    schemas: Vec<(&'static str, AnySchema)>,
}

impl DescribedRoutes {
    /// With schemas that the routes name.
    pub(crate) fn schemas(mut self, schemas: Vec<(&'static str, AnySchema)>) -> Self {
        self.schemas.extend(schemas);
        self
    }

    pub(crate) fn get<T: 'static>(
        self,
        path: &str,
        handler: impl Handler<T, App>,
        shape: RouteShape,
    ) -> Self {
        self.add(path, HttpMethod::Get, get(handler), shape)
    }

    pub(crate) fn post<T: 'static>(
        self,
        path: &str,
        handler: impl Handler<T, App>,
        shape: RouteShape,
    ) -> Self {
        self.add(path, HttpMethod::Post, post(handler), shape)
    }

    pub(crate) fn delete<T: 'static>(
        self,
        path: &str,
        handler: impl Handler<T, App>,
        shape: RouteShape,
    ) -> Self {
        self.add(path, HttpMethod::Delete, delete(handler), shape)
    }

    pub(crate) fn head<T: 'static>(
        self,
        path: &str,
        handler: impl Handler<T, App>,
        shape: RouteShape,
    ) -> Self {
        self.add(path, HttpMethod::Head, head(handler), shape)
    }

    fn add(
        self,
        path: &str,
        method: HttpMethod,
        routes: MethodRouter<App>,
        shape: RouteShape,
    ) -> Self {
        let described = self.describe(path, method, shape);
        Self { router: described.router.route(path, routes), ..described }
    }

    fn describe(self, path: &str, method: HttpMethod, shape: RouteShape) -> Self {
        let item = PathItem::new(method, shape.build());
        let described = path.replace("{*", "{"); // a name of several parts is one name
        Self { paths: self.paths.path(described, item), ..self }
    }

    /// The routes, with that of their description. `has_keys` tells whether they need one.
    pub(crate) fn build(self, has_keys: bool) -> Router<App> {
        let Self { router, paths, schemas } = self.describe(PATH, HttpMethod::Get, own_shape());
        let document = document(paths.build(), components(schemas), has_keys);
        let bytes: Arc<[u8]> = serde_json::to_vec(&document).unwrap_or_default().into();
        router.route(PATH, get(move || async move { json_bytes(bytes.to_vec()) }))
    }
}

fn own_shape() -> RouteShape {
    RouteShape::without_body(Api::Setun, "openapi", "OpenAPI description")
        .answers("This description.", object())
}

fn document(paths: Paths, mut components: Components, has_keys: bool) -> OpenApi {
    let license = License::new("MIT OR Apache-2.0");
    let info = InfoBuilder::new().title("setun").version(env!("CARGO_PKG_VERSION"));
    let info = info.description(Some(WORDS)).license(Some(license));
    let names = ["bearer", "key"];
    if has_keys {
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let key = ApiKey::Header(ApiKeyValue::new("x-api-key"));
        components.add_security_scheme(names[0], SecurityScheme::Http(bearer));
        components.add_security_scheme(names[1], SecurityScheme::ApiKey(key));
    }
    let keys = has_keys
        .then(|| names.map(|name| SecurityRequirement::new(name, std::iter::empty::<String>())));
    OpenApiBuilder::new()
        .info(info.build())
        .paths(paths)
        .components(Some(components))
        .security(keys)
        .tags(Some(Api::ALL.map(|api| Tag::new(api.tag()))))
        .build()
}
