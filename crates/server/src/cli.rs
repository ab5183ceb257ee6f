//! The command line: every command and flag, with its environment variable and help.
//!
//! A flag of `serve` is defined here once: its name, help, environment variable and key in the
//! configuration file all come from its field. What is given on the command line wins over the
//! environment, which wins over the file.
//!
//! ELSEWHERE  Defaults, and what may go together: `config`.

use std::ffi::OsString;
use std::fmt::{Display, Formatter};
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result};
use clap::parser::ValueSource;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use serde::Deserialize;

use crate::config::Usage;

/// A document database that speaks the Azure Cosmos DB for NoSQL protocol.
#[derive(Debug, Parser)]
#[command(name = "cosmolabe", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Without a command, the database is started: `cosmolabe --in-memory` is `cosmolabe serve --in-memory`.

Examples:
  cosmolabe                                            start on http://127.0.0.1:8081, data in ./cosmolabe-data
  cosmolabe --in-memory --load ./seed                  start with the data of a directory, keep nothing
  cosmolabe import blog/posts posts.ndjson --partition-key /author
  cosmolabe query blog/posts \"SELECT * FROM c\"        rows, and what they cost
  cosmolabe lab run blog --report blog.html            what three models of a blog cost
  cosmolabe backup --out ./monday                      also while the server runs

Exit codes: 0 done, 1 failed, 2 wrong usage.";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start the database (the default when no command is given)
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Box<ServeFlags>),
    /// Read items from an NDJSON file into a container, with the server stopped
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(ImportFlags),
    /// Write the items of a container to an NDJSON file, with the server stopped
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportFlags),
    /// Run a query over a container and print its rows, with what they cost
    #[command(after_help = QUERY_EXAMPLES)]
    Query(QueryFlags),
    /// Measure what data models cost, per access pattern
    #[command(after_help = LAB_EXAMPLES)]
    Lab {
        /// What to do in the laboratory.
        #[command(subcommand)]
        command: LabCommand,
    },
    /// Copy a data directory as of one moment, also while a server uses it
    #[command(after_help = BACKUP_EXAMPLES)]
    Backup(BackupFlags),
    /// Make a data directory from a backup
    #[command(after_help = RESTORE_EXAMPLES)]
    Restore(RestoreFlags),
    /// Prove that indexes and counters are what the items say, with the server stopped
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(DataFlags),
    /// Print a script that completes commands and flags in a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell it is for
        shell: clap_complete::Shell,
    },
}

const SERVE_EXAMPLES: &str = "\
Examples:
  cosmolabe serve                                      on this machine only, with the development key
  cosmolabe serve --listen 0.0.0.0:8081 --key-file keys.txt --tls-cert cert.pem --tls-key key.pem
  cosmolabe serve --in-memory --listen 127.0.0.1:0     for tests: any free port, printed when ready
  COSMOLABE_DATA_DIR=/var/lib/cosmolabe cosmolabe serve --config /etc/cosmolabe.toml

A configuration file has the names of these flags as keys:
  listen = \"127.0.0.1:9000\"
  data-dir = \"/var/lib/cosmolabe\"
  cache-size = \"1GiB\"";

