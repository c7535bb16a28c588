use super::*;
use crate::model::Value;
use proptest::prelude::*;
use std::collections::BTreeSet;

#[path = "kinds_tests.rs"]
mod kinds_tests;
#[path = "password_tests.rs"]
mod password_tests;
#[path = "private_key_tests.rs"]
mod private_key_tests;
#[path = "settings_tests.rs"]
mod settings_tests;
#[path = "token_tests.rs"]
mod token_tests;
#[path = "view_tests.rs"]
mod view_tests;

fn kinds_in(text: &str, form: TextForm) -> Vec<&'static str> {
    Redactor::new().find(text.as_bytes(), form).into_iter().map(|found| found.kind).collect()
}

/// Returns a text and what is left of it, as it is and in JSON. Asserts that a second removal
/// changes nothing, and that the JSON stays valid.
fn clean_in_both_forms(text: &str) -> [(String, String); 2] {
    let json = serde_json::json!({ "out": text }).to_string();
    [(text.to_owned(), TextForm::Plain), (json, TextForm::Json)].map(|(text, form)| {
        let clean = Redactor::new().clean(&text, form).into_owned();
        assert_eq!(Redactor::new().clean(&clean, form), clean);
        if form == TextForm::Json {
            serde_json::from_str::<serde_json::Value>(&clean).unwrap();
        }
        (text, clean)
    })
}

/// Asserts that the secret is removed from a text, as it is and in JSON.
fn assert_removed(text: &str, secret: &str) {
    let pieces: Vec<&str> = secret.split(['"', '\\']).filter(|piece| piece.len() > 5).collect();
    for (_, clean) in clean_in_both_forms(text) {
        assert!(pieces.iter().all(|piece| !clean.contains(piece)), "{clean}");
    }
}

/// Returns pseudo-random text that is the same in every run.
fn noise(seed: u64, count: usize) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(LETTERS[(state >> 13) as usize % LETTERS.len()])
    };
    format!("a7{}", (2..count).map(|_| draw()).collect::<String>())
}

fn github(seed: u64) -> String {
    format!("gh{}_{}", "p", noise(seed, 36))
}

/// Regression: in a text that begins with `hp`, the byte before the text was read.
#[test]
fn a_token_may_follow_the_flag_hp_of_an_archiver_but_no_other_hp() {
    let begins = |text: &str| byte_text::begins_word(text.as_bytes(), text.len() - 1);
    assert!(begins("7z a -hpS"));
    assert!(!begins("hpS") && !begins("php-xhpS") && !begins("-xhpS"));
}

#[test]
fn every_shape_is_a_regular_expression_and_its_hints_are_small_letters() {
    let mut seen = BTreeSet::new();
    for rule in rules() {
        let shape = token_shape::TokenShape::new(rule.shape)
            .unwrap_or_else(|why| panic!("{}: {why}", rule.kind));
        assert!(
            !shape.can_backtrack(),
            "{}: a repetition and what follows share a byte",
            rule.kind
        );
        assert!(seen.insert(rule.kind), "{} occurs twice", rule.kind);
        for hint in rule.hints() {
            assert_eq!(hint, hint.to_ascii_lowercase(), "{}", rule.kind);
        }
    }
    assert!(seen.len() >= 40);
}

/// Measures the work of redacting a text, in bytes examined.
fn work_of(text: &str, form: TextForm) -> u64 {
    work_counter::of(|| drop(Redactor::new().find(text.as_bytes(), form)))
}

