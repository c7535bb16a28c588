//! Reads what is between the name of a secret and its value, and the value.

use super::TextForm;
use super::byte_text::backslashes_at_end;
use super::token_shape::{ByteClass, ScanMemory};
use std::ops::Range;

/// Maximum length of a value, in bytes.
const MAX_VALUE_BYTES: usize = 4096;

/// Maximum length of a whole value, which may contain any sign, in bytes.
pub(super) const MAX_QUOTED_BYTES: usize = 256;

/// A position in a text between the name of a secret and the end of its value.
pub(super) struct NameCursor<'a> {
    pub(super) text: &'a [u8],
    pub(super) at: usize,
    pub(super) form: TextForm,
}

impl NameCursor<'_> {
    pub(super) fn byte(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or_default()
    }

    /// Returns the quote after the backslashes at an offset from here, and the length of both.
    pub(super) fn next_quote(&self, ahead: usize) -> Option<(u8, usize)> {
        const MOST: usize = 8;
        let is_slash = |at: &usize| self.byte(*at) == b'\\';
        let slashes = (ahead..ahead + MOST).take_while(is_slash).count();
        let quote = self.byte(ahead + slashes);
        matches!(quote, b'"' | b'\'' | b'`').then_some((quote, slashes + 1))
    }

    /// Skips a quote and the backslashes before it, or three such quotes: `"""`.
    pub(super) fn quote(&mut self) -> bool {
        let Some((quote, length)) = self.next_quote(0) else { return false };
        let is_same = |ahead: usize| self.next_quote(ahead) == Some((quote, length));
        let is_triple = is_same(length) && is_same(2 * length);
        self.at += if is_triple { 3 * length } else { length };
        true
    }

    /// If the name and its value are the values of two fields, skips the text between them, up to
    /// the sign before the value: `"name": "PASSWORD", "value": "..."`, `<add key="Password"
    /// value="..."/>`. Other fields may come between them. The name may be a label: `"element":
    /// "Password textbox", "text": "..."`.
    pub(super) fn value_of_pair(&mut self, name: &[u8], quoted: bool) -> bool {
        const MAX_OTHERS: usize = 3;
        const MAX_LABEL_BYTES: usize = 24;
        // What a label says after the name of a field for text.
        const LABELS: [&[u8]; 5] =
            [b" textbox", b" text box", b" field", b" text field", b" input"];
        let begun = self.at;
        let is_of_label = |ahead: &usize| {
            let byte = self.byte(*ahead);
            byte.is_ascii_lowercase() || byte == b' '
        };
        let label = (0..MAX_LABEL_BYTES).take_while(is_of_label).count();
        let words = self.text.get(self.at..self.at + label).unwrap_or_default();
        let is_label =
            !quoted && LABELS.contains(&words) && matches!(self.byte(label), b'"' | b'\\');
        self.at += if is_label { label } else { 0 };
        // The name of an object with the value: `"password": {"value": "..."}`. A token in a tree
        // of code has a value too.
        if quoted && self.skip(b":") {
            self.spaces();
            if name.eq_ignore_ascii_case(b"token") || !self.skip(b"{") {
                self.at = begun;
                return false;
            }
        }
        // A variable of Terraform: `variable "password" { default = "..." }`.
        let is_block = quoted && self.skip(b" {");
        self.signs_of_pair();
        for _ in 0..MAX_OTHERS {
            if !self.other_field() {
                break;
            }
        }
        let field = self.field();
        let is_value = self.at > begun && (is_name_of_value(field) || is_label && field == b"text");
        let is_value = is_value && (!is_block || field == b"default");
        let length = field.len();
        let is_quote = |ahead: &usize| matches!(self.byte(*ahead), b'\\' | b'"' | b'\'' | b' ');
        let quotes = length + (length..length + 8).take_while(is_quote).count();
        if is_value && matches!(self.byte(quotes), b':' | b'=') {
            self.at += quotes;
            return true;
        }
        self.at = begun;
        false
    }

    /// Skips spaces, quotes and commas between two fields.
    fn signs_of_pair(&mut self) {
        const MOST: usize = 48;
        for _ in 0..MOST {
            match (self.byte(0), self.byte(1)) {
                (b'\\', b'n' | b'r' | b't') => self.at += 2,
                (b' ' | b'\t' | b'\n' | b'\r' | b',' | b'"' | b'\'' | b'\\', _) => self.at += 1,
                _ => break,
            }
        }
    }

    /// Returns the name of the field that begins here.
    fn field(&self) -> &[u8] {
        const MOST: usize = 16;
        let rest = self.text.get(self.at..).unwrap_or_default();
        let length = rest.iter().take(MOST).take_while(|byte| byte.is_ascii_alphanumeric()).count();
        rest.get(..length).unwrap_or_default()
    }

    /// Skips a field whose value is no value of a pair: `"type": "string", `.
    fn other_field(&mut self) -> bool {
        const MOST: usize = 32;
        // The value may be a description.
        const MAX_VALUE: usize = 120;
        let begun = self.at;
        let field = self.field();
        let length = field.len();
        let is_other = length > 0
            && !field.eq_ignore_ascii_case(b"name")
            && !field.eq_ignore_ascii_case(b"key")
            && !is_name_of_value(field);
        self.at += length;
        while matches!(self.byte(0), b'\\' | b'"' | b'\'' | b' ') && self.at < begun + MOST {
            self.at += 1;
        }
        if is_other && matches!(self.byte(0), b':' | b'=') {
            self.at += 1;
            self.signs_of_pair();
            let quoted = self.is_after(b'"');
            let is_of_word = |byte: u8| {
                byte.is_ascii_alphanumeric()
                    || b"_.- ".contains(&byte)
                    || quoted && byte >= b' ' && !b"\"\\".contains(&byte)
            };
            self.at += (0..MAX_VALUE).take_while(|ahead| is_of_word(self.byte(*ahead))).count();
            let end = self.at;
            self.signs_of_pair();
            let between = self.text.get(end..self.at).unwrap_or_default();
            if between.iter().any(|byte| b", ".contains(byte)) {
                return true;
            }
        }
        self.at = begun;
        false
    }

    /// If the name is the text of an element or in a tag, skips the text up to the value in the
    /// next element: `<key>Password</key><string>`, `<entry key="password">`, `<Password Type="">`.
    /// Other attributes describe what the reader sees: `<span class="token">`.
    pub(super) fn value_of_element(&mut self, name: usize, quoted: bool) -> bool {
        const MOST: usize = 96;
        let begun = self.at;
        let before = self.text.get(name.saturating_sub(MOST)..name).unwrap_or_default();
        let opened = before.iter().rposition(|byte| b"<>\n".contains(byte));
        let opened = opened.filter(|at| before.get(*at) == Some(&b'<'));
        let is_in_tag = opened.is_some_and(|at| {
            let tag = before.get(at + 1..).unwrap_or_default().to_ascii_lowercase();
            let quotes = tag.iter().rev().take_while(|byte| b"\"'\\".contains(byte)).count();
            let attribute = tag.get(..tag.len() - quotes).unwrap_or_default();
            let is_name = attribute.ends_with(b"key=") || attribute.ends_with(b"name=");
            let is_of_tag = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b':';
            quoted && is_name || !quoted && tag.iter().all(is_of_tag)
        });
        let is_text = before.last() == Some(&b'>') && self.skip(b"</");
        // The end of a tag without other attributes separates a name and its value anyway.
        let ends_alone = self.byte(0) == b'=' || self.byte(0) == b'>' && !quoted;
        if !is_text && (!is_in_tag || ends_alone) {
            return false;
        }
        let text = self.text;
        let ends_tag = |at: usize| {
            let rest = text.get(at..).unwrap_or_default();
            let length = rest.iter().take(MOST).position(|byte| b"<>\n".contains(byte))?;
            (rest.get(length) == Some(&b'>') && rest.get(..length)?.last() != Some(&b'/'))
                .then_some(at + length + 1)
        };
        let Some(mut end) = ends_tag(self.at) else {
            self.at = begun;
            return false;
        };
        self.at = end;
        self.signs_of_pair();
        let opened = text.get(self.at..).unwrap_or_default();
        let is_value = [&b"<string>"[..], b"<value>", b"<param-value>", b"<td>", b"<dd>"]
            .iter()
            .any(|tag| opened.get(..tag.len()).is_some_and(|it| it.eq_ignore_ascii_case(tag)));
        if is_value {
            end = ends_tag(self.at + 1).unwrap_or(end);
        }
        // Else the text up to the end of the element is the value.
        let inside = text.get(end..).unwrap_or_default();
        let is_of_text = |byte: &&u8| !b"<>\n".contains(byte);
        let length = inside.iter().take(MAX_QUOTED_BYTES).take_while(is_of_text).count();
        let is_inside = inside.get(length..).is_some_and(|rest| rest.starts_with(b"</"));
        let is_value = is_value || is_in_tag && is_inside;
        self.at = if is_value { end } else { begun };
        is_value
    }

    pub(super) fn brackets(&mut self) {
        // The length of an array: `char password[32] = "..."`.
        let digits = (1..9).take_while(|ahead| self.byte(*ahead).is_ascii_digit()).count();
        if self.byte(0) == b'[' && self.byte(1 + digits) == b']' {
            self.at += 1 + digits;
        }
        while matches!(self.byte(0), b']' | b')') {
            self.at += 1;
        }
        // The end of a bold name in Markdown.
        self.skip(b"**");
    }

    /// Skips this text if it is here.
    pub(super) fn skip(&mut self, part: &[u8]) -> bool {
        let is_here = self.text.get(self.at..).is_some_and(|rest| rest.starts_with(part));
        self.at += if is_here { part.len() } else { 0 };
        is_here
    }

    /// Skips the bracket before a quoted argument, or before the first value of a variable in C++:
    /// `password{"..."}`.
    pub(super) fn bracket_of_call(&mut self) -> bool {
        self.next_quote(1).is_some() && (self.skip(b"(") || self.skip(b"{"))
    }

    /// Skips what may be between two columns of a table after a gap: a bar, or nothing if the gap
    /// is wide.
    pub(super) fn column(&mut self, gap: &[u8]) -> bool {
        let bars = ["| ", "\u{2502} ", "\u{2503} ", "\u{2551} "];
        let is_after_bar = bars.iter().any(|bar| self.skip(bar.as_bytes()));
        self.spaces();
        is_after_bar || gap.len() >= 2 || gap == b"\t"
    }

    /// Skips what is before a literal: `Some("...")`, `<<"...">>`, `<![CDATA[...`, a line end, the
    /// `**` after a bold name, or the beginning of a block in YAML.
    pub(super) fn wrapper(&mut self, may_end_line: bool) {
        if may_end_line && self.line_before_quote() || self.constructors() {
            return;
        }
        if self.skip(b"<![CDATA[") {
            return;
        }
        if self.skip(b"** ") {
            return;
        }
        let block = match (self.byte(0), self.byte(1)) {
            (b'|' | b'>', b'-' | b'+') => 2,
            (b'|' | b'>', _) => 1,
            _ => return,
        };
        let begun = self.at;
        self.at += block;
        let is_line = self.form == TextForm::Plain && self.skip(b"\n") || self.skip(b"\\n");
        if !(is_line && self.spaces()) {
            self.at = begun;
        }
    }

    /// Skips the calls that make a value of the literal that is their first argument:
    /// `Some("...")`, `new String("...")`, `Some(String::from("..."))`.
    fn constructors(&mut self) -> bool {
        const MOST: usize = 3;
        const CALLS: [&str; 17] = [
            "new ", "Some(", "Optional.of(", "String(", "String::from(", "std::string(",
            "SecretStr(", "SecretString(", "SecretString::from(", "SecretString::new(",
            "Secret::new(", "Buffer.from(", "sensitive(", "Sensitive(", "TEXT(", "_T(", "<<",
        ];
        let begun = self.at;
        for _ in 0..MOST {
            if !CALLS.iter().any(|call| self.skip(call.as_bytes())) {
                break;
            }
        }
        let is_before_quote = self.at > begun && self.next_quote(0).is_some();
        self.at = if is_before_quote { self.at } else { begun };
        is_before_quote
    }

    /// Skips a line end before a quoted value, with the bracket before it, or with the type and
    /// length that PHP writes: `string(12) "..."`.
    fn line_before_quote(&mut self) -> bool {
        let begun = self.at;
        self.skip(b"(");
        let is_line = self.form == TextForm::Plain && (self.skip(b"\r\n") || self.skip(b"\n"))
            || self.skip(b"\\r\\n")
            || self.skip(b"\\n");
        if is_line && self.spaces() {
            if self.skip(b"string(") {
                self.at += (0..9).take_while(|at| self.byte(*at).is_ascii_digit()).count();
                self.skip(b") ");
            }
            // Three quotes begin the description of a function: `def f(password):`.
            if let Some((quote, length)) = self.next_quote(0)
                && self.next_quote(length) != Some((quote, length))
            {
                return true;
            }
        }
        self.at = begun;
        false
    }

    /// Skips the type between a name and the sign before its value: `password string = "..."`,
    /// `password As String = "..."`.
    pub(super) fn type_before_sign(&mut self) {
        const TYPES: [&str; 6] = ["string", "String", "As String", "text", "varchar2", "varchar"];
        let begun = self.at;
        if TYPES.iter().any(|one| self.skip(one.as_bytes())) {
            let is_of_length = |byte: u8| byte.is_ascii_digit() || b"()".contains(&byte);
            self.at += (0..9).take_while(|ahead| is_of_length(self.byte(*ahead))).count();
            self.spaces();
            let sign = usize::from(self.byte(0) == b':');
            let is_quoted = self.byte(sign + 1) == b' ' && self.next_quote(sign + 2).is_some();
            if self.byte(sign) == b'=' && is_quoted {
                return;
            }
        }
        self.at = begun;
    }

    /// Skips spaces, but not the end of the line.
    pub(super) fn spaces(&mut self) -> bool {
        let from = self.at;
        for _ in 0..32 {
            match self.byte(0) {
                b' ' | b'\t' => self.at += 1,
                b'\\' if self.byte(1) == b't' => self.at += 2,
                _ => break,
            }
        }
        self.at > from
    }

    pub(super) fn separator(&mut self, quoted: bool, of_service: bool) -> bool {
        let length = match (self.byte(0), self.byte(1)) {
            // The last two of these introduce a default: `process.env.API_KEY || "..."`.
            (b'|', b'|') | (b'?', b'?') if self.byte(2) == b'=' => 3,
            (b'!', b':')
            | (b':' | b'?', b'=')
            | (b'=', b'>')
            | (b'|', b'|')
            | (b'?', b'?' | b':') => 2,
            // A comparison does not reveal a value.
            (b'=', b'=') | (b'!', _) => 0,
            // An assignment of R.
            (b'<', b'-') if self.next_quote(2).is_some() => 2,
            (b'<', b'-') if self.byte(2) == b' ' && self.next_quote(3).is_some() => 3,
            // A value in base64 in an LDIF file. In Haskell, a space is before the colons.
            (b':', b':') if self.byte(2) == b' ' && !self.is_after(b' ') => 2,
            (b'-', b'>') if self.is_after(b' ') && self.is_before_literal(2) => 2,
            // The arrows → and ⇒, and the wide colon ： of Chinese and Japanese texts.
            (0xe2, 0x86 | 0x87)
                if self.byte(2) == 0x92 && self.is_after(b' ') && self.is_before_literal(3) =>
            {
                3
            }
            (0xef, 0xbc) if self.byte(2) == 0x9a && self.is_before_literal(3) => 3,
            (b'o', b'r') if self.byte(2) == b' ' && matches!(self.byte(3), b'"' | b'\'') => 3,
            (b'=' | b':', _) => 1,
            (b'>', _) if !quoted => 1,
            (b',', _) if quoted || of_service => 1,
            (b'%', b'3') if matches!(self.byte(2), b'D' | b'd' | b'A' | b'a') => 3,
            (b'\\', b'u')
                if self
                    .text
                    .get(self.at..self.at + 6)
                    .is_some_and(|it| it.eq_ignore_ascii_case(b"\\u003d")) =>
            {
                6
            }
            _ => 0,
        };
        self.at += length;
        length > 0
    }

    /// Returns whether this byte is before here.
    fn is_after(&self, byte: u8) -> bool {
        self.at.checked_sub(1).and_then(|at| self.text.get(at)) == Some(&byte)
    }

    /// Returns whether a quoted text or a long word follows the sign of this length here. An arrow
    /// is then that of an entry of a map, `password -> SECRET`, not that of a type.
    fn is_before_literal(&self, sign: usize) -> bool {
        const MIN_BYTES: usize = 12;
        let rest = self.text.get(self.at + sign..).unwrap_or_default();
        let spaces = rest.iter().take(2).take_while(|byte| **byte == b' ').count();
        let word = rest.get(spaces..).unwrap_or_default();
        let length = word.iter().take(MIN_BYTES).take_while(|byte| byte.is_ascii_alphanumeric());
        self.next_quote(sign + spaces).is_some() || length.count() == MIN_BYTES
    }

    pub(super) fn declared_type(&mut self) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let is_type = |byte: &&u8| byte.is_ascii_alphabetic() || b"&<>[]|?:' _".contains(byte);
        // A redaction mark is not the type of the value after it.
        if rest.starts_with(b"[redacted:") {
            return;
        }
        let length = rest.iter().take(40).take_while(is_type).count();
        let (after, next) = (rest.get(length), rest.get(length + 1));
        if length > 0 && after == Some(&b'=') && next != Some(&b'=') {
            self.at += length + 1;
            self.spaces();
        }
    }

    /// Skips the type or the anchor before a value in YAML: `!!str SECRET`, `&name SECRET`. A
    /// reference of Rust has the same sign: `&mut TYPE`.
    pub(super) fn yaml_property(&mut self) {
        const MOST: usize = 32;
        let sign = match (self.byte(0), self.byte(1)) {
            (b'!', b'!') => 2,
            (b'&', _) => 1,
            _ => return,
        };
        let is_of_name = |ahead: &usize| {
            let byte = self.byte(*ahead);
            byte.is_ascii_alphanumeric() || b"_-".contains(&byte)
        };
        let end = sign + (sign..MOST).take_while(is_of_name).count();
        let name = self.text.get(self.at + sign..self.at + end).unwrap_or_default();
        if !matches!(name, b"" | b"mut" | b"dyn") && self.is_after(b' ') && self.byte(end) == b' ' {
            self.at += end;
            self.spaces();
        }
    }

    /// Skips the letters or signs before the quote of a literal: `b'...'`, `@"..."`, `$'...'`,
    /// `r#"..."#`, and `N'...'` and `E'...'` of SQL.
    pub(super) fn literal_prefix(&mut self) {
        const MOST: usize = 3;
        let is_of_prefix = |byte: u8| b"brufenBRUFENL8@$#".contains(&byte);
        let length = (0..MOST).take_while(|ahead| is_of_prefix(self.byte(*ahead))).count();
        if self.next_quote(length).is_some() {
            self.at += length;
        }
    }

    /// Returns the end of the characters that a value may consist of.
    pub(super) fn run_end(&self, runs: &mut ScanMemory) -> usize {
        const VALUE: ByteClass = ByteClass::of(
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_.-~%!@#^*:$?",
        );
        if runs.value.contains(&self.at) {
            return runs.value.end;
        }
        let mut end = runs.end(self.text, self.at, &VALUE);
        // In JSON a slash may be escaped.
        while self.form == TextForm::Json && self.text.get(end..end + 2) == Some(b"\\/") {
            end = runs.end(self.text, end + 2, &VALUE);
        }
        runs.value = self.at..end;
        end
    }

    /// Returns the quoted text that begins here, up to its closing quote on the same line.
    pub(super) fn quoted_whole(&self) -> Option<Range<usize>> {
        let quote = *self.text.get(self.at.checked_sub(1)?)?;
        let before = self.text.get(self.at.saturating_sub(9)..self.at - 1)?;
        let level = backslashes_at_end(before);
        let rest = self.text.get(self.at..self.text.len().min(self.at + MAX_QUOTED_BYTES))?;
        let mut slashes = 0;
        for (count, byte) in rest.iter().enumerate() {
            match byte {
                b'\\' => {
                    slashes += 1;
                    continue;
                }
                // `level` is the number of backslashes before each quote of a text inside a string.
                // An escape has one more.
                b'n' | b'r' if slashes % 2 == 1 && slashes <= level => return None,
                b'\n' | b'\r' => return None,
                _ if *byte == quote && (slashes == level || level == 0 && slashes % 2 == 0) => {
                    return Some(self.at..self.at + count - level.min(slashes));
                }
                b'"' if self.form == TextForm::Json && slashes < level.max(1) => return None,
                _ => {}
            }
            slashes = 0;
        }
        None
    }

    /// Returns the unquoted word that begins here. `None` if the sign before its name shows that
    /// the word ends earlier: in a query, a list or a connection string.
    pub(super) fn word(&self, opener: Option<u8>, of_element: bool) -> Option<Range<usize>> {
        let is_of_list = opener.is_some_and(|byte| b"?&;,({[".contains(&byte));
        if is_of_list {
            return None;
        }
        let rest = self.text.get(self.at..self.text.len().min(self.at + MAX_QUOTED_BYTES))?;
        let is_element =
            of_element || opener == Some(b'<') && self.text.get(self.at - 1) == Some(&b'>');
        if is_element {
            let end = rest.windows(2).position(|two| two == b"</" || two[0] == b'\n')?;
            let inside = rest.get(..end)?;
            let is_text = !inside.iter().any(|byte| b"\"\\".contains(byte));
            return (rest.get(end) == Some(&b'<') && is_text).then_some(self.at..self.at + end);
        }
        let is_of_word = |byte: &u8| !byte.is_ascii_whitespace() && !b"\"'`\\".contains(byte);
        let length = rest.iter().take_while(|byte| is_of_word(byte) && **byte >= b' ').count();
        // A longer word is not a password.
        let is_closed = length < rest.len() || self.at + length == self.text.len();
        let inside = rest.get(..length)?;
        let is_mark = inside.windows(10).any(|ten| ten == b"[redacted:")
            || inside.windows(2).any(|two| two == b"</");
        (is_closed && !is_mark).then_some(self.at..self.at + length)
    }

    /// Returns the value that begins here, and whether what follows makes it an expression.
    pub(super) fn value(&self, quoted: bool, run_end: usize) -> (Range<usize>, bool) {
        let mut end = run_end.min(self.at + MAX_VALUE_BYTES);
        let next = self.text.get(end);
        let is_expression = match next {
            Some(b'(' | b'[' | b'{') => true,
            // The end tag of an element makes no expression.
            Some(b'<') => self.text.get(end + 1) != Some(&b'/'),
            // A quoted text with a space in it is prose.
            Some(b' ' | b'\t') => quoted,
            _ => false,
        };
        while end > self.at && matches!(self.text.get(end - 1), Some(b'.' | b':' | b'!' | b'?')) {
            end -= 1;
        }
        // Three dots show that the value was cut: `eyJ2IjoiMSIs...`.
        let is_cut = self.text.get(end..).is_some_and(|rest| rest.starts_with(b"..."));
        (self.at..end, is_expression || is_cut || end == self.at)
    }
}

/// Returns whether this is the name of the field with the value of a pair: `value`,
/// `ParameterValue` and similar, or `default`.
fn is_name_of_value(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"value") || name.ends_with(b"Value") || name == b"default"
}
