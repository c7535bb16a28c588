//! Passwords: with any sign, among the words of commands, in prose, in tables and in assignments.

use super::*;

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
fn passwords_of_programs_and_their_files_are_found() {
    let secret = "Vq8rT2mZx4Kp";
    for template in [
        "db.host.test:5432:shop:me:{}\n",
        "export REDISCLI_AUTH={}\n",
        "REDIS_AUTH: {}\n",
        "LDAPTLS_KEYPW={} ldapsearch -x\n",
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

/// Regression: the passwords in these commands stayed.
#[test]
fn passwords_of_wireless_networks_queries_and_registries_are_found() {
    let secret = "Vq8rT2mZx4Kp";
    for template in [
        "dotnet nuget push a.nupkg -s https://host.test/index.json -k {}",
        "reg add x /v DefaultPassword /t REG_SZ /d {} /f",
        "networksetup -setairportnetwork en0 home {}",
        "adb shell cmd wifi connect-network home wpa2 {}",
        "nmcli con modify home wifi-sec.psk {}",
        "samba-tool user create me {}",
        "rclone obscure {}",
        "CREATE USER me WITH PASSWORD N'{}'",
        "SET PASSWORD FOR 'me'@'host' = '{}'",
        "set password for \"me\" = \"{}\"",
    ] {
        assert_removed(&template.replace("{}", secret), secret);
    }
    for text in [
        "SET PASSWORD FOR 'me'@'host2x' TO RANDOM",
        "set password for 'me', 'you' and 'User3x'",
        "nuget push a2x.nupkg -k",
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

/// Regression: the letter of an escape was removed without its backslash, and the line of the
/// transcript could not be read any more.
#[test]
fn json_stays_valid_if_a_password_follows_an_escape() {
    for text in [
        "nuget push x -k \nEnter9xK39abcd fail",
        "dotnet nuget push a.nupkg -k \\\n9xK39abcd",
        "mysql -p\u{1b}[32mXk9abcQ7 shop",
        "net user bob\n9xK39abQ /add",
    ] {
        let json = serde_json::json!({ "a": text }).to_string();
        let clean = Redactor::new().clean(&json, TextForm::Json).into_owned();
        assert!(serde_json::from_str::<serde_json::Value>(&clean).is_ok(), "{clean}");
        assert!(!clean.contains("xK39") && !clean.contains("Xk9abcQ7"), "{clean}");
    }
    // The arguments of a call are JSON in JSON.
    let json = serde_json::json!({ "cmd": "nuget push x -k \n9xK39abcd" }).to_string();
    let json = serde_json::json!({ "arguments": json }).to_string();
    let clean = Redactor::new().clean(&json, TextForm::Json).into_owned();
    let outer: serde_json::Value = serde_json::from_str(&clean).unwrap();
    let inner = outer["arguments"].as_str().unwrap();
    assert!(serde_json::from_str::<serde_json::Value>(inner).is_ok(), "{clean}");
    assert!(!clean.contains("xK39"), "{clean}");
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
        "variable \"db_password\" {\n  type      = string\n  default   = \"{}\"\n}",
        "variable \"db_password\" {\n  description = \"The password of the administrator, for \
         the database (de: Datenbank für alle)\"\n  sensitive   = true\n  default     = \"{}\"\n}",
        "{\"name\" : \"DB_PASSWORD\", \"value\" : \"{}\"}",
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
        "output \"db_password\" {\n  value = module.auth2Xy.token9\n}",
        "variable \"db_password\" {\n  type = string\n}\n\nvariable \"x\" {\n  default = \"Vq8\"",
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
        "form.append('password', '{}')",
        "props.put(\"password\", \"{}\");",
        "container.withEnv(\"DB_PASSWORD\", \"{}\")",
        "ALTER LOGIN sa WITH PASSWORD = N'{}'",
        "SET @password = N'{}'",
        "ALTER ROLE me PASSWORD E'{}'",
        "let password = r#\"{}\"#;",
        "password ||= '{}'",
        "password ??= '{}'",
        "std::string password{\"{}\"};",
        "auto password = TEXT(\"{}\");",
        "password => Sensitive('{}')",
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
        "form.append('password', field2x)",
        "errors.add(\"password\", \"is too short\")",
        "password{size: 12}",
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

/// Regression: these commands kept their passwords, though forge knew their siblings.
#[test]
fn passwords_of_registries_key_stores_and_logins_are_found() {
    let secret = "Vq8rT2mZx4Kp";
    for template in [
        "cosign login host.test -u me -p {}",
        "singularity remote login -u me -p {} docker://host.test",
        "dotnet nuget add source https://host.test -u me -p {}",
        "keytool -importkeystore -srcstorepass {}",
        "keytool -importkeystore -deststorepass {}",
        "keytool -importkeystore -destkeypass {}",
        "uv publish -t {}",
        "doctl auth init -t {}",
        "gitlab-runner register -r {}",
        "b2 authorize-account 00ab12 {}",
        "b2 account authorize 00ab12 {}",
        "bw login me@host.test {}",
        "redis-cli AUTH {}",
        "redis-cli -h host.test AUTH me {}",
        "db2 connect to shop user me using {}",
        "snmpwalk -v2c -c {} host.test",
        "sqlite3 -cmd \"PRAGMA key='{}'\" shop.db",
        "eas secret:create --name NAME --value {}",
        "convex env set API_KEY {}",
        "pulumi config set dbPassword {} --secret",
        "conda config --set token {}",
    ] {
        assert_removed(&template.replace("{}", secret), secret);
    }
    for text in [
        "cosign verify -p Vq8rT2mZx4Kp",
        "snmpwalk -v2c -c public host.test",
        "pulumi config set aws:region Vq8rT2mZx4Kp",
        "bw login --apikey",
        "db2 connect to shop",
        "redis-cli AUTH $PASSWORD",
        "keytool -list -storepass changeit",
        "conda config --set channel_priority strict2x",
    ] {
        assert_eq!(Redactor::new().clean(text, TextForm::Plain), text);
    }
}

/// Regression: a password in YAML stayed after its type or its anchor.
#[test]
fn a_password_after_a_type_or_an_anchor_of_yaml_is_found() {
    let secret = "Vq8rT2mZx4Kp";
    for template in [
        "db:\n  password: !!str {}\n", "password: !!str \"{}\"\n", "password: &db_pw {}\n",
        "DB_PASSWORD: &db-pw '{}'\n",
    ] {
        assert_removed(&template.replace("{}", secret), secret);
    }
    for text in [
        "password: *db_pw",
        "password: !Ref DbPassword2Param",
        "token: &mut Sha256Hasher1x",
        "password: &db_pw changeme",
    ] {
        assert_eq!(Redactor::new().clean(text, TextForm::Plain), text);
    }
}

/// Regression: a password stayed if an arrow or a wide colon joins it to its name.
#[test]
fn a_password_after_an_arrow_or_a_wide_colon_is_found() {
    let secret = "Vq8rT2mZx4Kp";
    for template in [
        "password \u{2192} {}\n", "password \u{21d2} '{}'\n", "password\u{ff1a}{}\n",
        "Password\u{ff1a} {}\n", "DB_PASSWORD\u{ff1a}\"{}\"\n",
    ] {
        assert_removed(&template.replace("{}", secret), secret);
    }
    for text in [
        "rename password \u{2192} pwdV2Hash",
        "password \u{2192} token2x",
        "password\u{ff1a}SHA256\u{52a0}\u{5bc6}",
        "password\u{2192} see README2x",
    ] {
        assert_eq!(Redactor::new().clean(text, TextForm::Plain), text);
    }
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
