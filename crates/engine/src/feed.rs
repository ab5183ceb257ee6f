//! Read feeds and change feeds: items in the order they are stored, or in the order they changed.
//!
//! A change feed page looks at whole transactions only, partition by partition. Its etag says for
//! each physical partition in scope how far the client has come: just the LSN if there is one
//! partition, `partition:lsn` joined by `|` if there are several.

use base::Ctx;
use bytes::Bytes;
use item::Item;
use model::partition_key::PartitionKey;
use model::{Lsn, SessionToken, limits};
use storage::change_log::{self, Bound, Run, StoredVersion};
use storage::keys::locality_bounds;
use storage::scan::PartitionReader;
use storage::shape::{LogicalKey, Partition};
use storage::visibility::Visibility;
use store::{Space, View};

use crate::container::Selection;
use crate::continuation::Purpose;
use crate::items::check_session;
use crate::ops::{
    ChangeFeedMode, ChangeFeedPage, ChangeFeedRequest, ChangeFeedStart, FeedPage, PageRequest,
    RequestCharge, Scope,
};
use crate::{Container, Core, Engine, Error, Result, charge};

/// Rows looked at in one go.
const ROWS: usize = 512;
/// The same if few of them are wanted and the others cost little.
const SIEVED_ROWS: usize = 8192;
/// A logical partition of so many items and bytes is read as it is, rather than the log of everybody.
const FEW_ITEMS: u64 = 1024;
const FEW_BYTES: u64 = 1 << 20;

impl Core {
    /// One page of the items of a scope, in storage order.
    pub(crate) fn read_feed(
        &self,
        ctx: &Ctx,
        container: &Container,
        scope: &Scope,
        page: &PageRequest,
    ) -> Result<FeedPage> {
        let view = self.store.view();
        let selection = container.select(scope)?;
        check_sessions(container, &view, &selection, page.session.as_ref())?;
        self.admit(ctx, container, &selection.partitions)?;
        let erasures = container.published_erasures(&view);
        let visibility = container.visibility(ctx.now().as_secs() as u32, &erasures);
        let walk = Walk { container, selection: &selection, view: &view, visibility };
        let start = match &page.continuation {
            Some(token) => parse_place(&self.unseal(Purpose::Feed, container, token)?)?,
            None => Place { index: 0, ordinal: 0 },
        };
        let items_max = items_max(page.items_max);
        let mut shares = Shares::default();
        let (items, end) = walk.page(ctx, start, items_max, &mut shares)?;
        ctx.meter().items_returned(items.len() as u64);
        let continuation = end.map(|place| self.seal(Purpose::Feed, container, &place.to_bytes()));
        let partition = selection.partitions.first().copied().unwrap_or(0);
        let (charge, receipt) = charge::feed(ctx, items.iter().map(Item::text_len)).finish();
        self.spend_on(ctx, container, &selection, shares);
        Ok(FeedPage {
            charge,
            receipt,
            rows: items.iter().map(Item::text).collect(),
            continuation,
            session: session_of(container, &view, &selection),
            partition: u32::from(partition),
            lsn: view.position(container.layout.partitions[usize::from(partition)].log),
            meter: ctx.meter().read(),
            is_cut_by_time: false,
            index_use: None,
            times: None,
            is_reversed: None,
        })
    }
}

impl Engine {
    /// One page of the items of a scope, in storage order.
    pub fn read_feed(
        &self,
        ctx: &Ctx,
        container: &Container,
        scope: &Scope,
        page: &PageRequest,
    ) -> Result<FeedPage> {
        self.core.read_feed(ctx, container, scope, page)
    }