/// The work is linear in the length of the text: a text ten times longer costs at most twelve times
/// the work. The texts repeat each hint of each rule after each joint, and prefixes of example
/// tokens after some joints.
#[test]
fn ten_times_the_text_is_at_most_twelve_times_the_work() {
    const SMALL: usize = 5_000;
    /// Maximum number of bytes examined for each byte of the text.
    const MOST: u64 = 1_500;
    let hints = rules().iter().flat_map(|rule| rule.hints().map(str::to_owned));
    let tokens = rules().iter().flat_map(|rule| {
        let token =
            token_shape::TokenShape::new(rule.shape).unwrap().example(&mut |bytes| bytes[0]);
        [3, 8, token.len() - 1, token.len()]
            .map(|most| token.chars().take(most).collect::<String>())
    });
    let names = named_value::INDICATING_WORDS.iter().flat_map(|(_, words)| *words);
    let around = credential::HINTS.iter().flat_map(|(_, words)| *words);
    let around = around.chain(program_secret::HINTS.iter().flat_map(|(_, words)| *words));
    let around = around.chain(command_hint::HINTS.iter().flat_map(|(_, words)| *words));
    let around = names.chain(around).map(|word| (*word).to_owned());
    let dashes = "-".repeat(5);
    let others = [
        format!("{dashes}BEGIN {} KEY{dashes}\n", "PRIVATE"),
        format!("{dashes}END {} KEY{dashes}\n", "PRIVATE"),
        format!("{dashes}BEGIN {} KEY{dashes}\n+{}\n", "PRIVATE", noise(5, 64)),
        format!("+{}\n{dashes}END {} KEY{dashes}\n", noise(5, 64), "PRIVATE"),
        "\"-p\",\"--password\",".to_owned(),
        "\u{1b}[m\\u001b[m".to_owned(),
        "a=\n".to_owned(),
        "token=password=secret=api_key=".to_owned(),
        "login password ".to_owned(),
        "secret=a\\/".to_owned(),
        "https://me:pass".to_owned(),
        "[redacted:key]=".to_owned(),
        format!("token=[redacted:key]{}", noise(5, 20)),
        format!("password={} ", noise(5, 30)),
        format!("token={}", noise(5, 4096 - 6)),
        format!("https://me:{}@", noise(6, 512)),
    ];
    const JOINTS: [&str; 14] =
        ["", "-", " ", ".", "_", "=", ":", "/", "+", "~", "\"", "\\", "\n", "aaaaaaaaaaaaaaaa."];
    let hints: BTreeSet<String> = hints.chain(around).collect();
    let longer: BTreeSet<String> = tokens.chain(others).collect();
    let with = |words: BTreeSet<String>, joints: &'static [&'static str]| {
        words.into_iter().map(move |word| (word, joints))
    };
    for (word, joints) in with(hints, &JOINTS).chain(with(longer, &JOINTS[..3])) {
        for joint in joints {
            let unit = format!("{joint}{word}");
            let text = unit.repeat(10 * SMALL / unit.len());
            let (small, large) = text.split_at(SMALL / unit.len() * unit.len());
            let once = work_of(small, TextForm::Json);
            // Inputs that cost few passes need no measurement at ten times the size.
            if once < 40 * SMALL as u64 {
                continue;
            }
            let tenfold = work_of(&format!("{small}{large}"), TextForm::Json);
            assert!(tenfold <= 12 * once, "{unit:?}: {once}, then {tenfold}");
            assert!(once <= MOST * SMALL as u64, "{unit:?}: {} a byte", once / SMALL as u64);
        }
    }
}

#[test]
fn a_token_is_found_after_what_can_precede_it() {
    let token = github(1);
    for before in
        ["", " ", "\"", "=", "\\n", "\\\\n", "\\u001b", "%3D", "\u{1b}[31m", "(", "x-", "/"]
    {
        let text = format!("{before}{token}");
        assert_eq!(kinds_in(&text, TextForm::Json), ["github-token"], "{text}");
        assert_eq!(
            Redactor::new().clean(&text, TextForm::Json),
            format!("{before}[redacted:github-token]")
        );
    }
    for before in ["xy", "_", "0", "risk"] {
        assert!(kinds_in(&format!("{before}{token}"), TextForm::Plain).is_empty(), "{before}");
    }
}

