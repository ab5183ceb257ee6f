//! A run: every model is created and loaded, and then all are measured in turns, and verified.
//!
//! ```text
//! for each model      create ─▶ load ─▶ build copies
//! together            settle ─▶ patterns that read, sweeps ─▶ patterns that write
//! for each model      verify
//! ```
//!
//! A machine is now fast, now slow. So the models take turns in each pattern, a few executions at
//! a time: what slows one of them down slows the others down as well.
//!
//! INVARIANTS
//! (R1) Measured requests are sent one after the other, in an order the file fixes: charges do not
//!      depend on time. Two runs with the same seed give the same charges.
//! (R2) What a write causes in pipelines is done before the next execution begins, and is counted
//!      with the pattern that wrote.
//! (R3) Receipts are asked for in one execution more, which is neither timed nor counted.
//!
//! ELSEWHERE  The same patterns on data of several sizes: `growth`.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use client::Client;

use crate::Error;
use crate::data::{Binding, Data, Environment, Instance};
use crate::expression::{Expression, Template};
use crate::generate::name_hash;
use crate::load;
use crate::mix::{self, Measured};
use crate::pipeline::Runner;
use crate::results::{Cell, ModelResult, PatternResult, Results, percentile};
use crate::steps;
use crate::target::{Tally, Target};
use crate::verify::{Verdict, verify};
use crate::workload::{Action, Over, Pattern, Step};

/// Executions of a pattern in one model before the next one has its turn.
const TURN: usize = 5;

/// What a piece of work consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Items that are loaded or copied.
    Items,
    /// Patterns that are measured.
    Patterns,
}

/// Who is told how far a run has come.
pub trait Watch: Send + Sync {
    /// A piece of work begins; `total` is 0 if nobody knows it.
    fn begin(&self, label: &str, counted: Counted, total: u64);
    /// How much of it is done.
    fn set(&self, done: u64);
    /// It has ended.
    fn end(&self);
}

/// Lets a server come to rest: nothing is left to write or to rewrite. Blocks, or says why not.
pub type Settle = dyn Fn() -> Result<(), String> + Send + Sync;

/// What to run, and where.
pub struct Run {
    /// The instances, with their workload.
    pub data: Arc<Data>,
    /// The server.
    pub client: Client,
    /// Which models, by position.
    pub models: Vec<usize>,
    /// Whether databases of an earlier run are deleted.
    pub replaces: bool,
    /// Executions of each pattern instead of what the file says.
    pub repeat: Option<usize>,
    /// What lets the server come to rest between loading and measuring, if there is a way.
    pub settle: Option<Arc<Settle>>,
    /// Who is told how far it has come.
    pub watch: Arc<dyn Watch>,
}

impl Run {
    /// Runs everything.
    pub async fn run(&self) -> Result<Results, Error> {
        let workload = &self.data.workload;
        let (mut models, mut measuring) = self.prepare().await?;
        self.settle().await?;
        let mut sweeps = vec![Measured::new(); workload.sweeps.len()];
        let mut cells = self.measure(&mut measuring, &mut sweeps).await?;
        for (model, measured) in models.iter_mut().zip(measuring) {
            model.verdicts = measured.finish().await?;
        }
        let order = |cell: &Cell| {
            let pattern = workload.patterns.iter().position(|pattern| pattern.id == cell.pattern);
            (pattern, workload.models.iter().position(|model| model.id == cell.model))
        };
        cells.sort_by_key(order);
        let mut results = Results { models, cells, ..self.header() };
        let sweeps = workload.sweeps.iter().zip(&sweeps);
        let sweeps = sweeps
            .map(|(sweep, measured)| mix::sweep(workload, &results, &self.models, sweep, measured));
        results.sweeps = sweeps.collect();
        Ok(results)
    }

    /// Where a model is kept.
    pub fn target(&self, model: usize) -> Target {
        let workload = &self.data.workload;
        let database = format!("lab-{}-{}", workload.name, workload.models[model].id);
        Target { client: self.client.clone(), database }
    }

