//! The `traceparent` header of W3C Trace Context (<https://www.w3.org/TR/trace-context/>).

use std::fmt;

use crate::random;

/// The defined flag bits, which may be propagated: sampled (level 1) and random trace id (level 2).
/// All others must be zeroed (section 3.2.2.5).
const KNOWN_FLAGS: u8 = 0b11;
/// Both defined bits: everything is logged, and ids created here are random.
const NEW_FLAGS: u8 = 0b11;

/// A position in a distributed trace. Its `Display` form is the value of a `traceparent` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// The id of the trace, never all zero.
    pub trace_id: [u8; 16],
    /// The id of this span, never all zero.
    pub span_id: [u8; 8],
    /// The trace flags; bit 0 is "sampled".
    pub flags: u8,
    /// The id of the parent span, if known. It is not part of the header.
    pub parent_id: Option<[u8; 8]>,
}

impl TraceContext {
    /// Parses a `traceparent` header strictly (section 3.2): lower-case hexadecimal digits, no
    /// all-zero ids, and not version `ff`. A version above 00 is parsed as far as version 00
    /// defines the format. `None` means that the header must be ignored and a new trace started.
    pub fn parse(header: &str) -> Option<Self> {
        let bytes = header.as_bytes();
        let (head, rest) = bytes.split_at_checked(55)?;
        let [version] = hex(&head[..2])?;
        let well_ended = rest.is_empty() || (version > 0 && rest[0] == b'-');
        if version == 0xff || !well_ended || [head[2], head[35], head[52]] != [b'-'; 3] {
            return None;
        }
        let (trace_id, span_id) = (hex(&head[3..35])?, hex(&head[36..52])?);
        let [flags] = hex(&head[53..55])?;
        (trace_id != [0; 16] && span_id != [0; 8]).then_some(Self { trace_id, span_id, flags, parent_id: None })
    }

    /// The root span of a new trace.
    pub fn new_root() -> Self {
        Self { trace_id: nonzero(), span_id: nonzero(), flags: NEW_FLAGS, parent_id: None }
    }

    /// A new child span in the same trace.
    pub fn child(&self) -> Self {
        Self {
            trace_id: self.trace_id,
            span_id: nonzero(),
            flags: self.flags & KNOWN_FLAGS,
            parent_id: Some(self.span_id),
        }
    }

    /// The trace id as 32 lower-case hexadecimal digits.
    pub fn trace_id_hex(&self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.trace_id))
    }

    /// The span id as 16 lower-case hexadecimal digits.
    pub fn span_id_hex(&self) -> String {
        format!("{:016x}", u64::from_be_bytes(self.span_id))
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace_id_hex(), self.span_id_hex(), self.flags)
    }
}

/// Decodes exactly `2 * N` lower-case hexadecimal digits to `N` bytes.
fn hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    let (pairs, rest) = digits.as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = value(*high)? << 4 | value(*low)?;
    }
    Some(bytes)
}

/// Random bytes that are not all zero; the standard reserves all zeros for "invalid".
fn nonzero<const N: usize>() -> [u8; N] {
    loop {
        let bytes = random::bytes();
        if bytes != [0; N] {
            return bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "b7ad6b7169203331";

    #[test]
    fn valid_headers_are_read() {
        for (header, flags) in [
            (format!("00-{TRACE}-{SPAN}-01"), 1),
            (format!("00-{TRACE}-{SPAN}-00"), 0),
            (format!("00-{TRACE}-{SPAN}-ff"), 0xff),
            (format!("01-{TRACE}-{SPAN}-01"), 1),
            (format!("cc-{TRACE}-{SPAN}-01-what-the-future-will-be-like"), 1),
            (format!("fe-{TRACE}-{SPAN}-01-"), 1),
        ] {
            let context = TraceContext::parse(&header).unwrap_or_else(|| panic!("{header} is valid"));
            assert_eq!((context.trace_id_hex().as_str(), context.span_id_hex().as_str()), (TRACE, SPAN), "{header}");
            assert_eq!(context.flags, flags, "{header}");
        }
    }

    #[test]
    fn invalid_headers_are_refused() {
        for header in [
            String::new(),
            "00".to_owned(),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("00-{TRACE}-{SPAN}-01-"),
            format!("01-{TRACE}-{SPAN}-01.more"),
            format!("00-{TRACE}-{SPAN}-1"),
            format!("00-{TRACE}-{SPAN}"),
            format!("0-{TRACE}-{SPAN}-01"),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("0X-{TRACE}-{SPAN}-01"),
            format!("00-{TRACE}-{SPAN}-0G"),
            format!("00_{TRACE}_{SPAN}_01"),
            format!("00-{}-{SPAN}-01", "0".repeat(32)),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!(" 00-{TRACE}-{SPAN}-01"),
            format!("00-{TRACE}-{SPAN}-01 "),
            "é".repeat(40),
        ] {
            assert_eq!(TraceContext::parse(&header), None, "{header}");
        }
    }

    #[test]
    fn the_displayed_form_is_read_back() {
        let context = TraceContext::new_root();
        assert_eq!(TraceContext::parse(&context.to_string()), Some(context));
    }

    #[test]
    fn a_child_keeps_the_trace_and_known_flags_and_has_a_span_of_its_own() {
        let parent = TraceContext::parse(&format!("00-{TRACE}-{SPAN}-fd")).expect("valid");
        let child = parent.child();
        assert_eq!(child.trace_id, parent.trace_id);
        assert_ne!(child.span_id, parent.span_id);
        assert_eq!((child.flags, child.parent_id), (1, Some(parent.span_id)));
    }
}