/// Flags of `serve`, and keys of the configuration file.
#[derive(Debug, Default, Args, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ServeFlags {
    /// TOML file with flags of this command; command line and environment win over it
    #[arg(long, env = "COSMOLABE_CONFIG", value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Address to listen on; port 0 takes a free one [default: 127.0.0.1:8081]
    #[arg(long, env = "COSMOLABE_LISTEN", value_name = "HOST:PORT")]
    pub listen: Option<String>,
    /// Directory that holds the data [default: ./cosmolabe-data]
    #[arg(long, env = "COSMOLABE_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Keep everything in memory; it is gone when the server stops
    #[arg(long, env = "COSMOLABE_IN_MEMORY", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_name = "BOOL")]
    pub in_memory: Option<bool>,
    /// A store elsewhere; this version has none
    #[arg(long, env = "COSMOLABE_STORE", value_name = "URL", hide = true)]
    pub store: Option<String>,
    /// File with the account's keys in base64, one per line: primary, secondary, read-only
    /// primary, read-only secondary; at least the first [default: the well-known development key]
    #[arg(long, env = "COSMOLABE_KEY_FILE", value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Listen on other addresses than loopback although everybody knows the key
    #[arg(long, env = "COSMOLABE_INSECURE_DEVELOPMENT_KEY", num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub insecure_development_key: Option<bool>,
    /// Serve TLS with a certificate made at start
    #[arg(long, env = "COSMOLABE_TLS", value_name = "MODE")]
    pub tls: Option<TlsMode>,
    /// Serve TLS with this certificate chain (PEM)
    #[arg(long, env = "COSMOLABE_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, env = "COSMOLABE_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Believe `x-forwarded-proto` and `x-forwarded-host`: only behind a proxy that sets them
    #[arg(long, env = "COSMOLABE_TRUST_FORWARDED", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_name = "BOOL")]
    pub trust_forwarded: Option<bool>,
    /// When a write is answered: on disk, or at once at the risk of the last second
    /// [default: sync]
    #[arg(long, env = "COSMOLABE_DURABILITY", value_name = "WHEN")]
    pub durability: Option<DurabilityMode>,
    /// Memory for caches [default: 256MiB]
    #[arg(long, env = "COSMOLABE_CACHE_SIZE", value_name = "SIZE")]
    pub cache_size: Option<Size>,
    /// Answer 429 when the provisioned throughput of a physical partition is spent
    /// [default: false]
    #[arg(long, env = "COSMOLABE_ENFORCE_THROUGHPUT", value_name = "BOOL")]
    pub enforce_throughput: Option<bool>,
    /// Price list of request units: that of 2019, where counted rows are loaded and ordered queries
    /// ask every partition, or one that counts from the index and stops early [default: 2019]
    #[arg(long, env = "COSMOLABE_RU_PROFILE", value_name = "PROFILE")]
    pub ru_profile: Option<RuProfile>,
    /// Load an NDJSON file <database>/<container>.ndjson, or a directory of such, on first start
    ///
    /// A file <container>.json beside it is the definition of the container (with `throughput`, if
    /// wanted); without one the partition key is /id. Loaded while there is no database yet, or the
    /// last loading was interrupted.
    #[arg(long, env = "COSMOLABE_LOAD", value_name = "PATH")]
    pub load: Option<PathBuf>,
    /// What to log, such as `debug` or `warn,gateway=debug` [default: RUST_LOG, or info]
    #[arg(long, env = "COSMOLABE_LOG", value_name = "FILTER")]
    pub log: Option<String>,
}

/// Which data directory a command works on.
#[derive(Debug, Default, Args)]
pub struct DataFlags {
    /// Directory that holds the data [default: ./cosmolabe-data]
    #[arg(long, env = "COSMOLABE_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Configuration file of the server, for its `data-dir`
    #[arg(long, env = "COSMOLABE_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// What to log, such as `debug` [default: RUST_LOG, or warn]
    #[arg(long, env = "COSMOLABE_LOG", value_name = "FILTER")]
    pub log: Option<String>,
}

const IMPORT_EXAMPLES: &str = "\
Every line is one item. Items are upserted, so importing a file twice changes nothing. The server
must be stopped: the data directory is opened by this command.

Examples:
  cosmolabe import blog/posts posts.ndjson --partition-key /author
  cosmolabe import blog/posts posts.ndjson --partition-key /tenant,/user --throughput 1000
  zcat posts.ndjson.gz | cosmolabe import blog/posts - --skip-bad";

/// Flags of `import`.
#[derive(Debug, Args)]
pub struct ImportFlags {
    /// The container; it and its database are created if they do not exist
    #[arg(value_name = "DB/CONTAINER")]
    pub target: Target,
    /// NDJSON file; `-` is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Path of the partition key of a new container; several, separated by commas, make a
    /// hierarchical key
    #[arg(long, value_name = "/PATH", value_delimiter = ',')]
    pub partition_key: Vec<String>,
    /// JSON file with the definition of a new container
    #[arg(long, value_name = "FILE", conflicts_with = "partition_key")]
    pub definition: Option<PathBuf>,
    /// Provisioned throughput of a new container, in RU/s
    #[arg(long, value_name = "RU")]
    pub throughput: Option<u32>,
    /// Report lines that cannot be imported and go on, instead of stopping at the first
    #[arg(long)]
    pub skip_bad: bool,
    /// Where the data is.
    #[command(flatten)]
    pub data: DataFlags,
}

