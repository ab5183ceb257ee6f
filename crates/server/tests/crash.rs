//! Goal: what a client was told survives `kill -9`, and nothing survives by halves.
//!
//! Method: the real binary, many connections that create, replace, delete, batch and run procedures,
//! and a SIGKILL at a random moment, again and again over one data directory; sometimes another one
//! while it is still recovering. After every restart everything is read back and held against what
//! clients know.
//!
//! CHECKED
//! (D1) An acknowledged write is there with its content and etag, or a later one is. (Relaxed: if
//!      any write of its physical partition behind it is there.)
//! (D2) A write nobody answered is there as it was sent, or not at all.
//! (D3) The items of a batch or procedure are all there, from the same one, or none is.
//! (D4) The change feed from the beginning meets every live item once, by LSN in each partition;
//!      the read feed and point reads show the same.
//! (D5) No LSN of a partition, resource id, or etag of an item stands for two things, over all
//!      rounds.
//! (D6) What a session has seen is never ahead of the server.
//! (D7) A unique key has one item.
//! (D8) `verify` finds nothing wrong, after a kill and after an orderly stop.
//!
//! A seed repeats the choices, though not the moment of the kill: `COSMOLABE_SEED=… cargo test`.

#![cfg(unix)]
#![allow(clippy::unwrap_used)] // A test fails by panicking.

#[path = "crash/check.rs"]
mod check;
#[path = "crash/history.rs"]
mod history;
#[path = "crash/load.rs"]
mod load;
#[path = "crash/server.rs"]
mod server;

use std::time::Duration;

use base::Random;
use client::{Client, Key};

use crate::history::History;
use crate::server::{DataDir, Server};

#[test]
fn acknowledged_writes_survive() {
    Crash { durability: "sync", rounds: 20 }.run();
}

#[test]
fn relaxed_writes_are_never_torn() {
    Crash { durability: "relaxed", rounds: 8 }.run();
}

/// One data directory and what happens to it.
struct Crash {
    durability: &'static str,
    rounds: usize,
}

impl Crash {
    fn run(&self) {
        let seed = seed();
        println!("{}: COSMOLABE_SEED={seed}", self.durability);
        let random = Random::from_seed(seed);
        let data = DataDir::new(self.durability);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let mut history = History::new(self.durability == "sync");
        for round in 0..self.rounds {
            let server = Server::start(&data);
            history = runtime.block_on(self.round(&server, round, &random, history));
            server.kill();
            if random.next().is_multiple_of(4) {
                Server::spawn(&data).kill_after(millis(&random, 5, 80));
            }
        }
        data.verify();
        let server = Server::start(&data);
        runtime.block_on(check::check(&client(&server), &mut history, &random));
        server.stop();
        data.verify();
    }

    /// Checks what the last round left, and leaves work half done for the next.
    async fn round(
        &self,
        server: &Server,
        round: usize,
        random: &Random,
        mut history: History,
    ) -> History {
        let client = client(server);
        let live = match round {
            0 => load::prepare(&client).await,
            _ => check::check(&client, &mut history, random).await,
        };
        let (items, known) = (live.len(), history.commits());
        let time = millis(random, 300, 800);
        let history = load::run_until_killed(server, live, history, random, time).await;
        println!(
            "{} {round}: {items} items, {} writes acknowledged in {time:?}, {} in doubt",
            self.durability,
            history.commits() - known,
            history.doubts(),
        );
        history
    }
}

/// A client with connections of its own.
fn client(server: &Server) -> Client {
    Client::new(server.endpoint(), Key::development()).unwrap()
}

fn seed() -> u64 {
    match std::env::var("COSMOLABE_SEED") {
        Ok(text) => text.parse().expect("COSMOLABE_SEED is a number"),
        Err(_) => Random::from_entropy().next(),
    }
}

fn millis(random: &Random, from: u64, to: u64) -> Duration {
    Duration::from_millis(from + random.next() % (to - from))
}
