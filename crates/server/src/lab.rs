//! The commands `lab run`, `lab growth`, `lab verify` and `lab follow`: flags, servers if none is
//! given, files that come out.
//!
//! ELSEWHERE  Everything the laboratory does: the crate `lab`.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use client::Client;
use lab::budget::Budget;
use lab::growth::Growth;
use lab::pipeline::Runner;
use lab::verify::Verdict;
use lab::{Counted, Data, Results, Run, Watch, Workload};

use crate::cli::{LabCommand, LabFlags, LabFollowFlags, LabGrowthFlags, LabRunFlags};
use crate::config::Usage;
use crate::lab_server::LabServer;
use crate::progress::{Progress, Unit};
use crate::query::read_key;
use crate::signals::Signals;

/// How long followers wait before they ask again for changes where there were none.
const FOLLOW_PAUSE: Duration = Duration::from_millis(250);
/// Findings shown of one check; the rest is counted.
const FINDINGS_SHOWN: usize = 10;

/// `cosmolabe lab …`.
pub fn lab(command: &LabCommand) -> Result<()> {
    match command {
        LabCommand::Run(flags) => run(flags),
        LabCommand::Growth(flags) => growth(flags),
        LabCommand::Verify(flags) => verify(flags),
        LabCommand::Follow(flags) => follow(flags),
    }
}

fn run(flags: &LabRunFlags) -> Result<()> {
    check_outputs(&[
        ("--report", &flags.report),
        ("--json", &flags.json),
        ("--write-budget", &flags.write_budget),
    ])?;
    let workload = read(&flags.lab.workload)?;
    let budget = flags.budget.as_deref().map(|path| read_budget(path, &workload)).transpose()?;
    let prepared = Prepared::new(&flags.lab, workload, flags.in_memory)?;
    let run = Run { replaces: flags.replace, ..prepared.run(flags.repeat.map(|n| n as usize)) };
    let results = prepared.session.block_on(run.run())?;
    write_outputs(flags, &results)?;
    report_findings(&results.findings())?;
    let exceeded = budget.map(|budget| budget.exceeded(&results)).unwrap_or_default();
    match exceeded.is_empty() {
        true => Ok(()),
        false => bail!("over budget:\n  {}", exceeded.join("\n  ")),
    }
}

fn growth(flags: &LabGrowthFlags) -> Result<()> {
    if flags.scales.len() < 2 {
        let sentence = "--scales are two or more, such as 0.001,0.01: growth is between them";
        return Err(Usage(sentence.to_owned()).into());
    }
    if flags.limit.is_some_and(|limit| !is_positive(limit)) {
        return Err(Usage("--limit is a number above 0".to_owned()).into());
    }
    check_outputs(&[("--json", &flags.json)])?;
    let workload = read(&flags.workload)?;
    let models = workload.choose_models(&flags.model).map_err(Usage)?;
    if workload.reads_and_writes().0.is_empty() {
        return Err(Usage(format!("{} has no pattern that only reads", workload.name)).into());
    }
    let data = flags.scales.iter().map(|scale| data_at(flags, *scale));
    let data = data.collect::<Result<Vec<_>>>()?;
    let session = Session::new()?;
    let place = |_| Place::start(&workload, flags.in_memory);
    let places = data.iter().map(place).collect::<Result<Vec<_>>>()?;
    let repeat = flags.repeat.map(|n| n as usize);
    let pairs = places.iter().zip(&data);
    let runs: Vec<Run> = pairs.map(|(place, data)| place.run(data, &models, repeat)).collect();
    let growth = session.block_on(Growth::measure(&runs))?;
    print_numbers(flags.json.as_deref(), &growth.to_json(), &growth.table())?;
    let beyond = flags.limit.map(|limit| growth.beyond(limit)).unwrap_or_default();
    match beyond.is_empty() {
        true => Ok(()),
        false => bail!("grows too much:\n  {}", beyond.join("\n  ")),
    }
}