/// Regression: nearly the whole token stayed if an agent had cut its output there.
#[test]
fn the_beginning_of_a_token_that_was_cut_is_found() {
    let token = github(30);
    for count in [20, 30, token.len() - 1] {
        let part = &token[..count];
        for mark in ["...", "\u{2026}", "\n\n... [20 lines truncated] ...", "\n[truncated]"] {
            let text = format!("use {part}{mark}");
            assert_eq!(kinds_in(&text, TextForm::Plain), ["github-token"], "{text}");
        }
    }
    for text in [
        "ghp_Ab3xY9...".to_owned(),
        "npm_config_cache_directory_of_user2...".to_owned(),
        "test_a1B2c3D4e5F6g7H8i9...".to_owned(),
        "polar_express_v2_2023a4b5c6d7...".to_owned(),
        format!("{} is cut", &token[..30]),
    ] {
        assert_eq!(kinds_in(&text, TextForm::Plain), [""; 0], "{text}");
    }
}

#[test]
fn a_word_longer_than_the_shape_of_a_token_is_not_redacted() {
    let key = format!("AK{}{}", "IA", "Q".repeat(2) + "ZB7KXM3WNRTDVC");
    assert_eq!(kinds_in(&key, TextForm::Plain), ["aws-access-key"]);
    assert!(kinds_in(&format!("{key}A"), TextForm::Plain).is_empty());
}

#[test]
fn values_after_indicating_names_are_found_in_every_notation() {
    let secret = noise(3, 32);
    for (text, kind) in [
        (format!("API_KEY={secret}"), "key"),
        (format!("export DB_PASSWORD=\"{secret}\""), "password"),
        (format!("{{\"clientSecret\":\"{secret}\"}}"), "secret"),
        (format!("{{\\\"auth_token\\\": \\\"{secret}\\\"}}"), "token"),
        (format!("token: &str = \"{secret}\";"), "token"),
        (format!("apiKey := `{secret}`"), "key"),
        (format!("X-Auth-Token: {secret}\r\n"), "token"),
        (format!("os.environ['GH_TOKEN'] = '{secret}'"), "token"),
        (format!("headers.set(\"X-Api-Key\", \"{secret}\")"), "key"),
        (format!("<password>{secret}</password>"), "password"),
        (format!("https://host/?access_token={secret}&x=1"), "token"),
        (format!("npm config set //host/:_authToken={secret}"), "token"),
        (format!("run --password {secret} --fast"), "password"),
        (format!("SECRET_KEY_BASE={secret}"), "key"),
        (format!("password => '{secret}',"), "password"),
        (format!("token\\u003d{secret}"), "token"),
    ] {
        let found = Redactor::new().find(text.as_bytes(), TextForm::Json);
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!(&text[found[0].range.clone()], secret, "{text}");
        let known = SAME.iter().any(|same| same.contains(&kind) && same.contains(&found[0].kind));
        assert!(known || found[0].kind == kind, "{text}: {}", found[0].kind);
    }
}

/// If a name contains two secret-indicating words, either may give the kind.
const SAME: [&[&str]; 2] = [&["key", "secret"], &["token", "credential"]];

#[test]
fn values_that_are_no_secrets_stay_after_an_indicating_name() {
    let secret = noise(4, 32);
    for text in [
        // Too short, too plain.
        "password = hunter2!".to_owned(),
        "token: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1b".to_owned(),
        // Placeholders.
        format!("api_key = \"xxxx{secret}\""),
        format!("API_KEY=test-{secret}"),
        "SECRET_KEY=development-key-that-is-long-12".to_owned(),
        "password: your-password-goes-here-2024".to_owned(),
        // Identifiers and expressions.
        "token = get_access_token_from_environment_v2(request)".to_owned(),
        "secret = settings.oauth2.client.secretFromEnvironment".to_owned(),
        "api_key = process.env.MY_COMPANY_API_KEY_2".to_owned(),
        "password: ${DATABASE_PASSWORD_FROM_VAULT_1}".to_owned(),
        "tokenSource = CancellationTokenSource2Factory.Create()".to_owned(),
        "assert token == 4f9d0a7c1be24f9d0a7c1be2_expected(x)".to_owned(),
        // The entropy check does not apply to these.
        format!("token_id: {secret}"),
        format!("secret_uuid = {secret}"),
        format!("\"token_signature\":\"{secret}\""),
        format!("\"signature\":\"{secret}{secret}\""),
        "session_token = 0b3d5f7a-91c2-4e6f-8a1b-2c3d4e5f6a7b".to_owned(),
        "credentials: /home/me/.config/gcloud/key8f3a9b2c.json".to_owned(),
        "token: https://auth.test/v2/oauth/9f8e7d6c5b4a".to_owned(),
        format!("public_key = {secret}"),
        format!("next_page_token={secret}"),
        "the token that we saw at 12:30 was fine".to_owned(),
        // Something is looked up or continued by these.
        format!("cache_key: {secret}"),
        format!("\"sortKey\": \"{secret}\""),
        format!("cursor_token={secret}"),
        "TOKEN_ADDRESS=0x6f741164dcf2533b7b1bf90fc6d748648c38472e".to_owned(),
    ] {
        assert_eq!(kinds_in(&text, TextForm::Plain), Vec::<&str>::new(), "{text}");
    }
}

