//! Expressions and templates: how a workload file says what it means to compute.
//!
//! ```text
//! expression = or            a || b, a && b, !a
//!   or         comparison    == != < <= > >=      of two numbers or two texts
//!   ...        sum, product  + - * /              of two numbers; + also joins texts
//!              call          count(x) truncate(text, n) floor(x) min(a, b) max(a, b) if(c, a, b)
//!              path          post.user.username   rows[0].id
//!              literal       1.5  'text'  true false null
//! template   = JSON whose texts may hold ${expression};
//!              {each = "name in path", first = 3, item = template} is an array, and inside
//!              an array stands for its elements
//! ```
//!
//! INVARIANTS
//! (X1) An expression has no effect and asks for neither time nor chance: its value depends on what
//!      the scope gives only.
//! (X2) A template text that is one `${…}` and nothing else is the value itself, of any type; a
//!      longer one is text.

use serde_json::{Map, Number, Value};

/// Where paths lead. A path begins with a name; what is behind it may be missing, which is null.
pub trait Scope {
    /// The value at a path; an error if its first name means nothing here.
    fn get(&self, path: &Path) -> Result<Value, String>;

    /// Visits the elements at a path, each under a name, at most `first` of them.
    fn each(&self, each: &Each, visit: &mut dyn FnMut(&dyn Scope) -> Visit) -> Visit;
}

/// What comes of looking at one element.
pub type Visit = Result<(), String>;

/// `name in path`.
#[derive(Clone, Debug, PartialEq)]
pub struct Each {
    /// What an element is called.
    pub name: String,
    /// Where the elements are.
    pub path: Path,
    /// How many are looked at.
    pub first: usize,
}

impl Each {
    /// Reads `name in path`.
    pub fn parse(text: &str, first: usize) -> Result<Each, String> {
        let wrong = || format!("`{text}` should read `name in path`");
        let (name, path) = text.split_once(" in ").ok_or_else(wrong)?;
        let name = name.trim().to_owned();
        match Expression::parse(path)? {
            Expression::Path(path) if name.chars().all(is_name) && !name.is_empty() => {
                Ok(Each { name, path, first })
            }
            Expression::Path(_) | Expression::Literal(_) | Expression::Call(..) => Err(wrong()),
            Expression::Not(_) | Expression::Binary(..) => Err(wrong()),
        }
    }
}

/// A name and what follows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// The first name.
    pub root: String,
    /// What follows.
    pub steps: Vec<Step>,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// `.name`
    Name(String),
    /// `[0]`
    Index(usize),
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// Itself.
    Literal(Value),
    /// What is at a path.
    Path(Path),
    /// A function of values.
    Call(Function, Vec<Expression>),
    /// True for what is false, null, zero or empty.
    Not(Box<Expression>),
    /// Two values and what is between them.
    Binary(Operator, Box<Expression>, Box<Expression>),
}

/// The functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// How many rows an array has, or how many children an entity has.
    Count,
    /// The first characters of a text.
    Truncate,
    /// The whole number below.
    Floor,
    /// The smaller of two.
    Min,
    /// The larger of two.
    Max,
    /// The second value if the first is true, otherwise the third.
    If,
}

const FUNCTIONS: [(&str, Function, usize); 6] = [
    ("count", Function::Count, 1),
    ("truncate", Function::Truncate, 2),
    ("floor", Function::Floor, 1),
    ("min", Function::Min, 2),
    ("max", Function::Max, 2),
    ("if", Function::If, 3),
];