const EXPORT_EXAMPLES: &str = "\
The server must be stopped: the data directory is opened by this command.

Examples:
  cosmolabe export blog/posts --out posts.ndjson
  cosmolabe export blog/posts --out blog/posts.ndjson --definition blog/posts.json
  cosmolabe export blog/posts | gzip > posts.ndjson.gz";

/// Flags of `export`.
#[derive(Debug, Args)]
pub struct ExportFlags {
    /// The container
    #[arg(value_name = "DB/CONTAINER")]
    pub target: Target,
    /// File to write; it is replaced when everything is written [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// File to write the definition of the container to
    #[arg(long, value_name = "FILE")]
    pub definition: Option<PathBuf>,
    /// Keep _rid, _self, _etag, _attachments and _ts
    #[arg(long)]
    pub system_properties: bool,
    /// Where the data is.
    #[command(flatten)]
    pub data: DataFlags,
}

const QUERY_EXAMPLES: &str = "\
Rows go to standard output, one JSON value a line; everything else goes to standard error. Without
--endpoint the data directory is opened by this command, and the server must be stopped.

Examples:
  cosmolabe query blog/posts \"SELECT c.id, c.title FROM c WHERE c.likes > 10\"
  cosmolabe query blog/posts \"SELECT * FROM c WHERE c.tag = @tag\" --param 'tag=\"rust\"' --explain
  cosmolabe query blog/posts \"SELECT VALUE COUNT(1) FROM c\" --partition-key '\"ada\"'
  cosmolabe query blog/posts \"SELECT * FROM c\" --endpoint http://127.0.0.1:8081 > posts.ndjson";

/// Flags of `query`.
#[derive(Debug, Args)]
pub struct QueryFlags {
    /// The container
    #[arg(value_name = "DB/CONTAINER")]
    pub target: Target,
    /// The query
    #[arg(value_name = "QUERY")]
    pub text: String,
    /// Value of a parameter, as JSON; strings have quotes
    #[arg(long, value_name = "NAME=JSON")]
    pub param: Vec<Param>,
    /// Only items with this partition key, as JSON; an array is a hierarchical key
    #[arg(long, value_name = "JSON")]
    pub partition_key: Option<String>,
    /// Print also how the query is run, and all that is counted while it runs
    #[arg(long)]
    pub explain: bool,
    /// Print also what the charge is made of
    #[arg(long)]
    pub receipt: bool,
    /// Ask the server at this address instead of opening the data
    #[arg(long, env = "COSMOLABE_ENDPOINT", value_name = "URL")]
    pub endpoint: Option<String>,
    /// File with the account's key, for --endpoint [default: the well-known development key]
    #[arg(long, env = "COSMOLABE_KEY_FILE", value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Where the data is.
    #[command(flatten)]
    pub data: DataFlags,
}

const LAB_EXAMPLES: &str = "\
A workload is a TOML file, a directory with a workload.toml, or one that comes with this binary.

Examples:
  cosmolabe lab run blog --report blog.html            three models of a blog platform, with charts
  cosmolabe lab run ./shop/workload.toml --json out.json --budget budget.toml
  cosmolabe lab growth blog --scales 0.001,0.01        what ten times the data changes
  cosmolabe lab verify blog                            prove copies and counters
  cosmolabe lab follow blog --endpoint http://127.0.0.1:8081    keep copies right";

/// The commands of the laboratory.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Load the models of a workload, play its access patterns and print what they cost
    #[command(after_help = LAB_RUN_EXAMPLES)]
    Run(LabRunFlags),
    /// Measure patterns that read on more and more data, and print how times and charges grow
    #[command(after_help = LAB_GROWTH_EXAMPLES)]
    Growth(LabGrowthFlags),
    /// Prove that no copy differs from its source and no counter from its count
    #[command(after_help = LAB_VERIFY_EXAMPLES)]
    Verify(LabFlags),
    /// Keep the copies of a model right: run its pipelines on what changes at --endpoint
    #[command(after_help = LAB_FOLLOW_EXAMPLES)]
    Follow(LabFollowFlags),
}

