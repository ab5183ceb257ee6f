//! A run: every model is created and loaded, and then all are measured in turns, and verified.
//!
//! ```text
//! for each model      create ─▶ load ─▶ build copies
//! together            settle ─▶ patterns that read, their sweeps ─▶ patterns that write, theirs
//! for each model      verify
//! ```
//!
//! ELSEWHERE  How one pattern is measured: `measure`. The same patterns on data of several sizes:
//!            `growth`.

use std::sync::Arc;
use std::time::Instant;

use client::Client;

use crate::Error;
use crate::data::Data;
use crate::load;
use crate::measure::{Measuring, measure};
use crate::mix::{self, Measured};
use crate::pipeline::Runner;
use crate::probe;
use crate::results::{Cell, ModelResult, PatternResult, Results};
use crate::target::Target;
use crate::workload::{Over, Pattern};

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
    /// Something that whoever reads the numbers should know.
    fn warn(&self, sentence: &str);
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
    /// Whether the server may have another price list than the workload, because others started it.
    pub asks_for_prices: bool,
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
        let warnings = self.warnings().await?;
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
        let mut results = Results { models, cells, warnings, ..self.header() };
        let sweeps = workload.sweeps.iter().zip(&sweeps);
        let sweeps = sweeps
            .map(|(sweep, measured)| mix::sweep(workload, &results, &self.models, sweep, measured));
        results.sweeps = sweeps.collect();
        Ok(results)
    }

    /// What makes the numbers mean something else than the workload says.
    async fn warnings(&self) -> Result<Vec<String>, Error> {
        let Some(wanted) = self.data.workload.ru_profile.as_deref() else { return Ok(Vec::new()) };
        if !self.asks_for_prices {
            return Ok(Vec::new());
        }
        let found = probe::price_list(&self.client).await?;
        let Some(found) = found.filter(|found| *found != wanted) else { return Ok(Vec::new()) };
        let sentence = format!(
            "The server has the price list {found}; the figures of this workload are for {wanted}."
        );
        self.watch.warn(&sentence);
        Ok(vec![sentence])
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
            only_reads: pattern.only_reads(),
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
        Ok((result, Measuring::new(self, model, target, pipelines)))
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
    /// loaded. Points of sweeps come behind the cells, which do not depend on them.
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
        for patterns in [&reads, &writes] {
            for at in patterns {
                cells.extend(measure(models, *at).await?);
                self.watch.set((cells.len() / models.len()) as u64);
            }
            self.sweep(patterns, models, sweeps).await?;
        }
        self.watch.end();
        Ok(cells)
    }

    /// Measures patterns at the points of all sweeps over a count.
    async fn sweep(
        &self,
        patterns: &[usize],
        models: &mut [Measuring<'_>],
        sweeps: &mut [Measured],
    ) -> Result<(), Error> {
        for (sweep, measured) in self.data.workload.sweeps.iter().zip(sweeps) {
            if let Over::Count { sample, points } = &sweep.over {
                for model in models.iter_mut() {
                    model.sweep(patterns, *sample, points, measured).await?;
                }
            }
        }
        Ok(())
    }
}
