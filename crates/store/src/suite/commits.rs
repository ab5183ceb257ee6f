//! Order, atomicity, preconditions, merges, limits and tickets.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use bytes::Bytes;

use super::{Harness, b, content, put, text, writes};
use crate::{
    Commit, Error, Merge, Outcome, Precondition, Result, Space, Store, Ticket, Token, Write,
};

/// S1: one commit, all spaces.
pub fn a_commit_is_applied_whole_over_all_spaces(harness: &Harness) {
    let f = harness.fresh();
    let all = Space::ALL.map(|space| put(space, "key", "value")).to_vec();
    f.store.commit(writes(all)).wait().unwrap();
    assert_eq!(content(&f.store.view()).len(), Space::ALL.len());
    let all = Space::ALL.map(|space| Write::Delete(space, b("key"))).to_vec();
    f.store.commit(writes(all)).wait().unwrap();
    assert_eq!(content(&f.store.view()), []);
}

/// S1: neither writes, nor merges, nor positions, nor the hook.
pub fn a_refused_commit_leaves_no_trace(harness: &Harness) {
    let f = harness.fresh();
    let refused = Commit {
        preconditions: vec![Precondition::Equals(Space::Meta, b("absent"), b("x"))],
        writes: vec![put(Space::Item, "refused", "1")],
        merges: vec![Merge::Add(Space::Meta, b("sum"), [1, 1])],
        marks: vec![crate::Mark { log: crate::LogId(1), position: 9 }],
        before_publish: Some(Box::new(|_| panic!("a refused commit is not published"))),
        ..Commit::default()
    };
    let before = f.store.commit(writes(vec![put(Space::Item, "before", "1")]));
    let refused = f.store.commit(refused);
    let after = f.store.commit(writes(vec![put(Space::Item, "after", "1")]));
    before.wait().unwrap();
    assert!(matches!(refused.wait(), Err(Error::PreconditionFailed { index: 0 })));
    after.wait().unwrap();
    let view = f.store.view();
    let keys: Vec<_> = content(&view).into_iter().map(|(_, key, _)| key).collect();
    assert_eq!(keys, ["after", "before"]);
    assert_eq!(view.position(crate::LogId(1)), 0);
}

/// S2: each of many commits that nobody waits for finds the one before it.
pub fn commits_take_effect_in_the_order_of_calls(harness: &Harness) {
    let f = harness.fresh();
    f.store.commit(writes(vec![put(Space::Item, "n", "0")])).wait().unwrap();
    let tickets: Vec<_> = (1..=300u32)
        .map(|n| {
            let last = b((n - 1).to_string());
            f.store.commit(Commit {
                preconditions: vec![Precondition::Equals(Space::Item, b("n"), last)],
                ..writes(vec![put(Space::Item, "n", &n.to_string())])
            })
        })
        .collect();
    for ticket in tickets {
        ticket.wait().unwrap();
    }
    assert_eq!(text(&f.store.view(), Space::Item, "n").unwrap(), "300");
}

/// The index counts from the start of the list.
pub fn a_precondition_names_the_first_that_does_not_hold(harness: &Harness) {
    let f = harness.fresh();
    f.store.commit(writes(vec![put(Space::Key, "a", "1")])).wait().unwrap();
    let check = |preconditions: Vec<Precondition>| -> Option<usize> {
        match f.store.commit(Commit { preconditions, ..Commit::default() }).wait() {
            Ok(()) => None,
            Err(Error::PreconditionFailed { index }) => Some(index),
            Err(error) => panic!("{error}"),
        }
    };
    let absent = |key: &str| Precondition::Absent(Space::Key, b(key));
    let equals = |key: &str, value: &str| Precondition::Equals(Space::Key, b(key), b(value));
    assert_eq!(check(vec![]), None);
    assert_eq!(check(vec![absent("b"), equals("a", "1")]), None);
    assert_eq!(check(vec![absent("a")]), Some(0));
    assert_eq!(check(vec![absent("b"), equals("a", "2"), absent("a")]), Some(1));
    assert_eq!(check(vec![equals("a", "1"), equals("b", "")]), Some(1));
    // The same key in another space is another key.
    assert_eq!(check(vec![Precondition::Absent(Space::Term, b("a"))]), None);
    // A key that cannot be stored is absent.
    let long = Bytes::from(vec![7; f.store.limits().key_bytes_max + 1]);
    assert_eq!(check(vec![Precondition::Absent(Space::Key, long)]), None);
}

