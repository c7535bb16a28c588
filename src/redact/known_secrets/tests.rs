use super::*;
use proptest::prelude::*;

const SECRET: &str = "hunter22-ghp_ABC";

fn known(secret: &str) -> KnownSecrets {
    KnownSecrets::new([secret]).unwrap()
}

fn masked(secret: &str, text: &str) -> String {
    let (new, _) = known(secret).mask(text.as_bytes()).expect("the secret is in the text");
    assert_eq!(new.len(), text.len(), "{text}");
    String::from_utf8(new).unwrap()
}

#[test]
fn a_secret_is_replaced_by_a_mark_of_its_length() {
    assert_eq!(masked(SECRET, "key=hunter22-ghp_ABC;"), "key=purgedxxxxxxxxxx;");
    assert_eq!(masked("geheim\u{e4}", "x geheim\u{e4}."), "x purgedxx.");
    assert_eq!(masked(SECRET, "key=hunter22-ghp_AB"), "key=purgedxxxxxxxxx");
    assert!(known(SECRET).mask(b"key=hunter22-ghp_abc").is_none());
}

#[test]
fn a_secret_that_is_too_short_or_too_long_or_a_mark_is_refused() {
    assert_eq!(KnownSecrets::new(["short"]).unwrap_err(), InvalidSecret::Short);
    let long = "long ".repeat(MAX_PURGED_BYTES / 5 + 1);
    assert_eq!(KnownSecrets::new([&long]).unwrap_err(), InvalidSecret::Long);
    assert_eq!(KnownSecrets::new(["purgedxx"]).unwrap_err(), InvalidSecret::Mark);
    assert_eq!(KnownSecrets::new(["\n\n\n\n\n\n\n"]).unwrap_err(), InvalidSecret::Mark);
}