    /// Results without any numbers.
    fn header(&self) -> Results {
        let workload = &self.data.workload;
        let pattern = |pattern: &Pattern| PatternResult {
            id: pattern.id.clone(),
            title: pattern.title.clone(),
            weight: mix::weight(&pattern.weight, &workload.drivers),
        };
        let (scale, seed) = (self.data.scale, self.data.seed);
        Results {
            workload: workload.name.clone(),
            title: workload.title.clone(),
            about: workload.about.clone(),
            scale,
            seed,
            is_as_written: (scale, seed) == (workload.scale, workload.seed),
            per: workload.per.clone(),
            patterns: workload.patterns.iter().map(pattern).collect(),
            ..Results::default()
        }
    }

    /// Creates and loads all models, and builds their copies.
    pub(crate) async fn prepare(&self) -> Result<(Vec<ModelResult>, Vec<Measuring<'_>>), Error> {
        let (mut results, mut measuring) = (Vec::new(), Vec::new());
        for model in &self.models {
            let (result, ready) = self.prepare_model(*model).await?;
            results.push(result);
            measuring.push(ready);
        }
        Ok((results, measuring))
    }

    async fn prepare_model(&self, model: usize) -> Result<(ModelResult, Measuring<'_>), Error> {
        let of = &self.data.workload.models[model];
        let target = self.target(model);
        target.create(of, self.replaces).await?;
        let mut result = self.load(model, &target).await?;
        let owner = format!("lab-{}", std::process::id());
        let mut pipelines = Runner::start(&self.data, model, target.clone(), &owner).await?;
        self.watch.begin(&format!("{}: build copies", of.id), Counted::Items, 0);
        let built = pipelines.drain().await?;
        self.watch.end();
        result.build_ru = built.work.ru();
        result.build_changes = built.changes;
        Ok((result, Measuring { run: self, model, target, pipelines, made: 0 }))
    }

    async fn load(&self, model: usize, target: &Target) -> Result<ModelResult, Error> {
        let of = &self.data.workload.models[model];
        let items = load::items(&self.data, model);
        self.watch.begin(&format!("{}: load", of.id), Counted::Items, items);
        let begun = Instant::now();
        let watch = self.watch.clone();
        let progress = Arc::new(move |done| watch.set(done));
        let tally = load::load(&self.data, model, target, progress).await?;
        self.watch.end();
        Ok(ModelResult {
            id: of.id.clone(),
            title: of.title.clone(),
            about: of.about.clone(),
            items,
            load_ru: tally.ru(),
            load_seconds: begun.elapsed().as_secs_f64(),
            ..ModelResult::default()
        })
    }

    /// Waits until the server is at rest.
    pub(crate) async fn settle(&self) -> Result<(), Error> {
        let Some(settle) = self.settle.clone() else { return Ok(()) };
        let settled = tokio::task::spawn_blocking(move || settle()).await;
        settled.unwrap_or_else(|error| Err(error.to_string())).map_err(Error::Unsettled)
    }

