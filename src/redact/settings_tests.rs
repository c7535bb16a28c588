//! Made-up passwords as they occur in settings, commands and configuration files. The results are
//! compared with `docs/redaction.md`.

use super::*;
use std::fmt::Write as _;

/// Contexts of passwords: a description, and the text with `{}` in place of the password.
const SETTINGS: [(&str, &str); 45] = [
    ("a line of .env", "DB_PASSWORD={}\n"),
    ("a line of .env in quotes", "DB_PASSWORD=\"{}\"\n"),
    ("an exported variable", "export MYSQL_PWD={} && make"),
    ("a variable before a command", "PGPASSWORD={} psql -h db"),
    ("docker run -e", "docker run -e POSTGRES_PASSWORD={} postgres"),
    ("a flag with =", "tool --password={} -u root"),
    ("a flag with a space", "tool --password {} -u root"),
    ("mysql -p, glued", "mysql -u root -p{} shop"),
    ("sshpass -p", "sshpass -p '{}' ssh me@host"),
    ("redis-cli -a", "redis-cli -h db -a {} ping"),
    ("docker login -p", "docker login -u me -p {} ghcr.io"),
    ("ldapsearch -w", "ldapsearch -D cn=me -w {} -b dc=x"),
    ("unzip -P", "unzip -P {} file.zip"),
    ("curl -u", "curl -u admin:{} https://host.test"),
    ("YAML", "db:\n  password: {}\n"),
    ("YAML in quotes", "db:\n  password: \"{}\"\n"),
    ("an environment in YAML", "- name: DB_PASSWORD\n  value: {}\n"),
    ("an environment in JSON", "{\"name\": \"DB_PASSWORD\", \"value\": \"{}\"}"),
    ("JSON", "{\"password\":\"{}\",\"user\":\"me\"}"),
    ("JSON in JSON", "{\"a\":\"{\\\"password\\\":\\\"{}\\\"}\"}"),
    ("TOML", "password = \"{}\"\n"),
    ("INI", "[db]\npassword = {}\n"),
    ("Java properties", "spring.datasource.password={}\n"),
    ("XML element", "<password>{}</password>"),
    ("XML of NuGet", "<add key=\"ClearTextPassword\" value=\"{}\" />"),
    ("an HTML form", "<input name=\"password\" value=\"{}\">"),
    ("a connection string", "Server=db,1433;User Id=sa;Password={};Encrypt=true"),
    ("a query", "POST /login?user=me&password={}&x=1"),
    ("user information of an address", "postgres://me:{}@host.test/db"),
    ("HCL of Terraform", "  db_password = \"{}\"\n"),
    ("Terraform variable", "terraform apply -var db_password={}"),
    ("PHP", "$password = '{}';"),
    ("Python", "connect(host, password='{}')"),
    ("JavaScript", "connect({ password: '{}' })"),
    ("Go", "Password: \"{}\","),
    ("SQL, created", "CREATE USER 'me'@'%' IDENTIFIED BY '{}';"),
    ("SQL, altered", "ALTER ROLE me WITH PASSWORD '{}';"),
    ("redis.conf", "requirepass {}\n"),
    ("netrc", "machine host.test login me password {}\n"),
    ("an added line of a diff", "+DB_PASSWORD={}\n"),
    ("a removed line of a diff", "-DB_PASSWORD={}\n"),
    ("grep", ".env:12:DB_PASSWORD={}\n"),
    ("stringData of Kubernetes", "apiVersion: v1\nkind: Secret\nstringData:\n  pw: {}\n"),
    ("data of Kubernetes before its kind", "apiVersion: v1\ndata:\n  pw: {}\nkind: Secret\n"),
    ("Kubernetes in JSON", "{\"data\":{\"a\":\"{}\",\"b\":\"x\"},\"kind\":\"Secret\"}"),
];

