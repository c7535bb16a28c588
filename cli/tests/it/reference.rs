//! Checks that the end of `docs/cli.md` equals the reference of all commands, which is generated
//! from their descriptions.
//!
//! `FORGE_UPDATE_DOCS=1 cargo test -p forge-cli reference` updates it.

use clap::{Arg, Command, CommandFactory};
use forge_cli::args::ForgeArgs;
use forge_cli::args::example::with_examples;
use forge_store::shell;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The start of the reference in the page.
const MARK: &str = "<!-- cli/tests/it/reference.rs generates the rest of this page. -->\n";

#[test]
fn the_page_on_commands_has_the_reference_of_all_commands() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (written, found) = text.split_once(MARK).expect("the page has the mark");
    let wanted = reference();
    if std::env::var_os("FORGE_UPDATE_DOCS").is_some() {
        std::fs::write(&page, format!("{written}{MARK}{wanted}")).unwrap();
        return;
    }
    let different = found.lines().zip(wanted.lines()).find(|(found, wanted)| found != wanted);
    assert!(
        found == wanted,
        "docs/cli.md is not what the commands say, first at {different:?}; \
         FORGE_UPDATE_DOCS=1 writes it again"
    );
}

#[test]
fn the_page_names_every_setting_and_exit_code() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md");
    let text = std::fs::read_to_string(page).unwrap();
    for key in forge_cli::config::SettingKey::all() {
        assert!(text.contains(&format!("| `{}` |", key.name)), "{}", key.name);
        if let Some(variable) = key.variable {
            assert!(text.contains(&format!("| `{variable}` |")), "{variable}");
        }
    }
    for code in forge_cli::error::EXIT_CODES {
        assert!(text.contains(&format!("\n| {code} |")), "{code}");
    }
}

/// Every command in the pages, in an example or within a sentence, exists and has the options that
/// are named with it.
#[test]
fn the_pages_name_only_commands_and_options_that_exist() {
    let mut tree = ForgeArgs::command();
    tree.build();
    let (mut examples, mut spans) = (0, 0);
    for path in pages() {
        let page = std::fs::read_to_string(&path).unwrap();
        // `format.md` names contexts of keys such as `forge entity`, which are not commands.
        let has_commands = !path.ends_with("format.md");
        let mut block = None;
        for line in page.lines() {
            if let Some(kind) = line.trim_start().strip_prefix("```") {
                block = if block.is_none() { Some(kind.to_owned()) } else { None };
                continue;
            }
            let commands: Vec<&str> = match block.as_deref() {
                Some("sh") => vec![line],
                Some("console") => line.strip_prefix("$ ").into_iter().collect(),
                Some(_) => continue,
                None if !has_commands => continue,
                None => line
                    .split('`')
                    .skip(1)
                    .step_by(2)
                    .filter(|it| it.starts_with("forge "))
                    .collect(),
            };
            for command in commands.iter().flat_map(|line| shell::split(line)) {
                // `forge test` is Foundry's, in the list of checks.
                if command.words.first().is_none_or(|program| program != "forge")
                    || command.words.get(1).is_some_and(|word| word == "test")
                {
                    continue;
                }
                *if block.is_some() { &mut examples } else { &mut spans } += 1;
                let unknown = unknown_word(&tree, &command.words);
                assert_eq!(unknown, None, "{}: {line}", path.display());
            }
        }
    }
    assert!(examples > 400 && spans > 300, "{examples} examples, {spans} in sentences");
}

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    for folder in ["docs", "docs/systems"] {
        let files = std::fs::read_dir(root.join(folder)).unwrap();
        let files = files.map(|file| file.unwrap().path());
        found.extend(files.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    found
}

/// Returns the first word that is neither a command nor an option there. Everything after a
/// placeholder in capitals, a text or `help` is left out.
fn unknown_word(tree: &Command, words: &[String]) -> Option<String> {
    let mut command = tree;
    let mut words = words.iter().skip(1).take_while(|word| *word != "--");
    while let Some(word) = words.next() {
        if let Some(option) = word.strip_prefix("--") {
            let (name, is_whole) = match option.split_once(['=', '[']) {
                Some((name, _)) => (name, false),
                None => (option, true),
            };
            let is_it = |arg: &&Arg| {
                arg.get_long_and_visible_aliases().is_some_and(|names| names.contains(&name))
            };
            match command.get_arguments().find(is_it) {
                Some(known) if is_whole && known.get_action().takes_values() => _ = words.next(),
                Some(_) => {}
                None => return Some(word.clone()),
            }
        } else if command.has_subcommands() && !word.starts_with('-') {
            // A unique beginning is enough.
            let mut named =
                command.get_subcommands().filter(|inner| inner.get_name().starts_with(&**word));
            let only = named.next().filter(|_| named.next().is_none());
            match command.find_subcommand(word).or(only) {
                Some(inner) => command = inner,
                None if word == "help" || word.contains(|c: char| !c.is_ascii_lowercase()) => {
                    return None;
                }
                None => return Some(word.clone()),
            }
        }
    }
    None
}

fn reference() -> String {
    let mut tree = with_examples(ForgeArgs::command().term_width(100));
    let mut text = String::from("\n## Reference\n\n### Global options\n\n");
    for arg in tree.get_arguments().filter(|arg| arg.is_global_set()) {
        describe(arg, &mut text);
    }
    for command in tree.get_subcommands_mut() {
        section(command, "forge", &mut text);
    }
    text
}

fn section(command: &mut Command, above: &str, text: &mut String) {
    let name = format!("{above} {}", command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    writeln!(text, "\n### {name}\n\n{about}.\n").unwrap();
    if command.has_subcommands() {
        for sub in command.get_subcommands() {
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            writeln!(text, "- `{name} {}`: {about}", sub.get_name()).unwrap();
        }
    } else {
        let usage = command.render_usage().to_string();
        let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
        writeln!(text, "```\n{usage}\n```").unwrap();
    }
    let own =
        |arg: &&Arg| !arg.is_global_set() && !["help", "version"].contains(&arg.get_id().as_str());
    let mut arguments = command.get_arguments().filter(own).peekable();
    if arguments.peek().is_some() {
        text.push('\n');
    }
    arguments.for_each(|arg| describe(arg, text));
    let examples = command.get_after_help().map(ToString::to_string);
    if let Some(lines) = examples.as_deref().and_then(|shown| shown.strip_prefix("Examples:\n")) {
        let lines: Vec<&str> = lines.lines().map(str::trim_start).collect();
        write!(text, "\n```sh\n{}\n```\n", lines.join("\n")).unwrap();
    }
    for sub in command.get_subcommands_mut() {
        section(sub, &name, text);
    }
}

fn describe(arg: &Arg, text: &mut String) {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let shown = match (arg.get_short(), arg.is_positional()) {
        (Some(short), false) => format!("-{short}, {arg}"),
        _ => arg.to_string(),
    };
    write!(text, "- `{shown}`: {help}").unwrap();
    let values: Vec<String> = match arg.get_action().takes_values() {
        true => arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect(),
        false => Vec::new(),
    };
    if !values.is_empty() {
        write!(text, " (`{}`)", values.join("`, `")).unwrap();
    }
    if let ([value], true) = (arg.get_default_values(), arg.get_action().takes_values()) {
        write!(text, " (default `{}`)", value.to_string_lossy()).unwrap();
    }
    if let Some(variable) = arg.get_env() {
        write!(text, " (variable `{}`)", variable.to_string_lossy()).unwrap();
    }
    text.push('\n');
}
