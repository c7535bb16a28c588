//! Credentials of particular programs, headers and key formats, and passwords with signs.

use super::*;

fn assert_removed(text: &str, secret: &str) {
    for (text, form) in [
        (text.to_owned(), TextForm::Plain),
        (serde_json::json!({ "out": text }).to_string(), TextForm::Json),
    ] {
        let clean = Redactor::new().clean(&text, form).into_owned();
        let pieces: Vec<&str> = secret.split(['"', '\\']).filter(|piece| piece.len() > 5).collect();
        assert!(pieces.iter().all(|piece| !clean.contains(piece)), "{clean}");
        assert_eq!(Redactor::new().clean(&clean, form), clean);
        if form == TextForm::Json {
            serde_json::from_str::<serde_json::Value>(&clean).unwrap();
        }
    }
}

/// Made-up passwords with signs that separate values elsewhere.
const PASSWORDS: [&str; 9] = [
    "rT7(kW2p]Lz9&Qm4", "x4;Hq9{Zt2,Bv7}N", "Jd8<mP3|Rk6>Wc1a", "$w9Kp3Xz7Tq", "#Zp4Lm8Qr2v",
    "/Qk7Vt3Wn9x", "@Hy6Bd2Mx8r", "Gm5=Tz8.Rw3:Ck7", "Nf6\u{e4}Wk2\u{df}Px9Lq",
];

#[test]
fn a_password_with_any_sign_is_removed_whole() {
    for password in PASSWORDS {
        for template in [
            "DB_PASSWORD={}\n",
            "DB_PASSWORD='{}'\n",
            "{\"password\": \"{}\"}",
            "db:\n  password: \"{}\"\n",
            "tool --password '{}' run",
            "tool --password={} run",
            "<password>{}</password>",
            "curl -u 'me:{}' https://host.test",
            "curl --ntlm -u 'CORP\\me:{}' https://host.test",
        ] {
            assert_removed(&template.replace("{}", password), password);
        }
    }
    for text in [
        "password = hash2(User1)[0]",
        "password: Option<Secret2>,",
        "\"password\": \"at least 8 characters, 1 digit\"",
        "password=${DB_PASSWORD_2}",
        "<password>the 2 words of the User</password>",
        "\"password\": \"{{ user.password1 }}\"",
    ] {
        assert_eq!(Redactor::new().clean(text, TextForm::Plain), text);
    }
}

#[test]
fn a_password_in_an_address_ends_at_its_last_at_sign() {
    for password in [
        "Wn4,kX9p", "Wn4(kX9p)", "Wn4[kX9p]", "Wn4'kX9p", "Wn4/kX9pT", "Wn4@kX9pT", "Wn4:kX9pT",
        "Wn4!t;kX9p",
    ] {
        assert_removed(&format!("see https://me:{password}@host.test/x there"), password);
    }
    let password = "Wn4!kX9pT";
    assert_removed(&format!("git clone https://me@corp.test:{password}@host.test/x"), password);
    for text in [
        "http://localhost:8080/a@b",
        "https://host:443/user1@Mail2.test",
        "cvs://:pserver:anoncvs@host.test:/cvs",
        "https://me:{password1}@host",
        "ssh://git@host.test:22/me/tool@v1",
        "https://me@corp.test:$PASSWORD1@host",
    ] {
        assert_eq!(Redactor::new().clean(text, TextForm::Plain), text);
    }
}

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

