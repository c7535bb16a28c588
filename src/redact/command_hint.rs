//! The texts next to which commands have passwords.

/// Where a command has its password, relative to a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandPlace {
    /// The word with this number after the hint, if the line has this text before the hint.
    Word(usize, &'static str),
    /// After a name and this sign in the next word, if one of these programs precedes the hint.
    After(u8, &'static [&'static str]),
    /// After an empty line: a field of a form.
    FormField,
    /// The last word of an `echo` before a pipe.
    Echo,
    /// The word after `<<<`, if a program that reads a password precedes it.
    HereString,
    /// After a number and a colon: `Unseal Key 1: SECRET`.
    Numbered,
    /// The quoted text with this number after the hint: `jwt.sign(data, 'SECRET')`.
    Quoted(usize),
    /// The quoted text that is the argument with this number: `new PDO(x, 'NAME', 'SECRET')`.
    Argument(usize),
    /// The new value of a setting in a plan: `password = "..." -> "SECRET"`.
    Changed,
    /// After the name of a command in capitals, in a trace: `> PASS SECRET`.
    Capitals,
    /// Words after a name: `mnemonic = "WORD WORD ..."`.
    Phrase,
    /// The 32 hex digits of a hashed password of PostgreSQL: `"NAME" "md5..."` in `userlist.txt`.
    Md5,
    /// After the name of a header that `curl` sends: `-H 'Key: SECRET'`.
    Header,
    /// The next word of a sentence, if it is certainly a secret: `the password is SECRET`.
    Sentence,
    /// After `is` or a colon in the same line: `the password for NAME is SECRET`.
    SentencePart,
    /// After a word for a password in another language, or after a label.
    Label,
    /// What is typed into a field for a password: `getByLabel('Password').fill('SECRET')`.
    Input,
}

