//! The profiles of the AWS command line, which `object_store` does not read.

use crate::Environment;
use forge_store::error::DepotError;
use forge_store::plain_file;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The settings of a profile that are used, each with its name in `object_store`.
const USED: [(&str, &str); 5] = [
    ("aws_access_key_id", "aws_access_key_id"),
    ("aws_secret_access_key", "aws_secret_access_key"),
    ("aws_session_token", "aws_session_token"),
    ("region", "aws_region"),
    ("endpoint_url", "aws_endpoint_url"),
];
/// Variables that say where credentials are. If one is set, the profile's are not used.
const ELSEWHERE: [&str; 5] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_SKIP_SIGNATURE",
];
/// Settings of profiles whose credentials only the AWS command line can get.
const FOR_THE_COMMAND_LINE: [&str; 5] =
    ["sso_session", "sso_start_url", "credential_process", "role_arn", "login_session"];
/// The maximum size of a file of profiles, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

type ProfileSection = BTreeMap<String, String>;

/// Returns the settings of the profile that `AWS_PROFILE` or `AWS_DEFAULT_PROFILE` names, by
/// default `default`, without those that the environment has.
///
/// # Errors
/// [`DepotError::Refused`] if the profile is named and does not exist, or if only the AWS command
/// line can get its credentials; [`DepotError::Unavailable`] if a file cannot be read.
pub(crate) fn settings(environment: &Environment) -> Result<Vec<(String, String)>, DepotError> {
    let named = environment.get("AWS_PROFILE").or_else(|| environment.get("AWS_DEFAULT_PROFILE"));
    let name = named.map_or("default", String::as_str);
    let of_config =
        if name == "default" { "default".to_owned() } else { format!("profile {name}") };
    let files = [
        ("AWS_CONFIG_FILE", ".aws/config", of_config.as_str()),
        ("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials", name),
    ];
    let mut profile: Option<ProfileSection> = None;
    for (variable, usual, section) in files {
        let Some(path) = path(environment, variable, usual) else { continue };
        if let Some(found) = sections(&path)?.remove(section) {
            profile.get_or_insert_default().extend(found);
        }
    }
    let Some(profile) = profile else {
        return match named {
            Some(name) => {
                Err(refused(name, "there is no such profile: see 'aws configure list-profiles'"))
            }
            None => Ok(Vec::new()),
        };
    };
    let is_elsewhere = ELSEWHERE.iter().any(|variable| environment.contains_key(*variable));
    let has_key = profile.contains_key("aws_access_key_id");
    if !is_elsewhere
        && !has_key
        && FOR_THE_COMMAND_LINE.iter().any(|setting| profile.contains_key(*setting))
    {
        let what = "only the AWS command line can get its credentials; put them into the \
                    environment with: eval \"$(aws configure export-credentials --format env)\"";
        return Err(refused(name, what));
    }
    let is_set = |setting: &str| {
        let same = match setting {
            "aws_region" => &["AWS_REGION", "AWS_DEFAULT_REGION"][..],
            "aws_endpoint_url" => &["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT"],
            _ => return is_elsewhere,
        };
        same.iter().any(|variable| environment.contains_key(*variable))
    };
    let used = USED.iter().filter(|(_, setting)| !is_set(setting));
    let found = used
        .filter_map(|(name, setting)| Some(((*setting).to_owned(), profile.get(*name)?.clone())));
    Ok(found.collect())
}

fn refused(name: &str, what: &'static str) -> DepotError {
    let action = format!("use the AWS profile '{name}', since {what}");
    DepotError::Refused { action, source: what.into() }
}

fn path(environment: &Environment, variable: &str, usual: &str) -> Option<PathBuf> {
    let home = || environment.get("HOME").map(|home| Path::new(home).join(usual));
    environment.get(variable).map(PathBuf::from).or_else(home)
}

