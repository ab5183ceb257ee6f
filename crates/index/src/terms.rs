//! The terms of one item, and what a write changes about them.
//!
//! All terms lie in one buffer; an item has a dozen or two of them on every write, and a buffer
//! each would cost more than the rest of the work.
//!
//! INVARIANTS
//! (T1) Terms are sorted and distinct.

/// A set of terms, sorted.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    buffer: Vec<u8>,
    spans: Vec<Span>,
    /// The leaves whose terms do not hold all of their value, each by a hash of path and value,
    /// sorted and distinct. They are paid for by their values, whatever their terms hold.
    long_leaves: Vec<u128>,
}

impl PartialEq for Terms {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Terms {}

/// Where a term lies, and whether it is paid for: scalars, and arrays and objects that are empty.
#[derive(Debug, Clone, Copy)]
struct Span {
    /// The first bytes of the term; most comparisons end here, without a look at the buffer.
    front: u64,
    start: u32,
    length: u32,
    is_leaf: bool,
}

impl Terms {
    pub(crate) fn with_capacity(terms: usize, bytes: usize) -> Self {
        let (buffer, spans) = (Vec::with_capacity(bytes), Vec::with_capacity(terms));
        Terms { buffer, spans, long_leaves: Vec::new() }
    }

    /// The terms in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        self.spans.iter().map(|span| self.bytes(span))
    }

    /// How many terms there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Whether a term is among them.
    pub fn contains(&self, term: &[u8]) -> bool {
        self.spans.binary_search_by(|span| self.bytes(span).cmp(term)).is_ok()
    }

    /// The leaves that are longer than their terms.
    pub(crate) fn long_leaves(&self) -> &[u128] {
        &self.long_leaves
    }

    /// Adds a leaf whose term, pushed as none, does not hold all of its value.
    pub(crate) fn push_long_leaf(&mut self, hash: u128) {
        self.long_leaves.push(hash);
    }

    /// The terms that are paid for.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.spans.iter().filter(|span| span.is_leaf).map(|span| self.bytes(span))
    }

    /// Appends a term that `write` puts at the end of the buffer. Call [`Terms::finish`] when all
    /// are there.
    #[inline]
    pub(crate) fn push(&mut self, is_leaf: bool, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.buffer.len();
        write(&mut self.buffer);
        // 2 MB of item are less than 4 GB of terms: a term is at most 140 times its text.
        let length = (self.buffer.len() - start) as u32;
        let front = front(&self.buffer[start..]);
        self.spans.push(Span { front, start: start as u32, length, is_leaf });
    }

    /// Establishes T1. Equal terms become one, a leaf if any of them was.
    pub(crate) fn finish(mut self) -> Self {
        let buffer = &self.buffer;
        let bytes = |span: &Span| &buffer[span.start as usize..][..span.length as usize];
        self.spans
            .sort_unstable_by(|a, b| a.front.cmp(&b.front).then_with(|| bytes(a).cmp(bytes(b))));
        self.spans.dedup_by(|next, kept| {
            let same = next.front == kept.front && bytes(next) == bytes(kept);
            kept.is_leaf |= same && next.is_leaf;
            same
        });
        self.long_leaves.sort_unstable();
        self.long_leaves.dedup();
        self
    }

    fn bytes(&self, span: &Span) -> &[u8] {
        &self.buffer[span.start as usize..][..span.length as usize]
    }
}

/// The first eight bytes as a number; what is missing is zero, which orders like missing bytes or
/// leaves the decision to a comparison of all bytes.
fn front(term: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = term.len().min(8);
    bytes[..length].copy_from_slice(&term[..length]);
    u64::from_be_bytes(bytes)
}

/// What a write changes in the index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TermChange<'a> {
    /// Terms to delete, sorted.
    pub removed: Vec<&'a [u8]>,
    /// Terms to write, sorted.
    pub added: Vec<&'a [u8]>,
}

/// Compares the terms of an item before and after a write.
///
/// `old` is `None` on create and `new` is `None` on delete. A term on both sides is in neither
/// list, so replacing an item with an equal body costs no index writes. Linear in both.
pub fn diff<'a>(old: Option<&'a Terms>, new: Option<&'a Terms>) -> TermChange<'a> {
    let mut change = TermChange::default();
    let terms = |terms: Option<&'a Terms>| terms.into_iter().flat_map(Terms::iter);
    merge(terms(old), terms(new), |side, term| match side {
        Side::Old => change.removed.push(term),
        Side::New => change.added.push(term),
    });
    change
}

/// Which of two sorted sequences a term is only in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Before the write.
    Old,
    /// After it.
    New,
}

/// Reports what is in one of two sorted sequences but not in both.
pub(crate) fn merge<'a>(
    old: impl Iterator<Item = &'a [u8]>,
    new: impl Iterator<Item = &'a [u8]>,
    mut report: impl FnMut(Side, &'a [u8]),
) {
    let (mut old, mut new) = (old.peekable(), new.peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(a), Some(b)) => a.cmp(b),
        };
        let from_old = if order.is_le() { old.next() } else { None };
        let from_new = if order.is_ge() { new.next() } else { None };
        match (from_old, from_new) {
            (Some(term), None) => report(Side::Old, term),
            (None, Some(term)) => report(Side::New, term),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(list: &[&str]) -> Terms {
        let mut terms = Terms::default();
        list.iter().for_each(|term| terms.push(true, |out| out.extend_from_slice(term.as_bytes())));
        terms.finish()
    }

    fn check(old: Option<&[&str]>, new: Option<&[&str]>, removed: &[&str], added: &[&str]) {
        let (old, new) = (old.map(terms), new.map(terms));
        let change = diff(old.as_ref(), new.as_ref());
        let bytes = |list: &[&str]| list.iter().map(|term| term.as_bytes().to_vec()).collect();
        let expect: (Vec<Vec<u8>>, Vec<Vec<u8>>) = (bytes(removed), bytes(added));
        assert_eq!(
            (change.removed, change.added),
            (
                expect.0.iter().map(Vec::as_slice).collect(),
                expect.1.iter().map(Vec::as_slice).collect(),
            )
        );
    }

    #[test]
    fn terms_are_sorted_and_distinct() {
        let terms = terms(&["b", "a", "b", "ab"]);
        assert_eq!(terms.iter().collect::<Vec<_>>(), [&b"a"[..], b"ab", b"b"]); // T1
        assert!(terms.contains(b"ab") && !terms.contains(b"aa"));
    }

    #[test]
    fn differences() {
        check(None, Some(&["b", "a"]), &[], &["a", "b"]);
        check(Some(&["b", "a"]), None, &["a", "b"], &[]);
        check(Some(&["a", "b"]), Some(&["b", "a"]), &[], &[]);
        check(Some(&["a", "c", "d"]), Some(&["b", "c", "e"]), &["a", "d"], &["b", "e"]);
        check(None, None, &[], &[]);
    }
}