    /// Measures all patterns; those that only read come first, so that they see the data as it was
    /// loaded.
    async fn measure(
        &self,
        models: &mut [Measuring<'_>],
        sweeps: &mut [Measured],
    ) -> Result<Vec<Cell>, Error> {
        let workload = &self.data.workload;
        let (reads, writes) = workload.reads_and_writes();
        let total = workload.patterns.len() as u64;
        self.watch.begin("measure", Counted::Patterns, total);
        let mut cells = Vec::new();
        for at in &reads {
            cells.extend(in_turns(models, *at).await?);
            self.watch.set((cells.len() / models.len()) as u64);
        }
        for (sweep, measured) in workload.sweeps.iter().zip(sweeps) {
            if let Over::Count { sample, points } = &sweep.over {
                for model in models.iter_mut() {
                    model.sweep(&reads, *sample, points, measured).await?;
                }
            }
        }
        for at in &writes {
            cells.extend(in_turns(models, *at).await?);
            self.watch.set((cells.len() / models.len()) as u64);
        }
        self.watch.end();
        Ok(cells)
    }
}

/// Measures one pattern everywhere, a turn after the other; a cell for each place.
pub(crate) async fn in_turns(places: &mut [Measuring<'_>], at: usize) -> Result<Vec<Cell>, Error> {
    let mut executions: Vec<Executions> = Vec::new();
    for place in places.iter_mut() {
        place.warm_up(at).await?;
        executions.push(Executions::default());
    }
    let repeat = places.iter().map(|place| place.repeat(at)).max().unwrap_or(0);
    for begin in (0..repeat).step_by(TURN) {
        for (place, executions) in places.iter_mut().zip(&mut executions) {
            place.turn(at, begin..repeat.min(begin + TURN), executions).await?;
        }
    }
    let mut cells = Vec::new();
    for (place, executions) in places.iter_mut().zip(&executions) {
        cells.push(place.cell(at, executions).await?);
    }
    Ok(cells)
}

/// One model under measurement.
pub(crate) struct Measuring<'a> {
    run: &'a Run,
    model: usize,
    target: Target,
    pipelines: Runner<'a>,
    /// Instances made so far.
    made: u64,
}

/// What executions of one pattern came to.
#[derive(Default)]
struct Executions {
    work: Tally,
    propagation: Tally,
    times_ms: Vec<f64>,
    lags_ms: Vec<f64>,
}

impl Executions {
    /// Executions that ask for receipts.
    fn itemised() -> Executions {
        Executions {
            work: Tally::itemised(),
            propagation: Tally::itemised(),
            ..Executions::default()
        }
    }
}

impl<'a> Measuring<'a> {
    fn repeat(&self, at: usize) -> usize {
        self.run.repeat.unwrap_or(self.run.data.workload.patterns[at].repeat)
    }

    /// Executes a pattern a few times for nothing.
    async fn warm_up(&mut self, at: usize) -> Result<(), Error> {
        let run = self.run;
        let (pattern, warmup) = (&run.data.workload.patterns[at], run.data.workload.warmup);
        for round in 0..warmup.min(self.repeat(at)) {
            self.execute(pattern, round, None, &mut Executions::default()).await?;
        }
        Ok(())
    }

    /// Some of the measured executions.
    async fn turn(
        &mut self,
        at: usize,
        rounds: Range<usize>,
        executions: &mut Executions,
    ) -> Result<(), Error> {
        let run = self.run;
        let (pattern, warmup) = (&run.data.workload.patterns[at], run.data.workload.warmup);
        for round in rounds {
            self.execute(pattern, warmup + round, None, executions).await?;
        }
        Ok(())
    }

    /// What the measured executions came to, with the receipt of one more (R3).
    async fn cell(&mut self, at: usize, executions: &Executions) -> Result<Cell, Error> {
        let (run, repeat) = (self.run, self.repeat(at));
        let workload = &run.data.workload;
        let pattern = &workload.patterns[at];
        let mut itemised = Executions::itemised();
        self.execute(pattern, workload.warmup + repeat, None, &mut itemised).await?;
        let published = pattern.published[self.model].clone().unwrap_or_default();
        let (work, count) = (&executions.work, repeat as f64);
        let lags = &executions.lags_ms;
        Ok(Cell {
            pattern: pattern.id.clone(),
            model: workload.models[self.model].id.clone(),
            ru: work.ru() / count,
            published_ru: published.ru,
            expected_ru: published.expected_ru,
            because: published.because,
            requests: work.requests as f64 / count,
            partitions: work.partitions,
            p50_ms: percentile(&executions.times_ms, 0.50),
            p95_ms: percentile(&executions.times_ms, 0.95),
            p99_ms: percentile(&executions.times_ms, 0.99),
            published_ms: published.ms,
            bar_ms: published.bar_ms,
            propagation_ru: executions.propagation.ru() / count,
            lag_ms: (!lags.is_empty()).then(|| percentile(lags, 0.5)),
            receipt: itemised.work.receipt.unwrap_or_default(),
            copies_receipt: itemised.propagation.receipt.unwrap_or_default(),
        })
    }

