//! The headers `traceparent` and `tracestate` of W3C Trace Context.
//!
//! The SDK's own reader accepts ids that are too short, so this one checks lengths and digits.

use std::str::FromStr;

use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

const SIZE: usize = 55; // of version 00: "00-" 32 digits "-" 16 digits "-" 2 digits

/// The caller's span. None if `traceparent` is missing or malformed: then the request starts a trace of its own. A
/// malformed `tracestate` alone is ignored.
pub fn parent(traceparent: &str, tracestate: &str) -> Option<SpanContext> {
    let header = traceparent.trim_matches([' ', '\t']);
    let fields = header.get(..SIZE)?;
    let version = hex(&fields[..2])?;
    // A later version may append fields.
    let rest = &header[SIZE..];
    let is_whole = rest.is_empty() || (version != 0 && rest.starts_with('-'));
    let bytes = fields.as_bytes();
    if version == 0xff || !is_whole || [2, 35, 52].iter().any(|&dash| bytes[dash] != b'-') {
        return None;
    }
    let trace_id = TraceId::from(hex(&fields[3..35])?);
    let span_id = SpanId::from(hex(&fields[36..52])? as u64);
    let flags = TraceFlags::new(hex(&fields[53..])? as u8) & TraceFlags::SAMPLED;
    let state = TraceState::from_str(tracestate).unwrap_or_default();
    let context = SpanContext::new(trace_id, span_id, flags, true, state);
    context.is_valid().then_some(context)
}

/// Lower case only, as the standard demands.
fn hex(digits: &str) -> Option<u128> {
    let valid = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
    if !digits.bytes().all(valid) {
        return None;
    }
    u128::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_parent_has_its_ids_flags_and_state() {
        let context = parent(GOOD, "a=1,b=2").unwrap();
        assert_eq!(
            context.trace_id().to_string(),
            "0af7651916cd43dd8448eb211c80319c"
        );
        assert_eq!(context.span_id().to_string(), "b7ad6b7169203331");
        assert!(context.is_sampled() && context.is_remote());
        assert_eq!(context.trace_state().header(), "a=1,b=2");
        let quiet = parent(&GOOD.replace("-01", "-00"), "").unwrap();
        assert!(!quiet.is_sampled());
    }

    #[test]
    fn malformed_headers_are_ignored() {
        let trace = "0af7651916cd43dd8448eb211c80319c";
        for header in [
            "".to_string(),
            "00".to_string(),
            GOOD.to_uppercase(),
            format!("{GOOD}-00"), // version 00 has four fields
            format!("{GOOD}0"),
            GOOD[..54].to_string(),
            GOOD.replacen("00", "ff", 1), // a version that does not exist
            GOOD.replace('-', "_"),
            GOOD.replace(trace, &"0".repeat(32)),
            GOOD.replace("b7ad6b7169203331", &"0".repeat(16)),
            GOOD.replace(trace, &format!("+{}", &trace[1..])),
            GOOD.replace(trace, &trace[2..]),
            GOOD.replace("0af", "0äf"),
        ] {
            assert_eq!(parent(&header, "a=1"), None, "{header}");
        }
    }

    #[test]
    fn a_later_version_may_append_fields() {
        let later = GOOD.replacen("00", "cc", 1);
        assert!(parent(&later, "").is_some());
        assert!(parent(&format!("{later}-what-comes"), "").is_some());
        assert!(parent(&format!("{later}x"), "").is_none());
    }

    #[test]
    fn a_malformed_state_leaves_the_parent() {
        let context = parent(GOOD, "no pair").unwrap();
        assert_eq!(context.trace_state().header(), "");
    }
}
