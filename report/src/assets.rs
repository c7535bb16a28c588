//! The style and the script of a page, and the policy that allows only these.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

pub(crate) const STYLE: &str = include_str!("page.css");
pub(crate) const SCRIPT: &str = include_str!("page.js");

/// Returns the content security policy of a page. It allows only the page's own style and script. A
/// served page may also read from its own server and send forms to it.
#[must_use]
pub fn policy(with_script: bool, served: bool) -> String {
    let hash =
        |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())));
    let script = if with_script { hash(SCRIPT) } else { "'none'".to_owned() };
    let (connect, form) = if served { ("'self'", "'self'") } else { ("'none'", "'none'") };
    format!(
        "default-src 'none'; style-src {}; script-src {script}; connect-src {connect}; \
         form-action {form}; base-uri 'none'",
        hash(STYLE)
    )
}
