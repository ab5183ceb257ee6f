//! A workload file as it is written: TOML tables, nothing checked but names and types of keys.
//!
//! Every text that can be wrong later keeps its place in the file, so that a mistake can be shown
//! with its line. The keys are documented in `docs/lab.md`.
//!
//! ELSEWHERE  What it means, and all checks: `workload`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;

/// A text with its place.
pub type Text = Spanned<String>;
/// JSON with holes, with its place.
pub type Json = Spanned<Value>;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct File {
    pub name: String,
    pub title: Option<String>,
    pub about: Option<String>,
    #[serde(default = "one")]
    pub seed: u64,
    pub scale: Option<Spanned<f64>>,
    pub repeat: Option<Spanned<usize>>,
    pub warmup: Option<usize>,
    pub ru_profile: Option<Text>,
    pub per: Option<String>,
    pub bar: Option<Spanned<f64>>,
    #[serde(default)]
    pub drivers: BTreeMap<String, f64>,
    #[serde(default)]
    pub entities: Vec<Entity>,
    #[serde(default)]
    pub samples: Vec<Sample>,
    #[serde(default)]
    pub models: Vec<Model>,
    #[serde(default)]
    pub patterns: Vec<Pattern>,
    #[serde(default)]
    pub sweeps: Vec<Sweep>,
}

fn one() -> u64 {
    1
}

/// A kind of thing the application is about.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Entity {
    pub name: Text,
    pub per: Option<Text>,
    pub count: Spanned<Amount>,
    #[serde(default)]
    pub refs: BTreeMap<String, Spanned<Reference>>,
    #[serde(default)]
    pub fields: BTreeMap<String, Spanned<Generator>>,
}

/// How many, or how long.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(
    untagged,
    expecting = "a number, {min = 1, max = 9} or {median = 20, p99 = 200, max = 1000}"
)]
#[allow(missing_docs)]
pub enum Amount {
    Exactly(u64),
    Uniform { min: u64, max: u64 },
    LogNormal { median: u64, p99: u64, max: u64 },
}

/// Another entity that one refers to.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Reference {
    pub entity: String,
    #[serde(default)]
    pub skew: f64,
}

/// How a field gets its value.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Generator {
    pub kind: Option<String>,
    pub length: Option<Amount>,
    pub min: Option<f64>,
    pub max: Option<f64>,
    pub decimals: Option<u32>,
    pub of: Option<Vec<Value>>,
    pub from: Option<String>,
    pub to: Option<String>,
    pub value: Option<Value>,
}

/// A named instance with known counts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Sample {
    pub name: Text,
    pub entity: Text,
    pub of: Option<Text>,
    #[serde(default)]
    pub counts: BTreeMap<String, Spanned<u64>>,
}

/// One way to keep the entities in containers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Model {
    pub id: Text,
    pub title: Option<String>,
    pub about: Option<String>,
    #[serde(default)]
    pub containers: Vec<Container>,
    #[serde(default)]
    pub items: Vec<Mapping>,
    #[serde(default)]
    pub pipelines: Vec<Pipeline>,
    #[serde(default)]
    pub checks: Vec<Check>,
}

/// A container of a model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Container {
    pub name: Text,
    pub partition_key: Spanned<PartitionKey>,
    pub throughput: Option<Spanned<u32>>,
    pub indexing: Option<Json>,
    pub unique_keys: Option<Json>,
    #[serde(default)]
    pub procedures: Vec<Script>,
    #[serde(default)]
    pub triggers: Vec<Script>,
}

/// One path, or the levels of a hierarchical key.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a path such as \"/userId\", or several in an array")]
#[allow(missing_docs)]
pub enum PartitionKey {
    Path(String),
    Levels(Vec<String>),
}

/// A stored procedure or trigger.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Script {
    pub name: String,
    pub file: Text,
    #[serde(rename = "type")]
    pub kind: Option<Text>,
    pub operation: Option<String>,
}

/// How instances of an entity become items.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Mapping {
    pub entity: Text,
    pub container: Text,
    pub item: Json,
}

/// Requests for each change of a container.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Pipeline {
    pub name: Text,
    pub source: Text,
    pub start: Option<Text>,
    pub when: Option<Text>,
    #[serde(default)]
    pub steps: Vec<Spanned<Step>>,
}

/// A proof that copies are what their sources say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Check {
    pub name: String,
    pub copies: Side,
    pub sources: Side,
    #[serde(default)]
    pub complete: bool,
    pub missing: Option<Value>,
}

/// Rows `{k, v}` of one side of a check.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Side {
    pub container: Text,
    pub sql: Text,
    #[serde(default)]
    pub tally: bool,
}

/// Something the application does.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Pattern {
    pub id: Text,
    pub title: Option<String>,
    pub weight: Option<Json>,
    pub repeat: Option<Spanned<usize>>,
    #[serde(default)]
    pub pick: BTreeMap<String, Text>,
    #[serde(default)]
    pub make: BTreeMap<String, Text>,
    #[serde(default)]
    pub same: BTreeMap<String, Text>,
    #[serde(default)]
    pub published: BTreeMap<String, Spanned<Published>>,
    #[serde(default)]
    pub models: BTreeMap<String, Vec<Spanned<Step>>>,
}

/// What somebody else measured.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Published {
    pub ru: Option<f64>,
    pub ms: Option<f64>,
    pub expected: Option<f64>,
    pub because: Option<String>,
    pub bar: Option<f64>,
}

/// One request, or one for each row of an earlier one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Step {
    pub read: Option<Text>,
    pub query: Option<Text>,
    pub create: Option<Text>,
    pub upsert: Option<Text>,
    pub replace: Option<Text>,
    pub delete: Option<Text>,
    pub execute: Option<Text>,
    pub id: Option<Json>,
    pub key: Option<Json>,
    pub sql: Option<Text>,
    #[serde(default)]
    pub parameters: BTreeMap<String, Json>,
    pub page: Option<u32>,
    pub item: Option<Json>,
    pub procedure: Option<Text>,
    pub arguments: Option<Json>,
    pub pre_trigger: Option<Text>,
    pub post_trigger: Option<Text>,
    #[serde(rename = "for")]
    pub each: Option<Text>,
    pub when: Option<Text>,
    #[serde(rename = "as")]
    pub bind: Option<Text>,
}

/// A question of how costs change with something.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Sweep {
    pub id: Text,
    pub title: Option<String>,
    pub driver: Option<Text>,
    pub from: Option<f64>,
    pub to: Option<f64>,
    #[serde(default)]
    pub log: bool,
    pub sample: Option<Text>,
    pub child: Option<Text>,
    pub points: Option<Spanned<Vec<u64>>>,
}
