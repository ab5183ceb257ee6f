//! Goal: the server-side API is what scripts expect of it, sentence by sentence.
//! Method: golden scripts in `data/*.golden`. Each block is a script with what it did to a container.
//! `UPDATE_GOLDEN=1` writes the files anew; the difference is for a person to judge.
//!
//! ```text
//! # comment
//! items {"id":"1"} …            the container from here on
//! accepts 2                     how many operations are accepted from here on
//! procedure [1, "x"]            or: pre Create {…} / post Create {…} / udf [arguments]
//!   function (a, b) { … }       the script, indented
//! > what happened
//! ```

#![allow(clippy::unwrap_used)] // A test that cannot go on fails there.

mod common;

use std::fmt::Write;
use std::sync::Arc;

use common::{Shelf, call, execute, pool, procedure, wait};
use item::Value;
use script::{Argument, Call, Failure, Limits, Outcome, Pool, Program, Role, TriggerOperation};

struct Bench {
    pool: Pool,
    shelf: Shelf,
}

impl Bench {
    /// What the golden file says about a script.
    fn run(&mut self, command: &str, source: &str) -> String {
        let (word, rest) = command.split_once(' ').unwrap_or((command, ""));
        if word == "udf" {
            return self.function(rest, source);
        }
        let (role, write) = match word {
            "procedure" => (procedure(&arguments(rest)), None),
            "pre" | "post" => self.trigger(word, rest),
            other => panic!("the script has a command {other}"),
        };
        let before = self.shelf.texts();
        self.shelf.asked.lock().clear();
        if let Err(error) = Program::compile("script", source) {
            return format!("refused: {error}\n");
        }
        let call = Call { is_logging: !rest.ends_with("quiet"), ..call(source, role) };
        let result = match write {
            None => execute(&self.pool, &self.shelf, call),
            Some(write) => self.execute_after(write, call),
        };
        let mut out = String::new();
        for asked in self.shelf.asked.lock().iter() {
            writeln!(out, "asked: {asked}").unwrap();
        }
        write_result(&mut out, result);
        let after = self.shelf.texts();
        if after != before {
            let parse = |text: &String| Value::parse(text.as_bytes()).unwrap();
            let texts: Vec<_> =
                after.iter().map(parse).map(|item| common::without_guid(&item)).collect();
            writeln!(out, "items: {}", texts.join(" ")).unwrap();
        }
        out
    }

    /// A trigger; the item of a post-trigger is written first, in the same transaction.
    fn trigger(&self, word: &str, rest: &str) -> (Role, Option<Value>) {
        let (operation, body) = rest.split_once(' ').unwrap_or((rest, ""));
        let operation = match operation {
            "Create" => TriggerOperation::Create,
            "Replace" => TriggerOperation::Replace,
            "Upsert" => TriggerOperation::Upsert,
            "Delete" => TriggerOperation::Delete,
            other => panic!("the script has an operation {other}"),
        };
        let body = (!body.is_empty()).then(|| Value::parse(body.as_bytes()).unwrap());
        match word {
            "pre" => (Role::PreTrigger { operation, body }, None),
            _ => (Role::PostTrigger { operation, request: body.clone(), response: None }, body),
        }
    }

    fn execute_after(&self, write: Value, call: Call) -> Result<Outcome, Failure> {
        let mut host = self.shelf.open();
        let item = host.create(&write).unwrap();
        let role = match call.role {
            Role::PostTrigger { operation, request, .. } => {
                Role::PostTrigger { operation, request, response: Some(item) }
            }
            role @ (Role::Procedure { .. } | Role::PreTrigger { .. }) => role,
        };
        let call = Call { role, ..call };
        wait(&self.pool, host, move |session| {
            let outcome = session.execute(&call)?;
            session.take_host().map_err(|_| Failure::Revoked)?.commit();
            Ok(outcome)
        })
        .unwrap()
    }

