//! The functions, as the query engine calls them.

mod embed;
mod score;
mod texts;

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use async_trait::async_trait;
use datafusion::{
    arrow::{
        array::ArrayRef,
        datatypes::{DataType, Fields},
    },
    common::{ScalarValue, exec_err},
    error::Result,
    logical_expr::{
        ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
        Volatility,
        async_udf::{AsyncScalarUDF, AsyncScalarUDFImpl},
    },
};

use crate::{
    arguments::Texts,
    error::Error,
    handle::{Loaded, ModelHandle, Prepared},
    settings::Settings,
};

/// Every function over a model, to be registered by name.
#[must_use]
pub fn functions(model: &ModelHandle) -> Vec<ScalarUDF> {
    let function = |kind| ModelFunction::new(kind, model.clone());
    let all = Kind::ALL.map(|kind| AsyncScalarUDF::new(Arc::new(function(kind))));
    all.map(AsyncScalarUDF::into_scalar_udf).into()
}

/// Which function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Generate,
    Chat,
    Embed,
    Score,
    Perplexity,
}

/// A function that generates texts.
#[derive(Clone, Copy)]
pub(crate) enum TextFunction {
    Generate,
    Chat,
}

/// Texts of rows without a query, with the same options for all.
pub(crate) async fn texts(
    function: TextFunction,
    model: &ModelHandle,
    settings: Settings,
    prompts: ArrayRef,
    options: &str,
    keys: Option<ArrayRef>,
) -> Result<ArrayRef, Error> {
    let rows = prompts.len();
    let options = ColumnarValue::Scalar(ScalarValue::from(options));
    let mut columns = vec![ColumnarValue::Array(prompts), options];
    columns.extend(keys.map(ColumnarValue::Array));
    let kind = match function {
        TextFunction::Generate => Kind::Generate,
        TextFunction::Chat => Kind::Chat,
    };
    Call::new(kind, model, &columns, rows, settings).await?.run(kind).await
}

/// A function over a model.
#[derive(Debug)]
struct ModelFunction {
    kind: Kind,
    signature: Signature,
    model: ModelHandle,
}

/// One call: the rows of a batch.
struct Call<'a> {
    function: &'static str,
    model: &'a ModelHandle,
    loaded: &'a Loaded,
    arguments: Vec<Texts>,
    rows: usize,
    settings: Settings,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Generate, Self::Chat, Self::Embed, Self::Score, Self::Perplexity];

    fn name(self) -> &'static str {
        match self {
            Self::Generate => "generate",
            Self::Chat => "chat",
            Self::Embed => "embed",
            Self::Score => "score",
            Self::Perplexity => "perplexity",
        }
    }

    /// Fewest and most arguments, all of them strings.
    fn arguments(self) -> [usize; 2] {
        match self {
            Self::Generate | Self::Chat => [1, 3],
            Self::Embed => [1, 2],
            Self::Score => [2, 2],
            Self::Perplexity => [1, 1],
        }
    }

    fn fields(self) -> Fields {
        match self {
            Self::Generate | Self::Chat => texts::fields(),
            Self::Embed => embed::fields(),
            Self::Score => score::fields(),
            Self::Perplexity => score::perplexity_fields(),
        }
    }
}

impl ModelFunction {
    fn new(kind: Kind, model: ModelHandle) -> Self {
        let [fewest, most] = kind.arguments();
        let counts = (fewest..=most).map(TypeSignature::String).collect();
        // The same arguments and settings have the same result, wherever it is computed.
        let signature = Signature::one_of(counts, Volatility::Stable);
        Self { kind, signature, model }
    }

    async fn call(&self, arguments: ScalarFunctionArgs) -> Result<ArrayRef, Error> {
        let ScalarFunctionArgs { args, number_rows, config_options, .. } = arguments;
        let settings = Settings::of(&config_options);
        let call = Call::new(self.kind, &self.model, &args, number_rows, settings).await?;
        call.run(self.kind).await
    }
}

impl PartialEq for ModelFunction {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.model == other.model
    }
}

impl Eq for ModelFunction {}

impl Hash for ModelFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
    }
}

impl ScalarUDFImpl for ModelFunction {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Struct(self.kind.fields()))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        exec_err!("`{}` cannot be called here: its rows take time", self.kind.name())
    }
}

#[async_trait]
impl AsyncScalarUDFImpl for ModelFunction {
    async fn invoke_async_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Array(self.call(arguments).await?))
    }
}

impl<'a> Call<'a> {
    /// Loads the model, if this is its first call.
    async fn new(
        kind: Kind,
        model: &'a ModelHandle,
        arguments: &[ColumnarValue],
        rows: usize,
        settings: Settings,
    ) -> Result<Self, Error> {
        let arguments = arguments.iter().map(Texts::new).collect::<Result<_>>()?;
        let loaded = model.loaded().await?;
        Ok(Self { function: kind.name(), model, loaded, arguments, rows, settings })
    }

    async fn run(&self, kind: Kind) -> Result<ArrayRef, Error> {
        match kind {
            Kind::Generate => texts::generate(self).await,
            Kind::Chat => texts::chat(self).await,
            Kind::Embed => embed::embed(self).await,
            Kind::Score => score::score(self).await,
            Kind::Perplexity => score::perplexity(self).await,
        }
    }

    /// The text of an argument, which must be there and not empty.
    fn text(&self, argument: usize, row: usize, what: &str) -> Result<&str, Error> {
        match self.arguments[argument].get(row) {
            None => Err(Error::Row(format!("the {what} is NULL"))),
            Some("") => Err(Error::Row(format!("the {what} is empty"))),
            Some(text) => Ok(text),
        }
    }

    /// The options in an argument that may be absent: those of each row, or of all. A literal that is
    /// wrong is an error before any row runs.
    async fn options(&self, argument: usize) -> Result<Vec<Prepared>, Error> {
        let Some(texts) = self.arguments.get(argument) else { return Ok(vec![]) };
        let mut prepared = vec![];
        for text in texts.iter() {
            prepared.push(self.loaded.prepare(text.unwrap_or("{}")).await?);
        }
        match prepared.first() {
            Some(Err(reason)) if texts.is_literal => {
                Err(Error::Argument { function: self.function, reason: reason.to_string() })
            }
            _ => Ok(prepared),
        }
    }
}
