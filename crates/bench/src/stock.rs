//! Loaded data directories: made when they are needed, and kept if somebody wants to come back.
//!
//! ```text
//! <directory>/blog          the data directory of one set, and of one server
//! <directory>/blog.loaded   what is in it, written when all of it is
//! ```

use anyhow::Result;
use model::limits::PARTITION_THROUGHPUT_MAX;

use crate::items::container;
use crate::process::{Server, create_database, fill};
use crate::queries::{Set, Sizes};
use crate::report::Report;
use crate::setup::Setup;

/// What is loaded, and how.
#[derive(Clone, Copy, Debug)]
pub struct Stock<'a> {
    /// The server under test and where its data goes.
    pub setup: &'a Setup,
    /// How many items there are.
    pub sizes: Sizes,
    /// How many physical partitions a container has.
    pub partitions: u32,
}

impl Stock<'_> {
    /// Makes sure that a set is in the directory of this name.
    pub async fn load(&self, name: &str, set: Set, report: &mut Report) -> Result<()> {
        let directory = self.setup.cosmolabe.directory.join(name);
        let marker = directory.with_extension("loaded");
        let description = format!(
            "{}, {} partitions, {}",
            self.sizes.describe(set),
            self.partitions,
            set.definition()
        );
        if std::fs::read_to_string(&marker).is_ok_and(|found| found == description) {
            return Ok(());
        }
        for result in [std::fs::remove_file(&marker), std::fs::remove_dir_all(&directory)] {
            match result {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error.into());
                }
                Err(_) | Ok(()) => {}
            }
        }
        // Nobody waits for the disk meanwhile.
        let server = self.setup.cosmolabe.serve_with(name, "relaxed").await?;
        create_database(&server.client()?).await?;
        let rate = self.fill(&server, set).await?;
        let stopped = server.stop()?.as_secs_f64();
        std::fs::write(marker, description)?;
        report.note(format!("{name}: ours loaded at {rate:.0}/s, stopped in {stopped:.1} s"));
        Ok(())
    }

    /// Creates the container of a set in a server and fills it. Returns items per second.
    pub async fn fill(&self, server: &Server, set: Set) -> Result<f64> {
        let throughput =
            (self.partitions > 1).then_some(self.partitions * PARTITION_THROUGHPUT_MAX);
        let create = container(set.name()).create_with(&set.definition(), throughput);
        server.client()?.send(&create).await?;
        match set {
            Set::Blog => fill(server, set.name(), self.sizes.blog).await,
            Set::Activity | Set::Sorted => fill(server, set.name(), self.sizes.activity).await,
        }
    }

    /// A durable server on a loaded directory, with so much memory for caches.
    pub async fn serve(
        &self,
        name: &str,
        set: Set,
        cache: &str,
        report: &mut Report,
    ) -> Result<Server> {
        self.load(name, set, report).await?;
        let server = self.setup.cosmolabe.serve_queries(name, cache).await?;
        server.settle().await;
        Ok(server)
    }
}
