//! The grammar of functions that can be said in SQL.
//!
//! ```text
//! function    "function" word? "(" word ")" block  |  word "=>" result  |  "(" word ")" "=>" result
//! result      block | or
//! block       "{" (("var" | "let" | "const") word "=" or ("," word "=" or)* ";")* "return" or ";"? "}"
//! or          and ("||" and)*
//! and         equality ("&&" equality)*
//! equality    order (("===" | "!==" | "==" | "!=") order)*
//! order       sum (("<" | "<=" | ">" | ">=") sum)*
//! sum         product (("+" | "-") product)*
//! product     unary (("*" | "/" | "%") unary)*
//! unary       ("!" | "-") unary | primary
//! primary     "(" or ")" | literal | word ("." word | "[" (text | number) "]")*
//! ```

use std::collections::HashMap;

use item::Value;

use super::Captures;
use super::tokens::{Token, tokens};

/// Levels of nesting that are looked at.
const DEPTH_MAX: usize = 50;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    /// A property of the item; no steps: the item itself.
    Path(Vec<Step>),
    Literal(Value),
    Undefined,
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
    Not(Box<Expression>),
    Compare(Comparison, Box<Expression>, Box<Expression>),
    Compute(Arithmetic, Box<Expression>, Box<Expression>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Name(String),
    Index(u32),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Comparison {
    Equal { is_loose: bool },
    Differs { is_loose: bool },
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// What a function returns, its variables replaced by what they stand for.
pub(super) fn parse(source: &str, captures: &Captures) -> Option<Expression> {
    let tokens = tokens(source)?;
    let mut parser =
        Parser { tokens, at: 0, depth: 0, names: HashMap::new(), nodes_left: NODES_MAX };
    for (name, value) in captures {
        parser.names.insert(name.clone(), Expression::Literal(value.clone()));
    }
    let expression = parser.function()?;
    if parser.at == parser.tokens.len() { Some(expression) } else { None }
}

/// Variables multiply what they stand for; this bounds the product.
const NODES_MAX: usize = 400;

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    names: HashMap<String, Expression>,
    nodes_left: usize,
}

impl Parser {
    fn function(&mut self) -> Option<Expression> {
        if self.eat_word("function") {
            if !self.eat("(") {
                self.word()?;
                self.expect("(")?;
            }
            self.parameter()?;
            self.expect(")")?;
            return self.block();
        }
        if self.eat("(") {
            self.parameter()?;
            self.expect(")")?;
        } else {
            self.parameter()?;
        }
        self.expect("=>")?;
        if self.peek("{") { self.block() } else { self.or() }
    }

    fn parameter(&mut self) -> Option<()> {
        let name = self.word()?;
        self.names.insert(name, Expression::Path(Vec::new()));
        Some(())
    }

    fn block(&mut self) -> Option<Expression> {
        self.expect("{")?;
        while ["var", "let", "const"].iter().any(|word| self.eat_word(word)) {
            loop {
                let name = self.word()?;
                self.expect("=")?;
                let value = self.or()?;
                self.names.insert(name, value);
                if !self.eat(",") {
                    break;
                }
            }
            self.expect(";")?;
        }
        if !self.eat_word("return") {
            return None;
        }
        let result = self.or()?;
        self.eat(";");
        self.expect("}")?;
        Some(result)
    }

    fn or(&mut self) -> Option<Expression> {
        let mut left = self.and()?;
        while self.eat("||") {
            let right = self.and()?;
            left = self.node(Expression::Or(Box::new(left), Box::new(right)))?;
        }
        Some(left)
    }

    fn and(&mut self) -> Option<Expression> {
        let mut left = self.equality()?;
        while self.eat("&&") {
            let right = self.equality()?;
            left = self.node(Expression::And(Box::new(left), Box::new(right)))?;
        }
        Some(left)
    }

    fn equality(&mut self) -> Option<Expression> {
        let mut left = self.order()?;
        while let Some(comparison) = self.eat_any(&EQUALITIES) {
            let right = self.order()?;
            left = self.node(Expression::Compare(comparison, Box::new(left), Box::new(right)))?;
        }
        Some(left)
    }

    fn order(&mut self) -> Option<Expression> {
        let mut left = self.sum()?;
        while let Some(comparison) = self.eat_any(&ORDERS) {
            let right = self.sum()?;
            left = self.node(Expression::Compare(comparison, Box::new(left), Box::new(right)))?;
        }
        Some(left)
    }

    fn sum(&mut self) -> Option<Expression> {
        let mut left = self.product()?;
        while let Some(arithmetic) = self.eat_any(&SUMS) {
            let right = self.product()?;
            // Between two properties a plus may join texts.
            if arithmetic == Arithmetic::Add && !is_number(&left) && !is_number(&right) {
                return None;
            }
            left = self.node(Expression::Compute(arithmetic, Box::new(left), Box::new(right)))?;
        }
        Some(left)
    }

    fn product(&mut self) -> Option<Expression> {
        let mut left = self.unary()?;
        while let Some(arithmetic) = self.eat_any(&PRODUCTS) {
            let right = self.unary()?;
            left = self.node(Expression::Compute(arithmetic, Box::new(left), Box::new(right)))?;
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<Expression> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        let expression = if self.eat("!") {
            let inner = self.unary()?;
            self.node(Expression::Not(Box::new(inner)))
        } else if self.eat("-") {
            let Expression::Literal(Value::Number(number)) = self.unary()? else { return None };
            self.node(Expression::Literal(Value::Number(-number)))
        } else {
            self.primary()
        };
        self.depth -= 1;
        expression
    }

    fn primary(&mut self) -> Option<Expression> {
        if self.eat("(") {
            let inner = self.or()?;
            self.expect(")")?;
            return Some(inner);
        }
        let token = self.tokens.get(self.at)?.clone();
        self.at += 1;
        match token {
            Token::Number(number) => self.node(Expression::Literal(Value::Number(number))),
            Token::Text(text) => self.node(Expression::Literal(Value::from(text))),
            Token::Word(word) => self.named(&word),
            Token::Sign(_) => None,
        }
    }

    fn named(&mut self, word: &str) -> Option<Expression> {
        let literal = match word {
            "true" => Some(Expression::Literal(Value::Bool(true))),
            "false" => Some(Expression::Literal(Value::Bool(false))),
            "null" => Some(Expression::Literal(Value::Null)),
            "undefined" => Some(Expression::Undefined),
            _ => None,
        };
        let mut expression = literal.or_else(|| self.names.get(word).cloned())?;
        let cost = size(&expression);
        self.nodes_left = self.nodes_left.checked_sub(cost)?;
        while let Some(step) = self.step()? {
            let Expression::Path(steps) = &mut expression else { return None };
            steps.push(step);
        }
        Some(expression)
    }

    /// A step of a path. The outer option: whether it can be said in SQL.
    #[allow(clippy::option_option)]
    fn step(&mut self) -> Option<Option<Step>> {
        let step = if self.eat(".") {
            Step::Name(self.word()?)
        } else if self.eat("[") {
            let token = self.tokens.get(self.at)?.clone();
            self.at += 1;
            self.expect("]")?;
            match token {
                Token::Text(text) => Step::Name(text),
                Token::Number(number) if number.fract() == 0.0 && number < 1e9 => {
                    Step::Index(number as u32)
                }
                Token::Number(_) | Token::Word(_) | Token::Sign(_) => return None,
            }
        } else {
            return Some(None);
        };
        // Texts and arrays have it in JavaScript only.
        if step == Step::Name("length".to_owned()) { None } else { Some(Some(step)) }
    }

    fn node(&mut self, expression: Expression) -> Option<Expression> {
        self.nodes_left = self.nodes_left.checked_sub(1)?;
        Some(expression)
    }

    fn peek(&self, sign: &str) -> bool {
        matches!(self.tokens.get(self.at), Some(Token::Sign(own)) if *own == sign)
    }

    fn eat(&mut self, sign: &str) -> bool {
        let is_next = self.peek(sign);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, sign: &str) -> Option<()> {
        self.eat(sign).then_some(())
    }

    fn eat_any<T: Copy>(&mut self, signs: &[(&str, T)]) -> Option<T> {
        let found = signs.iter().find(|(sign, _)| self.peek(sign))?;
        self.at += 1;
        Some(found.1)
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let is_next = matches!(self.tokens.get(self.at), Some(Token::Word(own)) if own == word);
        self.at += usize::from(is_next);
        is_next
    }

    fn word(&mut self) -> Option<String> {
        let Some(Token::Word(word)) = self.tokens.get(self.at) else { return None };
        self.at += 1;
        Some(word.clone())
    }
}

const EQUALITIES: [(&str, Comparison); 4] = [
    ("===", Comparison::Equal { is_loose: false }),
    ("!==", Comparison::Differs { is_loose: false }),
    ("==", Comparison::Equal { is_loose: true }),
    ("!=", Comparison::Differs { is_loose: true }),
];

const ORDERS: [(&str, Comparison); 4] = [
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

const SUMS: [(&str, Arithmetic); 2] = [("+", Arithmetic::Add), ("-", Arithmetic::Subtract)];

const PRODUCTS: [(&str, Arithmetic); 3] =
    [("*", Arithmetic::Multiply), ("/", Arithmetic::Divide), ("%", Arithmetic::Remainder)];

fn is_number(expression: &Expression) -> bool {
    matches!(expression, Expression::Literal(Value::Number(_)))
}

fn size(expression: &Expression) -> usize {
    match expression {
        Expression::Path(_) | Expression::Literal(_) | Expression::Undefined => 1,
        Expression::Not(inner) => 1 + size(inner),
        Expression::And(left, right)
        | Expression::Or(left, right)
        | Expression::Compare(_, left, right)
        | Expression::Compute(_, left, right) => 1 + size(left) + size(right),
    }
}
