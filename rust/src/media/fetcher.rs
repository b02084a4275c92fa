//! Fetches one file: the host is resolved once, and the connection goes to an address that was checked.

use std::fmt::Debug;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Error};

use super::address::is_global;
use super::target;
use crate::tls::tls_config;

const POLL: Duration = Duration::from_millis(20);
/// Downloads at once, with those that were stopped and have not ended yet.
const MOST_RUNNING: usize = 32;
/// As many as ureq's resolver returns.
const MOST_ADDRESSES: usize = 16;

#[derive(Clone, Copy)]
pub struct FetchLimits {
    pub bytes: u64,
    pub time: Duration,
}

#[derive(Debug, PartialEq, Eq)]
pub enum FetchError {
    /// The reason, to be read after the URL.
    Refused(String),
    /// Too many downloads run.
    Busy,
    Stopped,
}

fn refused<T>(reason: impl Into<String>) -> Result<T, FetchError> {
    Err(FetchError::Refused(reason.into()))
}

/// Resolves a host name.
pub trait Lookup: Debug + Send + Sync + 'static {
    fn addresses(&self, host: &str) -> io::Result<Vec<SocketAddr>>;
}

#[derive(Debug)]
struct SystemLookup;

impl Lookup for SystemLookup {
    fn addresses(&self, host: &str) -> io::Result<Vec<SocketAddr>> {
        Ok((host, 443).to_socket_addrs()?.collect())
    }
}

/// Refuses a host unless all of its addresses are global: a name that also has a local one is an attack or a mistake.
#[derive(Debug, Clone)]
pub struct GlobalResolver(Arc<dyn Lookup>);

impl Resolver for GlobalResolver {
    fn resolve(&self, uri: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let found = self.0.addresses(uri.host().unwrap_or_default())?;
        if found.is_empty() {
            return Err(Error::HostNotFound);
        }
        if !found.iter().all(|address| is_global(address.ip())) {
            return Err(
                io::Error::other("its host has an address outside the public internet").into(),
            );
        }
        let mut result = self.empty();
        for address in found.into_iter().take(MOST_ADDRESSES) {
            result.push(address);
        }
        Ok(result)
    }
}

type MakeAgent = Box<dyn Fn(Config, GlobalResolver) -> Agent + Send + Sync>;

pub struct Fetcher {
    hosts: Vec<String>,
    limits: FetchLimits,
    config: Config,
    resolver: GlobalResolver,
    make_agent: MakeAgent,
    running: Arc<AtomicUsize>,
}

/// One of the running downloads.
struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Fetcher {
    /// Fails with a message that names a host which cannot be allowed.
    pub fn new(hosts: &[String], limits: FetchLimits) -> Result<Fetcher, String> {
        Fetcher::with_parts(hosts, limits, Arc::new(SystemLookup), |config, resolver| {
            Agent::with_parts(config, DefaultConnector::default(), resolver)
        })
    }

    pub fn with_parts(
        hosts: &[String],
        limits: FetchLimits,
        lookup: Arc<dyn Lookup>,
        make_agent: impl Fn(Config, GlobalResolver) -> Agent + Send + Sync + 'static,
    ) -> Result<Fetcher, String> {
        let hosts: Result<Vec<_>, _> = hosts
            .iter()
            .map(|host| target::checked_host(host).map_err(|reason| format!("{host:?}: {reason}")))
            .collect();
        Ok(Fetcher {
            hosts: hosts?,
            limits,
            config: Agent::config_builder()
                .https_only(true)
                .http_status_as_error(false)
                .max_redirects(0)
                .max_redirects_will_error(false)
                // A proxy would resolve the name itself.
                .proxy(None)
                .timeout_global(Some(limits.time))
                .user_agent("octavo")
                .accept("image/png, image/jpeg, image/webp, image/gif")
                .tls_config(tls_config()?)
                .build(),
            resolver: GlobalResolver(lookup),
            make_agent: Box::new(make_agent),
            running: Arc::default(),
        })
    }

    /// The bytes of the file. Ends soon after `stop` is set. Any thread.
    pub fn fetch(&self, url: &str, stop: Option<&AtomicBool>) -> Result<Vec<u8>, FetchError> {
        let uri = target::parse(url, &self.hosts).map_err(FetchError::Refused)?;
        let Some(running) = self.start() else {
            return Err(FetchError::Busy);
        };
        let agent = (self.make_agent)(self.config.clone(), self.resolver.clone());
        let (sender, receiver) = sync_channel(1);
        let (its_agent, limits) = (agent.clone(), self.limits);
        // On a thread of its own: neither looking a name up nor waiting for a server can be interrupted.
        std::thread::Builder::new()
            .name("octavo-fetch".into())
            .spawn(move || {
                let _running = running;
                let result = catch_unwind(AssertUnwindSafe(|| get(&its_agent, uri, limits)));
                let _ = sender.send(result.unwrap_or_else(|_| refused("could not be read")));
            })
            .or_else(|error| refused(format!("cannot start a thread: {error}")))?;
        let end = Instant::now() + limits.time + POLL;
        loop {
            match receiver.recv_timeout(POLL) {
                Ok(result) => return result,
                Err(RecvTimeoutError::Disconnected) => return refused("could not be read"),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let stopped = stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
            if !stopped && Instant::now() < end {
                continue;
            }
            agent.shutdown();
            return if stopped {
                Err(FetchError::Stopped)
            } else {
                refused(too_slow(limits))
            };
        }
    }

    fn start(&self) -> Option<Running> {
        let running = Running(self.running.clone());
        (self.running.fetch_add(1, Ordering::Relaxed) < MOST_RUNNING).then_some(running)
    }
}

fn too_slow(limits: FetchLimits) -> String {
    format!("was not complete after {} s", limits.time.as_secs_f32())
}

fn too_large(limits: FetchLimits) -> String {
    format!("is larger than {} bytes", limits.bytes)
}

fn get(agent: &Agent, uri: Uri, limits: FetchLimits) -> Result<Vec<u8>, FetchError> {
    let explain = |error: Error| match error {
        Error::Timeout(_) => too_slow(limits),
        Error::BodyExceedsLimit(_) => too_large(limits),
        error => format!("cannot be fetched: {error}"),
    };
    let mut response = agent
        .get(uri)
        .call()
        .map_err(|error| FetchError::Refused(explain(error)))?;
    let status = response.status();
    if status.is_redirection() {
        return refused(format!(
            "its host answered {}; redirects are not followed, so give the final URL",
            status.as_u16()
        ));
    }
    if status.as_u16() != 200 {
        return refused(format!("its host answered {}", status.as_u16()));
    }
    let body = response.body_mut();
    if body
        .content_length()
        .is_some_and(|size| size > limits.bytes)
    {
        return refused(too_large(limits));
    }
    // One more: a body of exactly the limit counts as too large.
    body.with_config()
        .limit(limits.bytes + 1)
        .read_to_vec()
        .map_err(|error| FetchError::Refused(explain(error)))
}
