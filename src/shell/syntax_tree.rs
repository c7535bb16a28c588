//! The syntax tree of a command line. It shows which commands decide whether another one runs.

use super::{ShellToken, ShellWord, is_assignment, tokens};

/// The operator between a pipeline and the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainOperator {
    /// `&&`, also for the first pipeline of a chain.
    And,
    /// `||`
    Or,
}

/// One program with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellCommand {
    /// The assignments before it.
    pub assignments: Vec<ShellWord>,
    /// The program and its arguments.
    pub words: Vec<ShellWord>,
    /// Whether its output is redirected to a file.
    pub redirected: bool,
    /// The name of that file; empty if there is none or it is not known.
    pub file: String,
    /// Whether its output is appended to that file, which may have had content before.
    pub appends: bool,
    /// Whether its error output is redirected to a file.
    pub errors_redirected: bool,
    /// Whether its error output goes to where its output goes.
    pub errors_merged: bool,
}

/// A part of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShellNode {
    /// One program. A `case` and the definition of a function, which are skipped, are programs
    /// without words.
    Command(ShellCommand),
    /// Parts that run in order, each with whether it runs in the background.
    List(Vec<(ShellNode, bool)>),
    /// Pipelines joined by `&&` and `||`.
    Chain(Vec<(ChainOperator, ShellNode)>),
    /// Parts whose output goes to the next one.
    Pipe(Vec<ShellNode>),
    /// A pipeline with `!` before it.
    Not(Box<ShellNode>),
    /// `( ... )`: an `exit` in it ends only the subshell.
    Subshell(Box<ShellNode>),
    /// A group whose output is redirected to the file of this name. The name is empty if it is not
    /// known, or if the output is appended to the file.
    Redirected(Box<ShellNode>, String),
    /// `if` with its branches.
    If {
        /// Each condition with what runs if it holds.
        arms: Vec<(ShellNode, ShellNode)>,
        /// What runs if none of them holds.
        otherwise: Option<Box<ShellNode>>,
    },
    /// `while`, `until`, `for` and `select`.
    Loop {
        /// The condition, if there is one.
        condition: Option<Box<ShellNode>>,
        /// What is repeated.
        body: Box<ShellNode>,
    },
}

/// Maximum depth of groups. A line with deeper ones has no tree.
const MAX_DEPTH: u32 = 24;

/// Parses a command line; `None` if groups are nested deeper than 24 levels.
#[must_use]
pub fn read(line: &str) -> Option<ShellNode> {
    let mut reader = ShellParser { tokens: tokens(line), at: 0, depth: 0, too_deep: false };
    let mut items = Vec::new();
    // A closing word without an opening one is skipped.
    while reader.at < reader.tokens.len() {
        if let ShellNode::List(more) = reader.list() {
            items.extend(more);
        }
        reader.at += 1;
    }
    (!reader.too_deep).then_some(ShellNode::List(items))
}

/// Parses the tokens of a command line.
struct ShellParser {
    tokens: Vec<ShellToken>,
    at: usize,
    depth: u32,
    too_deep: bool,
}

impl ShellParser {
    /// Returns the unquoted word at the current token; empty if there is none.
    fn keyword(&self) -> &str {
        self.keyword_at(self.at)
    }

    fn keyword_at(&self, at: usize) -> &str {
        match self.tokens.get(at) {
            Some(ShellToken::Word(word)) if !word.quoted => &word.text,
            _ => "",
        }
    }

    /// Skips the current token if it is this word, unquoted. Returns whether it was.
    fn take_keyword(&mut self, keyword: &str) -> bool {
        let found = self.keyword() == keyword;
        self.at += usize::from(found);
        found
    }

    /// Skips the current token if it is this one. Returns whether it was.
    fn take(&mut self, token: &ShellToken) -> bool {
        let found = self.tokens.get(self.at) == Some(token);
        self.at += usize::from(found);
        found
    }

    fn skip_ends(&mut self) {
        while self.take(&ShellToken::End) {}
    }

    /// Parses a list up to a word or bracket that closes a group, without consuming that.
    fn list(&mut self) -> ShellNode {
        let mut items = Vec::new();
        loop {
            self.skip_ends();
            let closes = matches!(
                self.keyword(),
                "then" | "elif" | "else" | "fi" | "do" | "done" | "esac" | "}"
            );
            match self.tokens.get(self.at) {
                None | Some(ShellToken::Close) => break,
                Some(_) if closes || self.too_deep => break,
                Some(
                    ShellToken::Pipe | ShellToken::And | ShellToken::Or | ShellToken::Background,
                ) => self.at += 1,
                Some(_) => {
                    let node = self.chain();
                    let background = self.take(&ShellToken::Background);
                    items.push((node, background));
                }
            }
        }
        ShellNode::List(items)
    }

