//! Hostile URLs and hosts, without a network: names are looked up in a table, and connections get a canned answer.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport,
};
use ureq::{Agent, Error, Timeout};

use super::address::is_global;
use super::fetcher::{FetchError, FetchLimits, Fetcher, Lookup};
use super::target::checked_host;

const GLOBAL: &str = "93.184.216.34";
const HOST: &str = "images.example.com";

/// Answers the n-th lookup with the n-th list, and with the last one afterwards.
#[derive(Debug)]
struct Table {
    answers: Vec<Vec<IpAddr>>,
    asked: Mutex<Vec<String>>,
}

impl Lookup for Table {
    fn addresses(&self, host: &str) -> io::Result<Vec<SocketAddr>> {
        let mut asked = self.asked.lock().unwrap();
        asked.push(host.to_string());
        let place = (asked.len() - 1).min(self.answers.len() - 1);
        let found = self.answers[place].iter();
        Ok(found
            .map(|address| SocketAddr::new(*address, 443))
            .collect())
    }
}

/// What the connections were made to.
type Connections = Arc<Mutex<Vec<(String, Vec<SocketAddr>)>>>;

/// Answers each connection with the same bytes. Without any, the server never answers.
#[derive(Debug, Clone)]
struct Canned {
    answer: Vec<u8>,
    connections: Connections,
}

#[derive(Debug)]
struct CannedTransport {
    rest: Vec<u8>,
    silent: bool,
    buffers: LazyBuffers,
}

impl Connector<()> for Canned {
    type Out = CannedTransport;

    fn connect(
        &self,
        details: &ConnectionDetails,
        _: Option<()>,
    ) -> Result<Option<CannedTransport>, Error> {
        self.connections.lock().unwrap().push((
            details.uri.to_string(),
            details.addrs.iter().copied().collect(),
        ));
        Ok(Some(CannedTransport {
            rest: self.answer.clone(),
            silent: self.answer.is_empty(),
            buffers: LazyBuffers::new(64 << 10, 64 << 10),
        }))
    }
}

impl Transport for CannedTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, _: usize, _: NextTimeout) -> Result<(), Error> {
        Ok(())
    }

    fn await_input(&mut self, _: NextTimeout) -> Result<bool, Error> {
        if self.silent {
            std::thread::sleep(Duration::from_secs(3));
            return Err(Error::Timeout(Timeout::Global));
        }
        let space = self.buffers.input_append_buf();
        let count = space.len().min(self.rest.len());
        space[..count].copy_from_slice(&self.rest[..count]);
        self.rest.drain(..count);
        self.buffers.input_appended(count);
        Ok(count > 0)
    }

    fn is_open(&mut self) -> bool {
        false
    }

    fn is_tls(&self) -> bool {
        true
    }
}

struct Kit {
    fetcher: Fetcher,
    table: Arc<Table>,
    connections: Connections,
}

impl Kit {
    fn new(addresses: &[&[&str]], answer: &[u8]) -> Kit {
        let parse = |list: &&[&str]| list.iter().map(|one| one.parse().unwrap()).collect();
        let table = Arc::new(Table {
            answers: addresses.iter().map(parse).collect(),
            asked: Mutex::default(),
        });
        let connections = Connections::default();
        let canned = Canned {
            answer: answer.to_vec(),
            connections: connections.clone(),
        };
        let limits = FetchLimits {
            bytes: 1000,
            time: Duration::from_millis(400),
        };
        let hosts = [HOST.to_string(), "localhost".to_string()];
        let fetcher =
            Fetcher::with_parts(&hosts, limits, table.clone(), move |config, resolver| {
                Agent::with_parts(config, canned.clone(), resolver)
            });
        Kit {
            fetcher: fetcher.unwrap(),
            table,
            connections,
        }
    }

    fn reason(&self, url: &str) -> String {
        match self.fetcher.fetch(url, None) {
            Err(FetchError::Refused(reason)) => reason,
            other => panic!("{url}: {other:?}"),
        }
    }

    fn connections(&self) -> usize {
        self.connections.lock().unwrap().len()
    }
}