/// What stands between two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// Binary operators from loose to tight; longer spellings first.
const LEVELS: [&[(&str, Operator)]; 5] = [
    &[("||", Operator::Or)],
    &[("&&", Operator::And)],
    &[
        ("==", Operator::Equal),
        ("!=", Operator::NotEqual),
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[("*", Operator::Multiply), ("/", Operator::Divide)],
];

impl Expression {
    /// Reads an expression; the error says what is wrong and where in the text.
    pub fn parse(text: &str) -> Result<Expression, String> {
        let mut parser = Parser { text, at: 0 };
        let expression = parser.binary(0)?;
        parser.skip_blanks();
        match parser.rest() {
            "" => Ok(expression),
            rest => Err(format!("`{text}` cannot be read from `{rest}` on")),
        }
    }

    /// Its value.
    pub fn evaluate(&self, scope: &dyn Scope) -> Result<Value, String> {
        match self {
            Expression::Literal(value) => Ok(value.clone()),
            Expression::Path(path) => scope.get(path),
            Expression::Call(function, arguments) => {
                let values = arguments.iter().map(|argument| argument.evaluate(scope));
                call(*function, &values.collect::<Result<Vec<Value>, String>>()?)
            }
            Expression::Not(inner) => Ok(Value::Bool(!is_true(&inner.evaluate(scope)?))),
            Expression::Binary(Operator::And, left, right) => {
                Ok(Value::Bool(is_true(&left.evaluate(scope)?) && is_true(&right.evaluate(scope)?)))
            }
            Expression::Binary(Operator::Or, left, right) => {
                Ok(Value::Bool(is_true(&left.evaluate(scope)?) || is_true(&right.evaluate(scope)?)))
            }
            Expression::Binary(operator, left, right) => {
                combine(*operator, &left.evaluate(scope)?, &right.evaluate(scope)?)
            }
        }
    }

    /// Every path in it.
    pub fn paths(&self) -> Vec<&Path> {
        match self {
            Expression::Literal(_) => Vec::new(),
            Expression::Path(path) => vec![path],
            Expression::Call(_, arguments) => {
                arguments.iter().flat_map(Expression::paths).collect()
            }
            Expression::Not(inner) => inner.paths(),
            Expression::Binary(_, left, right) => {
                [left.paths(), right.paths()].into_iter().flatten().collect()
            }
        }
    }
}

/// Null, false, zero and what is empty are not true.
pub fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(rows) => !rows.is_empty(),
        Value::Object(object) => !object.is_empty(),
    }
}

/// What is at the end of steps into a value; null if there is nothing.
pub fn walk<'v>(value: &'v Value, steps: &[Step]) -> &'v Value {
    steps.iter().fold(value, |value, step| match step {
        Step::Name(name) => value.get(name).unwrap_or(&Value::Null),
        Step::Index(index) => value.get(index).unwrap_or(&Value::Null),
    })
}

/// A number as JSON; whole ones without a fraction.
pub fn number(value: f64) -> Value {
    let is_whole = value.fract() == 0.0 && value.abs() < 9e15;
    match is_whole {
        true => Value::from(value as i64),
        false => Number::from_f64(value).map_or(Value::Null, Value::Number),
    }
}

fn call(function: Function, values: &[Value]) -> Result<Value, String> {
    match (function, values) {
        (Function::Count, [Value::Array(rows)]) => Ok(rows.len().into()),
        (Function::Count, [Value::Number(count)]) => Ok(Value::Number(count.clone())),
        (Function::Count, [Value::Null]) => Ok(0.into()),
        (Function::Truncate, [Value::String(text), Value::Number(length)]) => {
            let length = length.as_u64().unwrap_or(0) as usize;
            Ok(Value::String(text.chars().take(length).collect()))
        }
        (Function::Floor, [value]) => Ok(number(float(value)?.floor())),
        (Function::Min, [left, right]) => Ok(number(float(left)?.min(float(right)?))),
        (Function::Max, [left, right]) => Ok(number(float(left)?.max(float(right)?))),
        (Function::If, [condition, yes, no]) => {
            Ok(if is_true(condition) { yes } else { no }.clone())
        }
        (Function::Count | Function::Truncate | Function::Floor, _)
        | (Function::Min | Function::Max | Function::If, _) => {
            let (name, ..) = FUNCTIONS[function as usize];
            Err(format!("{name} cannot be called with {}", Value::from(values.to_vec())))
        }
    }
}

