//! Secrets: what is found, what is left alone, and that nothing of it reaches a store's files.

use forge_store::redact::{Form, Redactor};
use forge_testkit::secret::{fakes, shapes};
use std::collections::BTreeMap;

#[test]
fn made_up_secrets_of_every_shape_are_found_plain_and_in_json() {
    assert!(shapes() >= 40);
    let redactor = Redactor::new();
    let mut missed: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for fake in fakes(25) {
        let json = serde_json::json!({ "text": fake.text }).to_string();
        let nested = serde_json::json!({ "text": json }).to_string();
        for (text, form) in [(&fake.text, Form::Plain), (&json, Form::Json), (&nested, Form::Json)]
        {
            let clean = redactor.clean(text, form);
            if clean.contains(&fake.secret) {
                missed.entry(fake.shape).or_default().push(text.to_string());
            }
            if form == Form::Json {
                serde_json::from_str::<serde_json::Value>(&clean)
                    .unwrap_or_else(|error| panic!("{}: {error}: {clean}", fake.shape));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}