fn answer(head: &str, body: &[u8]) -> Vec<u8> {
    let mut all = format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n").into_bytes();
    all.extend_from_slice(body);
    all
}

fn url(path: &str) -> String {
    format!("https://{HOST}{path}")
}

#[test]
fn an_allowed_url_is_fetched_from_the_address_that_was_checked() {
    let kit = Kit::new(&[&[GLOBAL]], &answer("200 OK", b"pixels"));
    for form in [
        url("/a.png"),
        url("/a.png#part"),
        "HTTPS://Images.Example.COM:443/a.png".to_string(),
    ] {
        assert_eq!(kit.fetcher.fetch(&form, None).unwrap(), b"pixels", "{form}");
    }
    let connections = kit.connections.lock().unwrap();
    assert_eq!(connections.len(), 3);
    for (uri, addresses) in connections.iter() {
        assert_eq!(uri, &url("/a.png"));
        assert_eq!(addresses, &[SocketAddr::new(GLOBAL.parse().unwrap(), 443)]);
    }
    assert_eq!(*kit.table.asked.lock().unwrap(), [HOST; 3]);
}

#[test]
fn a_path_may_be_missing() {
    let kit = Kit::new(&[&[GLOBAL]], &answer("200 OK", b"x"));
    kit.fetcher.fetch(&url(""), None).unwrap();
    kit.fetcher.fetch(&url("?a=b"), None).unwrap();
    let connections = kit.connections.lock().unwrap();
    assert_eq!(connections[0].0, url("/"));
    assert_eq!(connections[1].0, url("/?a=b"));
}

/// None of these may reach a lookup or a connection.
#[test]
fn hostile_urls_are_refused_before_anything_is_looked_up() {
    let kit = Kit::new(&[&[GLOBAL]], &answer("200 OK", b"x"));
    let long = url(&format!("/{}", "a".repeat(9000)));
    let hostile = [
        "",
        "https",
        "https:",
        "https:/",
        "https://",
        "https:///images.example.com/a",
        "http://images.example.com/a",
        "ftp://images.example.com/a",
        "file:///etc/passwd",
        "file://images.example.com/etc/passwd",
        "gopher://images.example.com/",
        "//images.example.com/a",
        "images.example.com/a",
        "https:images.example.com/a",
        "https:\\\\images.example.com\\a",
        "https://images.example.com\\@evil.example/a",
        "https://evil.example\\.images.example.com/a",
        "https://evil.example/a",
        "https://evil.example/images.example.com",
        "https://evil.example#images.example.com",
        "https://evil.example?images.example.com",
        "https://images.example.com.evil.example/a",
        "https://evilimages.example.com/a",
        "https://sub.images.example.com/a",
        "https://images.example.com./a",
        "https://images.example.com../a",
        "https://.images.example.com/a",
        "https://user@images.example.com/a",
        "https://user:word@images.example.com/a",
        "https://images.example.com@evil.example/a",
        "https://images.example.com:443@evil.example/a",
        "https://images.example.com:80/a",
        "https://images.example.com:8443/a",
        "https://images.example.com:/a",
        "https://images.example.com:0443/a",
        "https://images.example.com:443:443/a",
        "https://images.example.com:-1/a",
        "https://images%2eexample.com/a",
        "https://images.example.com%00.evil.example/a",
        "https://images.example.com%2f@evil.example/a",
        "https://im\u{ff41}ges.example.com/a",
        "https://images\u{3002}example.com/a",
        "https://images.example.com/a b",
        "https://images.example.com/a\r\nHost: evil.example",
        "https://images.example.com/a\nx",
        "https://images.example.com\t/a",
        " https://images.example.com/a",
        "https://images.example.com/\u{0}",
        "https://127.0.0.1/a",
        "https://2130706433/a",
        "https://0x7f000001/a",
        "https://0177.0.0.1/a",
        "https://127.1/a",
        "https://0/a",
        "https://[::1]/a",
        "https://[::1]:443/a",
        "https://[::ffff:127.0.0.1]/a",
        "https://[fe80::1%25eth0]/a",
        "https://169.254.169.254/latest/meta-data/",
        "https://metadata.google.internal/",
        &long,
    ];
    assert!(hostile.len() > 40);
    for one in hostile {
        assert!(!kit.reason(one).is_empty());
    }
    assert!(kit.table.asked.lock().unwrap().is_empty());
    assert_eq!(kit.connections(), 0);
}