/// Texts next to which a command has a password. Their ASCII letters are small and match in any
/// case; other letters match only in the case in which they are written.
pub(super) const HINTS: &[(CommandPlace, &[&str])] = &[
    (CommandPlace::Word(1, "secret set"), &["--body ", "--value ", " -b "]),
    (CommandPlace::Word(1, "nuget push"), &[" -k "]),
    (CommandPlace::Word(1, "nuget add source"), &[" -p "]),
    (CommandPlace::Word(1, "secret:create"), &["--value "]),
    (CommandPlace::Word(1, "uv publish"), &[" -t "]),
    (CommandPlace::Word(1, "doctl auth"), &[" -t "]),
    (CommandPlace::Word(1, "gitlab-runner register"), &[" -r "]),
    (CommandPlace::Word(1, "redis-cli"), &[" auth "]),
    (CommandPlace::Word(2, "redis-cli"), &[" auth "]),
    (CommandPlace::Word(1, "DefaultPassword"), &[" /d "]),
    (CommandPlace::Word(1, "PASSWORD FOR "), &["' = '", "` = '", "\" = \"", "\\\" = \\\""]),
    (CommandPlace::Word(1, "password for "), &["' = '", "` = '", "\" = \"", "\\\" = \\\""]),
    (CommandPlace::Word(4, ""), &["mc alias set "]),
    (
        CommandPlace::Word(3, ""),
        &[
            "htpasswd -bb ", "htpasswd -bbc ", "htpasswd -cbb ", "htpasswd -bc ", "htpasswd -cb ",
            "mosquitto_passwd -b ", "createuser ", "http-basic.", "-setairportnetwork ",
            "wifi connect-network ",
        ],
    ),
    (CommandPlace::Word(2, "poetry config"), &["pypi-token."]),
    (CommandPlace::Word(1, SECURE), &["--value ", " -string "]),
    (CommandPlace::Word(1, "freerdp"), &["/p:"]),
    (CommandPlace::Word(1, "snmp"), &[" -a ", " -x "]),
    (CommandPlace::Word(1, "snmpwalk"), &[" -c "]),
    (CommandPlace::Word(1, "snmpget"), &[" -c "]),
    (CommandPlace::Word(1, "psexec"), &[" -p "]),
    (CommandPlace::Word(1, "unlock-keychain"), &[" -p "]),
    (CommandPlace::Word(1, "security import"), &[" -p "]),
    (CommandPlace::Word(1, "-password "), &[" -w "]),
    (CommandPlace::Word(1, "nmcli"), &[" password "]),
    (CommandPlace::Word(1, "mysqladmin"), &[" password "]),
    (CommandPlace::Word(1, "user "), &[" password "]),
    (
        CommandPlace::Word(1, ""),
        &[
            "convertto-securestring ", "--secret-string ", "rocommunity ", "rwcommunity ",
            "snmp-server community ", "/pass:", "> auth ", "\npassword ", "password('",
            " password '", " password n'", " password e'", "-asplaintext ", "::add-mask::",
            "task.setsecret]", "issecret=true]", "issecret=true;isoutput=true]", "_password by '",
            "_password by \"", "_password' by '", "set-initial-password ", "\\npassword ",
            "tacacs-server key ", "radius-server key ", "isakmp key ", "pre-shared-key ",
            "<keymaterial>", "option key '", "input_pw ", " -upw ", " -opw ",
            "\"secretstring\": \"", "\\\"secretstring\\\": \\\"", "{ssha}", "{ssha256}",
            "{ssha512}", " -pw ", "bindpw ", "rootpw ", "reset-admin-password ", "qpdf --encrypt ",
            "password 0 ", "password 7 ", "secret 0 ", "add-authtoken ", "insecure-password ",
            "nickserv identify ", "wpa;p:", "rclone obscure ", "security.psk ", "wifi-sec.psk ",
            "pragma key='", "pragma key = '",
        ],
    ),
    (
        CommandPlace::Word(1, ""),
        &[
            "convertto-securestring -string ",
            "generated for root@localhost: ",
            "successfully reset.\nnew value: ",
            "successfully reset.\\nnew value: ",
        ],
    ),
    (
        CommandPlace::Word(2, ""),
        &[
            "htpasswd -nb ", "htpasswd -nbb ", "> auth ", "mkpasswd -m ", "mkpasswd --method=",
            "cf auth ", "sentinel auth-pass ", "qpdf --encrypt ", "nickserv identify ",
            "rabbitmqctl add_user ", "wpa_passphrase ", "net user ", "user-secrets set ",
            "samba-tool user create ", "samba-tool user add ", "bw login ",
            "b2 authorize-account ", "b2 account authorize ",
        ],
    ),
    (CommandPlace::Word(1, "ngrok"), &[" authtoken "]),
    (
        CommandPlace::FormField,
        &["proceed to installation:", "name=\"password\"", "name=\\\"password\\\""],
    ),
    (
        CommandPlace::Sentence,
        &[
            "password is", "token is", "secret is", "api key is", "access key is", "secret key is",
            "passphrase is", "passcode is", "pwd is", " pw is", "api key", "password to",
            " password", " pass is", "e token",
        ],
    ),
    (
        CommandPlace::Label,
        &[
            "passwort", "kennwort", "mot de passe", "mdp", "contraseña", "contrasena", "senha",
            "wachtwoord", "lösenord", "hasło", "parola", "şifre", "ароль", "密码", "密碼", "口令",
            "パスワード", "비밀번호", "key content", "heslo", "jelszó", "salasana", "kodeord",
            "passord", "adgangskode", "lozinka", "geslo", "slaptažodis", "mật khẩu", "kata sandi",
            "पासवर्ड", "كلمة المرور", "كلمة السر", "סיסמה", "รหัสผ่าน", "Şifre", "schlüsselinhalt",
            "contenu de la clé", "contenido de la clave", "conteúdo da chave", "contenuto chiave",
            "关键内容  ", "主要なコンテンツ  ",
        ],
    ),
    (CommandPlace::Label, &["ωδικός πρόσβασης", "одержимое ключа"]),
    // Also the word for any code: the value must look generated.
    (CommandPlace::SentencePart, &["password for ", "password of ", "ωδικός"]),
    (CommandPlace::Input, &[".fill(", ".type(", "sendkeys(", "send_keys(", "fill_in ", "fill_in("]),
    (CommandPlace::Changed, &["\" -> \"", "\\\" -> \\\""]),
    (CommandPlace::Word(1, "ktpass"), &["/pass "]),
    (CommandPlace::Word(1, "signtool"), &[" /p "]),
    (CommandPlace::Word(1, "certutil"), &[" -p "]),
    (CommandPlace::Word(1, "SETUSER"), &[" on >"]),
    (CommandPlace::Word(2, "rabbitmqctl"), &["authenticate_user ", "change_password "]),
    (CommandPlace::Word(1, " proto "), &[" pass "]),
    (
        CommandPlace::Word(1, "openssl"),
        &["passwd -6 ", "passwd -5 ", "passwd -1 ", "passwd -apr1 "],
    ),
    (CommandPlace::Word(2, "openssl passwd"), &[" -salt "]),
    (CommandPlace::Word(1, "hash-password"), &["--plaintext "]),
    (CommandPlace::Word(1, "pdftk"), &["user_pw ", "owner_pw "]),
    (CommandPlace::Word(1, "sendemail"), &[" -xp "]),
    (CommandPlace::Word(1, "create-keychain"), &[" -p "]),
    (CommandPlace::Word(1, "key-partition-list"), &[" -k "]),
    (CommandPlace::Capitals, &["> pass "]),
    (CommandPlace::Word(1, "rootpw"), &["--plaintext "]),
    (CommandPlace::Word(1, "assword"), &["send \"", "send \\\""]),
    (CommandPlace::Word(1, "schtasks"), &[" /rp "]),
    (CommandPlace::Word(1, "winrs"), &[" -p:"]),
    (CommandPlace::Word(1, "useradd"), &[" -p "]),
    (CommandPlace::Word(1, "usermod"), &[" -p "]),
    (CommandPlace::Word(5, ""), &["createuser ", "db2 connect to "]),
    (CommandPlace::Word(2, "net use"), &["/user:"]),
    (CommandPlace::After(b',', &["lftp"]), &[" -u "]),
    (CommandPlace::After(b':', &["http", "https", "httpie", "xh", "hey", "ab"]), &[" -a "]),
    (CommandPlace::After(b':', &["http", "https", "httpie", "xh"]), &["--auth ", "--auth="]),
    (CommandPlace::After(b':', &["curl"]), &["--user=", " -u "]),
    (CommandPlace::After(b':', &["curl", "etcdctl", "hurl"]), &["--user "]),
    (CommandPlace::After(b':', &["etcdctl"]), &["user add "]),
    (CommandPlace::After(b'=', &["secret"]), &["from-literal=", "from-literal "]),
    (
        CommandPlace::Echo,
        &[
            "| sudo -s", "| sudo chpasswd", "| chpasswd", "| kinit", "| passwd", "| sudo passwd",
            "| smbpasswd", "| gpg ", "| cryptsetup", "| sudo cryptsetup", "| docker login",
            "| podman login", "| helm registry login", "| gcloud secrets", "| wrangler secret",
            "| npx wrangler secret", "| gh secret", "| gh auth login", "| glab auth login",
            "| secret-tool store", "| zfs load-key", "| docker secret", "| vercel env", "| sshfs",
            "| openconnect", "| sudo openconnect", "| su -", "| sudo smbpasswd", "| podman secret",
            "| skopeo login", "| buildah login", "| nerdctl login", "| oras login",
            "| rclone obscure", "| openssl passwd", "| mkpasswd", "| vault kv put",
            "| fly secrets", "| doppler secrets", "| convertto-securestring", "| base64",
        ],
    ),
    (CommandPlace::Echo, &["| ansible-vault encrypt_string"]),
    (CommandPlace::HereString, &["<<<"]),
    (CommandPlace::Numbered, &["unseal key ", "recovery key "]),
    (CommandPlace::Quoted(1), &["jwt.sign(", "jwt.verify(", "jwt.encode(", "jwt.decode("]),
    (CommandPlace::Quoted(4), &["credentials("]),
    (
        CommandPlace::Quoted(2),
        &[
            ".login(", "auth=(", "basicauth(", "pscredential(", "createhmac(",
            "networkcredential(", "networkcredential]::new(", "pscredential]::new(", "digestauth(",
        ],
    ),
    (
        CommandPlace::Argument(2),
        &[
            ".basic_auth(", "'auth' => [", "db.auth(", "changeuserpassword(",
            "usernamepasswordcredentials(", "passwordauthentication(", "authenticationtoken(",
            "simple_bind_s(", "withemailandpassword(",
        ],
    ),
    (
        CommandPlace::Argument(3),
        &[
            "getconnection(", "mysqli_connect(", "new mysqli(", "new pdo(", "new sequelize(",
            "keyring.set_password(", "keytar.setpassword(", "pymysql.connect(", "mysqldb.connect(",
            "create_user(", "create_superuser(", "withemailandpassword(",
        ],
    ),
    (
        CommandPlace::Argument(1),
        &[
            " crypt(", "hashsync(", "comparesync(", "bcrypt.hash(", "bcrypt.compare(", "hashpw(",
            "password_hash(",
        ],
    ),
    (
        CommandPlace::Phrase,
        &["mnemonic", "seed_phrase", "seed phrase", "recovery_phrase", "recovery phrase"],
    ),
    (CommandPlace::Header, &["-h ", "-h'", "-h\"", "-h=", "--header ", "--header="]),
    (
        CommandPlace::Md5,
        &[
            "\" \"md5", "\\\" \\\"md5", "password 'md5", "password \"md5", "password=md5",
            "password \\\"md5",
        ],
    ),
    (CommandPlace::Md5, &["aad3b435b51404eeaad3b435b51404ee:"]),
];

/// The type of a value in a command. It may also come after the value.
pub(super) const SECURE: &str = "SecureString";