/// Returns made-up passwords: letters of both cases with digits, small letters with digits, and
/// some with signs.
fn passwords() -> Vec<String> {
    let mut all: Vec<String> =
        [8, 10, 12, 16, 19].into_iter().map(|count| noise(300 + count, count as usize)).collect();
    all.extend(
        ["hx92kd01", "q7vz4m1xk8", "v9-Kp2_mZ7", "rT6!kLp0", "Wq3#zN8^mB", "Zk7@xW2pLm"]
            .map(str::to_owned),
    );
    all
}

fn settings() -> (usize, usize, String, String) {
    let (mut found, mut all, mut rows, mut missed) = (0, 0, String::new(), String::new());
    for (name, template) in SETTINGS {
        let (mut hits, mut of) = (0, 0);
        for password in passwords() {
            // The plain text, and the text as a JSON string.
            let plain = template.replace("{}", &password);
            let json = serde_json::json!({ "out": plain }).to_string();
            for (text, form) in [(plain, TextForm::Plain), (json, TextForm::Json)] {
                of += 1;
                let clean = Redactor::new().clean(&text, form).into_owned();
                if clean.contains(&password) {
                    writeln!(missed, "{clean}").unwrap();
                }
                hits += usize::from(!clean.contains(&password));
                if form == TextForm::Json {
                    serde_json::from_str::<serde_json::Value>(&clean).unwrap();
                }
                assert_eq!(Redactor::new().clean(&clean, form), clean, "{name}");
            }
        }
        (found, all) = (found + hits, all + of);
        writeln!(rows, "| {name} | {hits} of {of} |").unwrap();
    }
    (found, all, rows, missed)
}

#[test]
fn the_page_says_which_passwords_are_found() {
    let (found, all, rows, missed) = settings();
    assert!(found * 100 >= all * 95, "{found} of {all}\n{missed}");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/redaction.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once("## Passwords\n").unwrap();
    let (_, after) = rest.split_once("## Surroundings\n").unwrap();
    let wanted = format!(
        "{before}## Passwords\n\nInvented passwords of 8 to 19 bytes were put where settings and commands have them, \
         plain and inside a JSON string. {found} of {all} are found:\n\n\
         | where | found |\n|---|---|\n{rows}\n## Surroundings\n{after}"
    );
    if std::env::var_os("FORGE_UPDATE_DOCS").is_some() {
        std::fs::write(path, &wanted).unwrap();
    } else {
        assert!(page == wanted, "write it with FORGE_UPDATE_DOCS=1");
    }
}

/// Regression: a password that a service made for one program has neither digits nor capitals.
#[test]
fn a_password_for_one_program_is_found() {
    for (text, kinds) in [
        ("SMTP_PASSWORD=\"qzxv jkpw ntbr hmsd\"", 1),
        ("EMAIL_HOST_PASSWORD = 'qzxv jkpw ntbr hmsd'", 1),
        ("SMTP_PASSWORD=qzxvjkpwntbrhmsd\n", 1),
        ("xcrun notarytool submit a.zip --password qzxv-jkpw-ntbr-hmsd", 1),
        ("password = \"your pass word here\"", 0),
        ("SMTP_PASSWORD=\"abcd efgh ijkl mnop\"", 0),
        ("SMTP_PASSWORD=xxxx-xxxx-xxxx-xxxx", 0),
        ("DB_PASSWORD=thepasswordthere", 0),
    ] {
        assert_eq!(kinds_in(text, TextForm::Plain).len(), kinds, "{text}");
    }
}

