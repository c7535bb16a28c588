//! Invented secrets in the formats of real ones, the same in every run.
//!
//! None of them was ever valid. The source contains only parts of them, so that no scanner reports
//! it as a leak.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// An invented secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FakeSecret {
    /// The name of its format.
    pub shape: &'static str,
    /// The part that must never be stored.
    pub secret: String,
    /// A text that contains it in a typical context.
    pub text: String,
}

impl FakeSecret {
    /// Returns whether the secret is recognised by its format alone, without its context.
    #[must_use]
    pub fn has_secret_shape(&self) -> bool {
        self.text == in_sentence(self.secret.clone()).1
    }
}

const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const BASE32: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const HEX: &str = "0123456789abcdef";
const DIGITS: &str = "0123456789";
const URL64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Pseudo-random numbers, the same in every run (Marsaglia's xorshift).
struct SecretGenerator(u64);

impl SecretGenerator {
    fn new(shape: &str, number: u64) -> Self {
        let seed = shape.bytes().fold(number.wrapping_add(0x9e37_79b9_7f4a_7c15), |seed, byte| {
            (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut dice = Self(seed | 1);
        for _ in 0..8 {
            dice.next_number();
        }
        dice
    }

    fn next_number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn draw(&mut self, from: &str, count: usize) -> String {
        let from = from.as_bytes();
        (0..count)
            .map(|_| char::from(from[((self.next_number() >> 11) % from.len() as u64) as usize]))
            .collect()
    }

    /// Draws a text with at least one digit and one letter, whose first and last characters are a
    /// letter or digit.
    fn draw_mixed(&mut self, from: &str, count: usize) -> String {
        loop {
            let text = self.draw(from, count);
            let both = text.bytes().any(|b| b.is_ascii_digit())
                && text.bytes().any(|b| b.is_ascii_alphabetic());
            let edges = [text.bytes().next(), text.bytes().last()];
            if both && edges.iter().flatten().all(u8::is_ascii_alphanumeric) {
                return text;
            }
        }
    }
}

type SecretShape = fn(&mut SecretGenerator) -> (String, String);

/// Returns a token alone, and in a sentence.
fn in_sentence(token: String) -> (String, String) {
    let text = format!("it answered with {token} and went on");
    (token, text)
}

/// Returns one line of an invented private key, and a text with the whole key.
fn key(dice: &mut SecretGenerator, label: &str, lines: usize) -> (String, String) {
    let body: Vec<String> = (0..lines).map(|_| dice.draw(BASE64, 64)).collect();
    let dashes = "-".repeat(5);
    let text = format!(
        "here it is:\n{dashes}BEGIN {label}{dashes}\n{}\n{dashes}END {label}{dashes}\nthat was it",
        body.join("\n")
    );
    (body[lines / 2].clone(), text)
}

static SHAPES: &[(&str, SecretShape)] = &[
    ("age", |d| in_sentence(format!("AGE-SECRET-{}-1{}", "KEY", d.draw(UPPER, 58)))),
    ("airtable", |d| {
        in_sentence(format!("{}{}.{}", "pat", d.draw_mixed(ALNUM, 14), d.draw(HEX, 64)))
    }),
    ("anthropic", |d| in_sentence(format!("sk-{}-api03-{}", "ant", d.draw_mixed(URL64, 93)))),
    ("atlassian", |d| in_sentence(format!("AT{}{}", "ATT3", d.draw_mixed(URL64, 180)))),
    ("aws access key", |d| in_sentence(format!("AK{}{}", "IA", d.draw(BASE32, 16)))),
    ("aws secret key", |d| {
        let secret = d.draw_mixed(BASE64, 40);
        (secret.clone(), format!("aws_secret_access_key = {secret}"))
    }),
    ("azure client secret", |d| {
        in_sentence(format!("{}8Q~{}", d.draw_mixed(ALNUM, 3), d.draw_mixed(ALNUM, 34)))
    }),
    ("azure storage", |d| {
        let secret = format!("{}==", d.draw_mixed(BASE64, 86));
        (
            secret.clone(),
            format!("DefaultEndpointsProtocol=https;Account{}={secret};EndpointSuffix=core", "Key"),
        )
    }),
    ("basic", |d| {
        let secret = STANDARD.encode(format!("deploy:{}", d.draw_mixed(ALNUM, 16)));
        (secret.clone(), format!("Authorization: Basic {secret}"))
    }),
    ("bearer", |d| {
        let secret = d.draw_mixed(URL64, 40);
        (secret.clone(), format!("curl -H 'Authorization: Bearer {secret}' https://api.test"))
    }),
    ("databricks", |d| in_sentence(format!("da{}{}", "pi", d.draw(HEX, 32)))),
    ("digitalocean", |d| in_sentence(format!("dop_{}_{}", "v1", d.draw(HEX, 64)))),
    ("docker", |d| in_sentence(format!("dckr_{}_{}", "pat", d.draw_mixed(URL64, 27)))),
    ("doppler", |d| in_sentence(format!("dp.{}.{}", "pt", d.draw_mixed(ALNUM, 43)))),
    ("env key", |d| {
        let secret = d.draw_mixed(ALNUM, 32);
        (secret.clone(), format!("PORT=80\nPAYMENT_API_KEY={secret}\nDEBUG=1"))
    }),
    ("env password", |d| {
        let secret =
            d.draw_mixed("ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789!^*", 24);
        (secret.clone(), format!("export DB_PASSWORD='{secret}'"))
    }),
    ("figma", |d| in_sentence(format!("fi{}_{}", "gd", d.draw_mixed(URL64, 40)))),
    ("flag", |d| {
        let secret = d.draw_mixed(ALNUM, 30);
        (secret.clone(), format!("deploy --auth-token {secret} --verbose"))
    }),
    ("github", |d| in_sentence(format!("gh{}_{}", "p", d.draw_mixed(ALNUM, 36)))),
    ("github pat", |d| {
        in_sentence(format!(
            "github_{}_{}_{}",
            "pat",
            d.draw_mixed(ALNUM, 22),
            d.draw_mixed(ALNUM, 59)
        ))
    }),
    ("gitlab", |d| in_sentence(format!("gl{}-{}", "pat", d.draw_mixed(URL64, 20)))),
    ("google api", |d| in_sentence(format!("AI{}{}", "za", d.draw_mixed(URL64, 35)))),
    ("google oauth", |d| in_sentence(format!("GOC{}-{}", "SPX", d.draw_mixed(URL64, 28)))),
    ("grafana", |d| {
        in_sentence(format!("gl{}_{}_{}", "sa", d.draw_mixed(ALNUM, 32), d.draw(HEX, 8)))
    }),
    ("groq", |d| in_sentence(format!("gs{}_{}", "k", d.draw_mixed(ALNUM, 52)))),
    ("huggingface", |d| in_sentence(format!("h{}_{}", "f", d.draw_mixed(ALNUM, 34)))),
    ("json password", |d| {
        let secret = d.draw_mixed(ALNUM, 28);
        (secret.clone(), format!("{{\"user\": \"app\", \"password\": \"{secret}\"}}"))
    }),
    ("jwt", |d| {
        in_sentence(format!(
            "ey{}{}.eyJ{}.{}",
            "J",
            d.draw_mixed(ALNUM, 33),
            d.draw_mixed(URL64, 60),
            d.draw_mixed(URL64, 43)
        ))
    }),
    ("linear", |d| in_sentence(format!("lin_{}_{}", "api", d.draw_mixed(ALNUM, 40)))),
    ("mailchimp", |d| {
        in_sentence(format!("{}-{}{}", d.draw(HEX, 32), "us", d.draw("123456789", 1)))
    }),
    ("mailgun", |d| in_sentence(format!("{}-{}", "key", d.draw(HEX, 32)))),
    ("netrc", |d| {
        let secret = d.draw_mixed(ALNUM, 18);
        (secret.clone(), format!("machine git.test login deploy password {secret}"))
    }),
    ("newrelic", |d| in_sentence(format!("NR{}-{}", "AK", d.draw_mixed(UPPER, 27)))),
    ("notion", |d| {
        in_sentence(format!("nt{}_{}{}", "n", d.draw(DIGITS, 11), d.draw_mixed(ALNUM, 35)))
    }),
    ("npm", |d| in_sentence(format!("np{}_{}", "m", d.draw_mixed(ALNUM, 36)))),
    ("openai", |d| in_sentence(format!("sk-{}-{}", "proj", d.draw_mixed(URL64, 74)))),
    ("openssh key", |d| key(d, &format!("OPENSSH {} KEY", "PRIVATE"), 6)),
    ("pgp key", |d| key(d, &format!("PGP {} KEY BLOCK", "PRIVATE"), 40)),
    ("planetscale", |d| in_sentence(format!("pscale_{}_{}", "tkn", d.draw_mixed(URL64, 43)))),
    ("postman", |d| in_sentence(format!("PM{}-{}-{}", "AK", d.draw(HEX, 24), d.draw(HEX, 34)))),
    ("pypi", |d| in_sentence(format!("py{}-AgEIcHlwaS5vcmc{}", "pi", d.draw_mixed(URL64, 80)))),
    ("replicate", |d| in_sentence(format!("r{}_{}", "8", d.draw_mixed(ALNUM, 37)))),
    ("rsa key", |d| key(d, &format!("RSA {} KEY", "PRIVATE"), 25)),
    ("sendgrid", |d| {
        in_sentence(format!("S{}.{}.{}", "G", d.draw_mixed(URL64, 22), d.draw_mixed(URL64, 43)))
    }),
    ("sentry", |d| in_sentence(format!("sntr{}_{}", "yu", d.draw(HEX, 64)))),
    ("shopify", |d| in_sentence(format!("shp{}_{}", "at", d.draw(HEX, 32)))),
    ("slack", |d| {
        in_sentence(format!(
            "xo{}-{}-{}-{}",
            "xb",
            d.draw(DIGITS, 12),
            d.draw(DIGITS, 12),
            d.draw_mixed(ALNUM, 24)
        ))
    }),
    ("slack webhook", |d| {
        let secret =
            format!("T{}/B{}/{}", d.draw(UPPER, 10), d.draw(UPPER, 10), d.draw_mixed(ALNUM, 24));
        (secret.clone(), format!("post to https://hooks.{}.com/services/{secret} now", "slack"))
    }),
    ("square", |d| in_sentence(format!("sq0{}-{}", "csp", d.draw_mixed(URL64, 43)))),
    ("stripe", |d| in_sentence(format!("sk_{}_{}", "live", d.draw_mixed(ALNUM, 24)))),
    ("supabase", |d| in_sentence(format!("sb{}_{}", "p", d.draw(HEX, 40)))),
    ("telegram", |d| {
        in_sentence(format!("{}:A{}{}", d.draw("123456789", 10), "A", d.draw_mixed(URL64, 33)))
    }),
    ("terraform", |d| {
        in_sentence(format!(
            "{}.{}.{}",
            d.draw_mixed(ALNUM, 14),
            "atlasv1",
            d.draw_mixed(URL64, 67)
        ))
    }),
    ("twilio", |d| in_sentence(format!("S{}{}", "K", d.draw(HEX, 32)))),
    ("url password", |d| {
        let secret = d.draw_mixed(ALNUM, 16);
        (secret.clone(), format!("postgres://app:{secret}@db.test:5432/main"))
    }),
    ("vault", |d| in_sentence(format!("hv{}.{}", "s", d.draw_mixed(URL64, 90)))),
    ("webhook", |d| in_sentence(format!("wh{}_{}", "sec", d.draw_mixed(BASE64, 32)))),
    ("yaml secret", |d| {
        let secret = d.draw_mixed(URL64, 32);
        (secret.clone(), format!("oauth:\n  client_secret: {secret}\n  scope: all"))
    }),
];

/// Returns the number of formats.
#[must_use]
pub fn shape_count() -> usize {
    SHAPES.len()
}

/// Returns this many secrets of every format.
#[must_use]
pub fn fake_secrets(of_each: u64) -> Vec<FakeSecret> {
    let make = |(shape, make): &(&'static str, SecretShape), number| {
        let (secret, text) = make(&mut SecretGenerator::new(shape, number));
        FakeSecret { shape, secret, text }
    };
    SHAPES.iter().flat_map(|shape| (0..of_each).map(move |number| make(shape, number))).collect()
}
