//! A client of the hub's HTTP API and a downloader.
//!
//! The `hf-hub` crate is not used because it cannot resume parallel ranges individually, does not check SHA-256 and
//! does not honour Retry-After. HTTP is provided by `ureq`.

mod cache_file;
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
pub use retry::FetchError;
