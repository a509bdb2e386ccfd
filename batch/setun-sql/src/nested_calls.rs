//! Calls inside of calls and of keys, each computed in a projection of its own.
//!
//! `DataFusion` computes all asynchronous calls of one projection or filter side by side, so the result of one cannot be
//! an argument of another (<https://github.com/apache/datafusion/issues/20031>), and none in the keys of a group or of an
//! order. It also merges projections of nested queries. This rule runs after all others and moves such calls into a
//! projection below.

use std::{collections::HashSet, sync::Arc};

use datafusion::{
    common::{
        Column, Result,
        alias::AliasGenerator,
        plan_err,
        tree_node::{Transformed, TreeNode, TreeNodeRecursion},
    },
    logical_expr::{
        Aggregate, Expr, Filter, Join, JoinType, LogicalPlan, Projection, Sort, SortExpr,
        expr_rewriter::NamePreserver,
        utils::{conjunction, expr_to_columns, split_conjunction_owned},
    },
    optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule},
};

/// The rule.
#[derive(Debug, Default)]
pub struct SplitNestedCalls;

/// How the columns of calls are named.
const PREFIX: &str = "__setun_call";

impl OptimizerRule for SplitNestedCalls {
    fn name(&self) -> &'static str {
        "split_nested_calls"
    }

    /// From the top: the projection below may have nested calls again.
    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let calls = MovedCalls::new(config.alias_generator());
        match plan {
            LogicalPlan::Projection(projection) => split_projection(projection, calls),
            LogicalPlan::Filter(filter) => split_filter(filter, calls),
            LogicalPlan::Aggregate(aggregate) => split_aggregate(aggregate, calls),
            LogicalPlan::Sort(sort) => split_sort(sort, calls),
            LogicalPlan::Join(join) => split_join(join),
            LogicalPlan::Window(_) | LogicalPlan::Values(_) => {
                refuse_calls(&plan.expressions(), "a window function or VALUES")?;
                Ok(Transformed::no(plan))
            }
            other => Ok(Transformed::no(other)),
        }
    }
}

fn split_projection(
    projection: Projection,
    mut calls: MovedCalls,
) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new_for_projection();
    let filter = match &*projection.input {
        LogicalPlan::Filter(filter) => Some(filter.clone()),
        _ => None,
    };
    let mut shared = vec![];
    if let Some(filter) = &filter {
        let of_filter = outer_calls(&filter.predicate)?;
        for expression in &projection.expr {
            let found = outer_calls(expression)?;
            shared.extend(found.into_iter().filter(|call| of_filter.contains(call)));
        }
    }
    let mut outer = vec![];
    for expression in &projection.expr {
        let name = names.save(expression);
        let expression = calls.take(expression.clone(), &shared)?;
        outer.push(name.restore(calls.take_inner(expression)?));
    }
    if calls.found.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Projection(projection)));
    }
    let below = match filter.filter(|_| !shared.is_empty()) {
        None => calls.project(&outer, projection.input)?,
        // The filter and the projection have the results of one computation.
        Some(filter) => {
            let (with_calls, input) = below_cheap_filter(filter)?;
            let predicate = calls.take_all(with_calls)?;
            let read = [&outer[..], std::slice::from_ref(&predicate)].concat();
            let below = calls.project(&read, input)?;
            Arc::new(LogicalPlan::Filter(Filter::try_new(predicate, below)?))
        }
    };
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(outer, below)?)))
}

fn split_filter(filter: Filter, mut calls: MovedCalls) -> Result<Transformed<LogicalPlan>> {
    if !has_call(&filter.predicate) {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    }
    let whole = filter.predicate.clone();
    let (with_calls, input) = below_cheap_filter(filter)?;
    let predicate = calls.take_inner(with_calls)?;
    if calls.found.is_empty() {
        let is_changed = predicate != whole;
        let filter = LogicalPlan::Filter(Filter::try_new(predicate, input)?);
        return Ok(if is_changed { Transformed::yes(filter) } else { Transformed::no(filter) });
    }
    let kept: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
    let read: Vec<Expr> = kept.iter().cloned().chain([predicate.clone()]).collect();
    let below = calls.project(&read, input)?;
    let filtered = LogicalPlan::Filter(Filter::try_new(predicate, below)?);
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(kept, filtered.into())?)))
}

/// The conditions of a filter that have calls, and its input below those that have none: rows that these leave out are
/// not computed.
fn below_cheap_filter(filter: Filter) -> Result<(Expr, Arc<LogicalPlan>)> {
    let conditions = split_conjunction_owned(filter.predicate.clone());
    let (with_calls, cheap): (Vec<_>, Vec<_>) = conditions.into_iter().partition(has_call);
    match (conjunction(with_calls), conjunction(cheap)) {
        (Some(with_calls), Some(cheap)) => {
            let below = LogicalPlan::Filter(Filter::try_new(cheap, filter.input)?);
            Ok((with_calls, below.into()))
        }
        _ => Ok((filter.predicate, filter.input)),
    }
}

fn split_aggregate(
    aggregate: Aggregate,
    mut calls: MovedCalls,
) -> Result<Transformed<LogicalPlan>> {
    if let [Expr::GroupingSet(_)] = &aggregate.group_expr[..] {
        refuse_calls(&aggregate.group_expr, "ROLLUP, CUBE or GROUPING SETS")?;
    }
    let names = NamePreserver::new_for_projection();
    let mut replaced = |expressions: &[Expr]| -> Result<Vec<Expr>> {
        let replace = |expression: &Expr| {
            let name = names.save(expression);
            Ok(name.restore(calls.take_all(expression.clone())?))
        };
        expressions.iter().map(replace).collect()
    };
    let (group, aggregates) = (replaced(&aggregate.group_expr)?, replaced(&aggregate.aggr_expr)?);
    if calls.found.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let below = calls.project(&[&group[..], &aggregates].concat(), aggregate.input)?;
    let aggregate = Aggregate::try_new(below, group, aggregates)?;
    Ok(Transformed::yes(LogicalPlan::Aggregate(aggregate)))
}