    /// One page of changes of a scope.
    pub fn change_feed(
        &self,
        ctx: &Ctx,
        container: &Container,
        scope: &Scope,
        request: &ChangeFeedRequest,
    ) -> Result<ChangeFeedPage> {
        let view = self.core.store.view();
        let selection = container.select(scope)?;
        check_sessions(container, &view, &selection, request.session.as_ref())?;
        if request.mode == ChangeFeedMode::AllVersionsAndDeletes {
            check_versions(container, &request.start)?;
        }
        self.core.admit(ctx, container, &selection.partitions)?;
        let erasures = container.published_erasures(&view);
        let visibility = container.visibility(ctx.now().as_secs() as u32, &erasures);
        let walk = Walk { container, selection: &selection, view: &view, visibility };
        let changes = walk.changes(ctx, request)?;
        ctx.meter().items_returned(changes.rows.len() as u64);
        let partition = selection.partitions.first().copied().unwrap_or(0);
        let (charge, receipt) = charge::feed(ctx, changes.sizes).finish();
        self.core.spend_on(ctx, container, &selection, changes.shares);
        Ok(ChangeFeedPage {
            charge,
            receipt,
            rows: changes.rows,
            etag: changes.positions.etag(),
            partition: u32::from(partition),
            lsn: view.position(container.layout.partitions[usize::from(partition)].log),
        })
    }
}

impl Core {
    /// Has the partitions of a page pay for it; the first one for an empty page.
    fn spend_on(&self, ctx: &Ctx, container: &Container, selection: &Selection, shares: Shares) {
        let key = selection.logical_key(container);
        let nobody = shares.0.is_empty().then(|| selection.partitions.first()).flatten();
        for (number, charge) in shares.0.into_iter().chain(nobody.map(|&n| (n, charge::MISS))) {
            self.spend(ctx, container, number, key.as_ref(), charge);
        }
    }
}

/// What each physical partition has in the price of a page.
#[derive(Default)]
struct Shares(Vec<(u16, RequestCharge)>);

impl Shares {
    /// Adds an item. Partitions come one after the other.
    fn add(&mut self, number: u16, bytes: usize) {
        match self.0.last_mut() {
            Some((last, sum)) if *last == number => *sum += charge::point_read(bytes),
            Some(_) | None => self.0.push((number, charge::point_read(bytes))),
        }
    }
}

pub(crate) fn items_max(asked: Option<usize>) -> usize {
    asked.unwrap_or(limits::PAGE_ITEMS_DEFAULT).clamp(1, limits::PAGE_ITEMS_MAX)
}

pub(crate) fn check_sessions(
    container: &Container,
    view: &View,
    selection: &Selection,
    session: Option<&SessionToken>,
) -> Result<()> {
    selection.partitions.iter().try_for_each(|&number| {
        let log = container.layout.partitions[usize::from(number)].log;
        check_session(session, u32::from(number), view.position(log))
    })
}

pub(crate) fn session_of(
    container: &Container,
    view: &View,
    selection: &Selection,
) -> SessionToken {
    let part = |&number: &u16| {
        let log = container.layout.partitions[usize::from(number)].log;
        (u32::from(number), Lsn(view.position(log)))
    };
    selection.partitions.iter().map(part).collect()
}

fn check_versions(container: &Container, start: &ChangeFeedStart) -> Result<()> {
    if !container.shape.read().keeps_versions() {
        return Err(Error::Invalid(
            "The container keeps no versions. Give it a changeFeedPolicy with a retentionDuration \
             to read all versions and deletes."
                .into(),
        ));
    }
    match start {
        ChangeFeedStart::Now | ChangeFeedStart::Etag(_) => Ok(()),
        ChangeFeedStart::Beginning | ChangeFeedStart::Time(_) => Err(Error::Invalid(
            "All versions and deletes can be read from now on or from a continuation, not from \
             the beginning or a point in time."
                .into(),
        )),
    }
}

/// Where a read feed stands: the next ordinal to look at in the nth partition of the selection.
#[derive(Clone, Copy)]
struct Place {
    index: usize,
    ordinal: u64,
}

impl Place {
    fn to_bytes(self) -> Vec<u8> {
        [&(self.index as u16).to_be_bytes()[..], &self.ordinal.to_be_bytes()].concat()
    }
}

fn parse_place(bytes: &[u8]) -> Result<Place> {
    let malformed = || Error::Invalid("The continuation token is malformed.".into());
    let (index, ordinal) = bytes.split_first_chunk::<2>().ok_or_else(malformed)?;
    let ordinal = ordinal.try_into().map_err(|_| malformed())?;
    let index = usize::from(u16::from_be_bytes(*index));
    Ok(Place { index, ordinal: u64::from_be_bytes(ordinal) })
}

