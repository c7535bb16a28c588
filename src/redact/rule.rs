//! Shapes of well-known tokens, as data. `docs/redaction.md` lists them; a test holds it to this table.

use super::shape::{Runs, Shape, Token};
use std::sync::OnceLock;

/// The shape of a token.
#[derive(Debug)]
pub struct Rule {
    /// What it is: the word behind `redacted:`.
    pub kind: &'static str,
    /// Texts, in lower case, one of which every such token holds: only where one stands is the shape tried.
    pub hints: &'static [&'static str],
    /// The shape (a regular expression over bytes), from the token's first byte on. A group in it is the secret, else
    /// all of it is.
    pub shape: &'static str,
    /// Whether the hint stands in the middle: then the token begins where the word around it does.
    pub inner: bool,
    compiled: OnceLock<Shape>,
}

const fn rule(kind: &'static str, hints: &'static [&'static str], shape: &'static str) -> Rule {
    Rule { kind, hints, shape, inner: false, compiled: OnceLock::new() }
}

const fn inner(kind: &'static str, hints: &'static [&'static str], shape: &'static str) -> Rule {
    Rule { kind, hints, shape, inner: true, compiled: OnceLock::new() }
}

static RULES: [Rule; 62] = [
    rule("age-secret-key", &["age-secret-key-1"], r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    inner("airtable-token", &["pat"], r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    rule("anthropic-key", &["sk-ant-"], r"sk-ant-[a-z]{2,8}[0-9]{2}-[A-Za-z0-9_-]{24,}"),
    rule(
        "artifactory-key",
        &["akcp", "cmvmdgtu"],
        r"(?:AKCp[A-Za-z0-9]{10,}|cmVmdGtu[A-Za-z0-9]{56,})",
    ),
    rule(
        "atlassian-token",
        &["atatt3", "atctt3", "atbb"],
        r"(?:AT[AC]TT3[A-Za-z0-9_=-]{60,}|ATBB[A-Za-z0-9]{28,})",
    ),
    rule(
        "aws-access-key",
        &["akia", "asia", "abia", "acca"],
        r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}",
    ),
    inner("azure-client-secret", &["8q~"], r"[A-Za-z0-9_~.-]{3}[78]Q~[A-Za-z0-9_~.-]{31,34}"),
    rule("cargo-token", &["cio"], r"cio[A-Za-z0-9]{32}"),
    rule("clojars-token", &["clojars_"], r"CLOJARS_[a-f0-9]{60}"),
    rule("cloudflare-origin-key", &["v1.0-"], r"v1\.0-[a-f0-9]{24}-[a-f0-9]{146}"),
    rule("databricks-token", &["dapi", "dose"], r"(?:dapi|dose)[a-f0-9]{32}(?:-[0-9])?"),
    rule("digitalocean-token", &["doo_v1_", "dop_v1_", "dor_v1_"], r"do[opr]_v1_[a-f0-9]{64}"),
    rule(
        "discord-webhook",
        &["/api/webhooks/"],
        r"/api/webhooks/[0-9]{15,21}/([A-Za-z0-9_-]{60,80})",
    ),
    rule("docker-token", &["dckr_pat_", "dckr_oat_"], r"dckr_[po]at_[A-Za-z0-9_-]{24,}"),
    rule(
        "doppler-token",
        &["dp."],
        r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}",
    ),
    rule("dynatrace-token", &["dt0"], r"dt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    rule("easypost-key", &["ezak", "eztk"], r"EZ[AT]K[A-Za-z0-9]{54}"),
    rule("figma-token", &["figd_"], r"figd_[A-Za-z0-9_-]{38,44}"),
    rule("flutterwave-key", &["flwseck"], r"FLWSECK(?:_TEST)?-[a-f0-9]{12,32}(?:-X)?"),
    rule(
        "fly-token",
        &["fm1", "fm2_", "fo1_"],
        r"(?:fo1_[A-Za-z0-9_-]{43}|fm(?:1[ar]|2)_[A-Za-z0-9+/]{100,}={0,3})",
    ),
    rule("github-pat", &["github_pat_"], r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    rule(
        "github-token",
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"],
        r"gh[pousr]_[A-Za-z0-9]{36,255}",
    ),
    rule(
        "gitlab-token",
        &[
            "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-",
            "gloas-", "glsoat-",
        ],
        r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat)-[A-Za-z0-9_.-]{20,}",
    ),
    rule("google-api-key", &["aiza"], r"AIza[A-Za-z0-9_-]{35}"),
    rule("google-oauth-secret", &["gocspx-"], r"GOCSPX-[A-Za-z0-9_-]{28}"),
    rule("google-oauth-token", &["ya29."], r"ya29\.[A-Za-z0-9_-]{20,}"),
    rule("google-refresh-token", &["1//0"], r"1//0[A-Za-z0-9_-]{40,}"),
    rule(
        "grafana-token",
        &["glsa_", "glc_"],
        r"(?:glsa_[A-Za-z0-9]{32}_[a-fA-F0-9]{8}|glc_[A-Za-z0-9+/]{32,}={0,2})",
    ),
    rule("groq-key", &["gsk_"], r"gsk_[A-Za-z0-9]{40,}"),
    rule("heroku-key", &["hrku-"], r"HRKU-[A-Za-z0-9_-]{36,64}"),
    rule("huggingface-token", &["hf_", "api_org_"], r"(?:hf_|api_org_)[A-Za-z0-9]{34,}"),
    rule("jwt", &["eyj"], r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{16,}"),
    rule("linear-key", &["lin_api_", "lin_oauth_"], r"lin_(?:api|oauth)_[A-Za-z0-9]{40,}"),
    inner("mailchimp-key", &["-us"], r"[a-f0-9]{32}-us[0-9]{1,2}"),
    rule("mailgun-key", &["key-", "pubkey-"], r"key-[a-f0-9]{32}"),
    rule("newrelic-key", &["nrak-", "nrii-", "nrjs-"], r"NR(?:AK|II|JS)-[A-Za-z0-9_-]{19,32}"),
    rule(
        "notion-token",
        &["ntn_", "secret_"],
        r"(?:ntn_[0-9]{11}[A-Za-z0-9]{35}|secret_[A-Za-z0-9]{43})",
    ),
    rule("npm-token", &["npm_"], r"npm_[A-Za-z0-9]{36}"),
    rule(
        "openai-key",
        &["sk-"],
        r"sk-(?:(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,}|[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}|[A-Za-z0-9]{48})",
    ),
    rule("openrouter-key", &["sk-or-"], r"sk-or-v1-[a-f0-9]{64}"),
    rule("perplexity-key", &["pplx-"], r"pplx-[A-Za-z0-9]{40,}"),
    rule("planetscale-token", &["pscale_"], r"pscale_(?:tkn|oauth|pw)_[A-Za-z0-9_.=-]{32,}"),
    rule("postman-key", &["pmak-"], r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    rule("pulumi-token", &["pul-"], r"pul-[a-f0-9]{40}"),
    rule("pypi-token", &["pypi-"], r"pypi-[A-Za-z0-9_-]{50,}"),
    rule("replicate-token", &["r8_"], r"r8_[A-Za-z0-9]{37}"),
    rule("rubygems-key", &["rubygems_"], r"rubygems_[a-f0-9]{48}"),
    rule("sendgrid-key", &["sg."], r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    rule(
        "sentry-token",
        &["sntrys_", "sntryu_"],
        r"(?:sntryu_[a-f0-9]{64}|sntrys_[A-Za-z0-9+/_=.-]{60,})",
    ),
    rule(
        "shopify-token",
        &["shpat_", "shpca_", "shppa_", "shpss_"],
        r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",
    ),
    rule("slack-app-token", &["xapp-"], r"xapp-[0-9]-[A-Za-z0-9]+-[0-9]+-[A-Za-z0-9]{32,}"),
    rule("slack-token", &["xox"], r"xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{20,}"),
    rule(
        "slack-webhook",
        &["hooks.slack.com/"],
        r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{40,60})",
    ),
    rule(
        "square-token",
        &["sq0atp-", "sq0csp-", "eaaa"],
        r"(?:sq0(?:atp|csp)-[A-Za-z0-9_-]{22,43}|EAAA[A-Za-z0-9_-]{60})",
    ),
    rule(
        "stripe-key",
        &["sk_live_", "sk_test_", "rk_live_", "rk_test_"],
        r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}",
    ),
    rule(
        "supabase-key",
        &["sbp_", "sb_secret_"],
        r"(?:sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_-]{31,})",
    ),
    inner("telegram-token", &[":aa"], r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"),
    inner("terraform-token", &[".atlasv1."], r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}"),
    rule("twilio-key", &["sk"], r"SK[a-f0-9]{32}"),
    rule("vault-token", &["hvs.", "hvb.", "hvr."], r"hv[sbr]\.[A-Za-z0-9_-]{24,}"),
    rule("webhook-secret", &["whsec_"], r"whsec_[A-Za-z0-9+/]{32,}={0,2}"),
    rule("xai-key", &["xai-"], r"xai-[A-Za-z0-9]{60,}"),
];

/// The shapes of tokens that are known.
#[must_use]
pub fn rules() -> &'static [Rule] {
    &RULES
}

/// Kinds that no shape gives: what surrounds them does.
pub(super) const SURROUNDED: [(&str, &str); 9] = [
    ("basic", "name and password behind `Basic`, in base64"),
    ("bearer", "a token behind `Bearer`"),
    ("credential", "a value behind a name such as `credentials` or `auth`"),
    ("environment", "the value of an environment variable that is on no list"),
    ("key", "a value behind a name such as `api_key`, `access-key`, `SIGNING_KEY`"),
    ("password", "a value behind a name such as `password`, `passwd`, `DB_PASS`"),
    ("private-key", "a private key between `BEGIN` and `END`"),
    ("secret", "a value behind a name such as `client_secret`"),
    ("token", "a value behind a name such as `AUTH_TOKEN`"),
];

/// The kind of a password in an address.
pub(super) const URL_PASSWORD: (&str, &str) =
    ("url-password", "the password in an address such as `postgres://user:password@host`");

/// Every kind, with what it is, sorted; the shape for those that have one.
#[must_use]
pub fn kinds() -> Vec<(&'static str, String)> {
    let shapes = RULES.iter().map(|rule| (rule.kind, format!("`{}`", rule.shape)));
    let others = SURROUNDED.iter().chain([&URL_PASSWORD]);
    let mut kinds: Vec<_> =
        shapes.chain(others.map(|(kind, what)| (*kind, (*what).to_owned()))).collect();
    kinds.sort();
    kinds
}

impl Rule {
    /// The token that begins at a place of a text.
    pub(super) fn find(&self, text: &[u8], start: usize, runs: &mut Runs) -> Option<Token> {
        let shape = self
            .compiled
            .get_or_init(|| Shape::new(self.shape).expect("every shape is compiled by a test"));
        shape.find(text, start, runs)
    }
}