/// Reads a file of profiles. A file that does not exist has none.
fn sections(path: &Path) -> Result<BTreeMap<String, ProfileSection>, DepotError> {
    let bytes = match plain_file::read(path, MAX_FILE_BYTES) {
        Ok(bytes) => bytes,
        // Users name `/dev/null` if there is to be no file.
        Err(error) if error.kind() == ErrorKind::NotFound || plain_file::is_no_file(&error) => {
            return Ok(BTreeMap::new());
        }
        Err(error) => {
            let what = format!("cannot read {}", path.display());
            return Err(DepotError::Unavailable { what, source: Some(Box::new(error)) });
        }
    };
    Ok(parsed(&String::from_utf8_lossy(&bytes)))
}

/// Reads sections of settings. Comments, nested settings and other lines are ignored.
fn parsed(text: &str) -> BTreeMap<String, ProfileSection> {
    let mut found = BTreeMap::new();
    let mut section: Option<&mut ProfileSection> = None;
    for line in text.lines() {
        let bare = line.split([';', '#']).next().unwrap_or_default().trim();
        if let Some(name) = bare.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let name: Vec<_> = name.split_whitespace().collect();
            section = Some(found.entry(name.join(" ")).or_default());
        } else if let Some(section) = &mut section
            && !line.starts_with(char::is_whitespace)
            && let Some((name, value)) = line.split_once('=')
            && !line.starts_with(['#', ';'])
        {
            section.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const CONFIG: &str = "# comment\n[default]\nregion = eu-west-1\n[profile  work]\nregion=eu-north-1\n\
                          s3 =\n  region = nested\nendpoint_url = https://s3.example.com\n\
                          [profile sso]\nsso_session = acme\n";
    const CREDENTIALS: &str = "[default]\naws_access_key_id = one\naws_secret_access_key = a=b/c#d\n\
                               [work] ; comment\naws_access_key_id = two\naws_secret_access_key = w\n\
                               aws_session_token = t\n";

    fn settings_of(variables: &[(&str, &str)]) -> Result<String, DepotError> {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join(".aws")).unwrap();
        fs::write(home.path().join(".aws/config"), CONFIG).unwrap();
        fs::write(home.path().join(".aws/credentials"), CREDENTIALS).unwrap();
        let home = home.path().to_str().unwrap();
        let own = variables.iter().copied().chain([("HOME", home)]);
        let environment = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let found = settings(&environment.collect())?;
        let lines: Vec<_> = found.iter().map(|(name, value)| format!("{name}={value}")).collect();
        Ok(lines.join(" "))
    }

    #[test]
    fn a_profile_gives_what_the_environment_does_not() {
        let default = "aws_access_key_id=one aws_secret_access_key=a=b/c#d aws_region=eu-west-1";
        assert_eq!(settings_of(&[]).unwrap(), default);
        let work = "aws_access_key_id=two aws_secret_access_key=w aws_session_token=t \
                    aws_region=eu-north-1 aws_endpoint_url=https://s3.example.com";
        assert_eq!(settings_of(&[("AWS_PROFILE", "work")]).unwrap(), work);
        let own = [("AWS_ACCESS_KEY_ID", "x"), ("AWS_SECRET_ACCESS_KEY", "y")];
        assert_eq!(settings_of(&own).unwrap(), "aws_region=eu-west-1");
        let region = [("AWS_REGION", "us-east-1"), ("AWS_SKIP_SIGNATURE", "true")];
        assert_eq!(settings_of(&region).unwrap(), "");
    }

    #[test]
    fn a_profile_that_cannot_be_used_is_refused() {
        for (name, expected) in
            [("missing", "no such profile"), ("sso", "aws configure export-credentials")]
        {
            let error = settings_of(&[("AWS_PROFILE", name)]).unwrap_err();
            assert!(matches!(error, DepotError::Refused { .. }), "{error:?}");
            assert!(error.to_string().contains(expected), "{error}");
        }
        let own = [("AWS_PROFILE", "sso"), ("AWS_ACCESS_KEY_ID", "x")];
        assert_eq!(settings_of(&own).unwrap(), "");
    }

    #[test]
    fn missing_profile_files_give_no_settings() {
        assert_eq!(settings(&Environment::new()).unwrap(), []);
        for (variable, path) in [("HOME", "/nowhere"), ("AWS_CONFIG_FILE", "/dev/null")] {
            let nowhere = [(variable.to_owned(), path.to_owned())];
            assert_eq!(settings(&nowhere.into_iter().collect()).unwrap(), []);
        }
    }
}
