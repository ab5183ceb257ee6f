//! From source text to bytecode, once per script.
//!
//! A script is one function expression. It is compiled as the default export of a module, which
//! makes it strict and gives it no way to leave anything behind:
//!
//! ```text
//! export default function createComment(postId, comment) { … }
//! ^^^^^^^^^^^^^^^ ours: line 1 of the script begins here, columns of line 1 are corrected
//! ```
//!
//! INVARIANTS
//! (P1) The bytes of a program were written by the engine that reads them, in this process, and
//!      have not changed since.
//! (P2) Around the function there is nothing but space, comments, semicolons and parentheses.

use std::ffi::CString;

use rquickjs::function::This;
use rquickjs::{Context, Ctx, Exception, Function, Module, Object, Runtime, WriteOptions};

/// What comes before the source on its first line.
const PREFIX: &str = "export default ";

/// A top level that is more than a function runs while it is looked at; this ends it, after as many
/// polls of the interrupt handler. Not after a time: a machine that stalls must not refuse a script.
const COMPILE_POLLS_MAX: u32 = 2000;
const COMPILE_MEMORY_MAX: usize = 128 << 20;

/// A script, compiled. Any number of runtimes can load it at the same time.
pub struct Program {
    name: String,
    bytecode: Vec<u8>,
}

/// Why a text is no script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (line {line}, column {column})")]
pub struct SyntaxError {
    /// What is wrong.
    pub message: String,
    /// From 1.
    pub line: u32,
    /// From 1.
    pub column: u32,
}

impl Program {
    /// Compiles one function expression: named, anonymous, async or arrow, with comments and
    /// semicolons around it. It is in strict mode.
    pub fn compile(name: &str, source: &str) -> Result<Program, SyntaxError> {
        let name = file_name(name);
        if source.contains('\0') {
            return Err(misplaced("Invalid character in the source", source, source.find('\0')));
        }
        let start = skip_trivia(source, 0);
        let text = format!("{PREFIX}{}{}", source[..start].replace(';', " "), &source[start..]);
        let (bytecode, function) = compile_module(&name, &text, Purpose::Script)?;
        check_surroundings(source, start, &function)?;
        Ok(Program { name, bytecode })
    }

    /// Compiles a module of ours.
    pub(crate) fn module(name: &str, text: &str) -> Result<Program, SyntaxError> {
        let (bytecode, _) = compile_module(name, text, Purpose::Prelude)?;
        Ok(Program { name: name.to_owned(), bytecode })
    }

    /// What stack traces call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The function, in a context.
    pub(crate) fn load<'js>(&self, ctx: &Ctx<'js>) -> rquickjs::Result<Function<'js>> {
        // SAFETY: P1.
        #[allow(unsafe_code)]
        let module = unsafe { Module::load(ctx.clone(), &self.bytecode)? };
        let (module, _) = module.eval()?;
        module.get("default")
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A name that can stand in a stack frame.
fn file_name(name: &str) -> String {
    name.chars().map(|c| if c.is_control() || "():".contains(c) { '_' } else { c }).collect()
}

/// What a module is compiled for.
#[derive(Clone, Copy, PartialEq)]
enum Purpose {
    /// A script: it keeps its source, because scripts read the source of their functions.
    Script,
    /// A module of ours. Without source it loads faster.
    Prelude,
}

/// The bytecode of a module, and the source text of its default export if it is a script's.
fn compile_module(
    name: &str,
    text: &str,
    purpose: Purpose,
) -> Result<(Vec<u8>, String), SyntaxError> {
    let broken = |_| failed("The script could not be compiled");
    let runtime = Runtime::new().map_err(broken)?;
    runtime.set_memory_limit(COMPILE_MEMORY_MAX);
    let mut polls = 0;
    runtime.set_interrupt_handler(Some(Box::new(move || {
        polls += 1;
        polls > COMPILE_POLLS_MAX
    })));
    let context = Context::full(&runtime).map_err(broken)?;
    context.with(|ctx| {
        compile_in(&ctx, name, text, purpose).map_err(|error| {
            if error.is_exception() { syntax_error(&ctx) } else { failed(&error.to_string()) }
        })
    })
}

