//! Made-up secrets of every kind in every context. The results are compared with
//! `docs/redaction.md`.

use super::*;
use crate::redact::token_rule::TokenPlacement;
use std::fmt::Write as _;

/// Contexts of secrets: a description, the text with `{}` in place of the secret, and the format of
/// the text.
const SURROUNDINGS: [(&str, &str, TextForm); 58] = [
    ("alone", "{}", TextForm::Plain),
    ("in a sentence", "use {} for now", TextForm::Plain),
    ("at the end of a sentence", "The token is {}.", TextForm::Plain),
    ("in double quotes", "key = \"{}\"", TextForm::Plain),
    ("in single quotes", "key = '{}'", TextForm::Plain),
    ("in backticks", "use `{}` here", TextForm::Plain),
    ("in parentheses", "login({})", TextForm::Plain),
    ("in angle brackets", "<{}>", TextForm::Plain),
    ("in a list", "[a, {}, b]", TextForm::Plain),
    ("between commas", "a,{},b", TextForm::Plain),
    ("between pipes", "| a |{}| b |", TextForm::Plain),
    ("an environment variable", "export MY_VALUE={}", TextForm::Plain),
    ("a line of .env", "MY_VALUE=\"{}\"\nOTHER=1\n", TextForm::Plain),
    ("JSON", "{\"value\":\"{}\"}", TextForm::Json),
    ("JSON in JSON", "{\"a\":\"{\\\"value\\\":\\\"{}\\\"}\"}", TextForm::Json),
    ("a JSON string after a newline", "{\"a\":\"line\\n{}\\nline\"}", TextForm::Json),
    ("a JSON string after a tab", "{\"a\":\"x\\t{}\"}", TextForm::Json),
    ("JSON with \\u003d", "{\"a\":\"value\\u003d{}\\u0026b\"}", TextForm::Json),
    ("YAML", "value: {}\n", TextForm::Plain),
    ("a YAML list", "  - {}\n", TextForm::Plain),
    ("TOML", "value = \"{}\"\n", TextForm::Plain),
    ("INI", "value={}\r\n", TextForm::Plain),
    ("XML element", "<value>{}</value>", TextForm::Plain),
    ("XML attribute", "<add value=\"{}\"/>", TextForm::Plain),
    ("HCL of Terraform", "  value = \"{}\"\n", TextForm::Plain),
    ("a Terraform plan", "  + value = \"{}\" -> null", TextForm::Plain),
    ("Terraform variable", "terraform apply -var=value={}", TextForm::Plain),
    ("kubeconfig", "users:\n- name: me\n  user:\n    token: {}\n", TextForm::Plain),
    ("netrc", "machine host login me password {}\n", TextForm::Plain),
    ("npmrc", "//registry.test/:_authToken={}\n", TextForm::Plain),
    ("a Docker build argument", "docker build --build-arg VALUE={} .", TextForm::Plain),
    ("a flag with a space", "tool --value {} --fast", TextForm::Plain),
    ("a flag with =", "tool --value={} --fast", TextForm::Plain),
    ("a flag of one letter, glued", "tool -p{} x", TextForm::Plain),
    ("a flag of one letter", "tool -p {} x", TextForm::Plain),
    ("curl -u", "curl -u me:{} https://host.test", TextForm::Plain),
    ("an HTTP header", "X-Value: {}\r\nHost: a\r\n", TextForm::Plain),
    ("Bearer", "Authorization: Bearer {}\r\n", TextForm::Plain),
    ("a cookie", "Cookie: a=1; session={}; b=2", TextForm::Plain),
    ("a query", "https://host.test/path?value={}&x=1", TextForm::Plain),
    ("a fragment", "https://host.test/#value={}", TextForm::Plain),
    ("a percent escape before it", "https://host.test/?a=value%3D{}%26b", TextForm::Plain),
    ("user information of an address", "https://me:{}@host.test/x", TextForm::Plain),
    ("an added line of a diff", "+{}\n", TextForm::Plain),
    ("a removed line of a diff", "-{}\n", TextForm::Plain),
    ("a value in a removed line", "-value={}\n", TextForm::Plain),
    ("grep", "file.env:12:VALUE={}", TextForm::Plain),
    (
        "grep --color",
        "\u{1b}[35m\u{1b}[K.env\u{1b}[m\u{1b}[K:T=\u{1b}[01;31m\u{1b}[K{}\u{1b}[m\u{1b}[K",
        TextForm::Plain,
    ),
    ("16 colours", "\u{1b}[31m{}\u{1b}[0m", TextForm::Plain),
    ("256 colours", "\u{1b}[38;5;208m{}\u{1b}[0m", TextForm::Plain),
    ("true colours", "\u{1b}[38;2;255;100;0m{}\u{1b}[39m", TextForm::Plain),
    ("tput sgr0", "\u{1b}(B\u{1b}[m{}\u{1b}(B", TextForm::Plain),
    ("colours in JSON", "{\"a\":\"\\u001b[01;31m\\u001b[K{}\\u001b[m\"}", TextForm::Json),
    ("\\x escapes around it", "\"\\x22{}\\x22\"", TextForm::Plain),
    ("octal escapes around it", "\"\\042{}\\042\"", TextForm::Plain),
    ("a log line", "2026-01-01T00:00:00Z INFO [main] value={} ok", TextForm::Plain),
    ("a Python bytes literal", "b'{}'", TextForm::Plain),
    ("Markdown emphasis", "**{}**", TextForm::Plain),
];

