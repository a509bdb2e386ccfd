//! Making checkpoints: the texts and headers, without doing any IO.
