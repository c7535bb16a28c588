use super::*;
use crate::error::CommandErrorKind;

struct ConfigFiles {
    root: tempfile::TempDir,
}

impl ConfigFiles {
    fn new(user: &str, project: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("xdg/forge")).unwrap();
        fs::create_dir_all(root.path().join(".forge")).unwrap();
        fs::write(root.path().join("xdg/forge/config.toml"), user).unwrap();
        fs::write(root.path().join(".forge/config.toml"), project).unwrap();
        Self { root }
    }

    fn read(&self, global: &GlobalArgs, variable: (&str, &str)) -> Result<Config, CommandError> {
        let xdg = self.root.path().join("xdg");
        let environment = Environment::from([("XDG_CONFIG_HOME", xdg.to_str().unwrap()), variable]);
        Config::read(global, &environment, Some(&self.root.path().join(".forge")))
    }
}

#[test]
fn each_layer_overrides_the_lower_ones() {
    let timeout = |config: &Config| {
        let (value, layer) = config.value(SettingKey::find("lock_timeout").unwrap());
        (value.unwrap().to_string(), layer)
    };
    let none = GlobalArgs::default();
    let files = ConfigFiles::new("", "");
    let config = files.read(&none, ("HOME", "/x")).unwrap();
    assert_eq!(timeout(&config), ("5".into(), ConfigLayer::Default));
    let files = ConfigFiles::new("lock_timeout = 1", "");
    let config = files.read(&none, ("HOME", "/x")).unwrap();
    assert_eq!(timeout(&config), ("1".into(), ConfigLayer::User));
    let files = ConfigFiles::new("lock_timeout = 1", "lock_timeout = 2.5");
    let config = files.read(&none, ("HOME", "/x")).unwrap();
    assert_eq!(timeout(&config), ("2.5".into(), ConfigLayer::Project));
    let config = files.read(&none, ("FORGE_LOCK_TIMEOUT", "3")).unwrap();
    assert_eq!(timeout(&config), ("3".into(), ConfigLayer::Environment));
    let flags = GlobalArgs { lock_timeout: Some(Duration::from_secs(4)), ..GlobalArgs::default() };
    let config = files.read(&flags, ("FORGE_LOCK_TIMEOUT", "3")).unwrap();
    assert_eq!(timeout(&config), ("4".into(), ConfigLayer::Flag));
    assert_eq!(config.duration("lock_timeout"), Some(Duration::from_secs(4)));
}

#[test]
fn unknown_and_invalid_settings_are_refused_with_the_reason() {
    for (text, reason) in [
        ("lock_timout = 1", "there is no setting 'lock_timout'"),
        ("[keep]\nlasst = 1", "there is no setting 'keep.lasst'"),
        (
            "lock_timeout = -1",
            "'lock_timeout' must be a number of seconds, such as 5 or 0.5, not '-1'",
        ),
        (
            "lock_timeout = nan",
            "'lock_timeout' must be a number of seconds, such as 5 or 0.5, not 'nan'",
        ),
        ("color = [1]", "'color' is not a list"),
        (
            "keep.tags = [\"a\"]",
            "'keep.tags' is not a list: write one text, with spaces between the words",
        ),
        ("keep.last = \"many\"", "'keep.last' must be a whole number, not 'many'"),
        ("pager = \"sh -c evil\"", "a project may not set 'pager', as it runs a program"),
    ] {
        let error =
            ConfigFiles::new("", text).read(&GlobalArgs::default(), ("A", "b")).unwrap_err();
        assert_eq!(error.kind(), CommandErrorKind::Invalid, "{text}");
        assert_eq!(error.causes()[0], reason, "{text}");
    }
    let error =
        ConfigFiles::new("color =\n", "").read(&GlobalArgs::default(), ("A", "b")).unwrap_err();
    assert!(error.causes()[0].starts_with("it is not TOML in line 1"), "{:?}", error.causes());
}

#[test]
fn the_error_about_a_variable_names_it() {
    let files = ConfigFiles::new("", "");
    let error = files.read(&GlobalArgs::default(), ("FORGE_COLOR", "sometimes")).unwrap_err();
    assert_eq!(error.message(), "the variable FORGE_COLOR cannot be used");
}

#[test]
fn a_relative_settings_directory_is_ignored() {
    let environment = Environment::from([("XDG_CONFIG_HOME", "rel"), ("HOME", "/home/u")]);
    assert_eq!(environment.config_directory(), Some("/home/u/.config".into()));
    assert_eq!(Environment::from([("HOME", "rel")]).config_directory(), None);
}