    fn function(&self, rest: &str, source: &str) -> String {
        let program = match Program::compile("script", source) {
            Ok(program) => Arc::new(program),
            Err(error) => return format!("refused: {error}\n"),
        };
        let values = arguments(rest);
        let result = wait(&self.pool, (), move |session| {
            let functions = session.functions(&[program])?;
            let arguments: Vec<_> = values.iter().map(Argument::Value).collect();
            functions.call(0, &arguments)
        });
        let mut out = String::new();
        match result.unwrap() {
            Ok(Value::Undefined) => out.push_str("undefined\n"),
            Ok(value) => writeln!(out, "{value}").unwrap(),
            Err(failure) => write_failure(&mut out, failure),
        }
        out
    }
}

fn arguments(text: &str) -> Vec<Value> {
    let text = text.trim_end_matches("quiet").trim();
    if text.is_empty() {
        return Vec::new();
    }
    Value::parse(text.as_bytes()).unwrap().as_array().unwrap().to_vec()
}

fn write_result(out: &mut String, result: Result<Outcome, Failure>) {
    match result {
        Ok(outcome) => {
            if let Some(body) = outcome.body {
                writeln!(out, "body: {}", String::from_utf8_lossy(&body)).unwrap();
            }
            if let Some(request) = outcome.request {
                writeln!(out, "request: {request}").unwrap();
            }
            write_log(out, &outcome.log);
            if out.is_empty() {
                out.push_str("nothing\n");
            }
        }
        Err(failure) => write_failure(out, failure),
    }
}

fn write_log(out: &mut String, log: &str) {
    for line in log.lines() {
        match line.len() {
            0..1000 => writeln!(out, "log: {line}").unwrap(),
            bytes => writeln!(out, "log: {bytes} bytes").unwrap(),
        }
    }
}

fn write_failure(out: &mut String, failure: Failure) {
    match failure {
        Failure::Exception { number, message, stack, log, .. } => {
            write_log(out, &log);
            writeln!(out, "threw {number}: {message}").unwrap();
            for frame in stack.lines() {
                writeln!(out, "{frame}").unwrap();
            }
        }
        Failure::Timeout { .. } => out.push_str("timeout\n"),
        Failure::Revoked => out.push_str("revoked\n"),
        Failure::Fatal => out.push_str("fatal\n"),
    }
}

/// Runs a golden file, and compares or writes it.
fn check(name: &str) {
    let path = format!("{}/tests/data/{name}.golden", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    let mut bench = Bench { pool: pool(Limits::default()), shelf: Shelf::default() };
    let mut out = String::new();
    let mut lines = text.lines().filter(|line| !line.starts_with("> ") && *line != ">").peekable();
    while let Some(line) = lines.next() {
        writeln!(out, "{line}").unwrap();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(bodies) = line.strip_prefix("items") {
            bench.shelf = Shelf::with(&bodies.split_whitespace().collect::<Vec<_>>());
            continue;
        }
        if let Some(max) = line.strip_prefix("accepts ") {
            bench.shelf.accepts_max = max.parse().ok();
            continue;
        }
        let mut source = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with("  ")) {
            writeln!(out, "{line}").unwrap();
            source.push(&line[2..]);
        }
        for line in bench.run(line, &source.join("\n")).lines() {
            writeln!(out, "> {line}").unwrap();
        }
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return std::fs::write(&path, out).unwrap();
    }
    let differ = out.lines().zip(text.lines()).position(|(new, old)| new != old);
    assert_eq!(out, text, "{name}.golden differs at line {:?}", differ.map(|at| at + 1));
}

#[test]
fn documents() {
    check("documents");
}

#[test]
fn arguments_and_links() {
    check("arguments");
}

#[test]
fn request_and_response() {
    check("bodies");
}

#[test]
fn promises_and_errors() {
    check("turns");
}

#[test]
fn the_query_api() {
    check("queries");
}

#[test]
fn triggers() {
    check("triggers");
}

#[test]
fn the_article() {
    check("article");
}

#[test]
fn functions_of_queries() {
    check("functions");
}

#[test]
fn what_a_script_finds() {
    check("sandbox");
}
