//! Secrets that are written with escapes, colour codes and invisible characters, and the arguments
//! of commands in lists.

use super::*;

/// Asserts that a text changes and that the secret is removed from it, as it is and in JSON.
fn assert_cleaned(text: &str, secret: &str) {
    for (text, clean) in clean_in_both_forms(text) {
        assert!(clean != text && !clean.contains(secret), "{clean:?}");
    }
}

#[test]
fn invisible_characters_inside_a_token_do_not_hide_it() {
    let token = github(801);
    let rest = &token[4..];
    for between in [
        "\u{1b}[m\u{1b}[K", "\u{1b}[0m\u{1b}[1;33m", "\\u001b[m", "\\x1b[m", "\\033[m", "\\e[m",
        "^[[m", "\u{9b}m", "\u{200b}", "\u{200d}", "\u{2060}", "\u{feff}", "\u{ad}", "\\u200b",
        "\\u00ad", "\\\n", "\u{200e}", "\u{202c}", "\u{2063}", "\u{fe0f}",
    ] {
        assert_cleaned(&format!("see {}{between}{rest} there", &token[..4]), rest);
        let (front, back) = token.split_at(21);
        assert_cleaned(&format!("see {front}{between}{back} there"), back);
    }
    let (front, back) = token.split_at(21);
    let line = format!("a quoted-printable line of a mail with {front}=\n{back}\n");
    assert!(!Redactor::new().clean(&line, TextForm::Plain).contains(back));
}

#[test]
fn a_token_in_wide_characters_is_found() {
    let wide = |byte: u8| char::from_u32(u32::from(byte) + 0xfee0).unwrap();
    let token: String = github(803).bytes().map(wide).collect();
    assert_cleaned(&format!("see {token} there"), &token);
}

#[test]
fn a_token_is_found_after_escapes_and_encoded_characters() {
    let token = github(802);
    for before in [
        "\\0", "\\v", "\\a", "\\_", "\u{9b}31m", "t%253D", "%2520", "--token", "-token", "-hp",
        "token_", "\u{fc}ber", "\u{43a}\u{43b}\u{44e}\u{447}",
    ] {
        assert_cleaned(&format!("x {before}{token} y"), &token);
    }
    assert_cleaned(&format!("&#{};{}", token.as_bytes()[0], &token[1..]), &token[1..]);
    assert_cleaned(&format!("&#x{:x};{}", token.as_bytes()[0], &token[1..]), &token[1..]);
}

/// Regression: in JSON with escapes for all characters that are not ASCII, as Python writes it,
/// these passwords stayed.
#[test]
fn a_word_for_a_password_is_found_in_escapes() {
    let secret = "Vq8rT2mZx4Kp";
    for before in [
        r"\u041f\u0430\u0440\u043e\u043b\u044c: ",
        r"La contrase\u00f1a es ",
        r"\\u5bc6\\u7801\\uff1a",
        r"\u0e23\u0e2b\u0e31\u0e2a\u0e1c\u0e48\u0e32\u0e19: ",
    ] {
        let text = format!("{{\"out\":\"{before}{secret}\"}}");
        for form in [TextForm::Plain, TextForm::Json] {
            let clean = Redactor::new().clean(&text, form);
            assert_eq!(clean, text.replace(secret, "[redacted:password]"));
        }
    }
}

