//! The style and the script of a page, and the policy that allows nothing else.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// The style and the script.
pub(crate) struct Assets {
    pub(crate) style: &'static str,
    pub(crate) script: &'static str,
}

/// Returns the style and the script, which are inside of each page.
pub(crate) const fn assets() -> Assets {
    Assets { style: include_str!("page.css"), script: include_str!("page.js") }
}

/// Returns the content security policy of a page: only its own style and script, and nothing from
/// anywhere. A served page may read from its own server.
#[must_use]
pub fn policy(with_script: bool, served: bool) -> String {
    let Assets { style, script } = assets();
    let hash =
        |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())));
    let script = if with_script { hash(script) } else { "'none'".to_owned() };
    let (connect, form) = if served { ("'self'", "'self'") } else { ("'none'", "'none'") };
    format!(
        "default-src 'none'; style-src {}; script-src {script}; connect-src {connect}; \
         form-action {form}; base-uri 'none'",
        hash(style)
    )
}
