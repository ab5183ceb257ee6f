//! Aggregates.

use std::collections::HashSet;

use item::{Kind, Value};

use crate::datum::Datum;
use crate::key::canonical;

/// Which aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AggregateKind {
    Count,
    /// Counts inputs that are `true`.
    CountIf,
    Sum,
    Average,
    Min,
    Max,
    MakeList,
    MakeSet,
}

impl AggregateKind {
    /// The aggregate of this name, in any case.
    pub fn from_name(name: &str) -> Option<AggregateKind> {
        Some(match name.to_ascii_uppercase().as_str() {
            "COUNT" => AggregateKind::Count,
            "COUNTIF" => AggregateKind::CountIf,
            "SUM" => AggregateKind::Sum,
            "AVG" => AggregateKind::Average,
            "MIN" => AggregateKind::Min,
            "MAX" => AggregateKind::Max,
            "MAKELIST" => AggregateKind::MakeList,
            "MAKESET" => AggregateKind::MakeSet,
            _ => return None,
        })
    }

    /// Its name in query plans.
    pub fn plan_name(self) -> &'static str {
        match self {
            AggregateKind::Count => "Count",
            AggregateKind::CountIf => "CountIf",
            AggregateKind::Sum => "Sum",
            AggregateKind::Average => "Average",
            AggregateKind::Min => "Min",
            AggregateKind::Max => "Max",
            AggregateKind::MakeList => "MakeList",
            AggregateKind::MakeSet => "MakeSet",
        }
    }
}

/// An aggregate while its inputs come in. Undefined inputs are skipped by all of them.
#[derive(Clone, Debug)]
pub(crate) struct Accumulator {
    kind: AggregateKind,
    count: u64,
    /// An input of a type the aggregate cannot take: the result is undefined.
    is_spoiled: bool,
    sum: f64,
    extreme: Value,
    list: Vec<Value>,
    set: HashSet<Vec<u8>>,
}

impl Accumulator {
    pub fn new(kind: AggregateKind) -> Accumulator {
        Accumulator {
            kind,
            count: 0,
            is_spoiled: false,
            sum: 0.0,
            extreme: Value::Undefined,
            list: Vec::new(),
            set: HashSet::new(),
        }
    }

    /// Takes an input, and returns roughly how many bytes it holds on to.
    pub fn add(&mut self, value: &Datum<'_>) -> usize {
        let Some(kind) = value.kind() else { return 0 };
        if self.kind == AggregateKind::CountIf && value.as_bool() != Some(true) {
            return 0;
        }
        self.count += 1;
        match self.kind {
            AggregateKind::Count | AggregateKind::CountIf => 0,
            AggregateKind::Sum | AggregateKind::Average => {
                match value.as_f64() {
                    Some(number) => self.sum += number,
                    None => self.is_spoiled = true,
                }
                0
            }
            AggregateKind::Min | AggregateKind::Max => {
                self.is_spoiled |= matches!(kind, Kind::Array | Kind::Object);
                if !self.is_spoiled {
                    self.compare(value.to_value());
                }
                0
            }
            AggregateKind::MakeList => self.push(value.to_value()),
            AggregateKind::MakeSet => {
                let value = value.to_value();
                let identity = canonical(&value);
                let bytes = identity.len();
                if self.set.insert(identity) { bytes + self.push(value) } else { 0 }
            }
        }
    }

    /// Takes as many inputs of which nothing but the number matters.
    pub fn add_count(&mut self, inputs: u64) {
        self.count += inputs;
    }

    fn compare(&mut self, value: Value) {
        let order = value.compare(&self.extreme);
        let is_better = if self.kind == AggregateKind::Min { order.is_lt() } else { order.is_gt() };
        if self.extreme.is_undefined() || is_better {
            self.extreme = value;
        }
    }

    fn push(&mut self, value: Value) -> usize {
        let bytes = value.to_json().len() + 32;
        self.list.push(value);
        bytes
    }

    /// The result; undefined where there is none.
    pub fn finish(self) -> Value {
        match self.kind {
            AggregateKind::Count | AggregateKind::CountIf => Value::Number(self.count as f64),
            _ if self.is_spoiled => Value::Undefined,
            AggregateKind::Sum => Value::Number(self.sum),
            AggregateKind::Average if self.count == 0 => Value::Undefined,
            AggregateKind::Average => Value::Number(self.sum / self.count as f64),
            AggregateKind::Min | AggregateKind::Max => self.extreme,
            AggregateKind::MakeList | AggregateKind::MakeSet => Value::array(self.list),
        }
    }
}
