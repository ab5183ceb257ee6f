//! Predicates of the query API as SQL.
//!
//! `function (doc) { return doc.city === 'Oslo' && doc.size > 3; }` becomes
//! `(c["city"] = @p0 AND c["size"] > @p1)`, so that the index can help. Understood are one parameter,
//! operators, literals, properties, variables declared with a value, and `return`; anything else makes
//! the whole function opaque, and it is called for every item instead.
//!
//! INVARIANTS
//! (T1) The condition holds for every item for which the function is true. The caller calls the
//!      function as well, so the condition may hold for more. Where JavaScript would convert types,
//!      SQL does not: a number compared with a numeral in a string finds nothing.
//! (T2) Nothing of the source gets into the SQL but property names, quoted, and operators; literals
//!      become parameters.

mod parser;
mod tokens;

use std::collections::HashMap;

use item::Value;

use parser::{Arithmetic, Comparison, Expression, Step};

/// Values of variables from outside a function.
pub(crate) type Captures = HashMap<String, Value>;

/// A condition and its parameters.
#[derive(Debug, PartialEq)]
pub(crate) struct Translation {
    pub(crate) text: String,
    pub(crate) parameters: Vec<(String, Value)>,
}

/// A predicate as a condition on `c`. Parameters are numbered from `parameters_before`.
pub(crate) fn predicate(
    source: &str,
    captures: &Captures,
    parameters_before: usize,
) -> Option<Translation> {
    let expression = parser::parse(source, captures)?;
    let mut writer = Writer { first: parameters_before, parameters: Vec::new() };
    let text = writer.condition(&expression)?;
    Some(Translation { text, parameters: writer.parameters })
}

/// A function that returns a property, as a path on `c`.
pub(crate) fn path(source: &str) -> Option<String> {
    let Expression::Path(steps) = parser::parse(source, &Captures::new())? else { return None };
    (!steps.is_empty()).then(|| path_text(&steps))
}

struct Writer {
    first: usize,
    parameters: Vec<(String, Value)>,
}

impl Writer {
    /// What holds wherever the expression is true.
    fn condition(&mut self, expression: &Expression) -> Option<String> {
        match expression {
            Expression::And(left, right) => self.both(left, right),
            Expression::Or(left, right) => {
                Some(format!("({} OR {})", self.condition(left)?, self.condition(right)?))
            }
            Expression::Not(inner) => self.negation(inner),
            Expression::Literal(Value::Bool(value)) => Some(value.to_string()),
            Expression::Compare(comparison, left, right) => self.compare(*comparison, left, right),
            Expression::Literal(_)
            | Expression::Undefined
            | Expression::Path(_)
            | Expression::Compute(..) => None,
        }
    }

    /// Either side alone already bounds the result from above.
    fn both(&mut self, left: &Expression, right: &Expression) -> Option<String> {
        let kept = self.parameters.len();
        let left = self.condition(left);
        if left.is_none() {
            self.parameters.truncate(kept);
        }
        let kept = self.parameters.len();
        let right = self.condition(right);
        if right.is_none() {
            self.parameters.truncate(kept);
        }
        match (left, right) {
            (Some(left), Some(right)) => Some(format!("({left} AND {right})")),
            (left, right) => left.or(right),
        }
    }

    /// What holds wherever the expression is false.
    fn negation(&mut self, expression: &Expression) -> Option<String> {
        match expression {
            Expression::And(left, right) => {
                Some(format!("({} OR {})", self.negation(left)?, self.negation(right)?))
            }
            Expression::Or(left, right) => {
                Some(format!("({} AND {})", self.negation(left)?, self.negation(right)?))
            }
            Expression::Not(inner) => self.condition(inner),
            Expression::Literal(Value::Bool(value)) => Some((!value).to_string()),
            Expression::Compare(comparison, left, right) => {
                self.compare(comparison.negated()?, left, right)
            }
            Expression::Literal(_)
            | Expression::Undefined
            | Expression::Path(_)
            | Expression::Compute(..) => None,
        }
    }

    fn compare(
        &mut self,
        comparison: Comparison,
        left: &Expression,
        right: &Expression,
    ) -> Option<String> {
        match (comparison, left, right) {
            (
                Comparison::Equal { .. } | Comparison::Differs { .. },
                Expression::Path(path),
                other,
            )
            | (
                Comparison::Equal { .. } | Comparison::Differs { .. },
                other,
                Expression::Path(path),
            ) => self.compare_path(comparison, path, other),
            (Comparison::Differs { .. }, ..) => None,
            _ => {
                let operator = comparison.operator();
                Some(format!("({} {operator} {})", self.scalar(left)?, self.scalar(right)?))
            }
        }
    }

