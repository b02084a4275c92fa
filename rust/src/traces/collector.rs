//! The HTTP client of the SDK's exporter, over `ureq`.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use ureq::Agent;

use crate::tls::tls_config;

const MAX_ANSWER_BYTES: u64 = 4 << 20;

/// Why the last request failed; the SDK passes on only that it failed.
#[derive(Clone, Debug, Default)]
pub struct LastFailure(Arc<Mutex<String>>);

impl LastFailure {
    pub fn take(&self) -> String {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn set(&self, reason: String) {
        *self.0.lock().unwrap() = reason;
    }
}

#[derive(Debug)]
pub struct Collector {
    agent: Agent,
    failure: LastFailure,
}

impl Collector {
    /// `timeout` applies to a whole request.
    pub fn new(timeout: Duration, failure: LastFailure) -> Result<Collector, String> {
        let config = Agent::config_builder()
            .timeout_global(Some(timeout))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .tls_config(tls_config()?)
            .build();
        Ok(Collector {
            agent: config.new_agent(),
            failure,
        })
    }

    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ureq::Error> {
        let response = self.agent.run(request.map(|body| body.to_vec()))?;
        let (head, mut body) = response.into_parts();
        let limited = body.with_config().limit(MAX_ANSWER_BYTES);
        Ok(Response::from_parts(
            head,
            Bytes::from(limited.read_to_vec()?),
        ))
    }
}

#[async_trait]
impl HttpClient for Collector {
    /// Blocks: the exporter has a thread of its own.
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let response = self.send(request).inspect_err(|error| {
            self.failure.set(error.to_string());
        })?;
        if !response.status().is_success() {
            self.failure
                .set(format!("it answered {}", response.status()));
        }
        Ok(response)
    }
}
