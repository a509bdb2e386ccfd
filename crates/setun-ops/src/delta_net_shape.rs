//! The shape of a delta net's heads, and their columns in a row.

/// Shape of a delta net's heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaNetShape {
    /// Heads of queries and keys.
    pub key_heads: usize,
    /// Heads of values; a multiple of `key_heads`.
    pub value_heads: usize,
    /// Width of a head of queries or keys.
    pub key_dim: usize,
    /// Width of a head of values.
    pub value_dim: usize,
    /// Rows that a channel's convolution sees, the current one among them.
    pub kernel: usize,
    /// Order of the value heads in all weights but the output matrix.
    pub order: HeadOrder,
    /// Order of the value heads in the columns of the output matrix.
    pub output_order: HeadOrder,
}

/// Which value heads share a key head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeadOrder {
    /// Value heads of a key head are neighbours: head `h` has key head `h / (value_heads / key_heads)`.
    Grouped,
    /// Key heads alternate: head `h` has key head `h mod key_heads`.
    Tiled,
}

impl DeltaNetShape {
    /// Columns of queries, and of keys: `key_heads × key_dim`.
    #[must_use]
    pub fn key_width(&self) -> usize {
        self.key_heads * self.key_dim
    }

    /// Columns of values, of `z` and of the result: `value_heads × value_dim`.
    #[must_use]
    pub fn value_width(&self) -> usize {
        self.value_heads * self.value_dim
    }

    /// Channels of the convolution: the columns of queries, keys and values.
    #[must_use]
    pub fn channels(&self) -> usize {
        2 * self.key_width() + self.value_width()
    }

    /// Numbers that a later row may need again: the channels, `b` and `a`.
    #[must_use]
    pub fn history_width(&self) -> usize {
        self.channels() + 2 * self.value_heads
    }

    /// Those of one key head and its value heads: `[q, k, v of each, b of each, a of each]`.
    #[must_use]
    pub fn history_of_key_head(&self) -> usize {
        2 * self.key_dim + self.group() * (self.value_dim + 2)
    }

    /// Columns of the input that a key head and its value heads need again, in the order of their history: first
    /// column and length of each run.
    pub fn history_columns(&self, key_head: usize) -> impl Iterator<Item = (usize, usize)> {
        let shape = *self;
        let (keys, values) = (shape.key_width(), 2 * shape.key_width());
        let of_key = [0, keys].map(|first| (first + key_head * shape.key_dim, shape.key_dim));
        let head = move |index| shape.value_head(key_head, index);
        let of_values = move |index| (values + head(index) * shape.value_dim, shape.value_dim);
        let numbers = shape.channels() + shape.value_width();
        let b = move |index| (numbers + head(index), 1);
        let a = move |index| (numbers + shape.value_heads + head(index), 1);
        let group = 0..shape.group();
        of_key
            .into_iter()
            .chain(group.clone().map(of_values))
            .chain(group.clone().map(b))
            .chain(group.map(a))
    }

    /// Value heads that share a key head.
    #[must_use]
    pub fn group(&self) -> usize {
        self.value_heads / self.key_heads
    }

    /// Value head `index` of those that share a key head.
    #[must_use]
    pub fn value_head(&self, key_head: usize, index: usize) -> usize {
        place(self.order, self, key_head, index)
    }

    /// First column of a value head's result.
    #[must_use]
    pub fn output_column(&self, key_head: usize, index: usize) -> usize {
        place(self.output_order, self, key_head, index) * self.value_dim
    }

    /// Columns of a row of the input.
    #[must_use]
    pub fn input_width(&self) -> usize {
        self.channels() + self.value_width() + 2 * self.value_heads
    }
}

fn place(order: HeadOrder, shape: &DeltaNetShape, key_head: usize, index: usize) -> usize {
    match order {
        HeadOrder::Grouped => key_head * shape.group() + index,
        HeadOrder::Tiled => index * shape.key_heads + key_head,
    }
}