/// A selection at one view.
struct Walk<'a> {
    container: &'a Container,
    selection: &'a Selection,
    view: &'a View,
    visibility: Visibility<'a>,
}

/// Changes found for one page.
#[derive(Default)]
struct Changes {
    rows: Vec<Bytes>,
    sizes: Vec<usize>,
    shares: Shares,
    bytes: usize,
    positions: Positions,
}

impl Changes {
    fn bytes_left(&self) -> usize {
        limits::PAGE_BYTES_MAX.saturating_sub(self.bytes)
    }

    /// Whether rows of these sizes have room. On an empty page anything has: a transaction is never
    /// split, however large.
    fn fits(&self, sizes: impl Iterator<Item = usize>) -> bool {
        self.rows.is_empty() || sizes.sum::<usize>() <= self.bytes_left()
    }

    fn push(&mut self, number: u16, size: usize, row: Bytes) {
        self.shares.add(number, size);
        self.sizes.push(size);
        self.bytes += size;
        self.rows.push(row);
    }
}

impl<'a> Walk<'a> {
    fn partition(&self, number: u16) -> &'a Partition {
        &self.container.layout.partitions[usize::from(number)]
    }

    fn reader(&self, number: u16) -> PartitionReader<'a> {
        PartitionReader {
            layout: &self.container.layout,
            partition: self.partition(number),
            view: self.view,
            visibility: self.visibility,
        }
    }

    fn is_selected(&self, key: Option<PartitionKey>) -> bool {
        key.is_some_and(|key| self.selection.contains(self.container, &key))
    }

    /// Items from `place` on, and where the next page begins.
    fn page(
        &self,
        ctx: &Ctx,
        mut place: Place,
        items_max: usize,
        shares: &mut Shares,
    ) -> Result<(Vec<Item>, Option<Place>)> {
        let mut items = Vec::new();
        let mut bytes = 0;
        let (first, to) = ordinals(self.selection.logical_key(self.container).as_ref());
        while let Some(&number) = self.selection.partitions.get(place.index) {
            let reader = self.reader(number);
            let from = place.ordinal.max(first);
            let found = reader.items(from, to, ROWS, limits::PAGE_BYTES_MAX)?;
            for item in found.items {
                if !self.selection.is_whole() && !self.is_selected(reader.key_of(&item)) {
                    continue;
                }
                let is_full = items.len() == items_max
                    || (bytes + item.text_len() > limits::PAGE_BYTES_MAX && !items.is_empty());
                if is_full {
                    return Ok((items, Some(Place { ordinal: item.ordinal(), ..place })));
                }
                bytes += item.text_len();
                ctx.meter().at(place.index).item_read(item.text_len());
                shares.add(number, item.text_len());
                items.push(item);
            }
            place = match found.is_cut.then_some(found.last).flatten() {
                Some(last) => Place { ordinal: last + 1, ..place },
                None => Place { index: place.index + 1, ordinal: 0 },
            };
            if ctx.deadline().is_over() && place.index < self.selection.partitions.len() {
                return Ok((items, Some(place)));
            }
        }
        Ok((items, None))
    }

    fn changes(&self, ctx: &Ctx, request: &ChangeFeedRequest) -> Result<Changes> {
        let mut changes = Changes { positions: self.start(request)?, ..Changes::default() };
        let items_max = items_max(request.items_max);
        let since = match request.start {
            ChangeFeedStart::Time(ts) => Some(ts),
            ChangeFeedStart::Beginning | ChangeFeedStart::Now | ChangeFeedStart::Etag(_) => None,
        };
        for at in 0..changes.positions.0.len() {
            loop {
                let room = items_max.saturating_sub(changes.rows.len());
                let is_full = room == 0 || changes.bytes_left() == 0;
                if is_full || ctx.deadline().is_over() {
                    return Ok(changes);
                }
                let (number, after) = changes.positions.0[at];
                let run = match request.mode {
                    ChangeFeedMode::LatestVersion => {
                        self.latest(number, after, room, since, request.is_enveloped, &mut changes)?
                    }
                    ChangeFeedMode::AllVersionsAndDeletes => {
                        self.versions(number, after, room, &mut changes)?
                    }
                };
                let Some((through, is_end)) = run else { return Ok(changes) };
                changes.positions.0[at].1 = through;
                if is_end {
                    break;
                }
            }
        }
        Ok(changes)
    }

    /// Adds the next run of one partition: how far it goes and whether that is the end; `None` if
    /// the page has no room for it.
    fn latest(
        &self,
        number: u16,
        after: u64,
        room: usize,
        since: Option<u64>,
        is_enveloped: bool,
        changes: &mut Changes,
    ) -> Result<Option<(u64, bool)>> {
        let reader = self.reader(number);
        let key = self.selection.logical_key(self.container);
        let run = match self.all_of_few(&reader, key.as_ref(), after)? {
            Some(items) => change_log::latest_of(items, self.view, reader.partition, after),
            None => {
                let (from, to) = ordinals(key.as_ref());
                let rows_max = match (self.selection.is_whole(), key) {
                    (true, _) => room,
                    (false, None) => room.max(ROWS),
                    (false, Some(_)) => room.max(SIEVED_ROWS),
                };
                let bound = Bound { rows_max, bytes_max: changes.bytes_left() };
                change_log::read_latest(self.view, reader.partition, after, from..to, bound)?
            }
        };
        let whole = fitting(&run, room, |item| {
            reader.is_visible(item)
                && since.is_none_or(|ts| u64::from(item.ts()) >= ts)
                && (self.selection.is_whole() || self.is_selected(reader.key_of(item)))
        });
        if !changes.fits(whole.chosen.iter().map(|(_, item)| item.text_len())) {
            return Ok(None);
        }
        for (lsn, item) in whole.chosen {
            changes.push(number, item.text_len(), change_text(lsn, item, is_enveloped));
        }
        Ok(Some((whole.through, whole.is_end)))
    }

    /// All items of the selection, if it is a small logical partition and more than that has changed
    /// around it.
    fn all_of_few(
        &self,
        reader: &PartitionReader<'_>,
        key: Option<&LogicalKey>,
        after: u64,
    ) -> Result<Option<Vec<Item>>> {
        let Some(key) = key else { return Ok(None) };
        let [items, bytes] = reader.totals(Some(key))?.map(|sum| sum.max(0) as u64);
        let behind = self.view.position(reader.partition.log).saturating_sub(after);
        if items > FEW_ITEMS || bytes > FEW_BYTES || behind <= items {
            return Ok(None);
        }
        // Others may have the same locality.
        let (from, to) = ordinals(Some(key));
        let found = reader.items(from, to, 2 * FEW_ITEMS as usize, 2 * FEW_BYTES as usize)?;
        Ok((!found.is_cut).then_some(found.items))
    }

    fn versions(
        &self,
        number: u16,
        after: u64,
        room: usize,
        changes: &mut Changes,
    ) -> Result<Option<(u64, bool)>> {
        let partition = self.partition(number);
        let horizon = self.view.reader().get(Space::Meta, &partition.place.version_horizon())?;
        let horizon = horizon.and_then(|v| Some(u64::from_le_bytes(v[..].try_into().ok()?)));
        if horizon.is_some_and(|horizon| after < horizon) {
            return Err(Error::Invalid(
                "The continuation is older than the retention of the change feed. Start from now."
                    .into(),
            ));
        }
        let bound = Bound { rows_max: room.max(64), bytes_max: changes.bytes_left() };
        let run = change_log::read_versions(self.view, partition, after, bound)?;
        let whole = fitting(&run, room, |version: &StoredVersion| {
            self.selection.is_whole() || self.is_selected(version.key())
        });
        if !changes.fits(whole.chosen.iter().map(|(_, version)| version.json.len())) {
            return Ok(None);
        }
        for (_, version) in whole.chosen {
            changes.push(number, version.json.len(), version.json.clone());
        }
        Ok(Some((whole.through, whole.is_end)))
    }

    /// Where each partition of the selection starts.
    fn start(&self, request: &ChangeFeedRequest) -> Result<Positions> {
        let numbers = self.selection.partitions.iter();
        let position = |number: u16| self.view.position(self.partition(number).log);
        Ok(match &request.start {
            ChangeFeedStart::Beginning | ChangeFeedStart::Time(_) => {
                Positions(numbers.map(|&number| (number, 0)).collect())
            }
            ChangeFeedStart::Now => {
                Positions(numbers.map(|&number| (number, position(number))).collect())
            }
            ChangeFeedStart::Etag(etag) => Positions::parse(etag, &self.selection.partitions)?,
        })
    }
}