/// Inside one group, too: none of these is waited for before the next is sent.
pub fn a_precondition_sees_commits_not_waited_for(harness: &Harness) {
    let f = harness.fresh();
    let absent = || vec![Precondition::Absent(Space::Key, b("k"))];
    let equals = |value: &str| vec![Precondition::Equals(Space::Key, b("k"), b(value))];
    let send = |preconditions, writes| {
        f.store.commit(Commit { preconditions, writes, ..Commit::default() })
    };
    let tickets: Vec<Ticket> = vec![
        send(absent(), vec![put(Space::Key, "k", "1")]),
        send(absent(), vec![put(Space::Key, "k", "2")]),
        send(equals("1"), vec![put(Space::Key, "k", "3")]),
        send(equals("1"), vec![put(Space::Key, "k", "4")]),
        send(equals("3"), vec![Write::Delete(Space::Key, b("k"))]),
        send(absent(), vec![put(Space::Key, "k", "5")]),
    ];
    let results: Vec<bool> = tickets.into_iter().map(|ticket| ticket.wait().is_ok()).collect();
    assert_eq!(results, [true, false, true, false, true, true]);
    assert_eq!(text(&f.store.view(), Space::Key, "k").unwrap(), "5");
}

fn merge(store: &dyn Store, merge: Merge) {
    store.commit(Commit { merges: vec![merge], ..Commit::default() }).wait().unwrap();
}

fn row(store: &dyn Store, key: &str) -> Option<Vec<i64>> {
    let value = store.view().reader().get(Space::Meta, key.as_bytes()).unwrap()?;
    let (numbers, rest) = value.as_chunks::<8>();
    assert!(rest.is_empty());
    Some(numbers.iter().map(|number| i64::from_le_bytes(*number)).collect())
}

/// Rows of sums, element by element.
pub fn sums_add_up_and_vanish_at_zero(harness: &Harness) {
    let f = harness.fresh();
    let add = |row| merge(&*f.store, Merge::Add(Space::Meta, b("sum"), row));
    add([1, 100]);
    add([2, -30]);
    assert_eq!(row(&*f.store, "sum"), Some(vec![3, 70]));
    add([-3, 0]);
    assert_eq!(row(&*f.store, "sum"), Some(vec![0, 70]));
    add([0, -70]);
    assert_eq!(row(&*f.store, "sum"), None);
    add([0, 0]);
    assert_eq!(row(&*f.store, "sum"), None);
    add([i64::MIN, 1]);
    assert_eq!(row(&*f.store, "sum"), Some(vec![i64::MIN, 1]));
}

/// A put sets where sums start, a delete lets them start anew; longer rows keep their tail.
pub fn sums_follow_puts_and_deletes(harness: &Harness) {
    let f = harness.fresh();
    let add = |row| Merge::Add(Space::Meta, b("sum"), row);
    merge(&*f.store, add([5, 5]));
    let wide: Vec<u8> = [10i64, 20, 30].into_iter().flat_map(i64::to_le_bytes).collect();
    let set = f.store.commit(writes(vec![Write::Put(Space::Meta, b("sum"), wide.into())]));
    let sum = f.store.commit(Commit { merges: vec![add([1, 2])], ..Commit::default() });
    set.wait().unwrap();
    sum.wait().unwrap();
    assert_eq!(row(&*f.store, "sum"), Some(vec![11, 22, 30]));
    let unset = f.store.commit(writes(vec![Write::Delete(Space::Meta, b("sum"))]));
    let sum =
        f.store.commit(Commit { merges: vec![add([1, 2]), add([1, 2])], ..Commit::default() });
    unset.wait().unwrap();
    sum.wait().unwrap();
    assert_eq!(row(&*f.store, "sum"), Some(vec![2, 4]));
}

/// `Max` never goes down.
pub fn the_larger_number_stays(harness: &Harness) {
    let f = harness.fresh();
    let cases = [(0, 0), (7, 7), (3, 7), (u64::MAX, u64::MAX), (1, u64::MAX)];
    for (number, expected) in cases {
        merge(&*f.store, Merge::Max(Space::Meta, b("max"), number));
        let value = f.store.view().reader().get(Space::Meta, b"max").unwrap().unwrap();
        assert_eq!(value[..], expected.to_le_bytes());
    }
}

