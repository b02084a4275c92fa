//! The C functions of `include/octavo_hub.h`.

use std::ffi::c_void;
use std::time::Duration;

use serde_json::Value;

use crate::border::{Failure, OwnedText, Status, free, guarded, text};
use crate::hub::{
    Client, ClientOptions, DownloadOptions, FetchError, FileOrder, Progress, download,
};

/// Mirrors `octavo_hub_progress`.
#[repr(C)]
pub struct OnProgress {
    report: extern "C" fn(context: *mut c_void, done: u64, total: u64, waiting: bool) -> bool,
    retrying: extern "C" fn(context: *mut c_void, reason: *const u8, reason_size: usize),
    context: *mut c_void,
}

/// Mirrors `octavo_hub_retry`.
#[repr(C)]
pub struct OnRetry {
    report:
        extern "C" fn(context: *mut c_void, reason: *const u8, reason_size: usize, wait_ms: u64),
    context: *mut c_void,
}

/// # Safety
/// `options` points at `options_size` bytes, `out` is writable, `error` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_hub_new(
    options: *const u8,
    options_size: usize,
    out: *mut *mut Client,
    error: *mut OwnedText,
) -> Status {
    unsafe {
        guarded(error, || {
            let json = parse(text(options, options_size)?)?;
            let token = string(&json, "token")?;
            let client = Client::new(ClientOptions {
                endpoint: string(&json, "endpoint")?,
                token: (!token.is_empty()).then_some(token),
                user_agent: string(&json, "user_agent")?,
                timeout: Duration::from_millis(number(&json, "timeout_ms")?),
                first_retry: Duration::from_millis(number(&json, "retry_ms")?),
            });
            out.write(Box::into_raw(Box::new(client.map_err(Failure::refused)?)));
            Ok(())
        })
    }
}

/// # Safety
/// `client` came from `octavo_hub_new` and is freed once; it may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_hub_free(client: *mut Client) -> Status {
    unsafe { free(client) }
}

/// # Safety
/// `client` is alive, `path` points at `path_size` bytes, `on_retry.report` may be called with its context while this
/// runs, the others are writable, `error` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_hub_get(
    client: *const Client,
    path: *const u8,
    path_size: usize,
    on_retry: OnRetry,
    out: *mut OwnedText,
    http_status: *mut u16,
    error: *mut OwnedText,
) -> Status {
    unsafe {
        guarded(error, || {
            let mut tell = |reason: &str, wait: Duration| {
                let wait_ms = wait.as_millis() as u64;
                (on_retry.report)(on_retry.context, reason.as_ptr(), reason.len(), wait_ms);
            };
            let answer = (*client).text(text(path, path_size)?, &mut tell);
            let body = answer.map_err(|error| failure(error, http_status))?;
            out.write(OwnedText::from(body));
            Ok(())
        })
    }
}

/// # Safety
/// `client` is alive, `order` points at `order_size` bytes, `progress.report` and `progress.retrying` may be called
/// with its context while this runs, `http_status` is writable, `error` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_hub_download(
    client: *const Client,
    order: *const u8,
    order_size: usize,
    progress: OnProgress,
    http_status: *mut u16,
    error: *mut OwnedText,
) -> Status {
    unsafe {
        guarded(error, || {
            let json = parse(text(order, order_size)?)?;
            let options = DownloadOptions {
                connections: number(&json, "connections")? as usize,
                chunk_bytes: number(&json, "chunk_bytes")?,
            };
            let files = json.get("files").and_then(Value::as_array);
            let files = files.ok_or_else(|| Failure::refused("no files"))?;
            let orders: Result<Vec<_>, _> = files.iter().map(file_order).collect();
            let mut tell = |now: Progress| {
                if let Some(reason) = &now.trouble {
                    (progress.retrying)(progress.context, reason.as_ptr(), reason.len());
                }
                (progress.report)(progress.context, now.done, now.total, now.waiting)
            };
            download(&*client, orders?, &options, &mut tell)
                .map_err(|error| failure(error, http_status))
        })
    }
}

fn file_order(json: &Value) -> Result<FileOrder, Failure> {
    Ok(FileOrder {
        name: string(json, "name")?,
        url_path: string(json, "url_path")?,
        size: number(json, "size")?,
        hash: string(json, "hash")?,
        blob: string(json, "blob")?.into(),
        lock: string(json, "lock")?.into(),
    })
}

/// # Safety
/// `http_status` is writable.
unsafe fn failure(error: FetchError, http_status: *mut u16) -> Failure {
    match error {
        FetchError::Stopped => Failure {
            status: Status::Stopped,
            message: "stopped".to_string(),
        },
        FetchError::Retry { reason, .. } | FetchError::Unreachable { reason } => {
            Failure::refused(reason)
        }
        FetchError::Final { status, reason } => {
            unsafe { http_status.write(status) };
            Failure::refused(reason)
        }
    }
}

fn parse(json: &str) -> Result<Value, Failure> {
    serde_json::from_str(json).map_err(Failure::refused)
}

fn string(json: &Value, name: &str) -> Result<String, Failure> {
    let value = json.get(name).and_then(Value::as_str);
    let value = value.ok_or_else(|| Failure::refused(format!("{name} must be a string")))?;
    Ok(value.to_string())
}

fn number(json: &Value, name: &str) -> Result<u64, Failure> {
    let value = json.get(name).and_then(Value::as_u64);
    value.ok_or_else(|| Failure::refused(format!("{name} must be a number")))
}