    fn chain(&mut self) -> ShellNode {
        let first = self.pipe();
        let mut links = vec![(ChainOperator::And, first)];
        loop {
            let link = match self.tokens.get(self.at) {
                Some(ShellToken::And) => ChainOperator::And,
                Some(ShellToken::Or) => ChainOperator::Or,
                _ => break,
            };
            self.at += 1;
            self.skip_ends();
            links.push((link, self.pipe()));
        }
        if links.len() == 1 { links.remove(0).1 } else { ShellNode::Chain(links) }
    }

    fn pipe(&mut self) -> ShellNode {
        let mut negated = false;
        while self.take_keyword("!") {
            negated = !negated;
        }
        // Before a group, `time` is a word of the shell.
        let group = match self.tokens.get(self.at + 1) {
            Some(ShellToken::Open) => true,
            Some(ShellToken::Word(word)) => word.text == "{" && !word.quoted,
            _ => false,
        };
        if group {
            self.take_keyword("time");
        }
        let mut parts = vec![self.command()];
        while self.take(&ShellToken::Pipe) {
            self.skip_ends();
            parts.push(self.command());
        }
        let node = if parts.len() == 1 { parts.remove(0) } else { ShellNode::Pipe(parts) };
        if negated { ShellNode::Not(Box::new(node)) } else { node }
    }