fn float(value: &Value) -> Result<f64, String> {
    value.as_f64().ok_or_else(|| format!("{value} is not a number"))
}

fn combine(operator: Operator, left: &Value, right: &Value) -> Result<Value, String> {
    let order = || match (left, right) {
        (Value::String(left), Value::String(right)) => Ok(left.cmp(right)),
        (left, right) => {
            let (left, right) = (float(left)?, float(right)?);
            left.partial_cmp(&right).ok_or_else(|| "not comparable".to_owned())
        }
    };
    let number = |compute: fn(f64, f64) -> f64| Ok(number(compute(float(left)?, float(right)?)));
    match operator {
        Operator::Equal => Ok(is_equal(left, right).into()),
        Operator::NotEqual => Ok((!is_equal(left, right)).into()),
        Operator::Less => Ok(order()?.is_lt().into()),
        Operator::LessOrEqual => Ok(order()?.is_le().into()),
        Operator::Greater => Ok(order()?.is_gt().into()),
        Operator::GreaterOrEqual => Ok(order()?.is_ge().into()),
        Operator::Add if left.is_string() || right.is_string() => {
            Ok(Value::String(text_of(left) + &text_of(right)))
        }
        Operator::Add => number(|left, right| left + right),
        Operator::Subtract => number(|left, right| left - right),
        Operator::Multiply => number(|left, right| left * right),
        Operator::Divide => match float(right)? {
            0.0 => Err("division by zero".to_owned()),
            _ => number(|left, right| left / right),
        },
        Operator::And | Operator::Or => Ok(Value::Bool(false)),
    }
}

fn is_equal(left: &Value, right: &Value) -> bool {
    match (left.as_f64(), right.as_f64()) {
        (Some(left), Some(right)) => left == right,
        _ => left == right,
    }
}