/// Names, types, code and placeholders where a password could be are not redacted.
#[test]
fn text_that_is_no_password_stays() {
    for text in [
        "password = getPassword1()",
        "password: String1Type,",
        "pwd = \"D:\\\\Work2x\\\\Kq7w\"",
        "PWD=D:/Work2x/Kq7w",
        "{\"pwd\": \"C:/dev/app1\"}",
        "let password = config.password2;",
        "password=\"$DB_PASSWORD1\"",
        "PASSWORD=${DB_PASS1}",
        "PASSWORD=%DB_PASS1%",
        "DB_PASSWORD=changeme123",
        "DB_PASSWORD=your-password1",
        "password: <password1>",
        "password: hunter2",
        "password=********",
        "passwords: 12345678",
        "WRONG_PASSWORD: NTSTATUS = 0xC000006A_u32",
        "macro!(\"a_pass\", Aes128GcmSiv)",
        "password123",
        "pass: 12 of 14, fail: 2",
        "tests pass: unit2, doc3",
        "password: see vault2 for it",
        "token: token2, secret: secret3",
        "api_key=API_KEY_V2",
        "PWD=/home/me2/project1",
        "\"pwd\":\"/home/me2/p1\"",
        "bypass=feature2x",
        "mkdir -p Kq7wRt5z9",
        "cp -a Kq7wRt5z9 other",
        "cargo test -p crate2name3",
        "docker run -p 8080:8080 -p Kq7wRt5z9",
        "git push -u origin:branch2x",
        "docker run -u 1000:1000x9",
        "a station identified by %NL80211_ATTR_MAC",
        "log in with password Kq7wRt5z and go",
        "\"auth\": \"none\"",
        "author: \"bWU6amQyQXNqRDdOMmtIRDlGU1V1\"",
        "Set-Cookie: theme=lO7F3vlfFrGYJ3GxeYYXwSLQ; Path=/",
        "Set-Cookie: session=deleted; Max-Age=0",
        "cookies = {\"theme\": \"lO7F3vlfFrGYJ3GxeYYXwSLQ\"}",
        "cookies={'sid': lO7F3vlfFrGYJ3GxeYYXwSLQ}",
        "host.test\tTRUE\t/\tFALSE\t0\ttheme\tlO7F3vlfFrGYJ3GxeYYXwSLQ",
        "cookie: 3 of them",
        "apiVersion: v1\nkind: ConfigMap\ndata:\n  pw: c2VjcmV0dG9rZW4=\n",
        "kind: SecretList\ndata:\n  pw: c2VjcmV0dG9rZW4=\n",
        "kind: Secret\nmetadata:\n  name: c2VjcmV0dG9rZW4\n",
        "kind: Secret\ndata:\n  pw: {{ .Values.pw1 }}\n",
        "data:\n  a: c2VjcmV0dG9rZW4=\n---\nkind: Secret\n",
        "{\"kind\":\"ConfigMap\",\"data\":{\"a\":\"c2VjcmV0dG9rZW4=\"}},{\"kind\":\"Secret\"}",
    ] {
        assert_eq!(kinds_in(text, TextForm::Plain), [""; 0], "{text}");
    }
}

#[test]
fn logins_of_docker_are_found() {
    let auth = "bWU6amQyQXNqRDdOMmtIRDlGU1V1RXJzRXo1amh5MEk5";
    for text in [
        format!("{{\"auths\":{{\"ghcr.io\":{{\"auth\":\"{auth}\"}}}}}}"),
        format!("{{\"auth\": \"{auth}\"}}"),
        format!("{{\"a\":\"{{\\\"auth\\\":\\\"{auth}\\\"}}\"}}"),
        format!("auth: {auth}\n"),
        format!("//registry.test/:_auth={auth}\n"),
    ] {
        let clean = Redactor::new().clean(&text, TextForm::Json).into_owned();
        assert!(!clean.contains(auth), "{clean}");
    }
}