/// Regression: the search for cookies skipped a login inside a cookie.
#[test]
fn a_login_inside_of_a_cookie_is_found() {
    let login = "ZGVwbG95OmI3eEtxMlBtOVRzNA==";
    let text = format!("Cookie: state={{\"auth\":\"{login}\"}}; theme=dark");
    assert!(!Redactor::new().clean(&text, TextForm::Plain).contains(login));
}

/// Regression: a secret that begins with a slash and contains another one was taken for a path.
#[test]
fn a_secret_in_base64_with_slashes_is_no_path() {
    for secret in
        ["/bPxRfiCY3k/x7Qm2Z9vL0tWd8sE5uHjKgNqYpRa", "/x7Qm2Z9vL0tWd8sE5uHjKg/NqYpRabPxRfiCY3k="]
    {
        let text = format!("export API_SECRET={secret}");
        assert!(!Redactor::new().clean(&text, TextForm::Plain).contains(secret), "{secret}");
    }
    for path in
        ["/home/me/Projects2024/MyApplication1/KeyFile", "/nix/store/0c9xj7Qm2Z9vL0tWd8sE5u-key"]
    {
        let text = format!("export API_SECRET={path}");
        assert!(Redactor::new().clean(&text, TextForm::Plain).contains(path), "{path}");
    }
}

/// Regression: the entropy of a short text is low, so a password of six bytes with a repeated byte
/// was taken for a placeholder.
#[test]
fn a_short_password_that_repeats_a_byte_is_no_placeholder() {
    for password in ["k9x9Qz", "q7q7zr4", "demo9482716350"] {
        for text in ["postgres://bob:{}@db/x", "mysql -u root -p{} shop"] {
            let text = text.replace("{}", password);
            assert!(!Redactor::new().clean(&text, TextForm::Plain).contains(password), "{text}");
        }
    }
    for password in ["foo123", "abc123", "aaaa11", "secret1"] {
        let text = format!("postgres://bob:{password}@db/x");
        assert!(Redactor::new().clean(&text, TextForm::Plain).contains(password), "{text}");
    }
}