#[test]
fn a_part_of_a_secret_is_found_at_an_end_of_a_text_and_not_in_its_middle() {
    for (text, new) in [
        ("begins hunter22-g", "begins purgedxxxx"),
        ("begins hunter22-g...", "begins purgedxxxx..."),
        ("begins hunter22-g\u{2026}", "begins purgedxxxx\u{2026}"),
        (r#"{"preview":"hunter22-gh"}"#, r#"{"preview":"purgedxxxxx"}"#),
        ("r22-ghp_ABC and on", "purgedxxxxx and on"),
        ("...r22-ghp_ABC and on", "...purgedxxxxx and on"),
    ] {
        assert_eq!(masked(SECRET, text), new);
    }
    for text in ["hunter22-g and on", "and r22-ghp_ABC", "ends with hunter2"] {
        assert!(known(SECRET).mask(text.as_bytes()).is_none(), "{text}");
    }
}

#[test]
fn replacing_a_secret_after_an_escape_keeps_the_json_valid() {
    // The letter or the digits of an escape can be the first characters of the secret.
    for (secret, text) in [
        ("nested-secret", r#"{"a":"one\nested-secret"}"#),
        ("u00e9-secret", r#"{"a":"one\u00e9-secret"}"#),
        ("e9-secret-1", r#"{"a":"one\u00e9-secret-1"}"#),
        ("ends-with\\", r#"{"a":"ends-with\\"}"#),
        ("ends-with\\", r#"{"a":"ends-with\\\n"}"#),
    ] {
        let new = masked(secret, text);
        assert!(serde_json::from_str::<serde_json::Value>(&new).is_ok(), "{new}");
    }
}

/// In ids that are joined from words, `/` in a word is written as `%2F`. Elsewhere the same words
/// are not escaped. After a purge they must still be equal.
#[test]
fn a_secret_in_an_id_of_several_words_is_replaced_as_elsewhere() {
    let join = |words: &[&str]| {
        words
            .iter()
            .map(|word| word.replace('%', "%25").replace('/', "%2F"))
            .collect::<Vec<_>>()
            .join("/")
    };
    for secret in ["Zx9Kq2/Lm7-Pv4", "/begins-with-it", "100%-secret", "a%2Fb-secret", "ends/with%"]
    {
        let plain = masked(secret, secret);
        assert_eq!(masked(secret, &join(&[secret, "step"])), join(&[&plain, "step"]), "{secret}");
        assert_eq!(masked(secret, &join(&["item", secret])), join(&["item", &plain]), "{secret}");
        let quoted = secret.replace('/', r"\/");
        assert_eq!(unquoted(&masked(secret, &quoted)), plain, "{secret}");
        let coded = secret.replace('/', r"\u002f");
        assert_eq!(unquoted(&masked(secret, &coded)), plain, "{secret}");
    }
}

#[test]
fn a_purged_number_in_json_stays_a_number() {
    let new = masked("12345678", r#"{"pin":12345678,"text":"12345678"}"#);
    assert_eq!(new, r#"{"pin":77777717,"text":"purgedxx"}"#);
}

/// Returns the text as a JSON string, without its quotes.
fn quoted(text: &str, ascii: bool) -> String {
    let quoted = serde_json::to_string(text).unwrap();
    let mut out = String::new();
    for char in quoted[1..quoted.len() - 1].chars() {
        if ascii && !char.is_ascii() {
            let mut codes = [0; 2];
            for code in char.encode_utf16(&mut codes) {
                out.push_str(&format!("\\u{code:04X}"));
            }
        } else if ascii && char == '/' {
            out.push_str("\\/");
        } else {
            out.push(char);
        }
    }
    out
}

fn unquoted(text: &str) -> String {
    serde_json::from_str(&format!("\"{text}\"")).unwrap_or_else(|error| panic!("{error}: {text}"))
}

proptest! {
    #[test]
    fn the_secret_is_replaced_at_every_depth_of_json_and_all_else_stays(
        secret in "[a-zA-Z0-9\"\\\\/\n\t\u{e9}\u{2022}\u{1f512}-]{8,24}",
        before in "[ a-z\"\n\u{e9}]{0,12}", after in "[ A-Z\"\n\u{e9}]{0,12}",
        ascii: bool,
        depth in 0_usize..3,
    ) {
        let Ok(known) = KnownSecrets::new([&secret]) else { return Ok(()) };
        let plain = format!("{before} {secret} {after}");
        let mut text = plain.clone();
        for _ in 0..depth {
            text = quoted(&text, ascii);
        }
        let (new, count) = known.mask(text.as_bytes()).expect("the secret is in the text");
        prop_assert!(count >= 1);
        prop_assert_eq!(new.len(), text.len());
        prop_assert!(TextDifference::default().is_purge(text.as_bytes(), &new));
        let new = String::from_utf8(new).unwrap();
        prop_assert!(!known.holds(new.as_bytes()), "{}", new);
        let mut read = new;
        for _ in 0..depth {
            read = unquoted(&read);
        }
        prop_assert!(!read.contains(&secret));
        prop_assert_eq!(read.len(), plain.len());
        prop_assert!(read.starts_with(&format!("{before} ")) && read.ends_with(&format!(" {after}")), "{}", read);
    }
}

/// Many secrets are searched together. The result must be the same as for each of them alone.
#[test]
fn many_secrets_are_found_as_each_alone_is() {
    let words: Vec<String> =
        (0..400).map(|n| format!("secret_{}\\\"/{n}", n * 7919 % 1000)).collect();
    let many = KnownSecrets::new(&words).unwrap();
    for (number, word) in words.iter().enumerate().step_by(7) {
        let json = serde_json::Value::from(word.as_str()).to_string();
        let nested = serde_json::Value::from(json.as_str()).to_string();
        let begin: String = word.chars().take(10).collect();
        let end: String = word.chars().skip(3).collect();
        for text in [
            word.clone(),
            json,
            nested,
            format!("x {begin}..."),
            format!("...{end} y"),
            format!("a {number} b"),
        ] {
            let alone = KnownSecrets::new([word]).unwrap();
            if let Some((masked, count)) = alone.mask(text.as_bytes()) {
                let (by_many, found) = many.mask(text.as_bytes()).expect(&text);
                assert_eq!((String::from_utf8(by_many), found), (String::from_utf8(masked), count));
            } else {
                assert!(many.mask(text.as_bytes()).is_none(), "{text}");
            }
        }
    }
}

/// The number of search steps must hardly grow with the number of secrets.
#[test]
fn searching_a_hundred_times_the_secrets_takes_at_most_four_times_the_steps() {
    let text = (0..2000).map(|n| format!("\"secret_{n}\" ")).collect::<String>();
    let steps = |count: usize| {
        let secrets: Vec<String> = (0..count).map(|n| format!("secret_x{n:05}")).collect();
        let known = KnownSecrets::new(&secrets).unwrap();
        super::super::work_counter::of(|| drop(known.find(text.as_bytes())))
    };
    let (few, many) = (steps(10), steps(1000));
    assert!(few > 0 && many <= 4 * few, "{few}, then {many}");
}

#[test]
fn only_the_text_that_a_purge_writes_is_recognised_as_purged() {
    let is_purged = |before: &str, after: &str| {
        TextDifference::default().is_purge(before.as_bytes(), after.as_bytes())
    };
    for (before, after) in [
        ("the key is hunter22-ghp", "the key is purgedxxxxxx"),
        // The secret and the mark begin with the same letter.
        ("a perfect secret", "a purgedx secret"),
        ("\"pin\":12345678", "\"pin\":77777777"),
        (r#""h\u00fcnter22""#, r#""x\u00d7xxxxxx""#),
        ("the same", "the same"),
    ] {
        assert!(is_purged(before, after), "{before} {after}");
    }
    for (before, after) in [
        ("the pump is cold", "the pump is warm"),
        ("allow", "xxxxx "),
        ("deny it", "deny us"),
        ("grade is 5", "grade is d"),
        ("u0041", "u0042"),
        ("the issue is #42", "the issue is #/2"),
        ("a bit of the", "a xit of the"),
    ] {
        assert!(!is_purged(before, after), "{before} {after}");
    }
    // Both texts were purged, of secrets that overlap.
    let (here, there) = (b"purgedxxxxxxxxxxxx", b"password=purgedxxx");
    let both = TextDifference { both_purged: true, ..TextDifference::default() };
    assert!(both.is_purge(here, there) && both.is_purge(there, here));
    assert!(!TextDifference::default().is_purge(here, there));
    // At the end of a part of a text, the mark may be cut.
    for (before, after) in [("a hunt", "a purg"), ("22-ghp a", "gedxxx a")] {
        let cut = TextDifference { is_cut: true, ..TextDifference::default() };
        assert!(cut.is_purge(before.as_bytes(), after.as_bytes()), "{before}");
        assert!(!is_purged(before, after), "{before}");
    }
}
