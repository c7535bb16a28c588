//! Tokens, keys, headers and cookies, and other values that are no passwords.

use super::*;

#[test]
fn uuids_hex_digits_and_passphrases_are_found_after_clear_names() {
    let uuid = "7c1e94d2-3b5f-4a86-9e0d-52f8b7a6c413";
    let hex = "4f1d9b7a3c5e8206b9d4f1a7c3e58012";
    for (text, secret) in [
        (format!("//registry.test/:_authToken={uuid}"), uuid),
        (format!("DB_PASSWORD={uuid}\n"), uuid),
        (format!("X-Consul-Token: {uuid}\r\n"), uuid),
        (format!("API_KEY={hex}\n"), hex),
        (format!("Ocp-Apim-Subscription-Key: {hex}\r\n"), hex),
        ("password: marble-Lantern-cloudy-Harbor58\n".to_owned(), "marble-Lantern-cloudy-Harbor58"),
        ("DB_PASSWORD=Rk8vTq2mockLz5Wp9\n".to_owned(), "Rk8vTq2mockLz5Wp9"),
    ] {
        assert_removed(&text, secret);
    }
    for text in [
        format!("request_token: {uuid}"),
        format!("\"nextToken\": \"{hex}{hex}\""),
        format!("\"PolicyUpdateToken\": \"1:p+3Tq{hex}\""),
        "arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db/Main2-Qx7Kz1".to_owned(),
        "private_key: PKCS12PrivateKeyTypes,".to_owned(),
        "API_KEY=mock-4f1d9b7a3c5e8206b9d4".to_owned(),
    ] {
        assert_eq!(Redactor::new().clean(&text, TextForm::Plain), text);
    }
}

/// Regression: `_pat` was such a name only before `=`, and a pepper only as a password.
#[test]
fn a_pepper_and_a_personal_access_token_are_found_by_their_names() {
    let value = noise(903, 32);
    for template in [
        "PEPPER={}\n", "password_pepper: {}\n", "{\"pepper\": \"{}\"}", "GITHUB_PAT: {}\n",
        "{\"azure_pat\": \"{}\"}",
    ] {
        assert_removed(&template.replace("{}", &value), &value);
    }
    for text in ["add pepper: 2 pinches", "date_pat: '%Y-%m-%dT%H:%M:%S'", "pepper = peppercorn2"] {
        assert_eq!(Redactor::new().clean(text, TextForm::Plain), text);
    }
}

#[test]
fn credentials_of_headers_are_found() {
    let uuid = "7c1e94d2-3b5f-4a86-9e0d-52f8b7a6c413";
    for scheme in ["Token ", "ApiKey ", "Bot ", "SSWS ", "Splunk ", "Negotiate ", "NTLM ", ""] {
        let token = noise(901, 40);
        assert_removed(&format!("Authorization: {scheme}{token}\r\n"), &token);
        assert_removed(&format!("{{\"Authorization\":\"{scheme}{token}\"}}"), &token);
        // Regression: a bracket before the sign, and letters or `` ` `` at the quote.
        for template in [
            "headers[\"Authorization\"] = \"{}\"",
            "headers['Authorization'] = f'{}'",
            "{\"Authorization\": f\"{}\"}",
            "headers: { Authorization: `{}` }",
            "request.Headers.Add(\"Authorization\", $\"{}\");",
        ] {
            assert_removed(&template.replace("{}", &format!("{scheme}{token}")), &token);
        }
    }
    assert_removed(&format!("Authorization: GenieKey {uuid}\r\n"), uuid);
    assert_removed("Authorization: Basic cms5VmJ4MlF3N0x6NE10OHBLajNIZDY6\r\n", "cms5VmJ4MlF3N0x6");
    for name in ["X-Auth-Key", "x-functions-key", "X-Vault-Token"] {
        let key = noise(902, 44);
        assert_removed(&format!("{name}: {key}\r\n"), &key);
    }
    for text in [
        "authorization: see the section about configuration2",
        "\"XAuthorization\": \"9f86d081884c7d65\"",
        "headers[\"Authorization\"] = f\"Token {token}\"",
        "[Authorization] = see the section about configuration2",
    ] {
        assert_eq!(Redactor::new().clean(text, TextForm::Plain), text);
    }
}