#[test]
fn credentials_of_headers_are_found() {
    let uuid = "7c1e94d2-3b5f-4a86-9e0d-52f8b7a6c413";
    for scheme in ["Token ", "ApiKey ", "Bot ", "SSWS ", "Splunk ", "Negotiate ", "NTLM ", ""] {
        let token = noise(901, 40);
        assert_removed(&format!("Authorization: {scheme}{token}\r\n"), &token);
        assert_removed(&format!("{{\"Authorization\":\"{scheme}{token}\"}}"), &token);
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
fn passwords_of_programs_and_their_files_are_found() {
    let secret = "Vq8rT2mZx4Kp";
    for template in [
        "db.host.test:5432:shop:me:{}\n",
        "me:{}@tcp(db:3306)/shop",
        "jdbc:oracle:thin:me/{}@db:1521:x",
        "network={\n  ssid=\"home\"\n  psk=\"{}\"\n}\n",
        "rclone config create remote webdav pass {}",
        "%any : PSK \"{}\"",
        "define('DB_PASSWORD', '{}');",
        "npmAuthIdent: \"me:{}\"",
        "setx DB_PASSWORD {}",
        "keytool -genkey -keystore a.jks -storepass {}",
        "sqlcmd -S db -U sa -P {} -Q x",
        "sqlplus me/{}@db",
        "curl -ume:{} https://host.test",
        "curl -sSu me:{} https://host.test",
        "curl -ku me:{} https://host.test",
        "mysqlcheck -u me -p{} shop",
        "curl --proxy-user me:{} https://host.test",
        "smbclient //host/share -U me%{}",
        "ssh-keygen -t rsa -N '{}' -f key",
        "htpasswd -b file me {}",
        "vault login {}",
        "npm config set //registry.test/:_authToken {}",
        "openssl enc -aes-256-cbc -k {} -in file",
    ] {
        assert_removed(&template.replace("{}", secret), secret);
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

#[test]
fn passwords_among_the_words_of_commands_are_found() {
    let secret = "Vq8rT2mZx4Kp";
    for template in [
        "poetry config http-basic.shop me {}",
        "dotnet user-secrets set \"Db:Password\" \"{}\"",
        "ConvertTo-SecureString \"{}\" -AsPlainText -Force",
        "xfreerdp /v:host /u:me /p:{}",
        "cmdkey /add:host /user:me /pass:{}",
        "lftp -u me,{} sftp://host",
        "wpa_passphrase home {}",
        "nmcli dev wifi connect home password {}",
        "echo {} | sudo -S ls",
        "echo \"me:{}\" | chpasswd",
        "chpasswd <<< 'me:{}'",
        "http -a me:{} GET https://host.test",
        "gh secret set NAME --body {}",
        "az keyvault secret set --name a --value {}",
        "kubectl create secret generic x --from-literal=db={}",
        "redis> AUTH {}",
        "net use Z: \\\\h\\s /user:me {}",
        "net user me {} /add",
        "snmpwalk -v3 -u me -A {} host",
        "printf '%s' {} | kinit me@REALM",
        "rocommunity {}\n",
        "credentials += Credentials(\"Realm\", \"host\", \"me\", \"{}\")",
        "jwt.sign(data, '{}')",
        "curl -H 'Key: {}' https://host.test",
        "curl --user=me:{} https://host.test",
        "curl -u me:\"{}\" https://host.test",
        "curl -u \"me\":\"{}\" https://host.test",
        "[remote]\ntype = webdav\npass = {}\n",
        "const key = process.env.API_KEY || '{}'",
        "key = os.getenv('API_KEY') or '{}'",
        "set -x DB_PASSWORD {}",
        "etcdctl put /db/password {}",
        "rabbitmqctl add_user me {}",
        "SET PASSWORD FOR 'me'@'host' = PASSWORD('{}');",
        "schtasks /create /ru me /rp {}",
        "createUser me SHA {}",
        "username me password 0 {}",
        "Content-Disposition: form-data; name=\"password\"\r\n\r\n{}\r\n",
        "echo '{}' | gh secret set NAME",
        "spawn ssh host; expect \"assword:\"; send \"{}\\r\"",
        "FROM alpine\nENV DB_PASSWORD {}\nRUN make",
        "doppler secrets set DB_PASSWORD {}",
        "netlify env:set DB_PASSWORD {}",
        "pulumi config set --secret dbPassword {}",
        "gh secret set NAME -b {}",
        "mc alias set shop https://host.test KEY1 {}",
        "htpasswd -bc file me {}",
        "htpasswd -nbB me {}",
        "poetry config pypi-token.pypi {}",
        "ansible-vault encrypt_string '{}' --name a",
        "bw unlock {}",
        "wrangler secret put NAME <<< '{}'",
        "gh auth login --with-token <<< {}",
        "echo {} | secret-tool store --label=a b c",
        "os.Setenv(\"DB_PASSWORD\", \"{}\")",
        "std::env::set_var(\"DB_PASSWORD\", \"{}\");",
        "[Environment]::SetEnvironmentVariable('DB_PASSWORD', '{}', 'User')",
        "System.setProperty(\"db.password\", \"{}\");",
        "monkeypatch.setenv('DB_PASSWORD', '{}')",
        "os.getenv('DB_PASSWORD', '{}')",
        "SSHPASS={} sshpass -e ssh host",
        "LDAP_BIND_PW={}\n",
        "ADMIN_PW: \"{}\"\n",
        "WIFI_PSK: {}\n",
        "htpasswd -bB file me {}",
        "ALTER ROLE me LOGIN PASSWORD '{}';",
        "yarn config set npmAuthToken {}",
        "doppler configure set token {}",
        "impdp me/{}@db",
        "expdp me/{} schemas=a",
        "sqlplus -S me/{} < a.sql",
        "poetry publish -u me -p {}",
        "cypher-shell -u neo4j -p {}",
        "ngrok authtoken {}",
        "curl -H 'X-Honeycomb-Team: {}' https://host.test",
        "A temporary password is generated for root@localhost: {}\n",
        "the password to proceed to installation:\n\n{}\n\nThis may also be found at",
        "The password is {}.",
        "My API key is `{}`, use it",
        "API key: {}\n",
        "Access Key: me\nSecret Key: {}\nExpiration: none\n",
        "Encryption key = {}\n",
        "smtp.login(\"me\", \"{}\")",
        "requests.get(url, auth=('me', '{}'))",
        "HTTPBasicAuth(\"me\", \"{}\")",
        "crypto.createHmac('sha256', '{}')",
    ] {
        assert_removed(&template.replace("{}", secret), secret);
    }
    for text in [
        "echo done | sudo -S true",
        "echo \"$PASSWORD\" | docker login",
        "net user me /delete",
        "sqlplus scripts/load2table7.sql",
        "jwt.sign('hello world2', key)",
        "lftp -u me,password sftp://host",
        "http -a me:$TOKEN GET https://host.test",
        "rocommunity public",
        "curl -H 'Content-Key: value' https://host.test",
        "the user password must be long",
        "send \"hello world2\"",
        "env DB_PASSWORD=$1 make2test3",
        "the ENV API_TOKEN must be set",
        "process.env DB_PASSWORD Vq8rT2mZx4Kp",
        "doppler secrets set BUILD_ID Vq8rT2mZx4Kp",
        "wandb login --relogin",
        "check(\"DB_PASSWORD\", \"Vq8rT2mZx4Kp\")",
        "snyk auth --help",
        "GPIO_PWM: Vq8rT2mZx4Kp",
        "login {self.username} password {self.password2}",
        "page.login(\"me\", \"password123\")",
        "poetry run cargo test -p crate2name3",
        "the token is AccessTokenV2 of the client",
        "the password is case-sensitive",
        "your secret is in `config/secrets.yml`",
        "git config set user.signingkey 3AA5C34371567BD2",
        "yarn config set npmRegistryServer https://registry2.test",
        "Authorization: AWS4-HMAC-SHA256",
    ] {
        assert_eq!(Redactor::new().clean(text, TextForm::Plain), text);
    }
}

/// Regression: the passwords of these commands, calls, protocols and files stayed.
#[test]
fn passwords_of_more_commands_calls_and_protocols_are_found() {
    let secret = "Vq8rT2mZx4Kp";
    for template in [
        "\"{}\" | ConvertTo-SecureString -AsPlainText -Force",
        "$p = ConvertTo-SecureString -AsPlainText '{}' -Force",
        "$p = ConvertTo-SecureString -AsPlainText -Force -String '{}'",
        "$c = New-Object System.Net.NetworkCredential('me', '{}')",
        "[Net.NetworkCredential]::new('me', '{}')",
        "signtool sign /f c.pfx /p {} a.exe",
        "set -Ux DB_PASSWORD {}",
        "set --export DB_PASSWORD {}",
        "tmux set-environment DB_PASSWORD {}",
        "wp config set DB_PASSWORD {}",
        "echo '::add-mask::{}'",
        "##vso[task.setvariable variable=dbPassword;issecret=true]{}",
        "ALTER USER 'me'@'host' IDENTIFIED WITH mysql_native_password BY '{}';",
        "SELECT crypt('{}', gen_salt('bf'));",
        "ACL SETUSER me on >{} ~* +@all",
        "neo4j-admin dbms set-initial-password {}",
        "valkey-cli -a {} ping",
        "mycli -u me -p {}",
        "db.changeUserPassword(\"me\", \"{}\")",
        "pymysql.connect(\"host\", \"me\", \"{}\", \"db\")",
        "new UsernamePasswordCredentials(\"me\", \"{}\")",
        "signInWithEmailAndPassword(auth, \"me@host.test\", \"{}\")",
        "create_superuser('me', 'me@host.test', '{}')",
        "bcrypt.hashSync('{}', 10)",
        "generate_password_hash(\"{}\")",
        "etcdctl --user me:{} get a",
        "ab -A me:{} -n 10 https://host.test/",
        "websocat --basic-auth me:{} wss://host.test",
        "java -jar jenkins-cli.jar -auth me:{} who-am-i",
        "net ads join -U admin%{}",
        "echo -e \"{}\\n{}\" | passwd me",
        "printf '{}\\n{}\\n' | smbpasswd -a -s me",
        "yes {} | passwd me",
        "echo {} | su -c id",
        "echo {} | sshfs -o password_stdin me@h:/ /m",
        "echo -n 'me:{}' | base64",
        "openssl passwd -6 {}",
        "openssl passwd -1 -salt xyz {}",
        "mkpasswd -m sha-512 {}",
        "ssh-keygen -t rsa -b 4096 -N \"{}\" -f key",
        "ssh-keygen \\\n  -t rsa -N \"{}\" -f key",
        "cmd /c \"sshpass -p \"\"{}\"\" ssh me@host.test\"",
        "EXEC('CREATE USER me IDENTIFIED BY ''{}''')",
        "security create-keychain -p {} build.keychain",
        "security set-key-partition-list -S apple: -k {} build.keychain",
        "skopeo login -u me -p {} host.test",
        "ldapwhoami -D cn=me -w {}",
        "pdftk in.pdf input_pw {} output out.pdf",
        "aws ssm put-parameter --name /db/pw --value {} --type SecureString",
        "{\"ARN\": \"a\", \"SecretString\": \"{}\"}",
        "account default\nuser me\npassword {}\n",
        "<keyMaterial>{}</keyMaterial>",
        "tacacs-server key {}",
        "crypto isakmp key {} address 192.0.2.1",
        "username admin and password {}",
        "the pass is {}",
    ] {
        assert_removed(&template.replace("{}", secret), secret);
    }
    assert_removed("net user bob Xk7p@Qzw9.tr4x /add", "Xk7p@Qzw9.tr4x");
    let (hash, encoded) = ("4f1d9b7a3c5e8206b9d4f1a7c3e58012", "AG1lAFZxOHJUMm1aeDRLcA==");
    assert_removed(&format!("me:500:aad3b435b51404eeaad3b435b51404ee:{hash}:::"), hash);
    assert_removed(&format!("AUTH PLAIN {encoded}\r\n"), encoded);
    assert_removed(&format!("userPassword: {{SSHA}}{}==", noise(990, 38)), &noise(990, 38));
    for text in [
        "::add-mask::***",
        "##vso[task.setvariable variable=version;isOutput=true]Vq8rT2mZx4Kp",
        "250-AUTH PLAIN CRAM-MD5 LOGIN",
        "ssh-keygen -s ca -I id -n me2x,host3y key.pub",
        "ssh-keygen -t ed25519 -N \"\" -f id2x",
        "echo \"hello2x\" | base64",
        "echo SGVsbG8gV29ybGQh | base64 -d",
        "echo \"Building v1.2.3-rc4\" | base64",
        "cat users2x | su me",
        "echo \"nproc=12x\" | su root",
        "create_user(db, \"bob\", \"bob2@host.test\")",
        "pymysql.connect(host=\"localhost\", user=\"root2\", db=\"my_db1x\")",
        "aws ssm put-parameter --name a --value Vq8rT2mZx4Kp --type String",
        "called reset_password by admin2x",
        "openssl passwd -6 -stdin",
        "poll until all pass test2x",
        "skopeo inspect -p Kq7wRt5z9",
        "cf set-env app LOG_LEVEL debug2x",
        "hashSync(password2x, 10)",
    ] {
        assert_eq!(Redactor::new().clean(text, TextForm::Plain), text);
    }
}

/// Regression: a part of the quote after the password was removed, and the JSON was broken.
#[test]
fn quotes_around_an_argument_that_are_escaped_twice_stay() {
    let secret = "Vq8rT2mZx4Kp";
    for (text, removed) in [
        (format!("hashpw(\"{secret}\", salt)"), secret),
        (format!("requests.get(u, auth=(\"me\", \"{secret}\"))"), secret),
        ("pymysql.connect(host=\"h\", user=\"me\", db=\"my_db1x\")".to_owned(), "no secret"),
    ] {
        let json = serde_json::json!({ "out": text }).to_string();
        let json = serde_json::json!({ "out": json }).to_string();
        let clean = Redactor::new().clean(&json, TextForm::Json).into_owned();
        assert_eq!(clean, json.replace(removed, "[redacted:password]"));
    }
}

/// Regression: the name of a value in a row of a query is far before it, and the value stayed.
#[test]
fn a_value_in_a_row_of_a_query_is_found_by_the_name_of_its_column() {
    let secret = "Vq8rT2mZx4Kp";
    for template in [
        "INSERT INTO users (name, password) VALUES ('bob', '{}');",
        "insert into `users` (`id`, `password`) values (1, 'k9'), (2, '{}'), (3, '{}')",
        "INSERT INTO users(\"email\", \"pwd\")\n  VALUES\n  ('a@b.c', '{}'),\n  ('d@e.f', '{}');",
        "INSERT INTO users (name, pwd)\r\nVALUES\r\n('bob', '{}'),\r\n('eve', '{}');",
    ] {
        assert_removed(&template.replace("{}", secret), secret);
    }
    let key = noise(992, 32);
    assert_removed(&format!("INSERT INTO api (name, api_key) VALUES (N'x', N'{key}')"), &key);
    for text in [
        "INSERT INTO users (name, password) VALUES (?, ?)",
        "INSERT INTO users (name, password) VALUES ('bob', 'password123')",
        "INSERT INTO users (name, password_hash) VALUES ('Vq8rT2mZx4Kp', lower('Vq8rT2mZx4Kp'))",
        "INSERT INTO posts (title, password) VALUES ('Vq8rT2mZx4Kp', NULL)",
        "INSERT INTO users (name, password_changed) VALUES ('bob', 'Vq8rT2mZx4Kp')",
        "the values ('Vq8rT2mZx4Kp')",
    ] {
        assert_eq!(Redactor::new().clean(text, TextForm::Plain), text);
    }
}

/// Regression: in JSON, the letter of the escaped tab before the key was taken for its first byte.
#[test]
fn a_secret_key_of_aws_is_found_in_a_table() {
    let secret = noise(991, 40);
    let row = format!("CREDENTIALS\tASIAQ3EGTR5VN7WZLK2P\t2024-01-15T10:30:00Z\t{secret}\n");
    assert_removed(&row, &secret);
}

/// Regression: passwords as long as the keys of some services stayed.
#[test]
fn a_password_in_a_sentence_may_have_any_length() {
    for count in 12..=64 {
        let password = noise(980, count);
        assert_removed(&format!("The password is {password}."), &password);
    }
    assert_eq!(
        kinds_in(&format!("The token is {}.", github(981)), TextForm::Plain),
        ["github-token"]
    );
}

/// Regression: a password was found only beside an English word, in a few forms of a sentence.
#[test]
fn a_password_in_prose_of_other_forms_and_languages_is_found() {
    let secret = "Vq8rT2mZx4Kp";
    for template in [
        "Das Passwort ist {}.",
        "Passwort: {}\n",
        "Le mot de passe est {}.",
        "mot de passe : {}\n",
        "La contraseña es {}",
        "senha: {}\n",
        "Пароль: {}\n",
        "密码：{}",
        "密码是{}",
        "パスワードは{}です",
        "비밀번호: {}\n",
        "Your temporary password is: {}\n",
        "my pw is {}",
        "I set the password to {}.",
        "log in as root with password {} now",
        "The password for user 'app' is '{}'",
        "Password for admin: {}\n",
        "the password (`{}`) works",
        "password `{}`",
        "**Password:** {}\n",
        "**Password**: `{}`\n",
        "| Password | {} |",
        "    Key Content            : {}\n",
        "    Schlüsselinhalt            : {}\n",
        "    Contenu de la clé            : {}\n",
        "    Contenido de la clave  : {}\n",
        "    关键内容            : {}\n",
        "Heslo: {}\n",
        "Heslo je {}.",
        "Jelszó: {}\n",
        "Salasana: {}\n",
        "Adgangskode: {}\n",
        "Passord: {}\n",
        "Lozinka: {}\n",
        "Mật khẩu: {}\n",
        "Κωδικός πρόσβασης: {}\n",
        "Κωδικός: {}\n",
        "Şifre: {}\n",
        "كلمة المرور: {}\n",
        "סיסמה: {}\n",
        "รหัสผ่าน: {}\n",
        "पासवर्ड: {}\n",
    ] {
        assert_removed(&template.replace("{}", secret), secret);
    }
    for text in [
        "Das Passwort ist falsch.",
        "mot de passe : obligatoire",
        "senha = gerarSenha2(x)",
        "Heslo: povinné",
        "Κωδικός: AB12-3456",
        "关键内容: v1.2.3-beta4",
        "Jelszó2: kötelező",
        "密码：必填",
        "the password PBKDF2WithHmacSHA256 derives",
        "| password | string | The password |",
        "Password for 'https://me@host.test': ",
    ] {
        assert_eq!(Redactor::new().clean(text, TextForm::Plain), text);
    }
}

/// Regression: a value that neither a sign nor a field `value` joined to its name stayed.
#[test]
fn a_password_is_found_in_columns_elements_calls_and_pairs() {
    let secret = "Vq8rT2mZx4Kp";
    for template in [
        "Key         Value\n---         -----\npassword    {}\nuser        me\n",
        "DB_PASSWORD\t{}\n",
        "\u{2551} DB_PASSWORD \u{2502} {} \u{2551}",
        "username | bob\npassword | {}\n",
        "<key>Password</key>\n<string>{}</string>",
        "<entry key=\"password\">{}</entry>",
        "<property name=\"hibernate.connection.password\">{}</property>",
        "<wsse:Password Type=\"x#PasswordText\">{}</wsse:Password>",
        "<param-name>password</param-name><param-value>{}</param-value>",
        "<setting name=\"Password\" serializeAs=\"String\"><value>{}</value>",
        "<password><![CDATA[{}]]></password>",
        ".password(\"{}\")",
        "user.setPassword('{}')",
        "password: Some(\"{}\")",
        "password: |\n  {}\n",
        "storePassword '{}'",
        "[{\"name\":\"DB_PASSWORD\",\"slotSetting\":false,\"value\":\"{}\"}]",
        "{\"db_password\":{\"sensitive\":true,\"type\":\"string\",\"value\":\"{}\"}}",
        "{\"ParameterKey\":\"DBPassword\",\"ParameterValue\":\"{}\"}",
        "{\"element\":\"Password textbox\",\"ref\":\"e12\",\"text\":\"{}\"}",
        "await page.getByLabel('Password').fill('{}');",
        "page.fill('#password', '{}')",
        "cy.get('input[name=\"password\"]').type('{}')",
        "driver.findElement(By.id(\"password\")).sendKeys(\"{}\")",
        "fill_in 'Password', with: '{}'",
        "userEvent.type(screen.getByLabelText(/password/i), '{}')",
        "DriverManager.getConnection(url, \"root\", \"{}\")",
        "mysqli_connect(\"localhost\", \"root\", \"{}\", \"db\")",
        "plink -ssh me@h -pw {} ls",
        "skopeo copy --src-creds me:{} docker://a docker://b",
        "curl --cert client.pem:{} https://host.test",
        "security unlock-keychain -p {} build.keychain",
        "CREATE USER me IDENTIFIED BY {};",
        "*:*:*:postgres:{}\n",
        "  ~ password = \"(old)\" -> \"{}\"",
    ] {
        assert_removed(&template.replace("{}", secret), secret);
    }
    for text in [
        "git branch -v\n  reset-password   4f3a2b1c9 Fix it",
        "secret \"db-creds-9f8b7\" deleted",
        "password    VARCHAR(255) NOT NULL",
        "password | text | not null",
        "Password    string2Type\n",
        "getPassword(\"Vq8rT2mZx4Kp\")",
        "arn:aws:logs:us-east-1:*:log-group:Vq8rT2mZx4Kp:*",
        "page.fill('#email', 'bob1@host.test')",
        "const { token } = useAuth2Xy()",
        "<label for=\"password\">Your password</label>",
    ] {
        assert_eq!(Redactor::new().clean(text, TextForm::Plain), text);
    }
}

/// Regression: in JSON, the quote after the name was not seen: `set password \"...\"`.
#[test]
fn a_quoted_value_is_found_in_json_too() {
    let secret = "Vq8rT2mZx4Kp";
    for template in [
        "#define WIFI_PASSWORD \"{}\"",
        "(setq smtp-password \"{}\")",
        "{:user \"me\" :password \"{}\"}",
        "set password \"{}\"",
        "jq --arg password \"{}\" .",
        "let password = b\"{}\";",
        "{\"user\":\"me\",\"pass\":\"{}\"}",
        "{\"ssid\":\"home\",\"psk\":\"{}\"}",
        "db.createUser({\"user\":\"me\",\"pwd\":\"{}\"})",
        "{'user': 'me', 'pass': '{}'}",
        "{'user': 'me', 'pwd': '{}'}",
        "pwd = '{}'",
        "pw = \"{}\"",
    ] {
        assert_removed(&template.replace("{}", secret), secret);
        let inner = serde_json::json!({ "text": template.replace("{}", secret) }).to_string();
        assert_removed(&inner, secret);
    }
    for text in [
        "kubectl delete secret \"db-creds-9f8b7\"",
        "the word password \"is not here\"",
        "compass = N45E12",
        "ssh-keygen -t ed25519 -N \"\" -f id1x",
        "ssh-keygen -t rsa -N '' -f id2x -C 'me'",
        "ssh-keygen -t rsa -N ''\nssh-copy-id me2x@host3y",
    ] {
        let json = serde_json::json!({ "out": text }).to_string();
        assert_eq!(Redactor::new().clean(&json, TextForm::Json), json);
    }
}

/// Regression: a type, a length, a constructor, a line end or a prefix of the literal between the
/// name and the value hid the value.
#[test]
fn a_password_is_found_in_the_assignments_of_more_languages() {
    let secret = "Vq8rT2mZx4Kp";
    for template in [
        "var password string = \"{}\"",
        "Dim password As String = \"{}\"",
        "v_password varchar2(30) := '{}';",
        "const char password[] = \"{}\";",
        "char password[32] = \"{}\";",
        "NSString *password = @\"{}\";",
        "string password = $\"{}\";",
        "DB_PASSWORD=$'{}'",
        "password = f\"{}\"",
        "password = u8\"{}\";",
        "password = \"\"\"{}\"\"\"",
        "password!: string = '{}';",
        "password <- \"{}\"",
        "[{user,\"me\"},{password,\"{}\"}]",
        "{password, <<\"{}\">>}",
        "password = new String(\"{}\")",
        "password: Some(String::from(\"{}\")),",
        "password: SecretString::new(\"{}\".into()),",
        "password = SecretStr(\"{}\")",
        "let password =\n        \"{}\";",
        "password = (\n    \"{}\"\n)",
        "[\"password\"]=>\n  string(12) \"{}\"",
        "env('DB_PASSWORD', '{}')",
        "ENV.fetch(\"DB_PASSWORD\", \"{}\")",
        "config(\"DB_PASSWORD\", default=\"{}\")",
        "flag.String(\"password\", \"{}\", \"the password\")",
        "{\"name\":\"password\",\"type\":\"string\",\"default\":\"{}\"}",
        "<tr><td>Password</td><td>{}</td></tr>",
        "<dt>Password</dt><dd>{}</dd>",
    ] {
        assert_removed(&template.replace("{}", secret), secret);
    }
    let key = noise(992, 32);
    assert_removed(&format!("os.environ.setdefault(\n    \"API_KEY\",\n    \"{key}\",\n)"), &key);
    let encoded = "VnE4clQybVp4NEtw";
    assert_removed(&format!("dn: cn=me\nuserPassword:: {encoded}\nsn: me\n"), encoded);
    for text in [
        "password =\n    getPassword1(x)",
        "def f(user, password):\n    \"\"\"Hash the password with argon2\"\"\"",
        "the password string2 = is",
        "password kind = \"Vq8rT2mZx4Kp\"",
        "{password, Password2x}",
        "token <- readToken2x",
        "password :: Text2x\n",
        "password = getpass(\"Vq8rT2mZx4Kp\")",
        "char password[32];",
        "password != \"Vq8rT2mZx4Kp\"",
        "<td>password</td><td>string</td>",
        "<dt>Password</dt>\n<dd>See RFC2617</dd>",
        "<td>password</td><td>password2x_field</td>",
        "\"KEM\",\n    \"MLKEM768X25519PrivateKey\",\n    \"MLKEM768X25519PublicKey\",\n",
    ] {
        assert_eq!(Redactor::new().clean(text, TextForm::Plain), text);
    }
}

/// Regression: a place that says little made the name, type or date in it a secret.
#[test]
fn a_name_a_type_or_a_date_in_a_weak_place_is_no_secret() {
    for text in [
        "API_TOKEN\t2024-01-15T10:30:00Z",
        "Changed password for bob: 2024-01-15T10:30:00Z",
        "jsonwebtoken   9.0.0-beta.1   9.0.2   app",
        "vault-token    v1.15.2+k3s1\n",
        "| token | SHA-256/Base64 |",
        "Token    Sha3_256",
        "rename password -> pwdV2Hash",
        "password -> H256Digest",
        "tokenize(\"a1+b2*c3-d4/e5^f6%g7=h8\")",
        "file_key(\"uploads/9f3a2b1c/IMG_0042.JPG\")",
        "_rfc9881_private_key(\"rfc9881_ml_dsa_44_inconsistent_1.pem\")",
        "changePassword(\"bob42@acme.io\", next)",
        "new gcp.secretmanager.Secret(\"MyDb1Secret2\")",
        "hash the password `argon2id`",
        "{\"name\":\"Password algorithm\",\"value\":\"PBKDF2-HMAC-SHA256\"}",
        "{\"title\":\"Invalid token type\",\"value\":\"Ab12Cd34Ef56x\"}",
        "{\"token\": {\"type\": \"NUMBER\", \"value\": \"0x1F4A9b3C2d\"}}",
        "<span class=\"token class-name\">Sha256HashV2x</span>",
        "<span class=\"token number\">0x1F4A9b3C2d</span>",
        "<h2 id=\"refresh-token\">OAuth2.0-RFC6749</h2>",
    ] {
        assert_eq!(Redactor::new().clean(text, TextForm::Plain), text);
    }
    assert_removed("Map(password -> Vq8rT2mZx4Kp, user -> me)", "Vq8rT2mZx4Kp");
}

/// Regression: the text of another call, setting or field was taken for a password.
#[test]
fn a_text_beside_another_call_or_setting_is_no_password() {
    for text in [
        "new PDO(\"mysql:host=$h\", DB_USER, DB_PASS, [\"charset\" => \"utf8mb4\"])",
        "new mysqli($servername, \"root\", \"\", \"shop2024db\")",
        "getConnection(DB_URL, USER, PASS); print(\"a\", \"col1name\", \"t2table\")",
        "new Sequelize(url, { dialect: \"postgres\", host: \"h\", schema: \"v2schema9\" })",
        "'auth' => ['guard' => 'web2api']",
        "p.fill(a.b); p.getByLabel('Password').fill(a.c); p.getByTestId('loginBtn2')",
        "it('shows the password', () => { cy.get('#name').type('User42x') })",
        "  ~ password_hash_algorithm = \"bcrypt12\" -> \"argon2id\"",
        "  ~ image = \"repo/password-svc:a1b2c3d\" -> \"repo/password-svc:9f8e7d6\"",
        "auth.test.ts > login > pass token2user",
        "Rk3cmdp: x1y2z3w4",
        "\u{5bc6}\u{7801}: SHA256\u{52a0}\u{5bc6}",
        "the password for this is Base64Url(Sha256)",
    ] {
        assert_eq!(Redactor::new().clean(text, TextForm::Plain), text);
    }
    assert_removed("new PDO($dsn, $user, 'Vq8rT2mZx4Kp')", "Vq8rT2mZx4Kp");
    assert_removed("---> PASS Vq8rT2mZx4Kp\n", "Vq8rT2mZx4Kp");
}

/// Regression: words of a standard, the digest of a certificate and the name of a user.
#[test]
fn words_after_identified_by_and_fields_of_a_list_of_users_are_no_password() {
    for text in [
        "{NULL IDENTIFIED BY id-hmacWithSHA512-224},",
        "the records are identified by iPhone14Pro",
        "a call identified by toolu_01A9b8C7d6E5f4G3h2",
        "cosign verify --cert sha256:9f3a2b1c4d me",
        "app:*:501:20:AppUser1x:/home/app:/bin/bash",
    ] {
        assert_eq!(Redactor::new().clean(text, TextForm::Plain), text);
    }
    assert_removed("alter user me identified by Vq8rT2mZx4Kp;", "Vq8rT2mZx4Kp");
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