#[test]
fn the_reason_says_what_to_change() {
    let kit = Kit::new(&[&[GLOBAL]], &answer("200 OK", b"x"));
    for (url, words) in [
        ("http://images.example.com/a", "https://"),
        ("https://images.example.com/a\\b", "backslash"),
        ("https://images.example.com/\u{e9}.png", "percent-encode"),
        ("https://me@images.example.com/a", "user name"),
        ("https://images.example.com:8443/a", "port 443"),
        ("https://[::1]/a", "by its name"),
        ("https://other.example/a", "--allowed-media-domains"),
    ] {
        let reason = kit.reason(url);
        assert!(reason.contains(words), "{url}: {reason}");
    }
}

#[test]
fn a_host_with_an_address_that_is_not_global_is_refused() {
    for local in [
        "127.0.0.1",
        "10.1.2.3",
        "169.254.169.254",
        "::1",
        "fe80::1",
        "fd00::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
    ] {
        let first: &[&str] = &[local, GLOBAL];
        let last: &[&str] = &[GLOBAL, local];
        for addresses in [&[local] as &[&str], first, last] {
            let kit = Kit::new(&[addresses], &answer("200 OK", b"x"));
            let reason = kit.reason(&url("/a"));
            assert!(reason.contains("public internet"), "{local}: {reason}");
            assert_eq!(kit.connections(), 0);
        }
    }
}

#[test]
fn an_allowed_name_does_not_make_its_address_allowed() {
    let kit = Kit::new(&[&["127.0.0.1"]], &answer("200 OK", b"x"));
    assert!(kit.reason("https://localhost/").contains("public internet"));
}

#[test]
fn a_name_that_changes_its_address_is_looked_up_once() {
    let kit = Kit::new(&[&[GLOBAL], &["127.0.0.1"]], &answer("200 OK", b"x"));
    kit.fetcher.fetch(&url("/a"), None).unwrap();
    assert_eq!(kit.table.asked.lock().unwrap().len(), 1);
    let connections = kit.connections.lock().unwrap();
    assert_eq!(
        connections[0].1,
        [SocketAddr::new(GLOBAL.parse().unwrap(), 443)]
    );
    drop(connections);
    assert!(kit.reason(&url("/a")).contains("public internet"));
}

#[test]
fn a_host_without_addresses_is_refused() {
    let kit = Kit::new(&[&[]], &answer("200 OK", b"x"));
    assert!(kit.reason(&url("/a")).contains("cannot be fetched"));
}

#[test]
fn redirects_are_not_followed() {
    for location in [
        "https://127.0.0.1/",
        "https://[::1]/",
        "http://images.example.com/b",
        "https://images.example.com/b",
        "file:///etc/passwd",
        "//evil.example/",
    ] {
        for status in [
            "301 Moved",
            "302 Found",
            "303 See",
            "307 Temporary",
            "308 Permanent",
        ] {
            let head = format!("{status}\r\nLocation: {location}\r\nContent-Length: 0");
            let kit = Kit::new(&[&[GLOBAL]], &answer(&head, b""));
            assert!(
                kit.reason(&url("/a"))
                    .contains("redirects are not followed")
            );
            assert_eq!(kit.connections(), 1);
        }
    }
}

#[test]
fn only_the_status_200_has_a_file() {
    for status in ["204 Empty", "206 Partial", "404 Missing", "500 Broken"] {
        let head = format!("{status}\r\nContent-Length: 0");
        let kit = Kit::new(&[&[GLOBAL]], &answer(&head, b""));
        assert!(kit.reason(&url("/a")).contains(&status[..3]));
    }
}