#[test]
fn the_secret_of_an_access_key_is_found_beside_it() {
    let (id, secret) = ("AKIAZ3QGRSTUVWX2Y6MB", "kT7/vQ2mXz9+Lw4pRc8sHn1bJd6fGy3eUa5oKi0Z");
    for text in [
        format!("{id},{secret}\n"),
        format!("User,Access key ID,Secret access key\nme,{id},{secret}\n"),
        format!("AWS Access Key ID [None]: {id}\nAWS Secret Access Key [None]: {secret}\n"),
        format!("aws configure set aws_secret_access_key {secret}\n"),
        format!("mc alias set m https://h {id} {secret}\n"),
    ] {
        assert_removed(&text, secret);
    }
}

#[test]
fn private_keys_in_other_formats_are_found() {
    let lines: Vec<String> = (0..4).map(|line| noise(920 + line, 64)).collect();
    let number = noise(930, 43);
    // `-----BEGIN PRIVATE KEY-----` in base64.
    let encoded = format!("LS0tLS1CRUdJTi{}", "BQUklWQVRFIEtFWS0tLS0tCk1J");
    for (text, secret) in [
        (format!("client-key-data: {encoded}{}\n", noise(931, 200)), noise(931, 200)),
        (format!("{encoded}{}\n{}\n{}\n", noise(932, 36), lines[0], lines[1]), lines[1].clone()),
        (
            format!("---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n{}\n{}\n", lines[0], lines[1]),
            lines[1].clone(),
        ),
        (
            format!(
                "Public-Lines: 1\nAAAA\nPrivate-Lines: 2\n{}\n{}\nPrivate-MAC: 1",
                lines[0], lines[1]
            ),
            lines[1].clone(),
        ),
        (
            format!("untrusted comment: minisign encrypted secret key\n{}{}\n", lines[0], lines[1]),
            lines[1].clone(),
        ),
        (
            format!(
                "{0}BEGIN OpenVPN Static key V1{0}\n{1}\n{1}\n",
                "-----", "4f1d9b7a3c5e8206b9d4f1a7c3e58012"
            ),
            "4f1d9b7a3c5e8206b9d4f1a7c3e58012".to_owned(),
        ),
        (format!("{{\"kty\":\"EC\",\"crv\":\"P-256\",\"d\":\"{number}\"}}"), number.clone()),
        (format!("{{\"kty\":\"oct\",\"k\":\"{number}\"}}"), number.clone()),
        (format!("<RSAKeyValue><D>{number}=</D></RSAKeyValue>"), number.clone()),
        (format!("PresharedKey = {number}=\n"), number.clone()),
    ] {
        assert_removed(&text, &secret);
    }
    let other = format!("{{\"d\":\"{number}\"}}");
    assert_eq!(Redactor::new().clean(&other, TextForm::Plain), other);
}

/// Regression: only `D` of an `RSAKeyValue` was removed. Its primes, and what is computed from
/// them, are as secret: with one of them, anyone can compute the key.
#[test]
fn each_private_number_of_an_xml_key_is_removed() {
    let number = |seed: u64, count: usize| noise(seed, count - 2) + "==";
    let private = [("P", 1), ("Q", 2), ("DP", 3), ("DQ", 4), ("InverseQ", 5)];
    for (name, seed) in private {
        let secret = number(seed, 172);
        assert_removed(&format!("<RSAKeyValue><{name}>{secret}</{name}></RSAKeyValue>"), &secret);
    }
    // A key of 4,096 bits.
    let mut key = format!("<RSAKeyValue><Modulus>{}</Modulus>", number(7, 684));
    key.push_str("<Exponent>AQAB</Exponent>");
    for (name, seed) in private {
        key.push_str(&format!("<{name}>{}</{name}>", number(seed, 344)));
    }
    key.push_str(&format!("<D>{}</D></RSAKeyValue>", number(6, 684)));
    for (_, seed) in private {
        assert_removed(&key, &number(seed, 344));
    }
    assert_removed(&key, &number(6, 684));
    let page = format!("<p>{}</p>", noise(8, 43));
    assert_eq!(Redactor::new().clean(&page, TextForm::Plain), page);
}

