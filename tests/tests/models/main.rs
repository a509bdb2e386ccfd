//! Results of models: close to transformers, and the same bits however they are run.

mod beams;
mod densities;
mod devices;
mod goldens;
mod invariance;
mod split;
mod split_stages;
mod units;
