//! The network side of "models by name": a client of the hub's HTTP API and a downloader.
//!
//! The `hf-hub` crate is not used: it has no parallel ranges that resume one by one, does not check SHA-256 and does
//! not wait as 429 and 5xx ask. So the HTTP is `ureq`'s, and what lies above it ours.

mod client;
mod download;
mod fetch;
mod job;
mod proxy;
mod record;
mod retry;
mod verify;

pub use client::{Client, ClientOptions};
pub use download::{DownloadOptions, Progress, download};
pub use job::FileOrder;
pub use retry::Trouble;