const LAB_FOLLOW_EXAMPLES: &str = "\
Follows the change feeds of what an earlier `lab run` left at --endpoint, until it is asked to end;
then its leases are given back. Positions are kept there, in the container `lab-leases`: whoever
follows next goes on where this one was. After a crash, a process with the same --name goes on at
once, others when the leases have expired, after 30 seconds.

Examples:
  cosmolabe lab follow blog --model v3 --endpoint http://127.0.0.1:8081 --name follower-1
  cosmolabe lab follow blog --model v3 --endpoint http://127.0.0.1:8081 --until-idle";

/// Flags of `lab follow`.
#[derive(Debug, Args)]
pub struct LabFollowFlags {
    /// What and where.
    #[command(flatten)]
    pub lab: LabFlags,
    /// Who holds the leases [default: a name of this process only]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// End when nothing is left to copy
    #[arg(long)]
    pub until_idle: bool,
}

const LAB_RUN_EXAMPLES: &str = "\
Without --endpoint a server is started for the run, on embedded storage in a temporary directory.
Two runs with the same seed give the same charges. Exits with 1 if a copy differs from its source,
or a budget is exceeded.

Examples:
  cosmolabe lab run blog
  cosmolabe lab run blog --model v1,v3 --scale 0.002 --report blog.html
  cosmolabe lab run blog --in-memory                   the same charges, other times
  cosmolabe lab run shop.toml --endpoint http://127.0.0.1:8081 --json out.json --budget budget.toml";

const LAB_GROWTH_EXAMPLES: &str = "\
A server is started for each scale, on embedded storage in a temporary directory, and all are
loaded. Then scales and models take turns in each pattern that only reads. The growth is that from
the first scale to the last.

Examples:
  cosmolabe lab growth blog --scales 0.001,0.01
  cosmolabe lab growth blog --scales 0.001,0.01 --scale-throughput
  cosmolabe lab growth blog --model v3 --scales 0.001,0.01 --limit 1.5 --json growth.json";