/// The instances at one of the scales.
fn data_at(flags: &LabGrowthFlags, scale: f64) -> Result<Arc<Data>> {
    let scale = scale_of("--scales", scale)?;
    let mut workload = read(&flags.workload)?;
    if flags.scale_throughput {
        let largest = flags.scales.iter().copied().fold(scale, f64::max);
        workload.share_throughput(scale / largest);
    }
    let seed = flags.seed.unwrap_or(workload.seed);
    Ok(Arc::new(Data::new(Arc::new(workload), seed, scale)))
}

/// Refuses files that cannot be written, before anything takes its time. What was not there is not
/// there afterwards either.
fn check_outputs(outputs: &[(&str, &Option<PathBuf>)]) -> Result<()> {
    let files = outputs.iter().filter_map(|(flag, path)| Some((flag, path.as_deref()?)));
    for (flag, path) in files.filter(|(_, path)| *path != Path::new("-")) {
        let is_new = !path.exists();
        let opened = OpenOptions::new().create(true).append(true).open(path);
        if let Err(error) = opened {
            let sentence = format!("{flag} {} cannot be written: {error}", path.display());
            return Err(Usage(sentence).into());
        }
        if is_new {
            // Should it stay, it is empty until the end of the run.
            let _ = std::fs::remove_file(path);
        }
    }
    Ok(())
}

fn write(path: &Path, text: String) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}

/// The table on standard output, and JSON to a file; or JSON on standard output.
fn print_numbers(path: Option<&Path>, json: &serde_json::Value, table: &str) -> Result<()> {
    let json = format!("{json:#}\n");
    match path {
        Some(path) if path == Path::new("-") => print!("{json}"),
        Some(path) => {
            print!("{table}");
            write(path, json)?;
        }
        None => print!("{table}"),
    }
    Ok(())
}

fn write_outputs(flags: &LabRunFlags, results: &Results) -> Result<()> {
    print_numbers(flags.json.as_deref(), &results.to_json(), &lab::table::table(results))?;
    if let Some(path) = &flags.report {
        write(path, lab::report::html(results))?;
        eprintln!("report in {}", path.display());
    }
    if let Some(path) = &flags.write_budget {
        write(path, lab::budget::write(results))?;
    }
    Ok(())
}

fn verify(flags: &LabFlags) -> Result<()> {
    let workload = read(&flags.workload)?;
    let models = workload.choose_models(&flags.model).map_err(Usage)?;
    if models.iter().all(|model| workload.models[*model].checks.is_empty()) {
        let sentence =
            format!("{} has no checks for these models: nothing is copied", workload.name);
        return Err(Usage(sentence).into());
    }
    let prepared = Prepared::new(flags, workload, false)?;
    let run = prepared.run(Some(1));
    let verdicts = match flags.endpoint {
        None => {
            let results = prepared.session.block_on(run.run())?;
            results.models.into_iter().map(|model| (model.id, model.verdicts)).collect()
        }
        Some(_) => prepared.session.block_on(check(&run))?,
    };
    let mut findings = Vec::new();
    for (model, verdicts) in verdicts {
        for verdict in verdicts {
            println!("{model}: {}: {} compared", verdict.name, verdict.copies);
            findings.extend(
                verdict.findings.iter().map(|text| format!("{model}: {}: {text}", verdict.name)),
            );
        }
    }
    report_findings(&findings)?;
    println!("every copy is what its source says");
    Ok(())
}

fn follow(flags: &LabFollowFlags) -> Result<()> {
    if flags.lab.endpoint.is_none() {
        return Err(Usage("lab follow needs --endpoint: what changes is there".to_owned()).into());
    }
    let workload = read(&flags.lab.workload)?;
    let models = workload.choose_models(&flags.lab.model).map_err(Usage)?;
    if models.iter().all(|model| workload.models[*model].pipelines.is_empty()) {
        let sentence = format!("{} has no pipelines for these models", workload.name);
        return Err(Usage(sentence).into());
    }
    let prepared = Prepared::new(&flags.lab, workload, false)?;
    prepared.session.runtime.block_on(follow_all(flags, &prepared))
}