#[test]
fn values_after_names_of_two_words_are_found() {
    let key = "9b1f4c7de02a58b3c6d1f07e4a92b85d";
    for template in ["API key: {}", "Master Key: {}", "Private key: 0x{}5e8118e708c16d3a"] {
        assert_removed(&template.replace("{}", key), key);
    }
    for text in [
        "Primary key: 9b1f4c7de02a58b3c6d1f07e4a92b85d",
        "failed to parse private key: InvalidEncoding",
        "Private key: /etc/ssl/private/server.key",
    ] {
        assert_eq!(Redactor::new().clean(text, TextForm::Plain), text);
    }
}

#[test]
fn the_sessions_of_password_managers_are_found() {
    let session = noise(12, 86);
    assert_removed(&format!("$ export BW_SESSION=\"{session}==\""), &session);
    assert_removed(&format!("OP_SESSION_my={session}"), &session);
}

/// Regression: in JSON, the letter of the escaped tab before the key was taken for its first byte.
#[test]
fn a_secret_key_of_aws_is_found_in_a_table() {
    let secret = noise(991, 40);
    let row = format!("CREDENTIALS\tASIAQ3EGTR5VN7WZLK2P\t2024-01-15T10:30:00Z\t{secret}\n");
    assert_removed(&row, &secret);
}

#[test]
fn the_second_form_of_a_token_of_a_service_is_found() {
    let hex = "4f1d9b7a3c5e8206b9d4f1a7c3e580127a3c5e8206b9d4f1a7c3e580124f1d9b";
    let amp = format!("sgamp_user_01JB7Q2M9XK4T8V3Z6R5C0WYPD_{hex}");
    let posthog = format!("phs_{}", noise(947, 43));
    let github =
        format!("gh{}_418265_eyJ{}.eyJ{}.{}", "s", noise(950, 20), noise(951, 40), noise(952, 60));
    let gemini = format!("AQ.Ab{}", noise(953, 48));
    let google = format!("ya29.c.{}", noise(954, 60));
    let dropbox = format!("sl.u.{}", noise(955, 140));
    let cloudflare = format!("cfat_{}", noise(956, 48));
    let tavily = format!("tvly-prod-{}", noise(957, 32));
    let session = format!("sess-{}", noise(958, 40));
    let mapbox = format!("sk.eyJ1Ijoi{}.{}", noise(959, 60), noise(960, 22));
    let letta = format!("sk-let-{}", noise(961, 60));
    let all = [&amp, &posthog, &github, &gemini, &google, &dropbox, &cloudflare, &tavily];
    for token in all.into_iter().chain([&session, &mapbox, &letta]) {
        assert_removed(&format!("use {token} now"), token);
    }
    let jwe = format!(
        "eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..{}.{}.{}",
        noise(993, 16),
        noise(994, 80),
        noise(995, 22)
    );
    let age = format!("AGE-SECRET-KEY-PQ-1{}", noise(996, 90).to_uppercase());
    for token in [&jwe, &age] {
        assert_removed(&format!("use {token} now"), token);
    }
    let (hook, deploy) = ("4f1d9b7a3c5e8206b9d4f1a7", noise(997, 10));
    assert_removed(&format!("curl -d {{}} https://api.netlify.com/build_hooks/{hook}"), hook);
    let address = "https://api.vercel.com/v1/integrations/deploy/prj_Ab3dEf6hIj9l";
    assert_removed(&format!("curl {address}/{deploy}"), &deploy);
    // The length and the checksum at the end of a token belong to it.
    let gitlab = format!("glpat-{}.01.0r03gxo7b", noise(962, 27));
    assert_removed(&format!("use {gitlab} now"), "0r03gxo7b");
    let signed = noise(963, 80);
    assert_removed(&format!("https://cdn.test/a?Expires=1&Signature={signed}&b=1"), &signed);
}