/// Flags of `lab growth`.
#[derive(Debug, Args)]
pub struct LabGrowthFlags {
    /// File, directory, or name of a workload that comes with this binary
    #[arg(value_name = "WORKLOAD")]
    pub workload: String,
    /// Shares of the full number of entities, at least two
    #[arg(long, value_name = "N", value_delimiter = ',', required = true)]
    pub scales: Vec<f64>,
    /// Only these models
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub model: Vec<String>,
    /// What the data is drawn from [default: what the workload says]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Executions of each pattern [default: what the workload says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: Option<u32>,
    /// Keep the data in memory instead of a temporary directory
    #[arg(long)]
    pub in_memory: bool,
    /// Let throughput grow with the data, and with it the number of physical partitions: the
    /// largest scale has what the workload says, the others their share of it
    #[arg(long)]
    pub scale_throughput: bool,
    /// Fail if the p50 of a pattern grows more than so many times
    #[arg(long, value_name = "N")]
    pub limit: Option<f64>,
    /// Write the numbers as JSON; `-` is standard output, instead of the table
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

const LAB_VERIFY_EXAMPLES: &str = "\
With --endpoint, what an earlier `lab run` left there is checked. Without, a server is started, the
data is loaded, every access pattern is played once, and then all copies are checked.

Examples:
  cosmolabe lab verify blog
  cosmolabe lab verify blog --model v3 --endpoint http://127.0.0.1:8081";

/// Flags of all commands of the laboratory.
#[derive(Debug, Args)]
pub struct LabFlags {
    /// File, directory, or name of a workload that comes with this binary
    #[arg(value_name = "WORKLOAD")]
    pub workload: String,
    /// Only these models
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub model: Vec<String>,
    /// Share of the full number of entities [default: what the workload says]
    #[arg(long, value_name = "N")]
    pub scale: Option<f64>,
    /// What the data is drawn from [default: what the workload says]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Use the server at this address instead of starting one
    #[arg(long, env = "COSMOLABE_ENDPOINT", value_name = "URL")]
    pub endpoint: Option<String>,
    /// File with the account's key, for --endpoint [default: the well-known development key]
    #[arg(long, env = "COSMOLABE_KEY_FILE", value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}

/// Flags of `lab run`.
#[derive(Debug, Args)]
pub struct LabRunFlags {
    /// What and where.
    #[command(flatten)]
    pub lab: LabFlags,
    /// Executions of each pattern [default: what the workload says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: Option<u32>,
    /// Keep the data of the run in memory instead of a temporary directory
    #[arg(long, conflicts_with = "endpoint")]
    pub in_memory: bool,
    /// Delete databases of an earlier run at --endpoint
    #[arg(long, requires = "endpoint")]
    pub replace: bool,
    /// Write a report with charts, one HTML file
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Write the numbers as JSON; `-` is standard output, instead of the table
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Fail if a pattern costs more RU than this TOML file allows
    #[arg(long, value_name = "FILE")]
    pub budget: Option<PathBuf>,
    /// Write the budget that this run just meets, with the lines of its receipts
    #[arg(long, value_name = "FILE")]
    pub write_budget: Option<PathBuf>,
}

const BACKUP_EXAMPLES: &str = "\
If a server uses the data directory, it makes the backup itself, of one moment, while it goes on.

Examples:
  cosmolabe backup --out /backups/monday
  cosmolabe backup --data-dir /var/lib/cosmolabe --out /backups/monday";

/// Flags of `backup`.
#[derive(Debug, Args)]
pub struct BackupFlags {
    /// Directory to make; it must not exist
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Where the data is.
    #[command(flatten)]
    pub data: DataFlags,
}

const RESTORE_EXAMPLES: &str = "\
Examples:
  cosmolabe restore --from /backups/monday --data-dir /var/lib/cosmolabe
  cosmolabe restore --from /backups/monday --data-dir ./copy && cosmolabe verify --data-dir ./copy";

/// Flags of `restore`.
#[derive(Debug, Args)]
pub struct RestoreFlags {
    /// The backup
    #[arg(long, value_name = "DIR")]
    pub from: PathBuf,
    /// Where the data goes; must be absent or empty.
    #[command(flatten)]
    pub data: DataFlags,
}

const VERIFY_EXAMPLES: &str = "\
Reads everything. Exits with 1 and one line per finding if something is wrong.

Examples:
  cosmolabe verify
  cosmolabe verify --data-dir /var/lib/cosmolabe";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  cosmolabe completions bash > ~/.local/share/bash-completion/completions/cosmolabe
  cosmolabe completions fish > ~/.config/fish/completions/cosmolabe.fish";

/// How TLS gets its certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum TlsMode {
    /// Made at start; its PEM text is written into the data directory for clients to trust.
    SelfSigned,
}

/// When a write is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum DurabilityMode {
    /// When it would survive a power loss.
    Sync,
    /// When it is applied; a crash may lose the last second.
    Relaxed,
}

/// Price lists of request units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
pub enum RuProfile {
    /// The published prices of 2019.
    #[value(name = "2019")]
    #[serde(rename = "2019")]
    Of2019,
    /// Prices of an engine that stops early and counts from the index.
    #[serde(rename = "modern")]
    Modern,
}

/// `DB/CONTAINER`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The database.
    pub database: String,
    /// The container.
    pub container: String,
}

impl FromStr for Target {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Target, &'static str> {
        match text.split_once('/') {
            Some((database, container))
                if !database.is_empty() && !container.is_empty() && !container.contains('/') =>
            {
                Ok(Target { database: database.into(), container: container.into() })
            }
            Some(_) | None => Err("write it as DB/CONTAINER"),
        }
    }
}

impl Display for Target {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.database, self.container)
    }
}

/// `NAME=JSON`.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// The name, with its `@`.
    pub name: String,
    /// The value.
    pub value: serde_json::Value,
}

impl FromStr for Param {
    type Err = String;

    fn from_str(text: &str) -> Result<Param, String> {
        let (name, json) = text.split_once('=').ok_or("write it as NAME=JSON")?;
        let name = format!("@{}", name.strip_prefix('@').unwrap_or(name));
        let value = serde_json::from_str(json)
            .map_err(|_| format!("{json:?} is not JSON; a string is written \"like this\""))?;
        Ok(Param { name, value })
    }
}

/// A number of bytes, written like `256MiB`, `1GB` or `65536`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Size(pub u64);