fn compile_in(
    ctx: &Ctx<'_>,
    name: &str,
    text: &str,
    purpose: Purpose,
) -> rquickjs::Result<(Vec<u8>, String)> {
    let module = Module::declare(ctx.clone(), CString::new(name)?, text)?;
    let strip_source = purpose == Purpose::Prelude;
    let bytecode = module.write(WriteOptions { strip_source, ..WriteOptions::default() })?;
    let text = match purpose {
        Purpose::Script => function_text(ctx, module)?,
        Purpose::Prelude => String::new(),
    };
    Ok((bytecode, text))
}

/// Takes away everything that a top level could call. A built-in function might not look at the
/// clock; what is left does.
const BARE: &str = "{
    const { ownKeys, deleteProperty, getPrototypeOf } = Reflect;
    const literals = [{}, function () {}, [], '', 0, true, Symbol(), 0n, /x/, async () => {}, function* () {},
        async function* () {}, (function* () {})(), (async function* () {})(), [].values(), Promise.resolve()];
    const prototypes = literals.map((literal) => getPrototypeOf(Object(literal)));
    const bases = prototypes.map((prototype) => getPrototypeOf(prototype) ?? prototype);
    const targets = [...prototypes, ...bases, globalThis];
    for (let i = 0; i < targets.length; i++) {
        const keys = ownKeys(targets[i]);
        for (let at = 0; at < keys.length; at++) deleteProperty(targets[i], keys[at]);
    }
}";

/// The source text of the function that a module exports.
///
/// The module is evaluated for that. If it is as it should be, that makes the function and nothing
/// else; if it is not, its top level runs, with nothing to call and not for long.
fn function_text<'js>(ctx: &Ctx<'js>, module: Module<'js>) -> rquickjs::Result<String> {
    let constructor: Object<'_> = ctx.globals().get("Function")?;
    let prototype: Object<'_> = constructor.get("prototype")?;
    let to_string: Function<'_> = prototype.get("toString")?;
    ctx.eval::<(), _>(BARE)?;
    let (module, _) = module.eval()?;
    let exported = module.get::<_, rquickjs::Value<'_>>("default").ok();
    let Some(function) = exported.and_then(rquickjs::Value::into_function) else {
        return Err(Exception::throw_syntax(ctx, "A script must be one function"));
    };
    to_string.call((This(function),))
}

/// The pending exception as a syntax error, with the place from its stack.
fn syntax_error(ctx: &Ctx<'_>) -> SyntaxError {
    let thrown = ctx.catch();
    let Some(exception) = thrown.as_exception() else { return failed("The script is invalid") };
    let message = exception.message().unwrap_or_default();
    let (line, column) = exception.stack().as_deref().and_then(place_of).unwrap_or((1, 1));
    SyntaxError { message, line, column }
}

/// Line and column in the source of the first frame of a stack.
fn place_of(stack: &str) -> Option<(u32, u32)> {
    let frame = stack.lines().next()?.trim_end().trim_end_matches(')');
    let (rest, column) = frame.rsplit_once(':')?;
    let line = rest.rsplit_once(':')?.1.parse().ok()?;
    Some((line, source_column(line, column.parse().ok()?)))
}

/// A column of the compiled text as a column of the source.
pub(crate) fn source_column(line: u32, column: u32) -> u32 {
    if line == 1 { column.saturating_sub(PREFIX.len() as u32).max(1) } else { column }
}