fn split_sort(sort: Sort, mut calls: MovedCalls) -> Result<Transformed<LogicalPlan>> {
    let mut keys = vec![];
    for key in &sort.expr {
        keys.push(SortExpr { expr: calls.take_all(key.expr.clone())?, ..key.clone() });
    }
    if calls.found.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Sort(sort)));
    }
    let kept: Vec<Expr> = sort.input.schema().columns().into_iter().map(Expr::Column).collect();
    let of_keys = keys.iter().map(|key| key.expr.clone());
    let read: Vec<_> = kept.iter().cloned().chain(of_keys).collect();
    let input = calls.project(&read, sort.input)?;
    let sorted = LogicalPlan::Sort(Sort { expr: keys, input, fetch: sort.fetch });
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(kept, sorted.into())?)))
}

/// Conditions with calls go above an inner join, whose rows are the same.
fn split_join(mut join: Join) -> Result<Transformed<LogicalPlan>> {
    let keys: Vec<_> = join.on.iter().flat_map(|(left, right)| [left, right]).cloned().collect();
    refuse_calls(&keys, "the keys of a join")?;
    let Some(filter) = join.filter.take_if(|filter| has_call(filter)) else {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    };
    if join.join_type != JoinType::Inner {
        refuse_calls(&[filter], "the condition of an outer join")?;
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    let conditions = split_conjunction_owned(filter);
    let (with_calls, cheap): (Vec<_>, Vec<_>) = conditions.into_iter().partition(has_call);
    join.filter = conjunction(cheap);
    let joined = LogicalPlan::Join(join);
    match conjunction(with_calls) {
        Some(predicate) => {
            Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, joined.into())?)))
        }
        None => Ok(Transformed::no(joined)),
    }
}

fn refuse_calls(expressions: &[Expr], place: &str) -> Result<()> {
    let mut calls = expressions.iter().map(outer_calls);
    match calls.find_map(|calls| calls.ok()?.into_iter().next()) {
        Some(Expr::ScalarFunction(call)) => {
            let name = call.name();
            plan_err!("`{name}` cannot be called in {place}: call it in a query below")
        }
        _ => Ok(()),
    }
}

/// Calls that were moved into a projection below, each with the name of its column.
struct MovedCalls {
    found: Vec<(String, Expr)>,
    names: Arc<AliasGenerator>,
}

impl MovedCalls {
    fn new(names: &Arc<AliasGenerator>) -> Self {
        Self { found: vec![], names: Arc::clone(names) }
    }

    /// Replaces the calls in the arguments of calls by their columns.
    fn take_inner(&mut self, expression: Expr) -> Result<Expr> {
        let outer = |expression: Expr| {
            if !is_call(&expression) {
                return Ok(Transformed::no(expression));
            }
            let inner = expression.map_children(|argument| self.replace(argument, None))?;
            Ok(Transformed::new(inner.data, inner.transformed, TreeNodeRecursion::Jump))
        };
        Ok(expression.transform_down(outer)?.data)
    }

    /// Replaces every call by its column.
    fn take_all(&mut self, expression: Expr) -> Result<Expr> {
        Ok(self.replace(expression, None)?.data)
    }

    /// Replaces these calls by their columns.
    fn take(&mut self, expression: Expr, these: &[Expr]) -> Result<Expr> {
        Ok(self.replace(expression, Some(these))?.data)
    }

    fn replace(&mut self, expression: Expr, only: Option<&[Expr]>) -> Result<Transformed<Expr>> {
        expression.transform_down(|expression| {
            let is_replaced =
                is_call(&expression) && only.is_none_or(|these| these.contains(&expression));
            if !is_replaced {
                return Ok(Transformed::no(expression));
            }
            let column = Expr::Column(Column::from_name(self.name(expression)));
            Ok(Transformed::new(column, true, TreeNodeRecursion::Jump))
        })
    }

    /// Equal calls are computed once.
    fn name(&mut self, call: Expr) -> String {
        if let Some((name, _)) = self.found.iter().find(|(_, found)| *found == call) {
            return name.clone();
        }
        let name = self.names.next(PREFIX);
        self.found.push((name.clone(), call));
        name
    }

    /// A projection of the calls and of what else `outer` reads.
    fn project(self, outer: &[Expr], input: Arc<LogicalPlan>) -> Result<Arc<LogicalPlan>> {
        let mut read = HashSet::new();
        outer.iter().try_for_each(|expression| expr_to_columns(expression, &mut read))?;
        let columns = input.schema().columns().into_iter().filter(|column| read.contains(column));
        let calls = self.found.into_iter().map(|(name, call)| call.alias(name));
        let all = columns.map(Expr::Column).chain(calls).collect();
        Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(all, input)?)))
    }
}

fn is_call(expression: &Expr) -> bool {
    matches!(expression, Expr::ScalarFunction(call) if call.func.as_async().is_some())
}

fn has_call(expression: &Expr) -> bool {
    expression.exists(|inner| Ok(is_call(inner))).unwrap_or(false)
}

fn outer_calls(expression: &Expr) -> Result<Vec<Expr>> {
    let mut calls = vec![];
    expression.apply(|inner| {
        if !is_call(inner) {
            return Ok(TreeNodeRecursion::Continue);
        }
        calls.push(inner.clone());
        Ok(TreeNodeRecursion::Jump)
    })?;
    Ok(calls)
}
