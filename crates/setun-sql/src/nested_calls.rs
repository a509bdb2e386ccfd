//! Calls inside of calls and of keys, each computed in a projection of its own.
//!
//! `DataFusion` computes all asynchronous calls of one projection or filter side by side, so the result of one cannot be
//! an argument of another (<https://github.com/apache/datafusion/issues/20031>), and none in the keys of a group or of an
//! order. It also merges projections of nested queries. This rule runs after all others and moves such calls into a
//! projection below.

use std::{collections::BTreeMap, sync::Arc};

use datafusion::{
    common::{
        Column, Result,
        tree_node::{Transformed, TreeNode, TreeNodeRecursion},
    },
    logical_expr::{
        Aggregate, Expr, Filter, LogicalPlan, Projection, Sort, SortExpr,
        expr_rewriter::NamePreserver, utils::expr_to_columns,
    },
    optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule},
};

/// The rule.
#[derive(Debug, Default)]
pub struct SplitNestedCalls;

/// The column of the inner call with this number.
fn column_name(number: usize) -> String {
    format!("__setun_call_{number}")
}

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
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Projection(projection) => split_projection(projection),
            LogicalPlan::Filter(filter) => split_filter(filter),
            LogicalPlan::Aggregate(aggregate) => split_aggregate(aggregate),
            LogicalPlan::Sort(sort) => split_sort(sort),
            other => Ok(Transformed::no(other)),
        }
    }
}

fn split_projection(projection: Projection) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new_for_projection();
    let mut calls = InnerCalls::default();
    let mut outer = vec![];
    for expression in &projection.expr {
        let name = names.save(expression);
        outer.push(name.restore(calls.take(expression.clone())?));
    }
    if calls.found.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Projection(projection)));
    }
    let below = calls.project(&outer, projection.input)?;
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(outer, below)?)))
}

fn split_filter(filter: Filter) -> Result<Transformed<LogicalPlan>> {
    let mut calls = InnerCalls::default();
    let predicate = calls.take(filter.predicate.clone())?;
    if calls.found.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    }
    let kept: Vec<Expr> = filter.input.schema().columns().into_iter().map(Expr::Column).collect();
    let read: Vec<Expr> = kept.iter().cloned().chain([predicate.clone()]).collect();
    let below = calls.project(&read, filter.input)?;
    let filtered = LogicalPlan::Filter(Filter::try_new(predicate, below)?);
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(kept, filtered.into())?)))
}

fn split_aggregate(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new_for_projection();
    let mut calls = InnerCalls::default();
    let mut replaced = |expressions: &[Expr]| -> Result<Vec<Expr>> {
        let replace = |expression: &Expr| {
            let name = names.save(expression);
            Ok(name.restore(calls.take_all(expression.clone())?.data))
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

fn split_sort(sort: Sort) -> Result<Transformed<LogicalPlan>> {
    let mut calls = InnerCalls::default();
    let mut keys = vec![];
    for key in &sort.expr {
        let expression = calls.take_all(key.expr.clone())?.data;
        keys.push(SortExpr { expr: expression, ..key.clone() });
    }
    if calls.found.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Sort(sort)));
    }
    let kept: Vec<Expr> = sort.input.schema().columns().into_iter().map(Expr::Column).collect();
    let read: Vec<_> =
        kept.iter().cloned().chain(keys.iter().map(|key| key.expr.clone())).collect();
    let input = calls.project(&read, sort.input)?;
    let sorted = LogicalPlan::Sort(Sort { expr: keys, input, fetch: sort.fetch });
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(kept, sorted.into())?)))
}

/// Calls that are arguments of other calls, by their column.
#[derive(Default)]
struct InnerCalls {
    found: BTreeMap<usize, Expr>,
}

impl InnerCalls {
    /// Replaces the calls in the arguments of calls by their columns.
    fn take(&mut self, expression: Expr) -> Result<Expr> {
        let outer = |expression: Expr| {
            if !is_call(&expression) {
                return Ok(Transformed::no(expression));
            }
            let inner = expression.map_children(|argument| self.take_all(argument))?;
            Ok(Transformed::new(inner.data, inner.transformed, TreeNodeRecursion::Jump))
        };
        Ok(expression.transform_down(outer)?.data)
    }

    /// Replaces every call by its column.
    fn take_all(&mut self, argument: Expr) -> Result<Transformed<Expr>> {
        argument.transform_down(|expression| {
            if !is_call(&expression) {
                return Ok(Transformed::no(expression));
            }
            let column = Expr::Column(Column::from_name(column_name(self.number(expression))));
            Ok(Transformed::new(column, true, TreeNodeRecursion::Jump))
        })
    }

    /// Equal calls are computed once.
    fn number(&mut self, call: Expr) -> usize {
        if let Some((&number, _)) = self.found.iter().find(|(_, found)| **found == call) {
            return number;
        }
        let number = self.found.len();
        self.found.insert(number, call);
        number
    }

    /// A projection of the calls and of what else `outer` reads.
    fn project(self, outer: &[Expr], input: Arc<LogicalPlan>) -> Result<Arc<LogicalPlan>> {
        let mut read = std::collections::HashSet::new();
        outer.iter().try_for_each(|expression| expr_to_columns(expression, &mut read))?;
        let columns = input.schema().columns().into_iter().filter(|column| read.contains(column));
        let calls = self.found.into_iter().map(|(number, call)| call.alias(column_name(number)));
        let all = columns.map(Expr::Column).chain(calls).collect();
        Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(all, input)?)))
    }
}

fn is_call(expression: &Expr) -> bool {
    matches!(expression, Expr::ScalarFunction(call) if call.func.as_async().is_some())
}