    /// Equality with a property, where undefined and null have to be told apart.
    fn compare_path(
        &mut self,
        comparison: Comparison,
        path: &[Step],
        other: &Expression,
    ) -> Option<String> {
        if path.is_empty() {
            return None;
        }
        let text = path_text(path);
        let is_null = matches!(other, Expression::Literal(Value::Null));
        let is_nothing = is_null || matches!(other, Expression::Undefined);
        match comparison {
            Comparison::Equal { is_loose: true } if is_nothing => {
                Some(format!("(NOT IS_DEFINED({text}) OR IS_NULL({text}))"))
            }
            Comparison::Differs { is_loose: true } if is_nothing => {
                Some(format!("(IS_DEFINED({text}) AND NOT IS_NULL({text}))"))
            }
            Comparison::Equal { .. } if is_nothing && !is_null => {
                Some(format!("(NOT IS_DEFINED({text}))"))
            }
            Comparison::Differs { .. } if is_nothing && !is_null => {
                Some(format!("IS_DEFINED({text})"))
            }
            Comparison::Equal { .. } => {
                let absent =
                    absent(other).map(|other| format!(" OR (NOT IS_DEFINED({text}) AND {other})"));
                Some(format!("({text} = {}{})", self.scalar(other)?, absent.unwrap_or_default()))
            }
            Comparison::Differs { .. } => {
                let absent = absent(other).map(|other| format!(" OR {other}"));
                let other = self.scalar(other)?;
                let absent = absent.unwrap_or_default();
                Some(format!("({text} != {other} OR NOT IS_DEFINED({text}){absent})"))
            }
            Comparison::Less
            | Comparison::LessOrEqual
            | Comparison::Greater
            | Comparison::GreaterOrEqual => None,
        }
    }

    fn scalar(&mut self, expression: &Expression) -> Option<String> {
        match expression {
            Expression::Path(steps) if !steps.is_empty() => Some(path_text(steps)),
            Expression::Literal(value) => Some(self.parameter(value)),
            Expression::Compute(arithmetic, left, right) => {
                let operator = arithmetic.operator();
                Some(format!("({} {operator} {})", self.scalar(left)?, self.scalar(right)?))
            }
            Expression::Path(_)
            | Expression::Undefined
            | Expression::Compare(..)
            | Expression::And(..)
            | Expression::Or(..)
            | Expression::Not(_) => None,
        }
    }

    fn parameter(&mut self, value: &Value) -> String {
        let name = format!("@p{}", self.first + self.parameters.len());
        self.parameters.push((name.clone(), value.clone()));
        name
    }
}

/// That an operand has no value, if it can lack one.
fn absent(operand: &Expression) -> Option<String> {
    match operand {
        Expression::Path(steps) => Some(format!("NOT IS_DEFINED({})", path_text(steps))),
        Expression::Literal(_)
        | Expression::Undefined
        | Expression::Compute(..)
        | Expression::Compare(..)
        | Expression::And(..)
        | Expression::Or(..)
        | Expression::Not(_) => None,
    }
}

fn path_text(steps: &[Step]) -> String {
    let step = |step: &Step| match step {
        Step::Name(name) => format!("[{}]", Value::from(name.as_str()).to_json()),
        Step::Index(index) => format!("[{index}]"),
    };
    steps.iter().map(step).fold("c".to_owned(), |text, step| text + &step)
}

impl Comparison {
    fn operator(self) -> &'static str {
        match self {
            Comparison::Equal { .. } => "=",
            Comparison::Differs { .. } => "!=",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }

    /// The opposite. Orders have none: neither holds of a value that cannot be compared.
    fn negated(self) -> Option<Comparison> {
        match self {
            Comparison::Equal { is_loose } => Some(Comparison::Differs { is_loose }),
            Comparison::Differs { is_loose } => Some(Comparison::Equal { is_loose }),
            Comparison::Less
            | Comparison::LessOrEqual
            | Comparison::Greater
            | Comparison::GreaterOrEqual => None,
        }
    }
}

impl Arithmetic {
    fn operator(self) -> &'static str {
        match self {
            Arithmetic::Add => "+",
            Arithmetic::Subtract => "-",
            Arithmetic::Multiply => "*",
            Arithmetic::Divide => "/",
            Arithmetic::Remainder => "%",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expect: &str) {
        let captures = Captures::from([("outer".to_owned(), Value::from("o"))]);
        let found = predicate(source, &captures, 0).map(|found| {
            let parameters = found.parameters.iter().map(|(name, value)| format!("{name}={value}"));
            format!("{} | {}", found.text, parameters.collect::<Vec<_>>().join(" "))
        });
        assert_eq!(found.as_deref().unwrap_or("opaque"), expect, "{source}");
    }