/// The ordinals that items of a logical partition, or of all, can have.
fn ordinals(key: Option<&LogicalKey>) -> (u64, u64) {
    key.map_or((0, 1 << 60), |key| locality_bounds(key.locality))
}

/// The part of a run that fits a page: whole transactions, at least one.
struct Fitting<'r, T> {
    chosen: Vec<(u64, &'r T)>,
    through: u64,
    is_end: bool,
}

fn fitting<T>(run: &Run<T>, room: usize, is_wanted: impl Fn(&T) -> bool) -> Fitting<'_, T> {
    let mut chosen: Vec<(u64, &T)> = Vec::new();
    for (lsn, entry) in run.entries.iter().filter(|(_, entry)| is_wanted(entry)) {
        let begins = chosen.last().is_some_and(|(last, _)| last != lsn);
        if begins && chosen.len() >= room {
            let through = chosen.last().map_or(0, |(last, _)| *last);
            return Fitting { chosen, through, is_end: false };
        }
        chosen.push((*lsn, entry));
    }
    Fitting { chosen, through: run.through, is_end: run.is_end }
}

/// An item as the change feed shows it: with its LSN, or wrapped with it.
fn change_text(lsn: u64, item: &Item, is_enveloped: bool) -> Bytes {
    let text = item.text();
    let mut out = Vec::with_capacity(text.len() + 64);
    if is_enveloped {
        out.extend_from_slice(b"{\"current\":");
        out.extend_from_slice(&text);
        let metadata = format!(",\"metadata\":{{\"lsn\":{lsn},\"crts\":{}}}}}", item.ts());
        out.extend_from_slice(metadata.as_bytes());
    } else {
        out.extend_from_slice(&text[..text.len() - 1]);
        out.extend_from_slice(format!(",\"_lsn\":{lsn}}}").as_bytes());
    }
    out.into()
}

