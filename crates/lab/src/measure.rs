//! Measuring the patterns of one model: executions, what they cost and how long they take.
//!
//! A machine is now fast, now slow. So the models take turns in each pattern, a few executions at
//! a time: what slows one of them down slows the others down as well.
//!
//! INVARIANTS
//! (R1) Measured requests are sent one after the other, in an order the file fixes: charges do not
//!      depend on time. Two runs with the same seed give the same charges.
//! (R2) What a write causes in pipelines is done before the next execution begins, and is counted
//!      with the pattern that wrote.
//! (R3) What is charged and what is timed are executions of their own. Those that are charged ask
//!      for receipts, so that the lines of a cell add up to its charge; those that are timed ask
//!      for nothing that an application would not ask for.
//!
//! ELSEWHERE  Which patterns are measured when: `run`.

use std::ops::Range;
use std::time::Instant;

use crate::Error;
use crate::data::{Binding, Data, Environment, Instance};
use crate::generate::name_hash;
use crate::mix::Measured;
use crate::pipeline::Runner;
use crate::results::{Cell, percentile};
use crate::run::Run;
use crate::steps;
use crate::target::{Tally, Target};
use crate::verify::{Verdict, verify};
use crate::workload::Pattern;

/// Executions of a pattern in one model before the next one has its turn.
const TURN: usize = 5;

