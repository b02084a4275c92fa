//! The C function of `include/octavo_http.h`.

use std::time::Duration;

use serde::Deserialize;
use std::collections::BTreeMap;
use ureq::Agent;

use crate::border::{Failure, OwnedText, Status, guarded, slice, text};

#[derive(Deserialize)]
struct Request {
    url: String,
    headers: BTreeMap<String, String>,
    timeout_ms: u64,
    most_bytes: u64,
    answer_header: String,
}

struct Answer {
    status: u16,
    body: Vec<u8>,
    header: String,
}

/// # Safety
/// `request` and `body` point at that many bytes, the others are writable, `error` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_http_post(
    request: *const u8,
    request_size: usize,
    body: *const u8,
    body_size: usize,
    http_status: *mut u16,
    out: *mut OwnedText,
    header: *mut OwnedText,
    error: *mut OwnedText,
) -> Status {
    unsafe {
        guarded(error, || {
            let request: Request =
                serde_json::from_str(text(request, request_size)?).map_err(Failure::refused)?;
            let answer = post(&request, slice(body, body_size)).map_err(Failure::refused)?;
            http_status.write(answer.status);
            out.write(OwnedText::from(answer.body));
            header.write(OwnedText::from(answer.header));
            Ok(())
        })
    }
}

fn post(request: &Request, body: &[u8]) -> Result<Answer, ureq::Error> {
    let config = Agent::config_builder()
        .timeout_global(Some(Duration::from_millis(request.timeout_ms)))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .build();
    let mut post = config.new_agent().post(&request.url);
    for (name, value) in &request.headers {
        post = post.header(name, value);
    }
    let mut response = post.send(body)?;
    let header = response.headers().get(&request.answer_header);
    let header = header
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_string();
    let status = response.status().as_u16();
    // One more: a body of exactly the limit counts as too large.
    let limited = response
        .body_mut()
        .with_config()
        .limit(request.most_bytes + 1);
    Ok(Answer {
        status,
        body: limited.read_to_vec()?,
        header,
    })
}