const UNITS: [(&str, u64); 8] = [
    ("", 1),
    ("B", 1),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let unit = unit.trim_start();
        let factor = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
        let bytes = number.parse::<u64>().ok().zip(factor);
        bytes
            .and_then(|(number, (_, factor))| number.checked_mul(*factor))
            .map(Size)
            .ok_or_else(|| format!("{text:?} is no size; write it like 256MiB, 1GiB or 65536"))
    }
}

impl TryFrom<String> for Size {
    type Error = String;

    fn try_from(text: String) -> Result<Size, String> {
        text.parse()
    }
}

impl Cli {
    /// Reads the arguments of the process; help, version and mistakes end it here.
    pub fn read() -> Cli {
        Cli::try_read(std::env::args_os().collect()).unwrap_or_else(|error| error.exit())
    }

    fn try_read(arguments: Vec<OsString>) -> clap::error::Result<Cli> {
        let matches = Cli::command().try_get_matches_from(with_default_command(arguments))?;
        let mut cli = Cli::from_arg_matches(&matches)?;
        if let (Command::Serve(flags), Some((_, matches))) =
            (&mut cli.command, matches.subcommand())
        {
            let source = |id| matches.value_source(id);
            flags.keep_stronger_place(source("in_memory"), source("data_dir"));
        }
        Ok(cli)
    }

    /// Prints the completions for a shell.
    pub fn complete(shell: clap_complete::Shell) {
        clap_complete::generate(shell, &mut Cli::command(), "cosmolabe", &mut std::io::stdout());
    }
}

/// Flags without a command are flags of `serve`.
fn with_default_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let first = arguments.get(1).map(|first| first.to_string_lossy().into_owned());
    let is_default = match first.as_deref() {
        None => true,
        Some("-h" | "--help" | "-V" | "--version") => false,
        Some(first) => first.starts_with('-'),
    };
    if is_default {
        arguments.insert(1.min(arguments.len()), "serve".into());
    }
    arguments
}

impl ServeFlags {
    /// Fills in from the configuration file what was not given otherwise.
    pub fn with_file(self) -> Result<ServeFlags> {
        let Some(path) = &self.config else { return Ok(self) };
        let file = ServeFlags::read_file(path)?;
        Ok(self.or(file))
    }

    fn read_file(path: &std::path::Path) -> Result<ServeFlags> {
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("{} cannot be read", path.display()))?;
        toml::from_str(&text).map_err(|error| {
            Usage(format!("{} is not understood: {}", path.display(), error.to_string().trim_end()))
                .into()
        })
    }

    /// `--in-memory` and `--data-dir` say the same thing, where the data is: the one from the
    /// command line wins over the other from the environment.
    fn keep_stronger_place(
        &mut self,
        in_memory: Option<ValueSource>,
        data_dir: Option<ValueSource>,
    ) {
        match (in_memory, data_dir) {
            (Some(ValueSource::CommandLine), Some(ValueSource::EnvVariable))
                if self.in_memory == Some(true) =>
            {
                self.data_dir = None;
            }
            (Some(ValueSource::EnvVariable), Some(ValueSource::CommandLine)) => {
                self.in_memory = None;
            }
            _ => {}
        }
    }

    fn or(self, mut file: ServeFlags) -> ServeFlags {
        if self.in_memory == Some(true) {
            file.data_dir = None;
        }
        if self.data_dir.is_some() {
            file.in_memory = None;
        }
        ServeFlags {
            config: self.config,
            listen: self.listen.or(file.listen),
            data_dir: self.data_dir.or(file.data_dir),
            in_memory: self.in_memory.or(file.in_memory),
            store: self.store.or(file.store),
            key_file: self.key_file.or(file.key_file),
            insecure_development_key: self
                .insecure_development_key
                .or(file.insecure_development_key),
            tls: self.tls.or(file.tls),
            tls_cert: self.tls_cert.or(file.tls_cert),
            tls_key: self.tls_key.or(file.tls_key),
            trust_forwarded: self.trust_forwarded.or(file.trust_forwarded),
            durability: self.durability.or(file.durability),
            cache_size: self.cache_size.or(file.cache_size),
            enforce_throughput: self.enforce_throughput.or(file.enforce_throughput),
            ru_profile: self.ru_profile.or(file.ru_profile),
            load: self.load.or(file.load),
            log: self.log.or(file.log),
        }
    }
}