#[test]
fn the_size_is_limited_whatever_the_header_says() {
    let fits = Kit::new(&[&[GLOBAL]], &answer("200 OK", &[1; 1000]));
    assert_eq!(fits.fetcher.fetch(&url("/a"), None).unwrap().len(), 1000);
    let chunk = format!("{:x}\r\n{}\r\n0\r\n\r\n", 1001, "a".repeat(1001));
    for (head, body) in [
        ("200 OK", vec![1; 1001]),
        ("200 OK\r\nContent-Length: 1001", vec![1; 1001]),
        ("200 OK\r\nContent-Length: 99999999999", vec![1; 10]),
        ("200 OK\r\nTransfer-Encoding: chunked", chunk.into_bytes()),
    ] {
        let kit = Kit::new(&[&[GLOBAL]], &answer(head, &body));
        assert!(
            kit.reason(&url("/a")).contains("larger than 1000 bytes"),
            "{head}"
        );
    }
}

#[test]
fn answers_that_are_no_http_are_refused() {
    for bytes in [
        &b"SSH-2.0-OpenSSH\r\n"[..],
        b"\x16\x03\x01",
        b"HTTP/1.1 200 OK\r\nbroken",
    ] {
        let kit = Kit::new(&[&[GLOBAL]], bytes);
        assert!(!kit.reason(&url("/a")).is_empty());
    }
}

#[test]
fn a_server_that_does_not_answer_is_given_up() {
    let kit = Kit::new(&[&[GLOBAL]], b"");
    let start = Instant::now();
    assert!(kit.reason(&url("/a")).contains("0.4 s"));
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[test]
fn a_stop_ends_the_download() {
    let kit = Kit::new(&[&[GLOBAL]], b"");
    let stop = AtomicBool::new(false);
    let start = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(
            kit.fetcher.fetch(&url("/a"), Some(&stop)),
            Err(FetchError::Stopped)
        );
    });
    assert!(start.elapsed() < Duration::from_millis(350));
}

#[test]
fn downloads_at_once_have_a_limit() {
    let kit = Kit::new(&[&[GLOBAL]], b"");
    let stop = AtomicBool::new(false);
    let refused = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..40 {
            scope.spawn(|| {
                if kit.fetcher.fetch(&url("/a"), Some(&stop)) == Err(FetchError::Busy) {
                    refused.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    // The others wait for a server that does not answer.
    assert_eq!(refused.into_inner(), 8);
}

#[test]
fn allowed_hosts_are_names() {
    assert_eq!(checked_host("Images.Example.com").unwrap(), HOST);
    assert_eq!(
        checked_host("xn--bcher-kva.example").unwrap(),
        "xn--bcher-kva.example"
    );
    for wrong in [
        "",
        ".",
        "a..b",
        "example.com.",
        "-a.example",
        "a-.example",
        "*.example.com",
        "https://example.com",
        "example.com/a",
        "example.com:443",
        "user@example.com",
        "b\u{fc}cher.example",
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "1.2.3.0x4",
        "[::1]",
        "::1",
        "a b",
        "a_b.example",
    ] {
        assert!(checked_host(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn addresses_that_are_not_of_the_public_internet() {
    for local in [
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.255",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.8",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",
        "::ffff:93.184.216.34",
        "::ffff:127.0.0.1",
        "64:ff9b::5db8:d822",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:2::1",
        "2001:1ff:ffff::1",
        "2001:db8::1",
        "2002:7f00:1::1",
        "3fff:fff::1",
        "5f00::1",
        "fc00::1",
        "fdff::1",
        "fe80::1",
        "febf::1",
        "fec0::1",
        "ff02::1",
    ] {
        assert!(!is_global(local.parse().unwrap()), "{local}");
    }
    for global in [
        GLOBAL,
        "1.1.1.1",
        "100.63.255.255",
        "100.128.0.1",
        "172.15.255.255",
        "172.32.0.1",
        "192.0.1.1",
        "198.17.255.255",
        "198.20.0.1",
        "223.255.255.255",
        "2001:200::1",
        "2001:4860:4860::8888",
        "2606:4700:4700::1111",
        "2a00:1450::1",
        "3fff:1000::1",
    ] {
        assert!(is_global(global.parse().unwrap()), "{global}");
    }
}