/// How far a client has come in each partition of a selection.
#[derive(Default)]
struct Positions(Vec<(u16, u64)>);

impl Positions {
    fn etag(&self) -> String {
        match self.0.as_slice() {
            [(_, lsn)] => lsn.to_string(),
            several => {
                let parts = several.iter().map(|(number, lsn)| format!("{number}:{lsn}"));
                parts.collect::<Vec<_>>().join("|")
            }
        }
    }

    fn parse(etag: &str, partitions: &[u16]) -> Result<Positions> {
        let malformed = || {
            Error::Invalid(format!(
                "The change feed continuation '{etag}' is malformed. Send back the etag of the \
                 previous page as it was."
            ))
        };
        if let (Ok(lsn), [number]) = (etag.parse::<u64>(), partitions) {
            return Ok(Positions(vec![(*number, lsn)]));
        }
        let part = |part: &str| -> Option<(u16, u64)> {
            let (number, lsn) = part.split_once(':')?;
            Some((number.parse().ok()?, lsn.parse().ok()?))
        };
        let parts: Option<Vec<(u16, u64)>> = etag.split('|').map(part).collect();
        let parts = parts.ok_or_else(malformed)?;
        let of = |number: &u16| parts.iter().find(|(n, _)| n == number).copied();
        let found: Option<Vec<_>> = partitions.iter().map(of).collect();
        found.map(Positions).ok_or_else(malformed)
    }
}
