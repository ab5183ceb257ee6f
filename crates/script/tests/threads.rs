//! Goal: whoever ends a piece of work, its host is freed, its answer is given once, and the pool goes on.
//! Method: work that says where it is through channels, so that no test waits for a time to pass unless
//! the time is what it tests.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails there.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use common::{Desk, Shelf, call, eventually, execute, pool, procedure, short_limits, wait};
use item::Value;
use script::{
    Failure, Host, HostError, Limits, Operation, Pool, PoolOptions, Reply, Revoked, Running,
    Session, Stop,
};

const LOOP: &str = "function () { __.readDocuments(__.getSelfLink(), function () { for (;;); }); }";

/// Searches for a second or more in one call of a built-in function.
const SEARCH: &str = "function () { 'a'.repeat(4e6).indexOf('a'.repeat(150) + 'b'); }";

const PATIENCE: Duration = Duration::from_secs(60);

/// A host that says when it is first used, and when it goes.
struct Telling {
    desk: Desk,
    used: mpsc::Sender<()>,
}

impl Host for Telling {
    fn accepts(&mut self) -> bool {
        true
    }

    fn run(&mut self, operation: Operation) -> Result<Reply, HostError> {
        let reply = self.desk.run(operation);
        self.used.send(()).unwrap();
        reply
    }

    fn evaluate(&mut self, _: &str, _: Vec<(String, Value)>) -> Result<Value, HostError> {
        Err(HostError::Fatal)
    }
}

fn telling(shelf: &Shelf) -> (Telling, Receiver<()>) {
    let (used, receiver) = mpsc::channel();
    (Telling { desk: shelf.open(), used }, receiver)
}

type Answer = Result<Result<(), Failure>, Stop>;

/// Submits a script; the answer comes through the channel.
fn submit<H: Host>(pool: &Pool, host: H, source: &str) -> (Running, Receiver<Answer>) {
    let (sender, receiver) = mpsc::channel();
    let call = call(source, procedure(&[]));
    let work = move |session: &mut Session<'_, H>| session.execute(&call).map(drop);
    let running = pool.submit(host, None, work, move |answer| drop(sender.send(answer)));
    (running, receiver)
}

#[test]
fn dropping_the_handle_frees_the_host_and_ends_the_script() {
    let pool = pool(Limits { run: Duration::from_secs(3600), ..Limits::default() });
    let shelf = Shelf::default();
    let (host, used) = telling(&shelf);
    let (running, answer) = submit(&pool, host, LOOP);
    used.recv_timeout(PATIENCE).unwrap();
    drop(running);
    assert_eq!(answer.recv_timeout(PATIENCE).unwrap(), Ok(Err(Failure::Revoked)));
    assert_eq!(shelf.hosts_alive(), 1);
    assert!(execute(&pool, &shelf, call("function () {}", procedure(&[]))).is_ok());
}

#[test]
fn work_that_is_cancelled_before_it_begins_never_does() {
    let pool = Pool::new(PoolOptions { threads: 1, limits: Limits::default() });
    let shelf = Shelf::default();
    let (host, used) = telling(&shelf);
    let (first, first_answer) = submit(&pool, host, LOOP);
    used.recv_timeout(PATIENCE).unwrap();
    let (sender, answer) = mpsc::channel();
    let work = |_: &mut Session<'_, Desk>| panic!("it began");
    let second = pool.submit(shelf.open(), None, work, move |answer: Result<(), _>| {
        drop(sender.send(answer));
    });
    let alive = shelf.hosts_alive();
    drop(second);
    assert_eq!(shelf.hosts_alive(), alive - 2, "the desk and its shelf are gone at once");
    drop(first);
    assert_eq!(first_answer.recv_timeout(PATIENCE).unwrap(), Ok(Err(Failure::Revoked)));
    assert_eq!(answer.recv_timeout(PATIENCE).unwrap(), Err(Stop::Unavailable));
}

