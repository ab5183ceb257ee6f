//! A workload that has been checked: every name resolved, every expression and query read.
//!
//! INVARIANTS
//! (W1) What runs cannot fail for a reason that was in the file: names of entities, fields,
//!      containers, procedures and models exist, and paths begin with something that is in scope.
//! (W2) A mistake is reported with the file and line it is on.
//!
//! ELSEWHERE  How it is written: `file`. From file to here: `read`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::expression::{Each, Expression, Template};
use crate::file::Amount;
use crate::generate::Generator;

/// The least throughput a container can have, in RU/s.
const THROUGHPUT_MIN: u32 = 400;

/// A checked workload.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Workload {
    pub name: String,
    pub title: String,
    pub about: String,
    pub seed: u64,
    pub scale: f64,
    pub repeat: usize,
    pub warmup: usize,
    /// The price list its published figures were made with.
    pub ru_profile: Option<String>,
    /// What the weights of patterns are counted per.
    pub per: String,
    pub drivers: BTreeMap<String, f64>,
    /// Parents stand before their children.
    pub entities: Vec<Entity>,
    pub samples: Vec<Sample>,
    pub models: Vec<Model>,
    pub patterns: Vec<Pattern>,
    pub sweeps: Vec<Sweep>,
}

/// A kind of thing the application is about.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Entity {
    pub name: String,
    /// The entity each instance belongs to.
    pub parent: Option<usize>,
    /// How many there are, or how many for each parent.
    pub count: Amount,
    pub refs: Vec<Reference>,
    pub fields: Vec<(String, Generator)>,
}

/// Another entity that one refers to.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Reference {
    pub name: String,
    pub entity: usize,
    /// 0 is even; close to 1, few instances get nearly all references.
    pub skew: f64,
}

/// A named instance with known counts.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Sample {
    pub name: String,
    pub entity: usize,
    /// The sample it belongs to; otherwise it gets a parent that is no sample.
    pub of: Option<usize>,
    /// Children by entity.
    pub counts: Vec<(usize, u64)>,
}

/// One way to keep the entities in containers.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Model {
    pub id: String,
    pub title: String,
    pub about: String,
    pub containers: Vec<Container>,
    pub items: Vec<Mapping>,
    pub pipelines: Vec<Pipeline>,
    pub checks: Vec<Check>,
}

/// A container of a model.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Container {
    pub name: String,
    /// Paths such as `/userId`.
    pub partition_key: Vec<String>,
    pub throughput: Option<u32>,
    pub indexing: Option<Value>,
    pub unique_keys: Option<Value>,
    pub procedures: Vec<Script>,
    pub triggers: Vec<Script>,
}

/// A stored procedure or trigger.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Script {
    pub name: String,
    pub body: String,
    /// Of triggers: before the write rather than behind it.
    pub is_before: bool,
    /// Of triggers: the writes it may run with.
    pub operation: String,
}

/// How instances of an entity become items.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Mapping {
    pub entity: usize,
    pub container: usize,
    pub item: Template,
}

/// Requests for each change of a container.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Pipeline {
    pub name: String,
    pub source: usize,
    /// Whether it also handles what was there before it first ran.
    pub from_beginning: bool,
    pub when: Option<Expression>,
    pub steps: Vec<Step>,
}

/// A proof that copies are what their sources say.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Check {
    pub name: String,
    pub copies: Side,
    pub sources: Side,
    /// Whether every source must have a copy.
    pub is_complete: bool,
    /// What a copy without a source must hold; without it, such a copy is wrong.
    pub missing: Option<Value>,
}

/// Rows `{k, v}` of one side of a check.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Side {
    pub container: usize,
    pub sql: String,
    /// Whether `v` is the number of rows with the same `k`.
    pub is_tally: bool,
}

/// Something the application does.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Pattern {
    pub id: String,
    pub title: String,
    /// How often, as an expression over drivers.
    pub weight: Expression,
    pub repeat: usize,
    /// Names and the entities they are picked from, anew each time.
    pub picks: Vec<(String, usize)>,
    /// Names and the entities of which a new instance is made each time.
    pub makes: Vec<(String, usize)>,
    /// Steps by model, in the order of models.
    pub models: Vec<Vec<Step>>,
    /// By model.
    pub published: Vec<Option<Published>>,
}

/// What a cell is compared with.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Published {
    pub ru: Option<f64>,
    pub ms: Option<f64>,
    /// What the price list gives for the data that the figure was published of.
    pub expected_ru: Option<f64>,
    /// Why the published charge cannot be met.
    pub because: Option<String>,
    /// What the p50 should not exceed.
    pub bar_ms: Option<f64>,
}