/// Kubernetes prints the configuration of Docker in base64 (`.dockerconfigjson`).
#[test]
fn the_configuration_of_docker_is_found_in_base64() {
    // `{"auths":{"ghcr.io":{"auth":"..."}}}`, on one line and as Docker writes it.
    for encoded in [
        "eyJhdXRocyI6eyJnaGNyLmlvIjp7ImF1dGgiOiJiV1U2YW1ReVFYTnFSRGRP\
         TW10SVJEbEdVMVYxUlhKelJYbzFhbWg1TUVrNSJ9fX0=",
        "ewoJImF1dGhzIjogewoJCSJnaGNyLmlvIjogewoJCQkiYXV0aCI6ICJiV1U2YW1ReVFYTnFS\
         RGRPTW10SVJEbEdVMVYxUlhKelJYbzFhbWg1TUVrNSIKCQl9Cgl9Cn0=",
    ] {
        for text in [
            format!("  .dockerconfigjson: {encoded}\n"),
            encoded.to_owned(),
            format!("{{\".dockerconfigjson\":\"{encoded}\"}}"),
        ] {
            assert_eq!(kinds_in(&text, TextForm::Plain), ["docker-token"], "{text}");
        }
    }
}

#[test]
fn cookies_of_sessions_are_found() {
    let value = noise(31, 40);
    for text in [
        format!("Set-Cookie: session={value}; Path=/; HttpOnly\r\n"),
        format!("< set-cookie: __Host-sid={value}; Secure"),
        format!("Cookie: theme=dark; sessionid={value}; lang=en"),
        format!("curl -H 'Cookie: connect.sid=s%3A{value}' http://host.test"),
        format!("curl -b \"auth_token={value}\" http://host.test"),
        format!("{{\"headers\":{{\"cookie\":\"a=b; remember_me={value}\"}}}}"),
        format!("headers['Cookie'] = 'x'; PHPSESSID={value}"),
        format!("host.test\tFALSE\t/\tTRUE\t0\tJSESSIONID\t{value}"),
        format!("#HttpOnly_.host.test\tTRUE\t/a\tFALSE\t1790000000\tuser_session\t{value}"),
        format!("curl -H 'cookie:sid={value}' http://host.test"),
        format!("document.cookie = 'sid={value}'"),
        format!("requests.get(url, cookies={{'a': 'b', 'sessionid': '{value}'}})"),
        format!("cookies = {{\n    \"sid\": \"{value}\",\n}}"),
        format!("\"set-cookie\": [\"theme=dark; HttpOnly\", \"sid={value}; Path=/\"]"),
        format!("  'set-cookie': [\n    'sid={value}; Path=/; HttpOnly'\n  ]"),
        format!("Set-Cookie: .AspNetCore.Cookies={value}; Path=/"),
        format!("Cookie: wordpress_logged_in_{}={value}", "0a".repeat(16)),
    ] {
        for (text, form) in [
            (text.clone(), TextForm::Plain),
            (serde_json::json!({ "out": text }).to_string(), TextForm::Json),
        ] {
            let clean = Redactor::new().clean(&text, form).into_owned();
            assert!(!clean.contains(&value), "{clean}");
            assert!(clean.contains("[redacted:"), "{clean}");
        }
    }
    let two = format!("Cookie: sid={value}; lang=en; csrf={}", noise(32, 24));
    assert_eq!(kinds_in(&two, TextForm::Plain), ["session-cookie"; 2]);
}

#[test]
fn a_secret_of_kubernetes_is_removed_as_a_whole() {
    let text =
        "kind: Secret\nstringData:\n  conf: |\n    user: me\n    pw: abcd\n  b: x\ntype: Opaque\n";
    let clean = "kind: Secret\nstringData:\n  conf: |\n    [redacted:kubernetes-secret]\n  b: x\ntype: Opaque\n";
    assert_eq!(Redactor::new().clean(text, TextForm::Plain), clean);
}

#[test]
fn a_short_value_is_found_by_the_name_of_its_field() {
    let mut value: Value = serde_json::from_str(
        r#"{"password":"v1niUK8iO5","passwords":["v1niUK8iO5"],"name":"v1niUK8iO5"}"#,
    )
    .unwrap();
    assert_eq!(Redactor::new().clean_value(&mut value).values().sum::<u64>(), 1);
}
