//! Header values that one answer after another repeats, made once per thread.
//!
//! A container never changes its name or its resource id, and a resource id is never used twice;
//! a position and a charge are always written alike. So nothing here ever goes stale; it is only
//! forgotten.

use std::cell::RefCell;

use engine::Container;
use hyper::header::HeaderValue;
use model::{RequestCharge, Rid};

use crate::headers;
use crate::percent::HeaderSafe;

/// Containers a thread remembers. Few are busy at a time, and making labels is cheap.
const REMEMBERED: usize = 16;

thread_local! {
    static RECENT: RefCell<Vec<(Rid, Labels)>> = const { RefCell::new(Vec::new()) };
    static POSITION: RefCell<Option<Position>> = const { RefCell::new(None) };
    static CHARGE: RefCell<Option<(RequestCharge, HeaderValue)>> = const { RefCell::new(None) };
}

/// The header values of a container.
#[derive(Clone, Debug)]
pub struct Labels {
    /// The name path.
    pub path: HeaderValue,
    /// The resource id.
    pub rid: HeaderValue,
}

impl Labels {
    /// The labels of a container; clones share their bytes.
    pub fn of(container: &Container) -> Labels {
        let rid = container.rid();
        RECENT.with_borrow_mut(|recent| {
            if let Some((_, labels)) = recent.iter().find(|(known, _)| *known == rid) {
                return labels.clone();
            }
            recent.truncate(REMEMBERED - 1);
            let labels = Labels::make(container, rid);
            recent.insert(0, (rid, labels.clone()));
            labels
        })
    }

    fn make(container: &Container, rid: Rid) -> Labels {
        let path = headers::value(format_args!(
            "dbs/{}/colls/{}",
            HeaderSafe(container.database_name()),
            HeaderSafe(container.name())
        ));
        Labels { path, rid: headers::value(rid) }
    }
}

/// The header values of a position in a physical partition.
#[derive(Clone, Debug)]
pub struct Position {
    of: (u32, u64),
    /// The session token.
    pub token: HeaderValue,
    /// The id of the partition.
    pub partition: HeaderValue,
    /// The position.
    pub lsn: HeaderValue,
}

impl Position {
    /// The labels of a position. Reads find it where the last one did.
    pub fn of(partition: u32, lsn: u64) -> Position {
        POSITION.with_borrow_mut(|last| match last {
            Some(position) if position.of == (partition, lsn) => position.clone(),
            _ => last.insert(Position::make(partition, lsn)).clone(),
        })
    }

    fn make(partition: u32, lsn: u64) -> Position {
        Position {
            of: (partition, lsn),
            token: headers::value(format_args!("{partition}:-1#{lsn}")),
            partition: headers::value(partition),
            lsn: headers::value(lsn),
        }
    }
}

/// The text of a charge. Most point reads cost the same.
pub fn charge(charge: RequestCharge) -> HeaderValue {
    CHARGE.with_borrow_mut(|last| match last {
        Some((known, value)) if *known == charge => value.clone(),
        _ => last.insert((charge, headers::value(charge))).1.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_what_was_asked_for() {
        for (partition, lsn) in [(0, 1), (0, 1), (0, 2), (1, 2), (0, 1)] {
            let position = Position::of(partition, lsn);
            assert_eq!(position.token, format!("{partition}:-1#{lsn}").as_str());
            assert_eq!(position.lsn, lsn.to_string().as_str());
        }
        for charge in [RequestCharge::ONE, RequestCharge::ONE, RequestCharge::ONE * 2] {
            assert_eq!(super::charge(charge), charge.to_string().as_str());
        }
    }
}
