//! Descriptions of routes.

use serde_json::Value;
use utoipa::openapi::{
    Content, ContentBuilder, HeaderBuilder, Ref, RefOr, Required, Response, ResponseBuilder,
    path::{Operation, OperationBuilder, ParameterBuilder, ParameterIn},
    request_body::RequestBodyBuilder,
    security::SecurityRequirement,
};

use super::schema::{AnySchema, size, text};

/// The type of most bodies.
const JSON: &str = "application/json";

/// The type of uploads.
const FORM: &str = "multipart/form-data";

/// What an answer may be refused with, and why. A route with a body has all of them.
const REFUSALS: [(&str, &str); 12] = [
    ("400", "The body is no JSON object, or a field is wrong."),
    ("401", "No key of this server was given."),
    ("403", "The host or the origin is not allowed."),
    ("404", "There is no such model."),
    ("405", "The route has other methods."),
    ("408", "The body does not come."),
    ("413", "The body is too large."),
    ("415", "The body is compressed in another way than gzip, br or zstd."),
    ("429", "The queue or a limit is full; `retry-after-ms` says when to come again."),
    ("500", "A fault of the server."),
    ("503", "The model cannot be loaded, or the server shuts down."),
    ("507", "The model does not fit the memory budget."),
];

/// Those of a route without a body.
const REFUSALS_WITHOUT_BODY: [&str; 3] = ["401", "403", "405"];

/// Whose API a route belongs to. It decides the shape of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    OpenAi,
    Anthropic,
    Ollama,
    Setun,
}

/// The description of a route.
pub(crate) struct RouteShape {
    api: Api,
    operation: OperationBuilder,
}

impl Api {
    pub(crate) const ALL: [Self; 4] = [Self::OpenAi, Self::Anthropic, Self::Ollama, Self::Setun];

    pub(crate) fn tag(self) -> &'static str {
        match self {
            Self::OpenAi => "OpenAI",
            Self::Anthropic => "Anthropic",
            Self::Ollama => "Ollama",
            Self::Setun => "setun",
        }
    }

    /// The name of its errors among the components.
    pub(crate) fn error(self) -> &'static str {
        match self {
            Self::OpenAi | Self::Setun => "Error",
            Self::Anthropic => "AnthropicError",
            Self::Ollama => "OllamaError",
        }
    }
}

impl RouteShape {
    fn new(api: Api, id: &str, summary: &str) -> Self {
        let operation = OperationBuilder::new().tag(api.tag());
        let operation = operation.operation_id(Some(id)).summary(Some(summary));
        Self { api, operation }
    }

    /// Of a route without a body.
    pub(crate) fn without_body(api: Api, id: &str, summary: &str) -> Self {
        let is_its_own = |(status, _): &&(&str, &str)| REFUSALS_WITHOUT_BODY.contains(status);
        REFUSALS.iter().filter(is_its_own).fold(Self::new(api, id, summary), Self::refusal)
    }

    /// Of a route with a body. The example is a whole request.
    pub(crate) fn with_body(
        api: Api,
        id: &str,
        summary: &str,
        body: impl Into<AnySchema>,
        example: Value,
    ) -> Self {
        let content = ContentBuilder::new().schema(Some(body.into())).example(Some(example));
        Self::with_content(Self::new(api, id, summary), JSON, content.build())
    }

    /// Of a route of `OpenAI`'s API with a form.
    pub(crate) fn with_form(id: &str, summary: &str, form: impl Into<AnySchema>) -> Self {
        let content = Content::new(Some(form.into()));
        Self::with_content(Self::new(Api::OpenAi, id, summary), FORM, content)
    }

    fn with_content(self, content_type: &str, content: Content) -> Self {
        let body = RequestBodyBuilder::new().required(Some(Required::True));
        let body = body.content(content_type, content).build();
        let operation = self.operation.request_body(Some(body));
        REFUSALS.iter().fold(Self { operation, ..self }, Self::refusal)
    }

    fn refusal(self, refusal: &(&str, &str)) -> Self {
        let (status, description) = *refusal;
        let mut error = Ref::from_response_name(self.api.error());
        description.clone_into(&mut error.description);
        Self { operation: self.operation.response(status, RefOr::<Response>::Ref(error)), ..self }
    }

    /// With one more error, or another reason for one.
    pub(crate) fn refuses(self, status: &str, description: &str) -> Self {
        self.refusal(&(status, description))
    }

    /// That needs no key.
    pub(crate) fn open(self) -> Self {
        let none: [SecurityRequirement; 0] = [];
        Self { operation: self.operation.securities(Some(none)), ..self }
    }

    /// With a parameter of the path.
    pub(crate) fn path_parameter(self, name: &str, description: &str) -> Self {
        self.parameter(name, ParameterIn::Path, text(), description)
    }

    /// With a parameter of the query, which may be absent.
    pub(crate) fn query_parameter(self, name: &str, schema: AnySchema, description: &str) -> Self {
        self.parameter(name, ParameterIn::Query, schema, description)
    }

    fn parameter(
        self,
        name: &str,
        place: ParameterIn,
        schema: AnySchema,
        description: &str,
    ) -> Self {
        let is_path = matches!(place, ParameterIn::Path);
        let required = if is_path { Required::True } else { Required::False };
        let parameter = ParameterBuilder::new().name(name).parameter_in(place);
        let parameter = parameter.required(required).schema(Some(schema));
        let parameter = parameter.description(Some(description));
        Self { operation: self.operation.parameter(parameter), ..self }
    }

    /// With an answer in JSON.
    pub(crate) fn answers(self, description: &str, schema: impl Into<AnySchema>) -> Self {
        self.answers_with("200", description, &[(JSON, Some(schema.into()))])
    }

    /// With an answer in JSON, or as a stream of this type, whose pieces the description tells:
    /// `OpenAPI` 3.1 has no schema for them.
    pub(crate) fn streams(
        self,
        description: &str,
        schema: impl Into<AnySchema>,
        content_type: &'static str,
    ) -> Self {
        self.answers_with("200", description, &[(JSON, Some(schema.into())), (content_type, None)])
    }

    /// With an answer of some types.
    pub(crate) fn answers_with(
        self,
        status: &str,
        description: &str,
        contents: &[(&str, Option<AnySchema>)],
    ) -> Self {
        let contents = contents.iter();
        let response = contents.fold(
            ResponseBuilder::new().description(description),
            |response, (content_type, schema)| {
                response.content(*content_type, Content::new(schema.clone()))
            },
        );
        Self { operation: self.operation.response(status, response), ..self }
    }

    pub(super) fn build(self) -> Operation {
        self.operation.build()
    }
}

/// The answer of an error.
pub(super) fn error_response(api: Api, schema: AnySchema) -> Response {
    let header = |description: &str| {
        HeaderBuilder::new().schema(Some(size())).description(Some(description)).build()
    };
    ResponseBuilder::new()
        .description(format!("An error, as clients of the API of {} read it.", api.tag()))
        .content(JSON, Content::new(Some(schema)))
        .header("retry-after-ms", header("With 429: milliseconds until it may be sent again."))
        .header("retry-after", header("The same in seconds."))
        .build()
}