    #[test]
    fn predicates_that_can_be_said() {
        check("function (d) { return d.city === 'Oslo'; }", r#"(c["city"] = @p0) | @p0="Oslo""#);
        check("d => d.a.b[0] > 1.5e1", r#"(c["a"]["b"][0] > @p0) | @p0=15"#);
        check(
            "(d) => { return d['a b'] == null }",
            r#"(NOT IS_DEFINED(c["a b"]) OR IS_NULL(c["a b"])) | "#,
        );
        check("d => d.x === null", r#"(c["x"] = @p0) | @p0=null"#);
        check("d => d.x !== undefined", r#"IS_DEFINED(c["x"]) | "#);
        check("d => d.x === undefined", r#"(NOT IS_DEFINED(c["x"])) | "#);
        check(
            "function f(d) { var low = 3, high = low; return d.n >= low && d.n < -high; }",
            r#"((c["n"] >= @p0) AND (c["n"] < @p1)) | @p0=3 @p1=-3"#,
        );
        check(
            "d => !(d.a === 1 || d.b !== 2)",
            r#"((c["a"] != @p0 OR NOT IS_DEFINED(c["a"])) AND (c["b"] = @p1)) | @p0=1 @p1=2"#,
        );
        check("d => d.n % 2 === 1", r#"((c["n"] % @p0) = @p1) | @p0=2 @p1=1"#);
        check(
            "d => d.a === d.b",
            r#"(c["a"] = c["b"] OR (NOT IS_DEFINED(c["a"]) AND NOT IS_DEFINED(c["b"]))) | "#,
        );
        check("d => d.a === outer", r#"(c["a"] = @p0) | @p0="o""#);
        check("d => true", "true | ");
    }

    /// Half of a conjunction is enough; half of a disjunction is not.
    #[test]
    fn conjunctions_may_lose_a_side() {
        check("d => d.a === 1 && d.flag", r#"(c["a"] = @p0) | @p0=1"#);
        check("d => d.flag && d.a === 1", r#"(c["a"] = @p0) | @p0=1"#);
        check("d => (d.b > 1 || d.flag) && d.a === 1", r#"(c["a"] = @p0) | @p0=1"#);
        check("d => d.a === 1 || d.flag", "opaque");
    }

    #[test]
    fn predicates_that_cannot() {
        for source in [
            "d => d.a.indexOf('x') === 0",
            "d => d.name.length > 3",
            "d => d.flag",
            "d => !d.flag",
            "d => !(d.n > 1)",
            "d => unknown === d.a",
            "d => d.a ? true : false",
            "d => /x/.test(d.a)",
            "d => d?.a === 1",
            "d => `x` === d.a",
            "d => d.a = 1",
            "d => d === 1",
            "function (d) { if (d.a) return true; return false; }",
            "function (d) { var x; return d.a === 1; }",
            "function (a, b) { return a.x === 1; }",
            "function () { return true; }",
            "async d => d.a === 1",
            "function* (d) { return d.a === 1; }",
            "({a}) => a === 1",
            "d => d[d.a] === 1",
            "d => d.a + d.b === 'xy'",
            "d => typeof d.a === 'string'",
            "d => d.a === 1n",
            "function (d) { return d.a === 1; d.b; }",
            "function isNative() { [native code] }",
            "d => d.a === 'unterminated",
            "",
        ] {
            check(source, "opaque");
        }
        check(&format!("d => {}d.a === 1{}", "(".repeat(5000), ")".repeat(5000)), "opaque");
        check(&format!("d => {} d.a === 1", "!".repeat(5000)), "opaque");
        // At the limits of depth and of size, and one over them.
        let nested =
            |depth: usize| format!("d => {}d.a === 1{}", "(".repeat(depth), ")".repeat(depth));
        check(&nested(49), r#"(c["a"] = @p0) | @p0=1"#);
        check(&nested(50), "opaque");
        let long = |terms: usize| format!("d => {}", vec!["true"; terms].join(" && "));
        assert!(predicate(&long(200), &Captures::new(), 0).is_some());
        assert!(predicate(&long(201), &Captures::new(), 0).is_none());
        check(&format!("d => 0 {} === d.a", "- 1".repeat(5000)), "opaque");
    }

    #[test]
    fn texts_cannot_leave_their_place() {
        check(
            r#"d => d['"] OR true OR c["'] === 1"#,
            r#"(c["\"] OR true OR c[\""] = @p0) | @p0=1"#,
        );
        check(r"d => d.a === '\'\x41\u0042\u{43}\n'", r#"(c["a"] = @p0) | @p0="'ABC\n""#);
    }

    #[test]
    fn paths() {
        assert_eq!(path("function (d) { return d.a.b; }").as_deref(), Some(r#"c["a"]["b"]"#));
        assert_eq!(path("d => d"), None);
        assert_eq!(path("d => d.a + 1"), None);
    }
}