#[test]
fn the_keys_of_more_services_of_azure_are_found() {
    let keys = [("+ASb", 33, 6, "="), ("AIoT", 33, 6, "="), ("+ABa", 76, 6, "==")];
    let more = [("AzSe", 42, 6, ""), ("JQQJ99", 52, 26, "")];
    for (mark, before, after, end) in keys.into_iter().chain(more) {
        let key = format!("{}{mark}{}{end}", noise(970, before), noise(971, after));
        assert_removed(&format!("use {key} now"), &key);
    }
}

#[test]
fn a_token_in_the_place_of_the_name_in_an_address_is_found() {
    let token = noise(972, 40);
    for address in ["https://{}@host.test/a.git", "https://{}:x-oauth-basic@host.test/a.git"] {
        assert_removed(&address.replace("{}", &token), &token);
    }
    for text in [
        "https://deploy-user-2024@host.test/a.git",
        "https://4f1d9b7a3c5e8206b9d4f1a7c3e58012@o1.ingest.sentry.io/2",
    ] {
        assert_eq!(Redactor::new().clean(text, TextForm::Plain), text);
    }
}

/// Regression: every 30th random value of 20 letters and digits has no digit, and stayed.
#[test]
fn a_value_of_letters_in_random_case_is_found() {
    let long = "qXzKTvWbNRmHcJLpFdGs";
    for template in ["API_KEY={}", "\"token\": \"{}\"", "Authorization: Bearer {}"] {
        assert_removed(&template.replace("{}", long), long);
    }
    assert_removed("DB_PASSWORD=TwYKxvQn", "TwYKxvQn");
    assert_removed("\"token\": \"8f956c81c94f8dff2d9653941ad9ded4\"", "8f956c81c94f8dff2d96");
    for text in [
        "token = makeHTTPClientForXMLFeed",
        "password: userDBPath",
        "api_key = TLSCfgForXMLRPCSrvImpl",
    ] {
        assert_eq!(Redactor::new().clean(text, TextForm::Plain), text);
    }
}

#[test]
fn tokens_with_dots_are_found_without_a_known_prefix() {
    let discord = format!("M{}.{}.{}", noise(940, 23), noise(941, 6), noise(942, 38));
    let facebook = format!("1234509876543210|{}", noise(943, 30));
    let hex = "4f1d9b7a3c5e8206b9d4f1a7c3e58012";
    let zhipu = format!("{hex}.{}", noise(944, 16));
    let zoho = format!("1000.{hex}.{}", "7a3c5e8206b9d4f1a7c3e580124f1d9b");
    let vault = format!("s.{}", noise(945, 24));
    let pushbullet = format!("o.{}", noise(946, 32));
    for token in [&discord, &facebook, &zhipu, &zoho, &vault, &pushbullet] {
        for template in ["use {} now", "TOKEN_OF_BOT={}\n", "Authorization: Bot {}", "(\"{}\")"] {
            assert_removed(&template.replace("{}", token), token);
        }
    }
    for text in [
        "Main-window-of-the-program.config.value-of-the-program-itself",
        "NOT_A_TOKEN_OF_ANYTHING_.length.of_the_whole_text_in_characters",
        "4f1d9b7a3c5e8206b9d4f1a7c3e58012.chunk-vendors.js",
        "| 1234509876543210|the-name-of-the-customer-in-words |",
        "123450987654321|4f1d9b7a",
    ] {
        assert_eq!(Redactor::new().clean(text, TextForm::Plain), text);
    }
}

#[test]
fn the_words_of_a_seed_phrase_are_found() {
    let words =
        "ladder orbit velvet canyon mirror tunnel fabric hollow window ribbon summer garden";
    for template in ["MNEMONIC=\"{}\"", "mnemonic: {}\n", "{\"seed_phrase\":\"{}\"}"] {
        assert_removed(&template.replace("{}", words), words);
    }
    for text in [
        "the mnemonic is a sequence of words that a person can remember and write",
        "mnemonic: a word for each number",
        // Many such texts took more than linear time.
        &"recovery phrase ".repeat(10),
    ] {
        assert_eq!(Redactor::new().clean(text, TextForm::Plain), text);
    }
}