#[test]
fn a_detached_script_goes_on() {
    let pool = pool(Limits::default());
    let shelf = Shelf::default();
    let (running, answer) =
        submit(&pool, shelf.open(), "function () { for (var i = 0; i < 1e5; i++); }");
    running.detach();
    assert_eq!(answer.recv_timeout(PATIENCE).unwrap(), Ok(Ok(())));
}

#[test]
fn a_script_ends_at_its_time() {
    let pool = pool(short_limits());
    let shelf = Shelf::default();
    let started = Instant::now();
    let source = "function () { __.createDocument(__.getSelfLink(), {}); for (;;); }";
    let result = execute(&pool, &shelf, call(source, procedure(&[])));
    let took = started.elapsed();
    assert!(matches!(result, Err(Failure::Timeout { fuel }) if fuel >= 1_000_000), "{result:?}");
    assert!(took >= Duration::from_millis(300) && took < Duration::from_millis(1300), "{took:?}");
    assert_eq!(shelf.len(), 0);
}

#[test]
fn operations_are_not_accepted_after_a_time() {
    let pool = pool(short_limits());
    let shelf = Shelf::default();
    let source = "function () { \
        var first = __.createDocument(__.getSelfLink(), { id: 'a' }), until = Date.now() + 250; \
        while (Date.now() < until); \
        __.response.setBody([first, __.createDocument(__.getSelfLink(), { id: 'b' })]); }";
    let outcome = execute(&pool, &shelf, call(source, procedure(&[]))).unwrap();
    assert_eq!(outcome.body.unwrap(), "[true,false]");
    assert_eq!(shelf.texts(), [r#"{"id":"a"}"#]);
}

#[test]
fn fuel_is_the_same_every_time() {
    let pool = pool(Limits::default());
    let shelf = Shelf::default();
    let fuel = |n: f64| {
        let source = "function (n) { for (var i = 0; i < n; i++); }";
        execute(&pool, &shelf, call(source, procedure(&[Value::Number(n)]))).unwrap().fuel
    };
    assert_eq!(fuel(10.0), fuel(10.0));
    assert_eq!(fuel(1e6), fuel(1e6));
    // Two jumps in each round.
    assert!((1_990_000..=2_010_000).contains(&fuel(1e6)), "{}", fuel(1e6));
    assert!(fuel(10.0) <= 10_000);
}

/// A thread has one runtime for all its scripts; the numbers must not begin again with each.
#[test]
fn random_numbers_go_on() {
    let pool = Pool::new(PoolOptions { threads: 1, limits: short_limits() });
    let source = "function () { __.response.setBody([Math.random(), Math.random()]); }";
    let mut bodies: Vec<_> = (0..20)
        .map(|_| execute(&pool, &Shelf::default(), call(source, procedure(&[]))).unwrap().body)
        .collect();
    bodies.sort();
    bodies.dedup();
    assert_eq!(bodies.len(), 20);
}

/// Two scripts in one session: the second finds the runtime as new, too.
#[test]
fn scripts_of_one_session_do_not_meet() {
    let pool = Pool::new(PoolOptions { threads: 1, limits: short_limits() });
    let source = "function () { globalThis.n = (globalThis.n || 0) + 1; console.log('x'); __.response.setBody(n); }";
    let script = call(source, procedure(&[]));
    let outcomes = wait(&pool, Shelf::default().open(), move |session| {
        (0..3).map(|_| session.execute(&script).unwrap()).collect::<Vec<_>>()
    });
    for outcome in outcomes.unwrap() {
        assert_eq!((outcome.body.unwrap(), outcome.log.as_str()), ("1".into(), "x"));
    }
}

#[test]
fn the_watchdog_frees_the_host_of_a_script_that_does_not_look_at_the_clock() {
    let pool = pool(short_limits());
    let shelf = Shelf::default();
    let started = Instant::now();
    let (running, answer) = submit(&pool, shelf.open(), SEARCH);
    assert_eq!(answer.recv_timeout(PATIENCE).unwrap(), Err(Stop::Overdue));
    let took = started.elapsed();
    assert!(took >= Duration::from_millis(550) && took < Duration::from_millis(1500), "{took:?}");
    assert_eq!(shelf.hosts_alive(), 1);
    drop(running);
    assert!(execute(&pool, &shelf, call("function () {}", procedure(&[]))).is_ok());
}

#[test]
fn with_two_threads_lost_work_is_refused_until_one_comes_back() {
    let pool = pool(short_limits());
    let shelf = Shelf::default();
    let first = submit(&pool, shelf.open(), SEARCH);
    let second = submit(&pool, shelf.open(), SEARCH);
    assert_eq!(first.1.recv_timeout(PATIENCE).unwrap(), Err(Stop::Overdue));
    assert_eq!(second.1.recv_timeout(PATIENCE).unwrap(), Err(Stop::Overdue));
    let ordinary = || {
        let call = call("function () {}", procedure(&[]));
        wait(&pool, shelf.open(), move |session| session.execute(&call).map(drop))
    };
    assert_eq!(ordinary(), Err(Stop::Unavailable));
    assert_eq!(shelf.hosts_alive(), 1);
    eventually("the return of a thread", || ordinary() == Ok(Ok(())));
    // Nothing of the lost scripts arrives later.
    assert!(first.1.try_recv().is_err());
}

#[test]
fn work_does_not_wait_longer_than_it_wants() {
    let pool = Pool::new(PoolOptions { threads: 1, limits: Limits::default() });
    let shelf = Shelf::default();
    let (host, used) = telling(&shelf);
    let (_running, _answer) = submit(&pool, host, LOOP);
    used.recv_timeout(PATIENCE).unwrap();
    let (sender, answer) = mpsc::channel();
    let started = Instant::now();
    let until = started + Duration::from_millis(50);
    let work = |_: &mut Session<'_, ()>| ();
    let waiting = pool.submit((), Some(until), work, move |answer| drop(sender.send(answer)));
    assert_eq!(answer.recv_timeout(PATIENCE).unwrap(), Err(Stop::Unavailable));
    assert!(Instant::now() >= until);
    drop(waiting);
}

#[test]
fn nobody_interferes_once_the_host_is_taken() {
    let pool = pool(short_limits());
    let shelf = Shelf::default();
    let (taken, is_taken) = mpsc::channel();
    let (go, may_go) = mpsc::channel();
    let (sender, answer) = mpsc::channel();
    let call =
        call("function () { __.createDocument(__.getSelfLink(), { id: 'a' }); }", procedure(&[]));
    let work = move |session: &mut Session<'_, Desk>| {
        session.execute(&call).unwrap();
        let host = session.take_host().unwrap();
        assert!(matches!(session.take_host(), Err(Revoked)));
        assert!(matches!(session.with_host(|_| ()), Err(Revoked)));
        taken.send(()).unwrap();
        may_go.recv_timeout(PATIENCE).unwrap();
        host.commit();
    };
    let running = pool.submit(shelf.open(), None, work, move |answer| drop(sender.send(answer)));
    is_taken.recv_timeout(PATIENCE).unwrap();
    drop(running);
    // Longer than the watchdog waits for a script.
    assert!(answer.recv_timeout(Duration::from_millis(800)).is_err());
    go.send(()).unwrap();
    assert_eq!(answer.recv_timeout(PATIENCE).unwrap(), Ok(()));
    assert_eq!(shelf.texts(), [r#"{"id":"a"}"#]);
}

/// The host is in use while it is revoked: it goes when the use ends.
#[test]
fn a_host_in_use_goes_when_the_use_ends() {
    let pool = pool(Limits::default());
    let shelf = Shelf::default();
    let (inside, is_inside) = mpsc::channel();
    let (go, may_go) = mpsc::channel();
    let (sender, answer) = mpsc::channel();
    let seen = shelf.clone();
    let work = move |session: &mut Session<'_, Desk>| {
        let used = session.with_host(|_| {
            inside.send(()).unwrap();
            may_go.recv_timeout(PATIENCE).unwrap();
        });
        (used, seen.hosts_alive(), session.take_host().is_err())
    };
    let running = pool.submit(shelf.open(), None, work, move |answer| drop(sender.send(answer)));
    is_inside.recv_timeout(PATIENCE).unwrap();
    drop(running);
    go.send(()).unwrap();
    let (used, alive, is_gone) = answer.recv_timeout(PATIENCE).unwrap().unwrap();
    assert_eq!((used, is_gone), (Err(Revoked), true));
    assert_eq!(alive, 2, "only the two shelves of this test");
}

#[test]
fn panics_are_answered() {
    let pool = pool(Limits::default());
    let shelf = Shelf::default();
    let panicked: Result<(), _> = wait(&pool, (), |_| panic!("the work panicked"));
    assert_eq!(panicked, Err(Stop::Fault("the work panicked".to_owned())));
    let source = "function () { __.queryDocuments(__.getSelfLink(), 'panic', function () {}); }";
    let call_ = call(source, procedure(&[]));
    let panicked = wait(&pool, shelf.open(), move |session| session.execute(&call_).map(drop));
    assert_eq!(panicked, Err(Stop::Fault("the host panicked".to_owned())));
    assert_eq!(shelf.hosts_alive(), 1);
    let (sender, answered) = mpsc::channel();
    pool.submit(
        (),
        None,
        |_| (),
        move |_| {
            sender.send(()).unwrap();
            panic!("the answer panicked");
        },
    )
    .detach();
    answered.recv_timeout(PATIENCE).unwrap();
    for _ in 0..4 {
        assert!(execute(&pool, &shelf, call("function () {}", procedure(&[]))).is_ok());
    }
}

#[test]
fn dropping_the_pool_answers_everybody() {
    let pool = Pool::new(PoolOptions { threads: 1, limits: short_limits() });
    let shelf = Shelf::default();
    let (host, used) = telling(&shelf);
    let (first, first_answer) = submit(&pool, host, LOOP);
    used.recv_timeout(PATIENCE).unwrap();
    let (second, second_answer) = submit(&pool, shelf.open(), LOOP);
    drop(pool);
    assert_eq!(second_answer.recv_timeout(PATIENCE).unwrap(), Err(Stop::Unavailable));
    let first_result = first_answer.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(first_result, Ok(Err(Failure::Timeout { .. }))), "{first_result:?}");
    drop((first, second));
    eventually("the end of the hosts", || shelf.hosts_alive() == 1);
}

/// Many callers, some of which give up at once: each gets one answer.
#[test]
fn every_answer_is_given_once() {
    let pool = Arc::new(Pool::new(PoolOptions { threads: 3, limits: Limits::default() }));
    let shelf = Shelf::default();
    let answers = Arc::new(AtomicUsize::new(0));
    let sources = [
        "function () {}",
        "function () { throw 1; }",
        "function () { for (var i = 0; i < 1e4; i++); }",
    ];
    let calls: Vec<_> = sources.iter().map(|source| call(source, procedure(&[]))).collect();
    std::thread::scope(|scope| {
        for caller in 0..4 {
            let (pool, shelf, answers, calls) = (&pool, &shelf, &answers, &calls);
            scope.spawn(move || {
                for n in 0..100 {
                    let (counted, call) = (answers.clone(), calls[n % 3].clone());
                    let work =
                        move |session: &mut Session<'_, Desk>| session.execute(&call).is_ok();
                    let running = pool.submit(shelf.open(), None, work, move |_| {
                        counted.fetch_add(1, Ordering::SeqCst);
                    });
                    if (n + caller) % 4 == 0 {
                        drop(running);
                    } else {
                        running.detach();
                    }
                }
            });
        }
    });
    eventually("the last answer", || answers.load(Ordering::SeqCst) == 400);
    drop(pool);
    eventually("the end of the hosts", || shelf.hosts_alive() == 1);
    assert_eq!(answers.load(Ordering::SeqCst), 400);
}