    fn command(&mut self) -> ShellNode {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.too_deep = true;
        }
        let node = if self.too_deep { ShellNode::List(Vec::new()) } else { self.compound() };
        self.depth -= 1;
        node
    }

    fn compound(&mut self) -> ShellNode {
        if self.take(&ShellToken::Open) {
            let inner = self.list();
            self.take(&ShellToken::Close);
            return self.redirected(ShellNode::Subshell(Box::new(inner)));
        }
        let node = match self.keyword() {
            "{" => {
                self.at += 1;
                let inner = self.list();
                self.take_keyword("}");
                inner
            }
            "if" => self.condition(),
            "while" | "until" => {
                self.at += 1;
                let condition = Some(Box::new(self.list()));
                ShellNode::Loop { condition, body: Box::new(self.body()) }
            }
            // In PowerShell, `select` is a program.
            "for" | "select" if self.keyword() == "for" || self.keyword_at(self.at + 2) == "in" => {
                // A word of the list may be called `do`.
                if self.keyword_at(self.at + 2) == "in" {
                    while !matches!(self.tokens.get(self.at), None | Some(ShellToken::End)) {
                        self.at += 1;
                    }
                }
                while !matches!(self.keyword(), "do" | "{") && self.at < self.tokens.len() {
                    self.at += 1;
                }
                ShellNode::Loop { condition: None, body: Box::new(self.body()) }
            }
            "case" => {
                // It is not known which arm runs, so all of it is skipped.
                self.skip_case();
                ShellNode::Command(ShellCommand::default())
            }
            "function" => {
                self.at += 1;
                let is_named = self.keyword() != "{"
                    && matches!(self.tokens.get(self.at), Some(ShellToken::Word(_)));
                self.at += usize::from(is_named);
                if self.tokens.get(self.at) == Some(&ShellToken::Open) {
                    self.brackets();
                }
                return self.function_body();
            }
            _ => return self.simple(),
        };
        self.redirected(node)
    }

    /// Skips a `case` with the nested ones.
    fn skip_case(&mut self) {
        let mut open = 1_usize;
        while open > 0 && self.at < self.tokens.len() {
            self.at += 1;
            match self.keyword() {
                "case" if self.keyword_at(self.at + 2) == "in" && self.is_after_command() => {
                    open += 1;
                }
                "esac" => open -= 1,
                _ => {}
            }
        }
        self.at += 1;
    }

    /// Returns whether the current word is not an argument of the word before it.
    fn is_after_command(&self) -> bool {
        matches!(
            self.keyword_at(self.at - 1),
            "" | "then" | "do" | "else" | "elif" | "if" | "while" | "until" | "{" | "!"
        )
    }

    /// Skips the body of a function: the line defines the function and does not run it.
    fn function_body(&mut self) -> ShellNode {
        self.skip_ends();
        self.command();
        ShellNode::Command(ShellCommand::default())
    }

    /// Parses the redirections after a group. Returns the group with the file that gets its output,
    /// if there is one.
    fn redirected(&mut self, node: ShellNode) -> ShellNode {
        let mut to = None;
        loop {
            match self.tokens.get(self.at) {
                Some(ShellToken::Redirected { file, appends }) => {
                    to = Some(if *appends { String::new() } else { file.clone() });
                }
                Some(ShellToken::ErrorsRedirected | ShellToken::ErrorsMerged) => {}
                // `< <(...)`: the exit code of this command is not that of the group.
                Some(ShellToken::Open) => {
                    self.brackets();
                    continue;
                }
                _ => break,
            }
            self.at += 1;
        }
        match to {
            Some(file) => ShellNode::Redirected(Box::new(node), file),
            None => node,
        }
    }

    fn condition(&mut self) -> ShellNode {
        let mut arms = Vec::new();
        while self.take_keyword("if") || self.take_keyword("elif") {
            let condition = self.list();
            self.take_keyword("then");
            arms.push((condition, self.list()));
        }
        let otherwise = self.take_keyword("else").then(|| Box::new(self.list()));
        self.take_keyword("fi");
        ShellNode::If { arms, otherwise }
    }

    fn body(&mut self) -> ShellNode {
        let braces = self.take_keyword("{");
        if !braces {
            self.take_keyword("do");
        }
        let body = self.list();
        self.take_keyword(if braces { "}" } else { "done" });
        body
    }

    fn simple(&mut self) -> ShellNode {
        let mut command = ShellCommand::default();
        loop {
            match self.tokens.get(self.at) {
                Some(ShellToken::Word(word)) => {
                    if command.words.is_empty() && is_assignment(&word.text) {
                        command.assignments.push(word.clone());
                    } else {
                        command.words.push(word.clone());
                    }
                }
                Some(ShellToken::Redirected { file, appends }) => {
                    command.redirected = true;
                    command.file.clone_from(file);
                    command.appends = *appends;
                }
                Some(ShellToken::ErrorsRedirected) => command.errors_redirected = true,
                Some(ShellToken::ErrorsMerged) => command.errors_merged = true,
                // Without words, these are the brackets of an array: `NAME=(...)`.
                Some(ShellToken::Open)
                    if !(command.words.is_empty() && command.assignments.is_empty()) =>
                {
                    if self.brackets() == 2 && command.words.len() == 1 {
                        return self.function_body();
                    }
                    continue;
                }
                _ => return ShellNode::Command(command),
            }
            self.at += 1;
        }
    }

    /// Skips brackets and the tokens between them. Returns the number of tokens skipped.
    fn brackets(&mut self) -> usize {
        let from = self.at;
        let mut open = 0_usize;
        while let Some(token) = self.tokens.get(self.at) {
            self.at += 1;
            match token {
                ShellToken::Open => open += 1,
                ShellToken::Close => open -= 1,
                _ => {}
            }
            if open == 0 {
                break;
            }
        }
        self.at - from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(node: &ShellNode) -> String {
        let joined = |nodes: &mut dyn Iterator<Item = String>, with: &str| {
            nodes.collect::<Vec<_>>().join(with)
        };
        match node {
            ShellNode::Command(command) => {
                joined(&mut command.words.iter().map(|word| word.text.clone()), " ")
            }
            ShellNode::List(items) => {
                let mut shown = items
                    .iter()
                    .map(|(node, background)| shown(node) + if *background { "&" } else { "" });
                format!("[{}]", joined(&mut shown, "; "))
            }
            ShellNode::Chain(links) => {
                let mut shown = links.iter().enumerate().map(|(index, (link, node))| {
                    let sign = match link {
                        _ if index == 0 => "",
                        ChainOperator::And => "&& ",
                        ChainOperator::Or => "|| ",
                    };
                    format!("{sign}{}", shown(node))
                });
                joined(&mut shown, " ")
            }
            ShellNode::Pipe(parts) => joined(&mut parts.iter().map(shown), " | "),
            ShellNode::Not(inner) => format!("not {}", shown(inner)),
            ShellNode::Subshell(inner) => format!("({})", shown(inner)),
            ShellNode::Redirected(inner, file) => format!("{} > {file}", shown(inner)),
            ShellNode::If { arms, otherwise } => {
                let mut arms =
                    arms.iter().map(|(when, then)| format!("{}?{}", shown(when), shown(then)));
                let otherwise = otherwise.as_ref().map_or(String::new(), |it| shown(it));
                format!("if {} else {otherwise}", joined(&mut arms, " "))
            }
            ShellNode::Loop { condition, body } => {
                let condition = condition.as_ref().map_or(String::new(), |it| shown(it));
                format!("loop {condition} {}", shown(body))
            }
        }
    }

    #[test]
    fn a_line_has_its_structure() {
        for (line, expected) in [
            ("a && b || c; d &", "[a && b || c; d&]"),
            ("a | b 2>&1 | c", "[a | b | c]"),
            ("! ! a", "[a]"),
            ("! { a; b; }", "[not [a; b]]"),
            ("(cd x && make) > out.txt; y", "[([cd x && make]) > out.txt; y]"),
            ("if a; then b; elif c; then d; else e; fi && f", "[if [a]?[b] [c]?[d] else [e] && f]"),
            ("for x in 1 2; do a $x; done; b", "[loop  [a $x]; b]"),
            ("for x in do {; do a; done; b", "[loop  [a]; b]"),
            ("while ! a; do b; done", "[loop [not a] [b]]"),
            ("case $x in a) cargo test;; esac; b", "[; b]"),
            ("case $x in a) case $y in b) c;; esac;; d) cargo test;; esac; b", "[; b]"),
            ("case $x in a) echo case closed;; esac; b", "[; b]"),
            ("f() { make test; }; b", "[; b]"),
            ("function f {\n make lint\n cargo test\n}\nb", "[; b]"),
            ("function f() { make lint; cargo test; } && b", "[ && b]"),
            ("function f\n(a; b); c", "[; c]"),
            ("diff <(a) <(b; c) && d", "[diff && d]"),
            ("a &&\n b", "[a && b]"),
            ("X=1 a Y=2", "[a Y=2]"),
            ("x=(cargo test) && b", "[ && b]"),
            ("X=1 y=() a; z=(cargo test\n c)\nb", "[a; ; b]"),
            ("x+=(cargo test) && b; y+=() c; z+=()\nd", "[ && b; c; ; d]"),
            ("echo ${x:-a; b} | c", "[echo ${x:-a; b} | c]"),
            ("time (a; b) && time { c; }", "[([a; b]) && [c]]"),
            ("{ a; } 2>&1 >'b c' | d", "[[a] > b c | d]"),
            ("{ a; } >>b 2>c; { a; } &>> b", "[[a] > ; [a] > ]"),
            ("while a; do b; done 2> log > x; c", "[loop [a] [b] > x; c]"),
            ("while a; do b; done < <(cargo test) | c; d", "[loop [a] [b] | c; d]"),
            ("{ a; } > x < <(b; (c)) 2> y && d", "[[a] > x && d]"),
            ("'if' a", "[if a]"),
            ("fi; a; }; b )", "[a; b]"),
        ] {
            assert_eq!(shown(&read(line).unwrap()), expected, "{line}");
        }
    }

    #[test]
    fn a_command_says_where_its_error_output_goes() {
        for (line, merged) in [
            ("a 2>&1", true),
            ("a > b 2>&1", true),
            ("a |& b", true),
            ("a | b 2>&1", false),
            ("a 1>&2", false),
            ("a 2>&3", false),
            ("a 2> b", false),
        ] {
            let Some(ShellNode::List(items)) = read(line) else { panic!("{line}") };
            let command = match items.first() {
                Some((ShellNode::Command(command), _)) => command,
                Some((ShellNode::Pipe(parts), _)) => match parts.first() {
                    Some(ShellNode::Command(command)) => command,
                    other => panic!("{line}: {other:?}"),
                },
                other => panic!("{line}: {other:?}"),
            };
            assert_eq!(command.errors_merged, merged, "{line}");
        }
    }

    #[test]
    fn very_deep_nesting_has_no_tree() {
        for piece in ["(", "{ ", "! ( ", "if ", "while ", "a() ", "function f ", "( { "] {
            assert_eq!(read(&piece.repeat(100_000)), None, "{piece}");
        }
        for piece in ["a && ", "a | ", "! ", ") ", "fi ", "a; ", "a <( ", "case ", "elif ", "& "] {
            assert!(read(&piece.repeat(100_000)).is_some(), "{piece}");
        }
    }
}