/// Names of features and models, as they occur in the requests that a client logs. A list of them
/// is parsed as names and values, because the name before a comma may indicate a secret.
#[test]
fn feature_names_that_end_in_a_date_are_not_redacted() {
    let names = [
        "advanced-tool-use-2025-11-20",
        "context-management-2025-06-27",
        "interleaved-thinking-2025-05-14",
        "claude-code-20250219",
        "fine-grained-tool-streaming-2025-05-14",
        "token-efficient-tools-2025-02-19",
        "output-128k-2025-02-19",
        "context-1m-2025-08-07",
        "extended-cache-ttl-2025-04-11",
        "claude-haiku-4-5-20251001",
        "claude-3-5-sonnet-20241022",
        "us.anthropic.claude-sonnet-4-20250514-v1:0",
        "claude-opus-4@20250514",
        "gpt-4o-mini-2024-07-18",
        "gpt-4o-realtime-preview-2024-12-17",
    ];
    for name in names {
        for text in [
            format!(r#"{{"token":"{name}"}}"#),
            format!(r#"{{"betas":["token-counting-2024-11-01","{name}"]}}"#),
            format!(r#"{{"headers":{{"x-api-key-beta":"{name}"}}}}"#),
            format!("Authorization: Bearer {name}"),
            format!("CLIENT_SECRET={name}"),
        ] {
            assert_eq!(kinds_in(&text, TextForm::Json), [""; 0], "{text}");
        }
    }
    let list = names.map(|name| format!("\"{name}\"")).join(",");
    assert_eq!(kinds_in(&format!("{{\"betas\":[{list}]}}"), TextForm::Json), [""; 0]);
    let header = names.join(",");
    assert_eq!(kinds_in(&format!("{{\"anthropic-beta\":\"{header}\"}}"), TextForm::Json), [""; 0]);
}

#[test]
fn a_secret_followed_by_a_date_is_still_redacted() {
    for value in [
        "kq3vz8mn2pl7wr4t-2025-11-20",
        "Kq-Vz-Mn-Pl-Wr-Ty-Ub-2025-11-20",
        "xkqvzmwrt-plbnghjkd-2025-11-20",
        "a1b2-c3d4-e5f6-g7h8-2025-11-20",
        "advanced-tool-use-q7x9k2m4z8-2025-11-20",
        "advanced-tool-q7x-2025-11-20-k3v9w1z8",
        "q7x9k2m4z8b5n1v6-2025-19-20",
    ] {
        assert_eq!(
            kinds_in(&format!(r#"{{"token":"{value}"}}"#), TextForm::Json),
            ["token"],
            "{value}"
        );
    }
}

#[test]
fn credentials_are_found_by_what_surrounds_them() {
    let password = noise(5, 16);
    for (text, kind) in [
        (format!("Authorization: Bearer {}", noise(6, 40)), "bearer"),
        (format!("-H 'authorization: bearer {}'", noise(6, 40)), "bearer"),
        ("Authorization: Basic ZGVwbG95OmI3eEtxMlBtOVRzNA==".to_owned(), "basic"),
        // The password has a letter that is not ASCII.
        ("Authorization: Basic ZGVwbG95OmI3eEtxMlBtOcOfNHM=".to_owned(), "basic"),
        (format!("git clone https://me:{password}@host/x.git"), "url-password"),
        (format!("\"redis:\\/\\/me:{password}@host\""), "url-password"),
        (format!("amqp://:{password}@host"), "url-password"),
        (format!("curl -u deploy:{password} https://host"), "basic"),
        (format!("login me password {password}\n"), "password"),
    ] {
        assert_eq!(kinds_in(&text, TextForm::Json), [kind], "{text}");
    }
    for text in [
        "a bearer of bad news, a bearer token that is missing",
        "Basic Authentication is used, basic ZGVwbG95",
        "postgres://postgres:postgres@localhost/db",
        "mysql://root:$PASSWORD@host",
        "https://user:password@example.test",
        "http://localhost:8080/a@b",
        "ssh://git@host:22/x",
        "use curl -u user:pass",
    ] {
        assert_eq!(kinds_in(text, TextForm::Plain), Vec::<&str>::new(), "{text}");
    }
}

fn private_key(newline: &str) -> (String, String) {
    let dashes = "-".repeat(5);
    let lines: Vec<String> = (0..12).map(|line| noise(50 + line, 64)).collect();
    let body = lines.join(newline);
    let label = format!("{} KEY", "PRIVATE");
    (
        format!("{dashes}BEGIN {label}{dashes}{newline}{body}{newline}{dashes}END {label}{dashes}"),
        body,
    )
}

#[test]
fn a_whole_private_key_is_removed_however_its_lines_end() {
    for newline in ["\n", "\r\n", "\\n", "\\\\n", "\\r\\n"] {
        let (key, _) = private_key(newline);
        let text = format!("{{\"x\":\"before {key} after\"}}");
        let clean = Redactor::new().clean(&text, TextForm::Json).into_owned();
        assert_eq!(clean, "{\"x\":\"before [redacted:private-key] after\"}", "{newline:?}");
    }
}

#[test]
fn a_private_key_without_an_end_is_redacted_up_to_the_end_of_its_string() {
    let (key, _) = private_key("\\n");
    let cut = &key[..key.len() - 60];
    let text = format!("{{\"x\":\"{cut}\",\"y\":\"kept kept kept\"}}");
    let clean = Redactor::new().clean(&text, TextForm::Json).into_owned();
    assert_eq!(clean, "{\"x\":\"[redacted:private-key]\",\"y\":\"kept kept kept\"}");
    let dashes = "-".repeat(5);
    let constants = format!(
        "a = \"{dashes}BEGIN {0} KEY{dashes}\"; b = \"{dashes}END {0} KEY{dashes}\"",
        "PRIVATE"
    );
    assert_eq!(Redactor::new().clean(&constants, TextForm::Plain), constants);
}

#[test]
fn an_unfinished_last_line_of_a_private_key_is_redacted_up_to_the_end_of_its_string() {
    // Regression: the text after "END" was removed up to the next hyphen, with the closing quote.
    let (key, _) = private_key("\\n");
    for end in ["KEYlorem\\n", "KEYlorem", ""] {
        let cut = key.rfind("KEY").map_or("", |at| &key[..at]);
        let text = format!("{{\"x\":\"{cut}{end}\",\"y\":\"kept\"}}");
        let clean = Redactor::new().clean(&text, TextForm::Json).into_owned();
        let rest = if end.ends_with('n') { "\\n" } else { "" };
        assert_eq!(clean, format!("{{\"x\":\"[redacted:private-key]{rest}\",\"y\":\"kept\"}}"));
    }
}

#[test]
fn allowed_secrets_stay() {
    let (token, other) = (github(7), github(8));
    let text = format!("{token} {other}");
    let clean = |redactor: Redactor| redactor.clean(&text, TextForm::Plain).into_owned();
    assert_eq!(clean(Redactor::new().allow([&token])), format!("{token} [redacted:github-token]"));
    assert_eq!(clean(Redactor::new().allow(["kind:github-token"])), text);
    assert_eq!(
        clean(Redactor::new().allow(["", " "])),
        "[redacted:github-token] [redacted:github-token]"
    );
}

#[test]
fn a_value_is_cleaned_at_any_depth_and_by_the_names_of_its_fields() {
    let secret = noise(9, 32);
    let mut value: Value = serde_json::from_str(&format!(
        r#"{{"a":[{{"apiToken":"{secret}","token_id":"{secret}"}}],"b":"see {0}","{0}":1,
            "env_vars":{{"PATH":"/bin","MY_FLAG":"on","LANG":"C"}},"n":7}}"#,
        github(10)
    ))
    .unwrap();
    let found = Redactor::new().keep_variables(["OTHER_*"]).clean_value(&mut value);
    assert_eq!(
        serde_json::to_string(&value).unwrap(),
        format!(
            r#"{{"[redacted:github-token]":1,"a":[{{"apiToken":"[redacted:token]","token_id":"{secret}"}}],"b":"see [redacted:github-token]","env_vars":{{"LANG":"C","MY_FLAG":"[redacted:environment]","PATH":"/bin"}},"n":7}}"#
        )
    );
    assert_eq!(
        found.into_iter().collect::<Vec<_>>(),
        [("environment", 1), ("github-token", 2), ("token", 1)]
    );
    assert!(Redactor::new().keep_variables(["OTHER_*"]).keeps_variable("OTHER_ONE"));
}

#[test]
fn entropy_is_the_shannon_entropy_in_bits() {
    assert!((secret_heuristics::entropy(b"abcd") - 2.0).abs() < 1e-9);
    assert!(secret_heuristics::entropy(b"aaaa").abs() < 1e-9);
}

/// A mark ends a word, is not a name for what follows, and is shorter than the text it replaces.
/// Secrets that overlap are both removed.
#[test]
fn a_redaction_mark_ends_a_word_and_is_no_name_for_the_next_value() {
    let (token, value) = (github(11), noise(12, 32));
    let capped = noise(13, 512);
    // A password that is generated is also found far from its login.
    let far = format!("login me {} password {}", noise(14, 300), noise(15, 20));
    for (text, clean) in [
        (format!("{token} = {value}"), format!("[redacted:github-token] = {value}")),
        (format!("[redacted:token]: {value}"), format!("[redacted:token]: {value}")),
        // A `.netrc` password ends after 512 bytes; the text after that is a separate word.
        (
            format!("login me password {capped}{token}"),
            "login me password [redacted:password][redacted:github-token]".to_owned(),
        ),
        (far.clone(), far.replace(&noise(15, 20), "[redacted:password]")),
        (
            far.replace("me ", &format!("me {} ", github(16))).replace(&noise(14, 300), ""),
            "login me [redacted:github-token]  password [redacted:password]".to_owned(),
        ),
        (
            format!("login me {0} {0} {0} {0} password {1}", token, noise(15, 20)),
            format!(
                "login me{} password [redacted:password]",
                " [redacted:github-token]".repeat(4)
            ),
        ),
        // The value extends beyond the password that contains it.
        (
            format!("https://me:{value}=token={value}@host"),
            "https://me:[redacted:url-password]".to_owned(),
        ),
    ] {
        for form in [TextForm::Plain, TextForm::Json] {
            assert_eq!(Redactor::new().clean(&text, form), clean, "{text}");
            assert_eq!(Redactor::new().clean(&clean, form), clean);
        }
    }
    // Allowed text must not hide the secrets after it.
    let text = format!("{token} = {value} {}", github(17));
    let clean = Redactor::new().allow([&token]).clean(&text, TextForm::Plain).into_owned();
    assert_eq!(clean, format!("{token} = {value} [redacted:github-token]"));
}

/// Regression: the part with the `login` had already been emitted, so the password after it was
/// kept.
#[test]
fn a_password_is_redacted_if_a_cut_separates_it_from_its_login() {
    let text = format!("machine host\n  login me\n  password {}\nthat was it\n", noise(21, 20));
    let whole = Redactor::new().clean(&text, TextForm::Plain).into_owned();
    assert!(whole.contains("  password [redacted:password]\n"), "{whole}");
    for place in 0..text.len() {
        let parts = in_parts(text.as_bytes(), TextForm::Plain, &[place]);
        assert_eq!(String::from_utf8(parts).unwrap(), whole, "cut at {place}");
    }
    // Lines of JSON are separate documents.
    let line = format!("{{\"a\":\"login me\"}}\n{{\"b\":\"password {}\"}}\n", noise(21, 20));
    assert_eq!(Redactor::new().clean(&line, TextForm::Json), line);
}

/// Redacts a text in parts that end at these cuts. The result must not depend on the cuts.
fn in_parts(text: &[u8], form: TextForm, cuts: &[usize]) -> Vec<u8> {
    let redactor = Redactor::new();
    let mut clean = Vec::new();
    let mut held: Vec<u8> = Vec::new();
    let mut from = 0;
    for cut in cuts.iter().copied().chain([text.len()]) {
        let cut = cut.clamp(from, text.len());
        held.extend_from_slice(&text[from..cut]);
        from = cut;
        let ending = match held.last() {
            _ if cut == text.len() => PartEnding::End,
            Some(b'\n') => PartEnding::Line,
            _ => PartEnding::More,
        };
        let part = redactor.clean_part(&held, form, ending);
        clean.extend_from_slice(&part.bytes);
        let taken = part.taken;
        held.drain(..taken);
    }
    clean
}

/// Regression: the value was kept if the cut fell between a name and its value, or inside the name.
#[test]
fn a_value_is_redacted_if_a_cut_separates_it_from_its_name() {
    for line in [
        format!("MY_API_KEY={}", noise(203, 40)),
        format!("{{\"apiToken\": \"{}\"}}", noise(203, 40)),
        format!("https://me:{}@host/", noise(7, 20)),
        format!("Authorization: Bearer {}", noise(9, 40)),
    ] {
        let text = format!("{line}\n{}", "some words go here\n".repeat(2000));
        let whole = Redactor::new().clean(&text, TextForm::Plain).into_owned();
        assert_ne!(whole, text);
        for place in 0..line.len() {
            let parts = in_parts(text.as_bytes(), TextForm::Plain, &[MAX_SECRET_BYTES + place]);
            assert_eq!(String::from_utf8(parts).unwrap(), whole, "{line} at {place}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_secret_is_missed_at_the_edge_of_a_part(
        seeds in prop::collection::vec((0_u64..1000, 0_usize..400, 0_u8..4), 1..6),
        cuts in prop::collection::vec(0_usize..40_000, 0..12),
    ) {
        let mut text = String::new();
        for (seed, gap, what) in seeds {
            text.push_str(&"some words go here\n".repeat(gap));
            match what {
                0 => text.push_str(&github(seed)),
                1 => text.push_str(&private_key("\n").0),
                2 => text.push_str(&format!("API_KEY={}", noise(seed, 40))),
                _ => text.push_str(&format!("https://me:{}@host/", noise(seed, 20))),
            }
            text.push('\n');
        }
        let mut cuts = cuts;
        cuts.sort_unstable();
        let whole = Redactor::new().clean(&text, TextForm::Plain).into_owned();
        let parts = String::from_utf8(in_parts(text.as_bytes(), TextForm::Plain, &cuts)).unwrap();
        prop_assert!(parts == whole, "cut at {cuts:?}");
    }

    /// Scanning a text in shares that end at line ends, in any order, gives the same result as
    /// scanning it whole.
    #[test]
    fn scanning_shares_gives_the_same_as_scanning_the_whole(
        what in prop::collection::vec((0_u64..1000, 0_u8..7), 1..30),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        json: bool,
    ) {
        let mut text = String::new();
        for (seed, what) in what {
            match what {
                0 => text.push_str(&github(seed)),
                1 => text.push_str(&private_key("\n").0),
                2 => text.push_str(&format!("API_KEY={}", noise(seed, 40))),
                3 => text.push_str(&format!("{{\"apiToken\":\"{}\"}}", noise(seed, 40))),
                4 => text.push_str(&format!("https://me:{}@host/", noise(seed, 20))),
                5 => text.push_str("-----BEGIN RSA PRIVATE KEY-----\nMIIE"),
                _ => text.push_str("api_token password: token secret="),
            }
            text.push('\n');
        }
        let form = if json { TextForm::Json } else { TextForm::Plain };
        let lines: Vec<usize> = text.match_indices('\n').map(|(place, _)| place + 1).collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| lines[cut.index(lines.len())]).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let redactor = Redactor::new();
        for ending in [PartEnding::More, PartEnding::Line, PartEnding::End] {
            let shares =
                cuts.windows(2).map(|cut| scan(text.as_bytes(), cut[0]..cut[1], form)).collect();
            let whole = redactor.clean_part(text.as_bytes(), form, ending);
            prop_assert_eq!(redactor.clean_found(text.as_bytes(), form, shares, ending), whole);
        }
    }

    #[test]
    fn cleaning_is_done_once_and_never_panics(text in ".{0,300}", form in prop::bool::ANY) {
        let form = if form { TextForm::Json } else { TextForm::Plain };
        let once = Redactor::new().clean(&text, form).into_owned();
        prop_assert_eq!(Redactor::new().clean(&once, form).into_owned(), once);
    }
}

#[test]
fn the_page_lists_every_kind() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/redaction.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (text, _) = page.split_once("## Kinds\n").unwrap();
    let rows: Vec<String> = kinds()
        .into_iter()
        .map(|(kind, what)| format!("| `{kind}` | {} |\n", what.replace('|', "\\|")))
        .collect();
    let wanted = format!("{text}## Kinds\n\n| kind | what |\n|---|---|\n{}", rows.concat());
    if std::env::var_os("FORGE_UPDATE_DOCS").is_some() {
        std::fs::write(path, &wanted).unwrap();
    } else {
        assert_eq!(page, wanted, "write it with FORGE_UPDATE_DOCS=1");
    }
}
