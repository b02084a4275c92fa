//! Downloads of images that requests name by URL: only from hosts that the operator allows, only over https, and only
//! from addresses of the public internet.

mod address;
mod fetcher;
mod target;
#[cfg(test)]
mod tests;

pub use fetcher::{FetchError, FetchLimits, Fetcher};