/// Runs pipelines until nothing is left or the process is asked to end, and gives the leases back.
async fn follow_all(flags: &LabFollowFlags, prepared: &Prepared) -> Result<()> {
    let (data, run) = (&prepared.data, prepared.run(None));
    let owner = flags.name.clone().unwrap_or_else(|| format!("lab-{}", std::process::id()));
    let mut runners = Vec::new();
    for model in &prepared.models {
        let runner = Runner::start(data, *model, run.target(*model), &owner).await?;
        let id = &data.workload.models[*model].id;
        println!("{id}: following as {owner}, {} leases", runner.leases());
        runners.push((id, runner));
    }
    let work = async {
        loop {
            let changes = drain_all(&mut runners).await?;
            if changes == 0 && flags.until_idle {
                return Ok(());
            }
            if changes == 0 {
                // A change feed is asked; it does not call.
                tokio::time::sleep(FOLLOW_PAUSE).await;
            }
        }
    };
    let done = tokio::select! {
        done = work => done,
        _ = prepared.session.signal() => Ok(()),
    };
    let mut stopped = Ok(());
    for (_, runner) in runners {
        stopped = stopped.and(runner.stop().await);
    }
    done.and(stopped.map_err(Into::into))
}

/// One round over all models; how many changes there were.
async fn drain_all(runners: &mut [(&String, Runner<'_>)]) -> Result<u64> {
    let mut changes = 0;
    for (id, runner) in runners {
        let drained = runner.drain().await?;
        changes += drained.changes;
        if let Some(lag) = drained.lag {
            let (ru, lag_ms) = (drained.work.ru(), lag.as_millis());
            println!("{id}: {} changes, {ru:.2} RU, copied in {lag_ms} ms", drained.changes);
        }
    }
    Ok(changes)
}

/// Checks what an earlier run left on a server.
async fn check(run: &Run) -> Result<Vec<(String, Vec<Verdict>)>, lab::Error> {
    let mut all = Vec::new();
    for model in &run.models {
        let of = &run.data.workload.models[*model];
        all.push((of.id.clone(), lab::verify::verify(of, &run.target(*model)).await?));
    }
    Ok(all)
}

fn report_findings(findings: &[String]) -> Result<()> {
    if findings.is_empty() {
        return Ok(());
    }
    let shown = &findings[..findings.len().min(FINDINGS_SHOWN)];
    let more = match findings.len() - shown.len() {
        0 => String::new(),
        more => format!("\n  and {more} more"),
    };
    bail!("copies differ from their sources:\n  {}{more}", shown.join("\n  "))
}

fn read(workload: &str) -> Result<Workload> {
    let source = lab::shelf::find(workload).map_err(Usage)?;
    source.read().map_err(|mistake| Usage(mistake.to_string()).into())
}

fn read_budget(path: &Path, workload: &Workload) -> Result<Budget> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("--budget {} cannot be read", path.display()))?;
    let read = Budget::read(&path.display().to_string(), &text, workload);
    read.map_err(|mistake| Usage(mistake.to_string()).into())
}

fn is_positive(number: f64) -> bool {
    number > 0.0 && number.is_finite()
}

fn scale_of(flag: &str, scale: f64) -> Result<f64> {
    match is_positive(scale) {
        true => Ok(scale),
        false => Err(Usage(format!("{flag}: a scale is a number above 0")).into()),
    }
}

/// All that a run needs.
struct Prepared {
    // Ended first: what waits for it must not keep the runtime waiting.
    place: Place,
    data: Arc<Data>,
    models: Vec<usize>,
    session: Session,
}