/// Measures one pattern everywhere: first what it costs, then how long it takes (R3). A cell for
/// each place.
pub(crate) async fn measure(places: &mut [Measuring<'_>], at: usize) -> Result<Vec<Cell>, Error> {
    let mut charged = Vec::new();
    for place in places.iter_mut() {
        charged.push(place.charged(at, None).await?);
    }
    let timed = timed(places, at).await?;
    let cells = places.iter().zip(&charged).zip(&timed);
    Ok(cells.map(|((place, charged), timed)| place.cell(at, charged, timed)).collect())
}

/// The same without receipts: charges are those of the executions that are timed.
pub(crate) async fn measure_plainly(
    places: &mut [Measuring<'_>],
    at: usize,
) -> Result<Vec<Cell>, Error> {
    for place in places.iter_mut() {
        place.warm_up(at, None).await?;
    }
    let timed = timed(places, at).await?;
    let cells = places.iter().zip(&timed);
    Ok(cells.map(|(place, timed)| place.cell(at, timed, timed)).collect())
}

/// Executes one pattern everywhere, a turn after the other.
async fn timed(places: &mut [Measuring<'_>], at: usize) -> Result<Vec<Executions>, Error> {
    let mut executions = vec![Executions::default(); places.len()];
    let repeat = places.iter().map(|place| place.repeat(at)).max().unwrap_or(0);
    for begin in (0..repeat).step_by(TURN) {
        for (place, executions) in places.iter_mut().zip(&mut executions) {
            place.turn(at, begin..repeat.min(begin + TURN), executions).await?;
        }
    }
    Ok(executions)
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

/// A sample, and the one that stands in its place.
type Instead = Option<(usize, usize)>;

/// What executions of one pattern came to.
#[derive(Clone, Default)]
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

    fn count(&self) -> usize {
        self.times_ms.len()
    }

    /// What one of them cost with all that followed from it.
    fn total_ru(&self) -> f64 {
        (self.work.ru() + self.propagation.ru()) / self.count() as f64
    }
}

impl<'a> Measuring<'a> {
    /// A model that has been loaded.
    pub(crate) fn new(run: &'a Run, model: usize, target: Target, pipelines: Runner<'a>) -> Self {
        Measuring { run, model, target, pipelines, made: 0 }
    }

    fn repeat(&self, at: usize) -> usize {
        self.run.repeat.unwrap_or(self.run.data.workload.patterns[at].repeat)
    }

    /// Executes a pattern a few times for nothing.
    async fn warm_up(&mut self, at: usize, instead: Instead) -> Result<(), Error> {
        let run = self.run;
        let (pattern, warmup) = (&run.data.workload.patterns[at], run.data.workload.warmup);
        for round in 0..warmup.min(self.repeat(at)) {
            self.execute(pattern, round, instead, &mut Executions::default()).await?;
        }
        Ok(())
    }

    /// The executions that are charged, behind those for warming up.
    async fn charged(&mut self, at: usize, instead: Instead) -> Result<Executions, Error> {
        self.warm_up(at, instead).await?;
        let run = self.run;
        let (pattern, warmup) = (&run.data.workload.patterns[at], run.data.workload.warmup);
        let mut executions = Executions::itemised();
        for round in 0..self.repeat(at) {
            self.execute(pattern, warmup + round, instead, &mut executions).await?;
        }
        Ok(executions)
    }

    /// Some of the executions that are timed: of the same instances as those that were charged, but
    /// for those they make.
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

    /// What the executions came to: charges are of some, times of others (R3).
    fn cell(&self, at: usize, charged: &Executions, timed: &Executions) -> Cell {
        let workload = &self.run.data.workload;
        let pattern = &workload.patterns[at];
        let published = pattern.published[self.model].clone().unwrap_or_default();
        let (work, count) = (&charged.work, charged.count() as f64);
        let lags = &timed.lags_ms;
        Cell {
            pattern: pattern.id.clone(),
            model: workload.models[self.model].id.clone(),
            ru: work.ru() / count,
            published_ru: published.ru,
            expected_ru: published.expected_ru,
            because: published.because,
            requests: work.requests as f64 / count,
            partitions: work.partitions,
            p50_ms: percentile(&timed.times_ms, 0.50),
            p95_ms: percentile(&timed.times_ms, 0.95),
            p99_ms: percentile(&timed.times_ms, 0.99),
            published_ms: published.ms,
            bar_ms: published.bar_ms,
            propagation_ru: charged.propagation.ru() / count,
            lag_ms: (!lags.is_empty()).then(|| percentile(lags, 0.5)),
            executions: charged.count() as u64,
            receipt: charged.work.itemisation(),
            copies_receipt: charged.propagation.itemisation(),
        }
    }

    /// Proves the copies and gives back the leases.
    pub(crate) async fn finish(self) -> Result<Vec<Verdict>, Error> {
        let model = &self.run.data.workload.models[self.model];
        let verdicts = verify(model, &self.target).await?;
        self.stop().await?;
        Ok(verdicts)
    }

    /// Gives back the leases.
    pub(crate) async fn stop(self) -> Result<(), Error> {
        self.pipelines.stop().await
    }

    /// Measures patterns that look at a sample on others in its place, each as often as in a cell.
    ///
    /// Every point has a sample of its own, on which the patterns follow each other in the order of
    /// the file: what is measured there is what a run with that count would measure.
    pub(crate) async fn sweep(
        &mut self,
        patterns: &[usize],
        sample: usize,
        points: &[(u64, usize)],
        measured: &mut Measured,
    ) -> Result<(), Error> {
        let workload = &self.run.data.workload;
        let name = &workload.samples[sample].name;
        for (count, other) in points {
            for at in patterns {
                let steps = &workload.patterns[*at].models[self.model];
                if !steps.iter().any(|step| step.mentions(name)) {
                    continue;
                }
                let instead = Some((sample, *other));
                let ru = self.charged(*at, instead).await?.total_ru();
                measured.entry((*at, self.model)).or_default().push((*count as f64, ru));
            }
        }
        Ok(())
    }

    async fn execute(
        &mut self,
        pattern: &Pattern,
        round: usize,
        instead: Instead,
        executions: &mut Executions,
    ) -> Result<(), Error> {
        let run = self.run;
        let mut names = self.names(pattern, round, instead);
        let model = &run.data.workload.models[self.model];
        let steps = &pattern.models[self.model];
        let begun = Instant::now();
        let done = steps::run(model, &self.target, steps, &mut names, &mut executions.work).await;
        executions.times_ms.push(executions.work.time_since(begun));
        done.map_err(|error| in_pattern(pattern, error))?;
        let written = std::mem::take(&mut executions.work.written);
        if !written.is_empty() && !self.pipelines.is_empty() {
            let propagation = executions.propagation.fresh();
            let mut drained = self.pipelines.drain_after(written, propagation).await?; // R2
            let waited = drained.work.waited();
            drained.work.waits.clear();
            executions.propagation.add(&drained.work);
            let lag = drained.lag.map(|lag| lag.saturating_sub(waited).as_secs_f64() * 1000.0);
            executions.lags_ms.extend(lag);
        }
        Ok(())
    }

    /// What the names of a pattern stand for in one execution.
    fn names(&mut self, pattern: &Pattern, round: usize, instead: Instead) -> Environment<'a> {
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
