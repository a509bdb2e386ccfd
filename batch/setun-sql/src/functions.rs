//! The functions, as the query engine calls them.

mod embed;
mod model;
mod respond;
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
    common::exec_err,
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
    let function = |function| ModelFunction::new(function, model.clone());
    let all = Function::ALL.map(|one| AsyncScalarUDF::new(Arc::new(function(one))));
    all.map(AsyncScalarUDF::into_scalar_udf).into()
}

/// A function of SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Function {
    Generate,
    Chat,
    Embed,
    Score,
    Perplexity,
    Model,
    Respond,
}

/// The results of rows without a query.
pub(crate) async fn results(
    function: Function,
    model: &ModelHandle,
    settings: Settings,
    arguments: Vec<ColumnarValue>,
    rows: usize,
) -> Result<ArrayRef, Error> {
    Call::new(function, model, &arguments, rows, settings).await?.run().await
}

/// A function over a model.
#[derive(Debug)]
struct ModelFunction {
    function: Function,
    signature: Signature,
    model: ModelHandle,
}

/// One call: the rows of a batch.
struct Call<'a> {
    function: Function,
    model: &'a ModelHandle,
    loaded: Arc<Loaded>,
    arguments: Vec<Texts>,
    rows: usize,
    settings: Settings,
}

impl Function {
    const ALL: [Self; 7] = [
        Self::Generate,
        Self::Chat,
        Self::Embed,
        Self::Score,
        Self::Perplexity,
        Self::Model,
        Self::Respond,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Generate => "generate",
            Self::Chat => "chat",
            Self::Embed => "embed",
            Self::Score => "score",
            Self::Perplexity => "perplexity",
            Self::Model => "model",
            Self::Respond => "respond",
        }
    }

    /// Fewest and most arguments, all of them strings.
    fn arguments(self) -> [usize; 2] {
        match self {
            Self::Generate | Self::Chat => [1, 3],
            Self::Embed => [1, 2],
            Self::Score => [2, 2],
            Self::Perplexity => [1, 1],
            Self::Model => [0, 0],
            Self::Respond => [3, 3],
        }
    }

    pub(crate) fn fields(self) -> Fields {
        match self {
            Self::Generate | Self::Chat => texts::fields(),
            Self::Embed => embed::fields(),
            Self::Score => score::fields(),
            Self::Perplexity => score::perplexity_fields(),
            Self::Model => model::fields(),
            Self::Respond => respond::fields(),
        }
    }
}

impl ModelFunction {
    fn new(function: Function, model: ModelHandle) -> Self {
        let [fewest, most] = function.arguments();
        let count = |count| match count {
            0 => TypeSignature::Nullary,
            count => TypeSignature::String(count),
        };
        let counts = (fewest..=most).map(count).collect();
        // The same arguments and settings have the same result, wherever it is computed.
        let signature = Signature::one_of(counts, Volatility::Stable);
        Self { function, signature, model }
    }

    async fn call(&self, arguments: ScalarFunctionArgs) -> Result<ArrayRef, Error> {
        let ScalarFunctionArgs { args, number_rows, config_options, .. } = arguments;
        let settings = Settings::of(&config_options);
        let call = Call::new(self.function, &self.model, &args, number_rows, settings).await?;
        call.run().await
    }
}

impl PartialEq for ModelFunction {
    fn eq(&self, other: &Self) -> bool {
        self.function == other.function && self.model == other.model
    }
}

impl Eq for ModelFunction {}

impl Hash for ModelFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.function.hash(state);
    }
}

impl ScalarUDFImpl for ModelFunction {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Struct(self.function.fields()))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        exec_err!("`{}` cannot be called here: its rows take time", self.function.name())
    }
}

#[async_trait]
impl AsyncScalarUDFImpl for ModelFunction {
    async fn invoke_async_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Array(self.call(arguments).await?))
    }
}

impl<'a> Call<'a> {
    /// What chat templates have as now, unless the engine's own options say it.
    fn time(&self) -> Option<u64> {
        let is_given = self.loaded.engine.default_options().chat_template_time.is_some();
        self.settings.time.filter(|_| !is_given)
    }

    /// Loads the model, if this is its first call.
    async fn new(
        function: Function,
        model: &'a ModelHandle,
        arguments: &[ColumnarValue],
        rows: usize,
        settings: Settings,
    ) -> Result<Self, Error> {
        let arguments = arguments.iter().map(Texts::new).collect::<Result<_>>()?;
        let loaded = model.loaded().await?;
        if !settings.model.is_empty() {
            loaded.check_is(&settings.model).await?;
        }
        Ok(Self { function, model, loaded, arguments, rows, settings })
    }

    async fn run(&self) -> Result<ArrayRef, Error> {
        match self.function {
            Function::Generate => texts::generate(self).await,
            Function::Chat => texts::chat(self).await,
            Function::Embed => embed::embed(self).await,
            Function::Score => score::score(self).await,
            Function::Perplexity => score::perplexity(self).await,
            Function::Model => model::model(self).await,
            Function::Respond => respond::respond(self).await,
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
                Err(Error::Argument { function: self.function.name(), reason: reason.to_string() })
            }
            _ => Ok(prepared),
        }
    }
}
