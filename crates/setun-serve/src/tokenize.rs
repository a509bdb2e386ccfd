//! Tokens of texts and conversations, and texts of tokens.

use axum::{
    extract::{Request, State},
    response::Response,
};
use serde::Serialize;
use setun::{Engine, EngineError, GenerateOptions, Message};

use crate::{
    app::App,
    blocking::beside,
    error::{ApiError, json},
    fields::Fields,
    messages,
    openai::prompts::tokens_of,
    sampling,
    served_model::ServedModel,
    tokenizing::{conversation_bytes, max_bytes},
};

/// Bytes that a token's text is counted with.
const BYTES: usize = 8;

/// Tokens, as vLLM answers them.
#[derive(Serialize)]
struct Tokenized {
    count: usize,
    max_model_len: usize,
    tokens: Vec<u32>,
}

/// A text, as vLLM answers it.
#[derive(Serialize)]
struct Detokenized {
    prompt: String,
}

/// The tokenizer, by the names that `tokenizer_config.json` has.
#[derive(Serialize)]
struct TokenizerInfo {
    bos_token: Option<String>,
    eos_token: Option<String>,
    model_max_length: usize,
}

/// What is to be tokenized.
enum TokenizeRequest {
    Text { text: String, adds_special_tokens: bool },
    Chat(Vec<Message>, Box<GenerateOptions>),
}

/// `POST /tokenize`: a `prompt`, or `messages` through the chat template.
pub(crate) async fn tokenize(
    State(app): State<App>,
    request: Request,
) -> Result<Response, ApiError> {
    let (mut fields, guard) = app.accept(request).await?;
    let model = app.model(&mut fields).await?;
    let request = TokenizeRequest::read(&mut fields)?;
    fields.report_unknown();
    let (engine, (bytes, field)) = (model.engine.clone(), request.bytes());
    let turn = guard.limiter.tokenizing.turn_of(&engine, [bytes], field).await?;
    let tokens = beside(move || {
        let _turn = turn;
        request.tokens(&engine)
    })
    .await?;
    let max_model_len = model.engine.context_length();
    Ok(json(&Tokenized { count: tokens.len(), max_model_len, tokens }))
}

/// `GET /tokenizer_info`: the special tokens of the first model.
pub(crate) async fn tokenizer_info(State(app): State<App>) -> Result<Response, ApiError> {
    let model = app.model(&mut Fields::default()).await?;
    let info =
        move || TokenizerInfo::new(&model).map_err(|error| ApiError::of_request(&error, "prompt"));
    Ok(json(&beside(info).await?))
}

/// `POST /detokenize`: the text of `tokens`.
pub(crate) async fn detokenize(
    State(app): State<App>,
    request: Request,
) -> Result<Response, ApiError> {
    let (mut fields, guard) = app.accept(request).await?;
    let model = app.model(&mut fields).await?;
    let list = fields.list("tokens")?;
    let list = list.ok_or_else(|| ApiError::missing("tokens", "a list of token ids"))?;
    let (engine, most) = (model.engine.clone(), max_bytes(&model.engine) / BYTES);
    if list.len() > most {
        return Err(ApiError::prompt_too_long("tokens", &list.len().to_string(), most));
    }
    let tokens = tokens_of("tokens", &list)?;
    fields.report_unknown();
    let turn = guard.limiter.tokenizing.turn(tokens.len() * BYTES).await;
    let text = move || {
        let _turn = turn;
        engine.detokenize(&tokens).map_err(|error| ApiError::of_request(&error, "tokens"))
    };
    Ok(json(&Detokenized { prompt: beside(text).await? }))
}

impl TokenizeRequest {
    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        const PROMPT: &str = "prompt";
        messages::refuse_beside(fields, PROMPT)?;
        let adds_special_tokens = fields.flag("add_special_tokens")?;
        let mut options = messages::read_tools(fields, GenerateOptions::new())?;
        options = sampling::read_template(fields, options)?;
        options.continue_final_message = fields.flag("continue_final_message")?;
        if let Some(text) = fields.text(PROMPT)? {
            let adds_special_tokens = adds_special_tokens.unwrap_or(true);
            return Ok(Self::Text { text, adds_special_tokens });
        }
        let messages = messages::read(fields)?;
        if adds_special_tokens == Some(true) {
            let reason = "a chat template has its own special tokens";
            return Err(ApiError::unsupported("add_special_tokens", reason));
        }
        Ok(Self::Chat(messages, Box::new(options)))
    }

    /// Its bytes, and the field that has them.
    fn bytes(&self) -> (usize, &'static str) {
        match self {
            Self::Text { text, .. } => (text.len(), "prompt"),
            Self::Chat(messages, _) => (conversation_bytes(messages), "messages"),
        }
    }

    fn tokens(self, engine: &Engine) -> Result<Vec<u32>, ApiError> {
        match self {
            Self::Chat(messages, options) => engine
                .tokenize_chat(&messages, &options)
                .map_err(|error| ApiError::of_request(&error, "messages")),
            Self::Text { text, adds_special_tokens } => {
                let tokens = if adds_special_tokens {
                    engine.tokenize(&text)
                } else {
                    engine.tokenize_plain(&text)
                };
                tokens.map_err(|error| ApiError::of_request(&error, "prompt"))
            }
        }
    }
}

impl TokenizerInfo {
    fn new(model: &ServedModel) -> Result<Self, EngineError> {
        let ServedModel { engine, token_words, .. } = model;
        token_words.load(engine)?;
        let name = |token: &u32| String::from_utf8_lossy(token_words.bytes(*token)).into_owned();
        let plain = engine.tokenize_plain("")?;
        // What comes before an empty text comes before every text.
        let first = engine.tokenize("")?.into_iter().find(|token| !plain.contains(token));
        // Some models end a text at the token that begins one, too.
        let ends = engine.token_table()?;
        let mut ends = ends.end_tokens().iter();
        Ok(Self {
            bos_token: first.as_ref().map(name),
            eos_token: ends.find(|end| Some(**end) != first).map(name),
            model_max_length: engine.context_length(),
        })
    }
}
