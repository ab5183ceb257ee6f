//! Licenses of everything we build with, from `cargo metadata`. Permissive ones only.
//!
//! `deny.toml` says the same to cargo-deny, for those who have it.

use anyhow::{Result, bail};

use crate::test::Outcome;
use crate::workspace::Workspace;

/// Licenses that ask for no more than a notice.
const PERMISSIVE: [&str; 13] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Packages under another license (weak copyleft such as MPL-2.0) that we accept, with the reason.
const EXCEPTIONS: [(&str, &str, &str); 0] = [];

/// Checks every package.
pub fn check(workspace: &Workspace) -> Result<Outcome> {
    let mut packages = 0;
    let mut findings = Vec::new();
    for package in workspace.packages() {
        packages += 1;
        let name = package["name"].as_str().unwrap_or_default();
        match package["license"].as_str() {
            Some(license) if is_accepted(name, license) => {}
            Some(license) => findings.push(format!("{name} is under {license}")),
            None => findings.push(format!("{name} names no license")),
        }
    }
    if !findings.is_empty() {
        bail!("not permissive:\n  {}", findings.join("\n  "));
    }
    println!("{packages} packages under permissive licenses");
    Ok(Outcome::CLEAN)
}

fn is_accepted(package: &str, license: &str) -> bool {
    let is_exception =
        |&(name, its_license, _): &(&str, &str, &str)| name == package && its_license == license;
    Expression::parse(license).allows_permissive() || EXCEPTIONS.iter().any(is_exception)
}

/// A license expression: words, `AND`, `OR` and parentheses. `/` is an old way to say `OR`.
struct Expression<'a> {
    words: Vec<&'a str>,
    at: usize,
}

impl<'a> Expression<'a> {
    fn parse(text: &'a str) -> Expression<'a> {
        let mut words = Vec::new();
        for part in text.split_whitespace() {
            let mut rest = part;
            while let Some(at) = rest.find(['(', ')', '/']) {
                words.extend([&rest[..at], &rest[at..=at]].iter().filter(|word| !word.is_empty()));
                rest = &rest[at + 1..];
            }
            words.extend(Some(rest).filter(|rest| !rest.is_empty()));
        }
        Expression { words, at: 0 }
    }

    /// Whether one can choose permissive licenses that satisfy all of it.
    fn allows_permissive(mut self) -> bool {
        let is_permissive = self.any();
        is_permissive && self.at == self.words.len()
    }

    fn any(&mut self) -> bool {
        let mut is_permissive = self.all();
        while self.eat("OR") || self.eat("/") {
            is_permissive |= self.all();
        }
        is_permissive
    }

    fn all(&mut self) -> bool {
        let mut is_permissive = self.one();
        while self.eat("AND") {
            is_permissive &= self.one();
        }
        is_permissive
    }

    fn one(&mut self) -> bool {
        if self.eat("(") {
            let inner = self.any();
            return self.eat(")") && inner;
        }
        let Some(&license) = self.words.get(self.at) else { return false };
        self.at += 1;
        match self.eat("WITH") {
            false => PERMISSIVE.contains(&license),
            true => {
                self.at += 1;
                let exception = self.words.get(self.at - 1).copied().unwrap_or_default();
                PERMISSIVE.contains(&format!("{license} WITH {exception}").as_str())
            }
        }
    }

    fn eat(&mut self, word: &str) -> bool {
        let is_next = self.words.get(self.at) == Some(&word);
        self.at += usize::from(is_next);
        is_next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions() {
        let check = |text: &str, expect: bool| {
            assert_eq!(Expression::parse(text).allows_permissive(), expect, "{text}");
        };
        check("MIT", true);
        check("MIT/Apache-2.0", true);
        check("GPL-3.0 OR MIT", true);
        check("GPL-3.0 AND MIT", false);
        check("(MIT OR GPL-3.0) AND Unicode-3.0", true);
        check("(MIT AND GPL-3.0) OR MPL-2.0", false);
        check("Apache-2.0 WITH LLVM-exception OR MPL-2.0", true);
        check("GPL-2.0 WITH Classpath-exception-2.0", false);
        check("MIT)", false);
        check("", false);
    }
}