/// P2: the function begins at `start`, perhaps in parentheses, and nothing comes after it.
fn check_surroundings(source: &str, start: usize, function: &str) -> Result<(), SyntaxError> {
    let mut at = start;
    let mut parentheses = 0;
    while source[at..].starts_with('(') && !source[at..].starts_with(function) {
        at = skip_trivia(source, at + 1);
        parentheses += 1;
    }
    if !source[at..].starts_with(function) {
        return Err(misplaced("A script must be one function", source, Some(start)));
    }
    at = skip_trivia(source, at + function.len());
    while parentheses > 0 && source[at..].starts_with(')') {
        at = skip_trivia(source, at + 1);
        parentheses -= 1;
    }
    if at == source.len() {
        return Ok(());
    }
    Err(misplaced("A script must be one function; nothing may follow it", source, Some(at)))
}

/// Where space, comments and semicolons end.
fn skip_trivia(source: &str, mut at: usize) -> usize {
    loop {
        let rest = &source[at..];
        let trimmed =
            rest.trim_start_matches(|c: char| c.is_whitespace() || c == ';' || c == '\u{feff}');
        at = source.len() - trimmed.len();
        let comment = if let Some(inside) = trimmed.strip_prefix("//") {
            Some(2 + inside.find(['\n', '\r', '\u{2028}', '\u{2029}']).unwrap_or(inside.len()))
        } else if let Some(inside) = trimmed.strip_prefix("/*") {
            inside.find("*/").map(|end| end + 4)
        } else {
            None
        };
        match comment {
            Some(length) => at += length,
            None => return at,
        }
    }
}

fn failed(message: &str) -> SyntaxError {
    SyntaxError { message: message.to_owned(), line: 1, column: 1 }
}

/// An error at a byte of the source.
fn misplaced(message: &str, source: &str, at: Option<usize>) -> SyntaxError {
    let before = &source[..at.unwrap_or_default()];
    let line = before.matches('\n').count() as u32 + 1;
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let column = before[line_start..].chars().count() as u32 + 1;
    SyntaxError { message: message.to_owned(), line, column }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_script() {
        for source in [
            "function f() {}",
            "function () {}",
            "async function f(a, b) { await a; }",
            "(a, b) => a + b",
            "x => x;",
            "async x => x",
            "(function () {})",
            "((function f() { return (1); }));",
            "// a comment\n/* another */ ;\nfunction f() {} // the end",
            "function f() {};; /* ) */",
            "\u{feff}function f() {}",
            "function f(x) { return '// */' + x; }\n\n",
            "({a}) => a",
            "(function f() { return 1; /* function () {} */ })",
        ] {
            assert!(
                Program::compile("s", source).is_ok(),
                "{source}: {:?}",
                Program::compile("s", source)
            );
        }
    }

    #[test]
    fn what_is_none() {
        let check = |source: &str, line: u32, column: u32, message: &str| {
            let error = Program::compile("s", source).unwrap_err();
            assert_eq!((error.line, error.column), (line, column), "{source}: {error}");
            assert!(error.message.contains(message), "{source}: {error}");
        };
        check("", 1, 1, "");
        check("function f() {", 1, 15, "");
        check("function f() {\n  var x = ;\n}", 2, 11, "");
        check("var x = 1;", 1, 1, "");
        check("1 + 1", 1, 1, "one function");
        check("function f() {}\nfunction g() {}", 2, 1, "nothing may follow");
        check("function f() {} f()", 1, 17, "nothing may follow");
        check("(function f() {})()", 1, 1, "one function");
        check("(() => function g() {})()", 1, 1, "one function");
        check("function f() { with (a) {} }", 1, 16, "");
        check("function f() { a\0 }", 1, 17, "character");
        check("function f() {} while (true);", 1, 17, "nothing may follow");
        check(
            "(() => { 'a'.repeat(1e7).indexOf('a'.repeat(5e6) + 'b'); return () => 1; })()",
            1,
            1,
            "",
        );
        check("[1, 2].map(function () {})[0]", 1, 1, "");
        check("Math.max", 1, 1, "");
    }
}