/// A value inside a longer text.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, word: &str) -> bool {
        self.skip_blanks();
        let is_next = self.rest().starts_with(word);
        self.at += if is_next { word.len() } else { 0 };
        is_next
    }

    fn expect(&mut self, word: &str) -> Result<(), String> {
        match self.eat(word) {
            true => Ok(()),
            false => Err(format!("`{}` lacks a `{word}` before `{}`", self.text, self.rest())),
        }
    }

    fn binary(&mut self, level: usize) -> Result<Expression, String> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        'more: loop {
            for (word, operator) in *operators {
                if self.eat(word) {
                    let right = self.binary(level + 1)?;
                    left = Expression::Binary(*operator, left.into(), right.into());
                    continue 'more;
                }
            }
            return Ok(left);
        }
    }

    fn unary(&mut self) -> Result<Expression, String> {
        if self.eat("!") {
            return Ok(Expression::Not(self.unary()?.into()));
        }
        if self.eat("-") {
            let zero = Expression::Literal(0.into());
            return Ok(Expression::Binary(Operator::Subtract, zero.into(), self.unary()?.into()));
        }
        if self.eat("(") {
            let inner = self.binary(0)?;
            self.expect(")")?;
            return Ok(inner);
        }
        self.skip_blanks();
        match self.rest().chars().next() {
            Some('\'') => self.text_literal(),
            Some(digit) if digit.is_ascii_digit() => self.number_literal(),
            Some(letter) if letter.is_alphabetic() || letter == '_' => self.name(),
            Some(_) | None => {
                let rest = self.rest();
                Err(format!("`{}` lacks a value before `{rest}`", self.text))
            }
        }
    }

    fn text_literal(&mut self) -> Result<Expression, String> {
        let inner = &self.rest()[1..];
        let end = inner.find('\'').ok_or_else(|| format!("`{}` lacks a closing '", self.text))?;
        self.at += end + 2;
        Ok(Expression::Literal(inner[..end].into()))
    }

    fn number_literal(&mut self) -> Result<Expression, String> {
        let word = self.word(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_');
        let parsed = word.replace('_', "").parse::<f64>();
        parsed
            .map(|value| Expression::Literal(number(value)))
            .map_err(|_| format!("`{word}` is not a number"))
    }

    fn word(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn name(&mut self) -> Result<Expression, String> {
        let name = self.word(is_name);
        match name {
            "true" => return Ok(Expression::Literal(true.into())),
            "false" => return Ok(Expression::Literal(false.into())),
            "null" => return Ok(Expression::Literal(Value::Null)),
            _ => {}
        }
        match self.eat("(") {
            true => self.call(name),
            false => self.path(name),
        }
    }

    fn call(&mut self, name: &str) -> Result<Expression, String> {
        let found = FUNCTIONS.iter().find(|(known, ..)| *known == name);
        let Some((_, function, arity)) = found else {
            let known = FUNCTIONS.map(|(known, ..)| known).join(", ");
            return Err(format!("there is no function `{name}`; there are {known}"));
        };
        let mut arguments = vec![self.binary(0)?];
        while self.eat(",") {
            arguments.push(self.binary(0)?);
        }
        self.expect(")")?;
        match arguments.len() == *arity {
            true => Ok(Expression::Call(*function, arguments)),
            false => Err(format!("`{name}` takes {arity} values, not {}", arguments.len())),
        }
    }

    fn path(&mut self, root: &str) -> Result<Expression, String> {
        let mut steps = Vec::new();
        loop {
            if self.rest().starts_with('.') {
                self.at += 1;
                match self.word(is_name) {
                    "" => return Err(format!("`{}` has a dot without a name", self.text)),
                    name => steps.push(Step::Name(name.to_owned())),
                }
            } else if self.rest().starts_with('[') {
                self.at += 1;
                let digits = self.word(|c| c.is_ascii_digit());
                let index = digits
                    .parse()
                    .map_err(|_| format!("`{}` has an index that is not a number", self.text))?;
                steps.push(Step::Index(index));
                self.expect("]")?;
            } else {
                return Ok(Expression::Path(Path { root: root.to_owned(), steps }));
            }
        }
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// JSON with holes.
#[derive(Clone, Debug, PartialEq)]
pub enum Template {
    /// No holes.
    Fixed(Value),
    /// The value of an expression (X2).
    Hole(Expression),
    /// Pieces of text.
    Text(Vec<Piece>),
    /// Elements.
    Array(Vec<Template>),
    /// Properties in their order.
    Object(Vec<(String, Template)>),
    /// An element for each of others.
    Each(Each, Box<Template>),
}

/// A piece of a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// As it is.
    Text(String),
    /// To be computed.
    Hole(Expression),
}

impl Template {
    /// Whether a value has, or may have, a property at the end of a path.
    pub fn may_have(&self, path: &[&str]) -> bool {
        let Some((name, rest)) = path.split_first() else { return true };
        match self {
            Template::Hole(_) => true,
            Template::Fixed(value) => value.pointer(&format!("/{}", path.join("/"))).is_some(),
            Template::Object(properties) => {
                properties.iter().any(|(known, value)| known == name && value.may_have(rest))
            }
            Template::Text(_) | Template::Array(_) | Template::Each(..) => false,
        }
    }

    /// Finds the holes of a value.
    pub fn parse(value: &Value) -> Result<Template, String> {
        match value {
            Value::String(text) => Template::parse_text(text),
            Value::Array(rows) => {
                Ok(Template::Array(rows.iter().map(Template::parse).collect::<Result<_, _>>()?))
            }
            Value::Object(object) if object.contains_key("each") => Template::parse_each(object),
            Value::Object(object) => {
                let parse = |(name, value): (&String, &Value)| {
                    let template = Template::parse(value);
                    Ok((name.clone(), template.map_err(|error| format!("{name}: {error}"))?))
                };
                Ok(Template::Object(object.iter().map(parse).collect::<Result<_, String>>()?))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(Template::Fixed(value.clone())),
        }
    }

    fn parse_each(object: &Map<String, Value>) -> Result<Template, String> {
        let known = ["each", "first", "item"];
        if let Some(name) = object.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(format!("`{name}` does not go with `each`"));
        }
        let text = object["each"].as_str().ok_or("`each` is a text such as `name in path`")?;
        let first = match object.get("first") {
            None => usize::MAX,
            Some(first) => first.as_u64().ok_or("`first` is a whole number")? as usize,
        };
        let item = object.get("item").ok_or("`each` needs an `item`")?;
        Ok(Template::Each(Each::parse(text, first)?, Template::parse(item)?.into()))
    }

    fn parse_text(text: &str) -> Result<Template, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let inner = &rest[at + 2..];
            let end = inner.find('}').ok_or_else(|| format!("`{text}` lacks a closing }}"))?;
            if at > 0 {
                pieces.push(Piece::Text(rest[..at].to_owned()));
            }
            pieces.push(Piece::Hole(Expression::parse(&inner[..end])?));
            rest = &inner[end + 1..];
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Ok(match &mut pieces[..] {
            [] => Template::Fixed("".into()),
            [Piece::Text(text)] => Template::Fixed(std::mem::take(text).into()),
            [Piece::Hole(_)] => match pieces.remove(0) {
                Piece::Hole(expression) => Template::Hole(expression),
                Piece::Text(text) => Template::Fixed(text.into()),
            },
            _ => Template::Text(pieces),
        })
    }

    /// The value with its holes filled.
    pub fn fill(&self, scope: &dyn Scope) -> Result<Value, String> {
        match self {
            Template::Fixed(value) => Ok(value.clone()),
            Template::Hole(expression) => expression.evaluate(scope),
            Template::Text(pieces) => {
                let mut out = String::new();
                for piece in pieces {
                    match piece {
                        Piece::Text(text) => out.push_str(text),
                        Piece::Hole(hole) => out.push_str(&text_of(&hole.evaluate(scope)?)),
                    }
                }
                Ok(out.into())
            }
            Template::Array(rows) => {
                let mut out = Vec::new();
                for row in rows {
                    match (row, row.fill(scope)?) {
                        (Template::Each(..), Value::Array(elements)) => out.extend(elements),
                        (_, value) => out.push(value),
                    }
                }
                Ok(out.into())
            }
            Template::Object(properties) => {
                let fill = |(name, template): &(String, Template)| {
                    Ok((name.clone(), template.fill(scope)?))
                };
                let object = properties.iter().map(fill).collect::<Result<Map<_, _>, String>>()?;
                Ok(Value::Object(object))
            }
            Template::Each(each, item) => {
                let mut rows = Vec::new();
                scope.each(each, &mut |scope| {
                    rows.push(item.fill(scope)?);
                    Ok(())
                })?;
                Ok(rows.into())
            }
        }
    }

    /// Visits every expression in it, with the loops around it.
    pub fn visit<'t>(
        &'t self,
        around: &mut Vec<&'t Each>,
        look: &mut dyn FnMut(&[&'t Each], &'t Expression) -> Visit,
    ) -> Visit {
        match self {
            Template::Fixed(_) => Ok(()),
            Template::Hole(expression) => look(around, expression),
            Template::Text(pieces) => pieces.iter().try_for_each(|piece| match piece {
                Piece::Hole(hole) => look(around, hole),
                Piece::Text(_) => Ok(()),
            }),
            Template::Array(rows) => rows.iter().try_for_each(|row| row.visit(around, look)),
            Template::Object(object) => object.iter().try_for_each(|(name, value)| {
                value.visit(around, look).map_err(|error| format!("{name}: {error}"))
            }),
            Template::Each(each, item) => {
                around.push(each);
                let visited = item.visit(around, look);
                around.pop();
                visited
            }
        }
    }
}

#[cfg(test)]
#[path = "expression/tests.rs"]
mod tests;