impl Prepared {
    fn new(flags: &LabFlags, workload: Workload, is_in_memory: bool) -> Result<Prepared> {
        let models = workload.choose_models(&flags.model).map_err(Usage)?;
        let scale = scale_of("--scale", flags.scale.unwrap_or(workload.scale))?;
        let seed = flags.seed.unwrap_or(workload.seed);
        let session = Session::new()?;
        let place = match &flags.endpoint {
            Some(endpoint) => Place::at(endpoint, flags.key_file.as_deref())?,
            None => Place::start(&workload, is_in_memory)?,
        };
        let data = Arc::new(Data::new(Arc::new(workload), seed, scale));
        Ok(Prepared { place, data, models, session })
    }

    fn run(&self, repeat: Option<usize>) -> Run {
        self.place.run(&self.data, &self.models, repeat)
    }
}

/// A server, which may be one that was started for the purpose.
struct Place {
    client: Client,
    server: Option<LabServer>,
}

impl Place {
    fn at(endpoint: &str, key_file: Option<&Path>) -> Result<Place> {
        let key = key_file.map(read_key).transpose()?.unwrap_or_else(client::Key::development);
        let client = Client::new(endpoint, key);
        let client = client.map_err(|error| Usage(format!("--endpoint: {error}")))?;
        Ok(Place { client, server: None })
    }

    fn start(workload: &Workload, is_in_memory: bool) -> Result<Place> {
        let server = LabServer::start(workload.ru_profile.as_deref(), is_in_memory)?;
        let client = Client::new(&server.endpoint, client::Key::development())?;
        Ok(Place { client, server: Some(server) })
    }

    fn run(&self, data: &Arc<Data>, models: &[usize], repeat: Option<usize>) -> Run {
        Run {
            data: data.clone(),
            client: self.client.clone(),
            models: models.to_vec(),
            replaces: false,
            asks_for_prices: self.server.is_none(),
            repeat,
            settle: self.server.as_ref().and_then(LabServer::settle),
            watch: Arc::new(Bar::default()),
        }
    }
}

/// A thread to work with, and signals that end the work.
struct Session {
    runtime: tokio::runtime::Runtime,
    signals: tokio::sync::Mutex<Signals>,
}

impl Session {
    /// To be made before there is a server that a signal could leave behind.
    fn new() -> Result<Session> {
        // One thread: a change of threads within the client would count as time of the server.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let signals = tokio::sync::Mutex::new(runtime.block_on(async { Signals::new() })?);
        Ok(Session { runtime, signals })
    }

    fn block_on<T>(&self, work: impl Future<Output = Result<T, lab::Error>>) -> Result<T> {
        // Interrupted or not, the servers of the run are ended and their data removed.
        let work = async {
            tokio::select! {
                done = work => Ok(done?),
                name = self.signal() => bail!("ended by {name}"),
            }
        };
        self.runtime.block_on(work)
    }

    /// Waits until the process is asked to end.
    async fn signal(&self) -> &'static str {
        self.signals.lock().await.next().await
    }
}

/// Progress on the terminal.
#[derive(Default)]
struct Bar(Mutex<Option<Progress>>);

impl Bar {
    fn replace(&self, progress: Option<Progress>) {
        let mut current = self.0.lock().expect("no code panics while holding this lock");
        if let Some(ended) = std::mem::replace(&mut *current, progress) {
            ended.finish();
        }
    }
}

impl Watch for Bar {
    fn begin(&self, label: &str, counted: Counted, total: u64) {
        let unit = match counted {
            Counted::Items => Unit::Items,
            Counted::Patterns => Unit::Patterns,
        };
        self.replace(Some(Progress::new(label, unit, total)));
    }

    fn set(&self, done: u64) {
        let current = self.0.lock().expect("no code panics while holding this lock");
        if let Some(progress) = &*current {
            progress.set(done);
        }
    }

    fn end(&self) {
        self.replace(None);
    }

    fn warn(&self, sentence: &str) {
        eprintln!("warning: {sentence}");
    }
}
