//! Chunks on a cluster: one file for each task, and their results put together again.
//!
//! Executors read files, and a query runs at most as many tasks as it has files. So the rows of a chunk are cut into
//! shards, which lie in the manifest's folder while they run.

use std::{ops::Range, sync::Arc};

use datafusion::{
    arrow::{
        array::{Array, ArrayRef, AsArray, StringViewArray, UInt32Array},
        compute::{cast, concat_batches, take},
        datatypes::{DataType, Field, Fields, Schema, SchemaRef, UInt32Type},
        record_batch::RecordBatch,
    },
    common::exec_datafusion_err,
};

use super::{
    job::BatchJob,
    manifest::Manifest,
    rows::{OrderedRows, RESULT, inverse, parquet},
};
use crate::{
    cluster::{Cluster, KEY, PATH, POSITION, PROMPT, TextQuery},
    error::Error,
    settings::Settings,
};

/// Texts of a chunk's rows by the executors of a cluster.
pub(super) async fn texts(
    cluster: &Cluster,
    job: &BatchJob,
    settings: Settings,
    manifest: &Manifest,
    rows: OrderedRows<'_>,
) -> Result<ArrayRef, Error> {
    let count = rows.prompts.len();
    let prompts = cast(&rows.prompts, &DataType::Utf8View)?;
    let shards = cut(prompts.as_string_view(), job.shard_rows);
    let folder = Manifest::attempt(rows.chunk);
    let query = TextQuery {
        function: job.conversation.function(),
        options: job.options.as_deref().unwrap_or("{}"),
        has_keys: rows.keys.is_some(),
        has_paths: rows.paths.is_some(),
        files: manifest.address(&folder)?,
        shards: shards.len(),
        settings,
    };
    let results = async {
        for (number, shard) in shards.iter().enumerate() {
            let bytes = parquet(&shard_rows(&rows, shard)?)?;
            manifest.put_shard(&folder, number, bytes).await?;
        }
        cluster.texts(&query).await
    };
    let results = results.await;
    manifest.remove_attempt(&folder).await;
    in_order(&results?, count, &query.function.fields())
}

fn shard_rows(rows: &OrderedRows<'_>, shard: &Range<usize>) -> Result<RecordBatch, Error> {
    // Views are no type of the columns that executors send.
    let text = |column: &ArrayRef| cast(&column.slice(shard.start, shard.len()), &DataType::Utf8);
    let positions: UInt32Array = (0..).take(shard.end).skip(shard.start).collect();
    let mut fields = vec![Field::new(POSITION, DataType::UInt32, false)];
    let mut columns: Vec<ArrayRef> = vec![Arc::new(positions)];
    let (keys, paths) = (rows.keys.as_ref(), rows.paths.as_ref());
    for (name, column) in [(PROMPT, Some(&rows.prompts)), (KEY, keys), (PATH, paths)] {
        if let Some(column) = column {
            fields.push(Field::new(name, DataType::Utf8, true));
            columns.push(text(column)?);
        }
    }
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    Ok(RecordBatch::try_new(schema, columns)?)
}

/// The results in the order of the rows, each of which must be there once.
fn in_order(results: &[RecordBatch], rows: usize, fields: &Fields) -> Result<ArrayRef, Error> {
    let wrong = |found: String| {
        Error::Query(exec_datafusion_err!("results of the cluster: {found}, expected {rows} rows"))
    };
    // As views first: plain strings of a chunk may be too long for one column.
    let texts = DataType::Struct(fields.clone());
    let results = results.iter().map(|rows| {
        let columns = vec![Arc::clone(rows.column(0)), cast(rows.column(1), &texts)?];
        let fields = [(POSITION, DataType::UInt32), (RESULT, texts.clone())];
        let fields = fields.map(|(name, of)| Field::new(name, of, true));
        RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), columns)
    });
    let results = results.collect::<Result<Vec<_>, _>>()?;
    let [first, ..] = &results[..] else {
        return Err(wrong("none (can all processes read the output?)".into()));
    };
    let all = concat_batches(&first.schema(), &results)?;
    let positions = all.column(0).as_primitive_opt::<UInt32Type>();
    let positions = positions.ok_or_else(|| wrong("no positions".into()))?;
    let mut seen = vec![false; rows];
    for position in positions {
        let place = position.and_then(|position| seen.get_mut(position as usize));
        match place {
            Some(seen) if !*seen => *seen = true,
            _ => return Err(wrong(format!("the row {position:?} twice or beyond"))),
        }
    }
    if positions.len() != rows {
        return Err(wrong(format!("{} rows", positions.len())));
    }
    Ok(take(all.column(1), &inverse(positions), None)?)
}