/// The point of merges: no lock, no lost update.
pub fn concurrent_sums_lose_nothing(harness: &Harness) {
    let f = harness.fresh();
    let add = |n: i64| Merge::Add(Space::Meta, b("sum"), [1, n]);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for n in 0..100 {
                    let merges = vec![add(n), Merge::Max(Space::Meta, b("max"), n as u64)];
                    f.store.commit(Commit { merges, ..Commit::default() }).wait().unwrap();
                }
            });
        }
    });
    assert_eq!(row(&*f.store, "sum"), Some(vec![800, 8 * 4_950]));
    assert_eq!(row(&*f.store, "max"), Some(vec![99]));
}

/// At the limit, one below and one above; and a key of no bytes.
pub fn keys_are_bounded(harness: &Harness) {
    let f = harness.fresh();
    let max = f.store.limits().key_bytes_max;
    let key = |length: usize| Bytes::from(vec![b'k'; length]);
    let set =
        |key: Bytes| f.store.commit(writes(vec![Write::Put(Space::Term, key, b("v"))])).wait();
    for length in [1, max - 1, max] {
        set(key(length)).unwrap();
        let value = f.store.view().reader().get(Space::Term, &key(length)).unwrap();
        assert_eq!(value, Some(b("v")), "key of {length} bytes");
    }
    assert!(is_too_large(set(key(max + 1)), "key", max + 1));
    assert!(set(Bytes::new()).is_err());
    let sum = Merge::Add(Space::Meta, key(max + 1), [1, 1]);
    let refused = f.store.commit(Commit { merges: vec![sum], ..Commit::default() }).wait();
    assert!(is_too_large(refused, "key", max + 1));
    let removed = writes(vec![Write::Delete(Space::Term, key(max + 1))]);
    assert!(is_too_large(f.store.commit(removed).wait(), "key", max + 1));
    let view = f.store.view();
    assert_eq!(view.reader().get(Space::Term, &key(max + 1)).unwrap(), None);
    assert_eq!(view.reader().get(Space::Term, b"").unwrap(), None);
    assert_eq!(content(&view).len(), 3);
}

/// At the limit, one below and one above.
pub fn values_and_commits_are_bounded(harness: &Harness) {
    let f = harness.fresh();
    let limits = f.store.limits();
    let value = Bytes::from(vec![1; limits.value_bytes_max + 1]);
    let set = |length: usize| {
        let write = Write::Put(Space::Item, b("k"), value.slice(..length));
        f.store.commit(writes(vec![write])).wait()
    };
    let max = limits.value_bytes_max;
    for length in [0, max - 1, max] {
        set(length).unwrap();
        let found = f.store.view().reader().get(Space::Item, b"k").unwrap().unwrap();
        assert_eq!(found.len(), length);
    }
    assert!(is_too_large(set(max + 1), "value", max + 1));

    // Deletes of absent keys fill a commit without filling the disk.
    let max = limits.commit_bytes_max;
    let filled = |bytes: usize| {
        let key = Bytes::from(vec![b'x'; limits.key_bytes_max]);
        let whole = bytes / key.len();
        let mut all: Vec<_> = (0..whole).map(|_| Write::Delete(Space::Log, key.clone())).collect();
        all.push(Write::Delete(Space::Log, key.slice(..bytes - whole * key.len())));
        f.store.commit(writes(all)).wait()
    };
    for bytes in [max - 1, max] {
        filled(bytes).unwrap();
    }
    assert!(is_too_large(filled(max + 1), "commit", max + 1));
}