impl Pattern {
    /// Whether it only reads, in all models.
    pub fn only_reads(&self) -> bool {
        self.models.iter().flatten().all(Step::only_reads)
    }
}

impl Step {
    /// Whether it only reads.
    pub fn only_reads(&self) -> bool {
        match self.action {
            Action::Read { .. } | Action::Query { .. } => true,
            Action::Write { .. } | Action::Delete { .. } | Action::Execute { .. } => false,
        }
    }

    /// Whether an expression of the step begins with a name.
    pub fn mentions(&self, name: &str) -> bool {
        let in_expression =
            |expression: &Expression| expression.paths().iter().any(|path| path.root == name);
        let in_template = |template: &Template| {
            let mut found = false;
            let looked = template.visit(&mut Vec::new(), &mut |around, expression| {
                found |= in_expression(expression);
                found |= around.iter().any(|each| each.path.root == name);
                Ok(())
            });
            found || looked.is_err()
        };
        let in_action = match &self.action {
            Action::Read { id, key } | Action::Delete { id, key } => {
                in_template(id) || in_template(key)
            }
            Action::Query { key, parameters, .. } => {
                key.as_ref().is_some_and(in_template)
                    || parameters.iter().any(|(_, value)| in_template(value))
            }
            Action::Write { item, .. } => in_template(item),
            Action::Execute { key, arguments, .. } => in_template(key) || in_template(arguments),
        };
        let in_loop = self.each.as_ref().is_some_and(|each| each.path.root == name);
        in_action || in_loop || self.when.as_ref().is_some_and(in_expression)
    }
}

/// One request, or one for each row of an earlier one.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Step {
    pub container: usize,
    pub action: Action,
    pub each: Option<Each>,
    pub when: Option<Expression>,
    /// What its result is called in later steps.
    pub bind: Option<String>,
}

/// What is asked.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Action {
    Read { id: Template, key: Template },
    Query { sql: String, key: Option<Template>, parameters: Vec<(String, Template)>, page: i64 },
    Write { kind: WriteKind, item: Template, before: Option<String>, after: Option<String> },
    Delete { id: Template, key: Template },
    Execute { procedure: String, key: Template, arguments: Template },
}

/// The writes of a whole item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum WriteKind {
    Create,
    Upsert,
    Replace,
}

/// A question of how costs change with something.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Sweep {
    pub id: String,
    pub title: String,
    pub is_log: bool,
    pub over: Over,
}

/// What a sweep varies.
#[derive(Debug)]
pub enum Over {
    /// A driver, within bounds. Nothing is measured anew.
    Driver {
        /// Its name.
        name: String,
        /// Where it begins.
        from: f64,
        /// Where it ends.
        to: f64,
    },
    /// A count of children of a sample; patterns are measured at each point.
    Count {
        /// The sample that is replaced.
        sample: usize,
        /// (count, the sample that has it).
        points: Vec<(u64, usize)>,
    },
}

impl Workload {
    /// The positions of patterns that only read, and of those that write.
    pub fn reads_and_writes(&self) -> (Vec<usize>, Vec<usize>) {
        (0..self.patterns.len()).partition(|at| self.patterns[*at].only_reads())
    }

    /// Gives all containers a share of their throughput, to the nearest 100 RU/s, and none less than
    /// a container must have.
    pub fn share_throughput(&mut self, share: f64) {
        for container in self.models.iter_mut().flat_map(|model| &mut model.containers) {
            let hundreds = |ru: u32| (f64::from(ru) * share / 100.0).round() as u32;
            let shared = |ru: u32| (hundreds(ru) * 100).max(THROUGHPUT_MIN.min(ru));
            container.throughput = container.throughput.map(shared);
        }
    }

    /// A sample by name.
    pub fn sample(&self, name: &str) -> Option<usize> {
        self.samples.iter().position(|sample| sample.name == name)
    }

    /// The models with these ids, in the order of the file; all if none is given.
    pub fn choose_models(&self, ids: &[String]) -> Result<Vec<usize>, String> {
        let known = || self.models.iter().map(|model| &model.id[..]).collect::<Vec<_>>().join(", ");
        if let Some(id) = ids.iter().find(|id| !self.models.iter().any(|model| model.id == **id)) {
            return Err(format!("there is no model {id}; there are {}", known()));
        }
        let is_chosen = |at: &usize| ids.is_empty() || ids.contains(&self.models[*at].id);
        Ok((0..self.models.len()).filter(is_chosen).collect())
    }
}