/// Returns ways to write the secret itself, each with its name.
fn spellings(secret: &str) -> Vec<(&'static str, String)> {
    let (first, rest) = secret.split_at(1);
    let byte = first.as_bytes()[0];
    let middle = secret.len() / 2;
    let at = secret.as_bytes()[middle];
    let mut all = vec![
        ("first letter as \\u", format!("\"\\u{byte:04x}{rest}\"")),
        ("first letter as \\x", format!("\"\\x{byte:02x}{rest}\"")),
    ];
    if at.is_ascii_alphanumeric() {
        let (before, after) = (&secret[..middle], &secret[middle + 1..]);
        all.push(("a letter in it as \\u", format!("\"{before}\\u{at:04X}{after}\"")));
        all.push(("a letter in it as %", format!("\"{before}%{at:02X}{after}\"")));
    }
    all.push(("slashes as \\/", format!("\"{}\"", secret.replace('/', "\\/"))));
    all
}

/// Returns a made-up token of each rule, and the secret in it.
fn fakes() -> Vec<(&'static TokenRule, String, String)> {
    let mut seed = 1_u64;
    let mut choose = |bytes: &[u8]| {
        seed += 1;
        let plain: Vec<u8> = bytes.iter().copied().filter(u8::is_ascii_alphanumeric).collect();
        let from = if plain.is_empty() { bytes } else { &plain };
        let mut state: u64 = seed * 0x9e37_79b9;
        state ^= state >> 15;
        state = state.wrapping_mul(0x2545_f491_4f6c_dd1d);
        from[(state >> 17) as usize % from.len()]
    };
    let all = rules().iter().map(|rule| {
        let shape = token_shape::TokenShape::new(rule.shape).unwrap();
        let token = shape.example(&mut choose);
        let found =
            shape.find(token.as_bytes(), 0, &mut token_shape::ScanMemory::default()).unwrap();
        let secret = token[found.secret].to_owned();
        (rule, token, secret)
    });
    all.collect()
}

#[test]
fn a_made_up_secret_of_every_kind_is_found() {
    let mut missed = Vec::new();
    for (rule, token, secret) in fakes() {
        let text = match rule.place {
            TokenPlacement::Value => {
                format!("{}_value = \"{token}\"\n", rule.hints().next().unwrap())
            }
            _ => format!("x {token} y"),
        };
        if Redactor::new().clean(&text, TextForm::Plain).contains(&secret) {
            missed.push((rule.kind, text));
        }
    }
    assert!(missed.len() * 20 <= rules().len(), "{missed:#?}");
}

/// Returns how many tokens are found, how many there are, and the rows of the table: a context, and
/// how many of its tokens are found.
fn surroundings() -> (usize, usize, String) {
    let tokens: Vec<_> =
        fakes().into_iter().filter(|(rule, ..)| rule.place != TokenPlacement::Value).collect();
    let (mut found, mut all, mut rows) = (0, 0, String::new());
    let mut count = |name: &str, texts: &mut dyn Iterator<Item = (String, String, TextForm)>| {
        let (mut hits, mut of) = (0, 0);
        for (text, secret, form) in texts {
            of += 1;
            let clean = Redactor::new().clean(&text, form).into_owned();
            let is_removed = !clean.contains(&secret) && clean != text;
            hits += usize::from(is_removed);
            if form == TextForm::Json && serde_json::from_str::<serde_json::Value>(&text).is_ok() {
                assert!(serde_json::from_str::<serde_json::Value>(&clean).is_ok(), "{clean}");
            }
        }
        (found, all) = (found + hits, all + of);
        writeln!(rows, "| {} | {hits} of {of} |", name.replace('|', "\\|")).unwrap();
    };
    for (name, template, form) in SURROUNDINGS {
        let text = |token: &str| template.replace("{}", token);
        count(
            name,
            &mut tokens.iter().map(|(_, token, secret)| (text(token), secret.clone(), form)),
        );
    }
    for (place, (name, _)) in spellings("a/bcdefgh").iter().enumerate() {
        let text = |token: &str| spellings(token).get(place).map(|(_, text)| text.clone());
        count(
            name,
            &mut tokens.iter().filter_map(|(_, token, secret)| {
                Some((text(token)?, secret.clone(), TextForm::Json))
            }),
        );
    }
    (found, all, rows)
}

#[test]
fn the_page_lists_how_many_secrets_are_found_in_each_surrounding() {
    let (found, all, rows) = surroundings();
    assert!(found * 100 >= all * 98, "{found} of {all}\n{rows}");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/redaction.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once("## Surroundings\n").unwrap();
    let (_, after) = rest.split_once("## Kinds\n").unwrap();
    let wanted = format!(
        "{before}## Surroundings\n\nAn invented secret of each shape below was put into these surroundings. {found} of {all} are found:\n\n\
         | where | found |\n|---|---|\n{rows}\n## Kinds\n{after}"
    );
    if std::env::var_os("FORGE_UPDATE_DOCS").is_some() {
        std::fs::write(path, &wanted).unwrap();
    } else {
        assert!(page == wanted, "write it with FORGE_UPDATE_DOCS=1");
    }
}