fn is_too_large(result: Result<()>, expected: &str, size: usize) -> bool {
    matches!(result, Err(Error::TooLarge { what, bytes, bytes_max })
        if what == expected && bytes == size && bytes_max == size - 1)
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Unpark>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Awaited tickets resolve like waited ones.
pub fn a_ticket_can_be_awaited(harness: &Harness) {
    let f = harness.fresh();
    for n in 0..20 {
        let ticket = f.store.commit(writes(vec![put(Space::Item, "k", &n.to_string())]));
        block_on(ticket).unwrap();
        assert_eq!(text(&f.store.view(), Space::Item, "k").unwrap(), n.to_string());
    }
    let preconditions = vec![Precondition::Absent(Space::Item, b("k"))];
    let refused = block_on(f.store.commit(Commit { preconditions, ..Commit::default() }));
    assert!(matches!(refused, Err(Error::PreconditionFailed { index: 0 })));
}

/// Nobody listening is no reason not to commit.
pub fn a_dropped_ticket_does_not_undo(harness: &Harness) {
    let f = harness.fresh();
    drop(f.store.commit(writes(vec![put(Space::Item, "a", "1")])));
    f.store.commit(writes(vec![put(Space::Item, "b", "1")])).wait().unwrap();
    assert_eq!(text(&f.store.view(), Space::Item, "a").unwrap(), "1");
}

/// S8: the ticket that is dropped is enough.
pub fn an_awaited_commit_that_nobody_waits_for_is_begun(harness: &Harness) {
    let f = harness.fresh();
    let (sender, published) = std::sync::mpsc::channel();
    for n in 0..20 {
        let sender = sender.clone();
        let hook = move |_| sender.send(n).unwrap();
        drop(f.store.commit(Commit {
            is_awaited: true,
            before_publish: Some(Box::new(hook)),
            ..writes(vec![put(Space::Item, "n", &n.to_string())])
        }));
        assert_eq!(published.recv_timeout(Duration::from_secs(20)), Ok(n));
    }
}

/// S8: whoever waits, awaits or lets go, everybody's commits happen, once and in order.
pub fn those_who_wait_help_each_other(harness: &Harness) {
    const EACH: u32 = 60;
    let f = harness.fresh();
    let counter = |thread: usize| format!("thread {thread}");
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let store = &f.store;
            scope.spawn(move || {
                for n in 0..EACH {
                    let last = match n {
                        0 => Precondition::Absent(Space::Item, b(counter(thread))),
                        _ => {
                            Precondition::Equals(Space::Item, b(counter(thread)), b(n.to_string()))
                        }
                    };
                    let ticket = store.commit(Commit {
                        is_awaited: n % 5 != 4,
                        preconditions: vec![last],
                        merges: vec![Merge::Add(Space::Meta, b("sum"), [1, i64::from(n)])],
                        ..writes(vec![put(Space::Item, &counter(thread), &(n + 1).to_string())])
                    });
                    match (thread + n as usize) % 3 {
                        0 => ticket.wait().unwrap(),
                        1 => block_on(ticket).unwrap(),
                        _ => drop(ticket),
                    }
                }
            });
        }
    });
    f.store.commit(Commit { is_awaited: true, ..Commit::default() }).wait().unwrap();
    let view = f.store.view();
    for thread in 0..6 {
        assert_eq!(text(&view, Space::Item, &counter(thread)).unwrap(), EACH.to_string());
    }
    let sum = view.reader().get(Space::Meta, b"sum").unwrap().unwrap();
    let (commits, total) = (6 * EACH, 6 * EACH * (EACH - 1) / 2);
    let read = |at: usize| i64::from_le_bytes(sum[at..at + 8].try_into().unwrap());
    assert_eq!((read(0), read(8)), (i64::from(commits), i64::from(total)));
}

/// Committed and refused commits are told apart; unknown names count as not committed.
pub fn tokens_resolve(harness: &Harness) {
    let f = harness.fresh();
    let named = |token, preconditions| Commit {
        preconditions,
        token: Token(token),
        ..writes(vec![put(Space::Item, "k", "v")])
    };
    f.store.commit(named(1, vec![])).wait().unwrap();
    let absent = vec![Precondition::Absent(Space::Item, b("k"))];
    f.store.commit(named(2, absent)).wait().unwrap_err();
    f.store.commit(named(0, vec![])).wait().unwrap();
    let outcome = |token| f.store.resolve(Token(token)).unwrap();
    assert_eq!(outcome(1), Outcome::Committed);
    assert_eq!(outcome(2), Outcome::NotCommitted);
    assert_eq!(outcome(3), Outcome::NotCommitted);
    assert_eq!(outcome(0), Outcome::NotCommitted);
}