#[test]
fn arguments_in_a_list_are_read_as_a_command() {
    for secret in ["Vq8rT2mZx4Kp", "w7Jt3Lb9Qe5Y"] {
        for list in [
            format!(r#"["mysql","-uroot","-p{secret}","shop"]"#),
            format!(r#"["mysql", "-u", "root", "-p{secret}"]"#),
            format!("['mysqldump', '-p{secret}']"),
            format!(r#"["tool","--password","{secret}","run"]"#),
            format!("('tool', '--password', '{secret}')"),
            format!(r#"["sshpass","-p","{secret}","ssh","host"]"#),
            format!(r#"["redis-cli","-a","{secret}"]"#),
            format!(r#"["curl","-u","me:{secret}","https://h"]"#),
        ] {
            assert_cleaned(&list, secret);
            assert_cleaned(&serde_json::json!({ "arguments": list }).to_string(), secret);
        }
    }
    for list in [
        r#"["ls","-p","Vq8rT2mZx4Kp"]"#,
        r#"["tool","--password-file","secrets2/Main1"]"#,
        r#"["mysql","--password","--user","Vq8rT2mZx4Kp"]"#,
    ] {
        assert_eq!(Redactor::new().clean(list, TextForm::Json), list);
    }
}

#[test]
fn a_list_of_arguments_in_a_value_is_read_as_a_command() {
    let secret = "Vq8rT2mZx4Kp";
    let mut value: Value =
        serde_json::from_str(&format!(r#"{{"argv":["tool","--password","{secret}","run"]}}"#))
            .unwrap();
    Redactor::new().clean_value(&mut value);
    assert_eq!(
        serde_json::to_string(&value).unwrap(),
        r#"{"argv":["tool","--password","[redacted:password]","run"]}"#
    );
}

#[test]
fn a_part_of_a_key_does_not_hide_another_argument() {
    let login = "-u me:TK5GLCSOBDQ/BVX14PNSBW6/gOeJaDejmW5kywwkR0";
    for items in
        [["a -----BEGIN RSA PRIVATE KEY-----\n", login], [login, "-----END RSA PRIVATE KEY-----"]]
    {
        let list = Value::List(items.map(Value::from).to_vec());
        let mut value = Value::from([("args", list)]);
        Redactor::new().clean_value(&mut value);
        let once = value.clone();
        assert!(!format!("{once:?}").contains("TK5GLC"), "{once:?}");
        assert!(Redactor::new().clean_value(&mut value).is_empty());
        assert_eq!(value, once);
    }
}

/// Returns `token` with `between` inserted after `at` bytes.
fn wrapped(token: &str, at: usize, between: &str) -> String {
    format!("{}{between}{}", &token[..at], &token[at..])
}

#[test]
fn a_token_that_a_line_end_splits_is_found() {
    let token = github(810);
    for between in ["\n", "\r\n", "\\n", "\n    ", "\n\t"] {
        for at in [10, 24, 39] {
            let text = format!("the token is {} and more", wrapped(&token, at, between));
            assert_cleaned(&text, &token[at..]);
            assert!(!Redactor::new().clean(&text, TextForm::Plain).contains(&token[4..at]));
        }
    }
    // Over several lines, as `fold -w 12` does it.
    let lines: Vec<&str> = [&token[..12], &token[12..24], &token[24..36], &token[36..]].into();
    assert_cleaned(&format!("{}\nend", lines.join("\n")), &token[12..24]);
    // The first line alone is a token of its kind.
    let key = format!("sk-ant-api03-{}", noise(811, 80));
    let clean = Redactor::new().clean(&wrapped(&key, 50, "\n"), TextForm::Plain).into_owned();
    assert_eq!(clean, "[redacted:anthropic-key]");
}

#[test]
fn the_next_line_is_no_part_of_a_token() {
    let token = github(812);
    let whole = "[redacted:github-token]";
    for next in ["\nfrom_here_on", "\n  continues", "\nlet total = 3;", "\n42", "\n\nA7f9"] {
        let clean = Redactor::new().clean(&format!("{token}{next}"), TextForm::Plain).into_owned();
        assert_eq!(clean, format!("{whole}{next}"));
    }
    for text in [
        "AKIA\nQ3EGTR5VN7WZLK2P is no key: the prefix alone is too short\n",
        "see ghp_\nthe_first_word_of_the_next_line_with_many_words",
        "xoxb-\n1111111111-2222222222-aaaaaaaaaaaaaaaaaaaaaaaa",
    ] {
        assert!(!Redactor::new().clean(text, TextForm::Plain).contains("github"), "{text}");
    }
}

#[test]
fn secrets_in_quoted_printable_text_are_found() {
    let secret = "Vq8rT2mZx4Kp";
    assert_cleaned(&format!("DB_PASSWORD=3D\"{secret}\""), secret);
    assert_cleaned(&format!("password=3D{secret}"), secret);
    let token = github(813);
    assert_cleaned(&format!("<a href=3D\"https://h.test/?token=3D{token}\">"), &token);
}

#[test]
fn text_after_a_token_of_fixed_length_does_not_hide_it() {
    let token = github(814);
    assert_cleaned(&format!("{token}\u{8fd9}"), &token);
    for after in ["foo", "foo_bar", "9"] {
        let clean = Redactor::new()
            .clean(&format!("key AKIAQ3EGTR5VN7WZLK2P{after}"), TextForm::Plain)
            .into_owned();
        assert_eq!(clean, format!("key [redacted:aws-access-key]{after}"));
    }
    let longer = "AKIAQ3EGTR5VN7WZLK2PQQ";
    assert_eq!(Redactor::new().clean(longer, TextForm::Plain), longer);
}

#[test]
fn a_secret_ends_with_its_string_although_the_next_one_looks_like_a_flag() {
    for (text, clean) in [
        // The string ends like a flag after an escaped quote.
        (r#"{"token":"gabcdefAGG1----\"-b","n}-n":0}"#, r#"{"token":"[redacted:token]","n}-n":0}"#),
        (
            r#"{"password":"-Vq8rT2mZx4Kp","-b":0,"c":"d"}"#,
            r#"{"password":"[redacted:password]","-b":0,"c":"d"}"#,
        ),
        (
            r#"{"password":"Vq8rT2mZx4Kp","--next":"kept"}"#,
            r#"{"password":"[redacted:password]","--next":"kept"}"#,
        ),
        (
            r#"{"run":"{\"password\":\"-Vq8rT2mZx4Kp\",\"-b\":0}"}"#,
            r#"{"run":"{\"password\":\"[redacted:password]\",\"-b\":0}"}"#,
        ),
    ] {
        assert_eq!(Redactor::new().clean(text, TextForm::Json), clean);
    }
    let list = r#"["mysql","--password","Vq8rT2mZx4Kp","-h","db"]"#;
    let clean = r#"["mysql","--password","[redacted:password]","-h","db"]"#;
    assert_eq!(Redactor::new().clean(list, TextForm::Json), clean);
}
