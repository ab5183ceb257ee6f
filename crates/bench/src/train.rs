//! `bench train`: requests of every kind, to a server that counts which of its code runs.
//!
//! `cargo xtask release` builds such a server, has it trained, and builds the release with what it
//! counted: code that runs together then lies together, and branches go the usual way. Each kind
//! of request gets the same time, whatever one costs, so that none is taken for rare. The server
//! is asked under both price lists, which run queries differently.
//!
//! To be of use for others than its own requests, training has data and texts that no benchmark
//! has.

mod mix;
mod shop;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use base::Random;
use clap::Args;
use client::{Key, date_now};

use self::mix::Mix;
use crate::load::{Fill, Load};
use crate::process::{Cosmolabe, Server, create_database, fill};

const CONNECTIONS: usize = 4;

/// Flags of `train`.
#[derive(Debug, Args)]
pub struct Flags {
    /// The server that counts
    #[arg(long, value_name = "FILE")]
    binary: PathBuf,
    /// How long each kind of request is sent, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 700)]
    each: u64,
    /// How many customers the shop has
    #[arg(long, value_name = "COUNT", default_value_t = 2000)]
    customers: u64,
}

/// Trains a server.
pub async fn run(flags: Flags) -> Result<()> {
    let work = tempfile::Builder::new().prefix("train-").tempdir()?;
    let cosmolabe = Cosmolabe { binary: flags.binary, directory: work.path().to_owned() };
    let mix = Arc::new(Mix::new(flags.customers));
    let server = cosmolabe.serve_with("shop", "relaxed").await?;
    let client = server.client()?;
    create_database(&client).await?;
    mix.create(&client).await?;
    for name in ["orders", "shop"] {
        fill(&server, name, mix.shop).await?;
    }
    server.stop()?;
    // What is counted is written when a server ends.
    for profile in ["2019", "modern"] {
        println!("price list {profile}");
        let options = ["--durability", "relaxed", "--ru-profile", profile];
        let server = cosmolabe.serve_as("shop", &options).await?;
        train(&server, &mix, Duration::from_millis(flags.each)).await?;
        server.stop()?;
    }
    Ok(())
}

async fn train(server: &Server, mix: &Arc<Mix>, each: Duration) -> Result<()> {
    for kind in 0..Mix::kinds() {
        let (name, status, _) = mix.request(kind, &Random::from_seed(0));
        let (mix, key, date) = (mix.clone(), Key::development(), date_now());
        let fill: Fill = Arc::new(move |random: &Random, out: &mut Vec<u8>| {
            let (_, _, request) = mix.request(kind, random);
            out.extend_from_slice(&request.to_bytes(&key, "localhost", &date));
        });
        let (address, connections) = (server.address, CONNECTIONS);
        let load = Load { address, connections, time: each, status, fill };
        let outcome = load.run().await.context(name)?;
        println!("  {name}: {:.0}/s", outcome.rate());
    }
    Ok(())
}
