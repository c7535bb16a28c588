//! Small functions over the bytes of a text.

use super::work_counter;

/// Returns whether `text` contains `part`.
pub(super) fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Returns the length of the run of bytes at `at` that are `inside`, at most `max`.
pub(super) fn run(text: &[u8], at: usize, max: usize, inside: impl Fn(u8) -> bool) -> usize {
    let rest = text.get(at..text.len().min(at + max)).unwrap_or_default();
    let length = rest.iter().take_while(|byte| inside(**byte)).count();
    work_counter::add(length);
    length
}

/// Returns whether the byte occurs in base64, in either alphabet.
pub(super) fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
}

/// Decodes base64 (RFC 4648); `None` if the text is not base64.
pub(super) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.strip_suffix(b"==").or(text.strip_suffix(b"=")).unwrap_or(text);
    if text.len() < 8 || text.len() % 4 == 1 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut held, mut count) = (0_u32, 0);
    for byte in text {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        held = held << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((held >> count & 0xff) as u8);
        }
    }
    Some(bytes)
}