impl DataFlags {
    /// Fills in from the configuration file what was not given otherwise.
    pub fn with_file(self) -> Result<DataFlags> {
        let Some(path) = &self.config else { return Ok(self) };
        let file = ServeFlags::read_file(path)?;
        let data_dir = self.data_dir.or(file.data_dir);
        Ok(DataFlags { data_dir, log: self.log.or(file.log), config: self.config })
    }

    /// The directory, or the default one.
    pub fn directory(&self) -> PathBuf {
        self.data_dir.clone().unwrap_or_else(|| DATA_DIR.into())
    }
}

/// Where data is unless somebody says otherwise.
pub const DATA_DIR: &str = "./cosmolabe-data";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_help_page_has_examples() {
        let cli = Cli::command();
        let lab = cli.find_subcommand("lab").unwrap();
        for command in cli.get_subcommands().chain(lab.get_subcommands()).chain([&cli]) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Examples:"), "{}", command.get_name());
        }
    }

    #[test]
    fn serve_is_the_default() {
        let check = |given: &[&str], expect: &[&str]| {
            let given = ["cosmolabe"].iter().chain(given).map(Into::into).collect();
            let expect: Vec<OsString> =
                ["cosmolabe"].iter().chain(expect).map(Into::into).collect();
            assert_eq!(with_default_command(given), expect);
        };
        check(&[], &["serve"]);
        check(&["--in-memory"], &["serve", "--in-memory"]);
        check(&["verify"], &["verify"]);
        check(&["--help"], &["--help"]);
        check(&["-V"], &["-V"]);
    }

    #[test]
    fn sizes() {
        let check = |text: &str, expect: Option<u64>| {
            assert_eq!(text.parse::<Size>().ok().map(|size| size.0), expect, "{text}");
        };
        check("0", Some(0));
        check("65536", Some(65_536));
        check("256MiB", Some(256 << 20));
        check("256 mib", Some(256 << 20));
        check("1GB", Some(1_000_000_000));
        check("17179869183GiB", Some(17_179_869_183 << 30));
        check("17179869184GiB", None);
        for text in ["", "MiB", "-1", "1.5GiB", "1 parsec"] {
            check(text, None);
        }
    }

    #[test]
    fn targets() {
        let parse = |text: &str| text.parse::<Target>().ok().map(|target| target.to_string());
        assert_eq!(parse("blog/posts").as_deref(), Some("blog/posts"));
        for text in ["blog", "blog/", "/posts", "a/b/c", ""] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn parameters() {
        let parse = |text: &str| text.parse::<Param>().ok().map(|p| (p.name, p.value.to_string()));
        let check = |text: &str, name: &str, json: &str| {
            assert_eq!(parse(text), Some((name.into(), json.into())), "{text}");
        };
        check("a=1", "@a", "1");
        check("@a=\"x=y\"", "@a", "\"x=y\"");
        check("a=[1, null]", "@a", "[1,null]");
        for text in ["a", "a=", "a=Oslo", ""] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_command_line_wins_over_the_file() {
        let file = "listen = '127.0.0.1:1'\ndurability = 'relaxed'\nru-profile = '2019'\n\
                    in-memory = true\ncache-size = '1GiB'\ntls = 'self-signed'\n";
        let file: ServeFlags = toml::from_str(file).unwrap();
        let flags = ServeFlags { listen: Some("127.0.0.1:2".into()), ..ServeFlags::default() };
        let flags = flags.or(file);
        assert_eq!(flags.listen.as_deref(), Some("127.0.0.1:2"));
        assert_eq!(flags.durability, Some(DurabilityMode::Relaxed));
        assert_eq!(flags.cache_size, Some(Size(1 << 30)));
        let flags = ServeFlags { data_dir: Some("here".into()), ..ServeFlags::default() };
        let file = || toml::from_str("in-memory = true\ndata-dir = 'there'").unwrap();
        assert_eq!(flags.or(file()).in_memory, None);
        let flags = ServeFlags { in_memory: Some(true), ..ServeFlags::default() };
        assert_eq!(flags.or(file()).data_dir, None);
        assert!(toml::from_str::<ServeFlags>("lisen = '127.0.0.1:1'").is_err());
        assert!(toml::from_str::<ServeFlags>("config = 'other.toml'").is_err());
    }
}