/// Cuts ordered prompts into shards of about `target` rows. A cut is where neighbours share least, within half a shard
/// around its place, so that few executors compute the same beginning.
fn cut(prompts: &StringViewArray, target: usize) -> Vec<Range<usize>> {
    let (rows, target) = (prompts.len(), target.max(1));
    let shared = |row: usize| {
        let text = |row: usize| if prompts.is_valid(row) { prompts.value(row) } else { "" };
        let pairs = text(row - 1).bytes().zip(text(row).bytes());
        pairs.take_while(|(one, other)| one == other).count()
    };
    let (mut shards, mut start) = (vec![], 0);
    while rows - start > target + target / 2 {
        let place = start + target;
        let around = (place - target / 4).max(start + 1)..=(place + target / 4).min(rows - 1);
        let nearest = around.min_by_key(|&row| (shared(row), row.abs_diff(place)));
        let end = nearest.unwrap_or(place);
        shards.push(start..end);
        start = end;
    }
    if start < rows {
        shards.push(start..rows);
    }
    shards
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{StructArray, new_null_array};

    use super::*;
    use crate::functions::Function;

    fn cuts(prompts: &[&str], target: usize) -> Vec<Range<usize>> {
        cut(&prompts.iter().map(Some).collect(), target)
    }

    #[test]
    fn shards_end_where_prompts_share_least() {
        assert!(cuts(&[], 4).is_empty());
        assert_eq!(cuts(&["a"], 4).len(), 1);
        assert_eq!(cuts(&["a"; 6], 4).len(), 1, "half a shard more is one");
        assert_eq!(cuts(&["a"; 7], 4), [0..4, 4..7]);
        let groups = ["xa", "xb", "xc", "xd", "xe", "ya", "yb", "yc", "yd", "ye"];
        assert_eq!(cuts(&groups, 4), [0..5, 5..10], "between the groups");
        assert_eq!(cuts(&["a"; 5], 1), [0..1, 1..2, 2..3, 3..4, 4..5]);
        assert_eq!(cuts(&["a"; 3], 0), [0..1, 1..2, 2..3], "0 is 1");
    }

    #[test]
    fn every_row_is_in_one_shard() {
        for (rows, target) in [(100, 7), (101, 8), (1000, 256), (1, 1000), (999, 3)] {
            let prompts: Vec<String> = (0..rows).map(|row| format!("{:04}", row * 7919)).collect();
            let prompts = prompts.iter().map(Some).collect();
            let shards = cut(&prompts, target);
            let joined: Vec<_> = shards.iter().cloned().flatten().collect();
            assert_eq!(joined, (0..rows).collect::<Vec<_>>());
            let most = shards.iter().map(ExactSizeIterator::len).max();
            assert!(most <= Some(target + target / 2 + 1), "{most:?} of {target}");
        }
    }

    fn results(positions: &[u32]) -> RecordBatch {
        let fields = Function::Generate.fields();
        let columns = fields.iter().map(|field| new_null_array(field.data_type(), positions.len()));
        let texts = StructArray::new(fields.clone(), columns.collect(), None);
        let positions: ArrayRef = Arc::new(UInt32Array::from(positions.to_vec()));
        let columns = [(POSITION, positions), ("result", Arc::new(texts) as ArrayRef)];
        RecordBatch::try_from_iter(columns).expect("columns of one length")
    }

    #[test]
    fn a_result_that_lacks_a_row_or_has_one_twice_is_refused() {
        let fields = Function::Generate.fields();
        assert!(in_order(&[results(&[2, 0]), results(&[1])], 3, &fields).is_ok());
        let wrong: [&[&[u32]]; 5] =
            [&[], &[&[0, 1]], &[&[0, 1, 1]], &[&[0, 1, 3]], &[&[0, 1, 2], &[0]]];
        for wrong in wrong {
            let wrong: Vec<_> = wrong.iter().map(|positions| results(positions)).collect();
            let error = in_order(&wrong, 3, &fields).expect_err("it is refused");
            assert!(error.to_string().contains("expected 3 rows"), "{error}");
        }
    }
}