    /// Proves the copies and gives back the leases.
    async fn finish(self) -> Result<Vec<Verdict>, Error> {
        let model = &self.run.data.workload.models[self.model];
        let verdicts = verify(model, &self.target).await?;
        self.stop().await?;
        Ok(verdicts)
    }

    /// Gives back the leases.
    pub(crate) async fn stop(self) -> Result<(), Error> {
        self.pipelines.stop().await
    }

    /// Measures patterns that look at a sample on others in its place.
    async fn sweep(
        &mut self,
        reads: &[usize],
        sample: usize,
        points: &[(u64, usize)],
        measured: &mut Measured,
    ) -> Result<(), Error> {
        let workload = &self.run.data.workload;
        let name = &workload.samples[sample].name;
        for at in reads {
            let pattern = &workload.patterns[*at];
            if !pattern.models[self.model].iter().any(|step| step.mentions(name)) {
                continue;
            }
            let mut curve = Vec::new();
            for (count, other) in points {
                let mut executions = Executions::default();
                self.execute(pattern, 0, Some((sample, *other)), &mut executions).await?;
                curve.push((*count as f64, executions.work.ru()));
            }
            measured.insert((*at, self.model), curve);
        }
        Ok(())
    }

    async fn execute(
        &mut self,
        pattern: &Pattern,
        round: usize,
        instead: Option<(usize, usize)>,
        executions: &mut Executions,
    ) -> Result<(), Error> {
        let run = self.run;
        let mut names = self.names(pattern, round, instead);
        let model = &run.data.workload.models[self.model];
        let steps = &pattern.models[self.model];
        let begun = Instant::now();
        let done = steps::run(model, &self.target, steps, &mut names, &mut executions.work).await;
        executions.times_ms.push(begun.elapsed().as_secs_f64() * 1000.0);
        done.map_err(|error| in_pattern(pattern, error))?;
        let written = std::mem::take(&mut executions.work.written);
        if !written.is_empty() && !self.pipelines.is_empty() {
            let propagation = executions.propagation.fresh();
            let drained = self.pipelines.drain_after(written, propagation).await?; // R2
            executions.propagation.add(&drained.work);
            executions.lags_ms.extend(drained.lag.map(|lag| lag.as_secs_f64() * 1000.0));
        }
        Ok(())
    }

    /// What the names of a pattern stand for in one execution.
    fn names(
        &mut self,
        pattern: &Pattern,
        round: usize,
        instead: Option<(usize, usize)>,
    ) -> Environment<'a> {
        let data: &'a Data = &self.run.data;
        let mut names = Environment::new(data);
        for (at, sample) in data.workload.samples.iter().enumerate() {
            let at = instead.filter(|(this, _)| *this == at).map_or(at, |(_, other)| other);
            names.bind(&sample.name, Binding::Instance(data.sample(at)));
        }
        let mut picked: Vec<Instance> = Vec::new();
        for (name, entity) in &pattern.picks {
            let parts = [name_hash(&pattern.id), name_hash(name), round as u64];
            let instance = data.pick(*entity, &parts);
            picked.push(instance.clone());
            names.bind(name, Binding::Instance(instance));
        }
        for (name, entity) in &pattern.makes {
            let parent = data.workload.entities[*entity].parent;
            let parent = picked.iter().find(|instance| Some(instance.entity) == parent).cloned();
            let instance = data.fresh(*entity, self.made, parent);
            self.made += 1;
            picked.push(instance.clone());
            names.bind(name, Binding::Instance(instance));
        }
        names
    }
}

fn in_pattern(pattern: &Pattern, error: Error) -> Error {
    match error {
        Error::Request { what, source } => {
            Error::Request { what: format!("pattern {}: {what}", pattern.id), source }
        }
        Error::Step { what, message } => {
            Error::Step { what: format!("pattern {}: {what}", pattern.id), message }
        }
        Error::Exists(_) | Error::Endless(_) | Error::Leased(_) | Error::Unsettled(_) => error,
    }
}

impl Step {
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