#[test]
fn a_token_with_a_distinct_prefix_is_found_after_a_letter() {
    let token = github(950);
    for template in ["x{}", "0x{}", "'b{}'"] {
        assert_removed(&template.replace("{}", &token), &token);
    }
    let other = format!("task-{}", "4f1d9b7a3c5e8206b9d4f1a7c3e58012");
    assert_eq!(Redactor::new().clean(&other, TextForm::Plain), other);
}

#[test]
fn verifiers_of_postgresql_are_found() {
    let digits = "4f8a1c6b2e9d7035a1b2c3d4e5f60718";
    for text in [
        format!("\"admin\" \"md5{digits}\"\n"),
        format!("CREATE ROLE app LOGIN PASSWORD 'md5{digits}';"),
    ] {
        for (text, form) in [
            (text.clone(), TextForm::Plain),
            (serde_json::json!({ "out": text }).to_string(), TextForm::Json),
        ] {
            assert_eq!(kinds_in(&text, form), ["password"], "{text}");
        }
    }
    let verifier = format!("{}=:{}=", noise(71, 43), noise(72, 43));
    let text = format!("\"app\" \"SCRAM-SHA-256$4096:{}${verifier}\"", noise(73, 24));
    let clean = Redactor::new().clean(&text, TextForm::Plain).into_owned();
    assert!(clean.ends_with(":[redacted:postgres-verifier]\""), "{clean}");
    for other in [format!("\"a\", \"md5{digits}\""), format!("md5 {digits}"), "'md5sum'".to_owned()]
    {
        assert_eq!(kinds_in(&other, TextForm::Plain), [""; 0], "{other}");
    }
}

#[test]
fn cookies_of_archives_of_requests_are_found() {
    let value = noise(74, 40);
    let list = format!(
        r#"{{"cookies":[{{"name":"theme","value":"{}","httpOnly":false}},{{"value":"{value}","name":"connect.sid","expires":null}}]}}"#,
        noise(75, 40)
    );
    let pretty =
        serde_json::to_string_pretty(&serde_json::from_str::<serde_json::Value>(&list).unwrap())
            .unwrap();
    let header = format!(r#"{{"headers":[{{"name":"Cookie","value":"a=b; sid={value}"}}]}}"#);
    let spaced = header.replace(',', ",\n      ").replace("\":", "\" : ");
    for text in [list, pretty, header, spaced] {
        for text in [text.clone(), serde_json::json!({ "out": text }).to_string()] {
            assert_eq!(kinds_in(&text, TextForm::Json), ["session-cookie"], "{text}");
            let clean = Redactor::new().clean(&text, TextForm::Json).into_owned();
            serde_json::from_str::<serde_json::Value>(&clean).unwrap();
        }
    }
    for text in [
        r#"{"cookies":[],"headers":[{"name":"Cookie"}]}"#,
        r#"{"cookies":{"session":true}}"#,
        r#"{"cookies":[{"name":"session","value":"deleted"}]}"#,
        r#"["Cookie","value"]"#,
        r#"{"cookies":[{"name""#,
    ] {
        assert_eq!(kinds_in(text, TextForm::Json), [""; 0], "{text}");
    }
}

#[test]
fn a_session_cookie_is_found_after_a_cookie_with_special_characters() {
    let value = noise(77, 28);
    for other in ["theme={\"dark\":true}", "view=[1,2]", "lang=(de)", "me=a@b.test"] {
        let text = format!("Cookie: {other}; sessionid={value}\r\n");
        assert_eq!(kinds_in(&text, TextForm::Plain), ["session-cookie"], "{text}");
    }
}

#[test]
fn a_header_joined_to_its_flag_is_read() {
    let value = noise(76, 28);
    for text in [
        format!("curl -H='Key: {value}' https://h.test"),
        format!("curl --header=\"Key: {value}\" https://h.test"),
        format!(r#"["curl","-H=Token: {value}","https://h.test"]"#),
    ] {
        assert!(!Redactor::new().clean(&text, TextForm::Plain).contains(&value), "{text}");
    }
}
