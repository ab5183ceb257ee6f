//! Goal: the prices reproduce the table of the blog platform they were calibrated on, and the
//! charges that are published one by one.
//! Method: each access pattern of each model as the work it does, priced by the functions that
//! price requests; sizes, counts and the number of partitions are those of the calibration.

use base::{Ctx, Meter};
use model::RequestCharge;

use super::*;

/// Physical partitions of `posts`, posts of the measured user, bytes of the items.
const PARTITIONS: usize = 75;
const POSTS: usize = 28;
const USER: (usize, usize) = (277, 339);
const POST: (usize, usize) = (1746, 1810);
const COMMENT: (usize, usize) = (1868, 1899);
const LIKE: (usize, usize) = (402, 433);
const SHORT_POST: usize = 630;
/// Entries of the order that are visited for ten posts: one in 63.5 items is one.
const ENTRIES: u64 = 635;

const CLIENT: Till = Till { origin: Origin::Client, wants_receipt: false };
const SCRIPT: Till = Till { origin: Origin::Script, wants_receipt: false };

/// Terms of an item with so many indexed leaves in a container keyed by another path than `/id`.
fn terms(leaves: u64) -> u64 {
    2 * leaves + 1
}

fn create(bytes: usize, terms: u64) -> RequestCharge {
    CLIENT.whole(Work::Created(bytes), bytes, terms).charge()
}

/// One physical partition that loads items of one size and visits index entries.
fn asked(meter: &Meter, partition: usize, items: usize, bytes: usize, entries: u64) {
    meter.at(partition).visited();
    meter.at(partition).terms_read(entries);
    (0..items).for_each(|_| meter.at(partition).item_read(bytes));
}

fn priced(meter: &Meter) -> RequestCharge {
    let terms = QueryTerms { profile: Profile::Of2019, filters: 2, is_covered: false };
    let (bill, shares) = query(false, meter, terms);
    assert_eq!(shares.into_iter().sum::<RequestCharge>(), bill.charge());
    bill.finish().0
}

fn one_partition(items: usize, bytes: usize, entries: u64) -> RequestCharge {
    let meter = Meter::default();
    asked(&meter, 0, items, bytes, entries);
    priced(&meter)
}

/// The posts of a user, wherever they are.
fn posts_of_user(bytes: usize) -> RequestCharge {
    let meter = Meter::default();
    (0..PARTITIONS).for_each(|at| asked(&meter, at, usize::from(at < POSTS), bytes, 0));
    priced(&meter)
}

/// The newest hundred posts: a first page of ten from every partition.
fn newest_posts(bytes: usize) -> RequestCharge {
    let meter = Meter::default();
    (0..PARTITIONS).for_each(|at| asked(&meter, at, 10, bytes, ENTRIES));
    priced(&meter)
}

/// How many comments and likes a post has, each by a query that counts.
fn counts(comments: usize, likes: usize) -> RequestCharge {
    one_partition(comments, COMMENT.0, 0) + one_partition(likes, LIKE.0, 0)
}

/// The counts of so many posts with twelve and a half comments each, on average.
fn average_counts(posts: u64) -> RequestCharge {
    (counts(12, 50) + counts(13, 50)) * (posts / 2)
}

/// The script that adds a comment or like and counts it in its post.
fn scripted(bytes: usize, terms: u64) -> RequestCharge {
    let mut bill = Bill::new(false);
    start_script(&mut bill);
    let post = super::read(&Ctx::background(), POST.1);
    bill.add_operation(|| "read post".into(), post);
    let (post, item) = ((POST.1, POST.1), Work::Created(bytes));
    bill.add_operation(|| "replace post".into(), SCRIPT.both(post, 4));
    bill.add_operation(|| "create".into(), SCRIPT.whole(item, bytes, terms));
    bill.finish().0
}

/// Pattern, model, what the model must give, what was published.
type Cell = (&'static str, RequestCharge, &'static str, f64);

fn cells() -> Vec<Cell> {
    let read = point_read;
    let name = one_partition(1, USER.0, 0);
    let (c2, c3) = (create(POST.1, terms(10)), scripted(COMMENT.1, terms(7)));
    let (q2, c4) = (read(POST.1), scripted(LIKE.1, terms(6)));
    let (q4, q5) = (one_partition(20, COMMENT.1, 0), one_partition(50, LIKE.1, 0));
    vec![
        ("C1 V1", create(USER.0, 4), "5.71", 5.71),
        ("C1 V2", create(USER.0, 4), "5.71", 5.71),
        ("C1 V3", create(USER.1, terms(4)), "6.67", 5.71),
        ("Q1 V1", read(USER.0), "1", 1.0),
        ("Q1 V2", read(USER.0), "1", 1.0),
        ("Q1 V3", read(USER.1), "1", 1.0),
        ("C2 V1", create(POST.0, terms(7)), "8.76", 8.76),
        ("C2 V2", c2, "9.9", 8.76),
        ("C2 V3", c2, "9.9", 8.76),
        ("Q2 V1", read(POST.0) + name + counts(20, 50), "19.91", 19.54),
        ("Q2 V2", q2, "1", 1.0),
        ("Q2 V3", q2, "1", 1.0),
        ("Q3 V1", posts_of_user(POST.0) + name + average_counts(POSTS as u64), "604.26", 619.41),
        ("Q3 V2", posts_of_user(POST.1), "200.38", 201.54),
        ("Q3 V3", one_partition(POSTS, SHORT_POST, 0), "6.53", 6.46),
        ("C3 V1", create(COMMENT.0, terms(6)), "8.57", 8.57),
        ("C3 V2", c3, "15.51", 15.27),
        ("C3 V3", c3, "15.51", 15.27),
        ("Q4 V1", one_partition(20, COMMENT.0, 0) + read(USER.0) * 20, "27.6", 27.72),
        ("Q4 V2", q4, "7.66", 7.72),
        ("Q4 V3", q4, "7.66", 7.72),
        ("C4 V1", create(LIKE.0, terms(5)), "7.05", 7.05),
        ("C4 V2", c4, "14.45", 14.67),
        ("C4 V3", c4, "14.45", 14.67),
        ("Q5 V1", one_partition(50, LIKE.0, 0) + read(USER.0) * 50, "58.62", 58.92),
        ("Q5 V2", q5, "8.75", 8.92),
        ("Q5 V3", q5, "8.75", 8.92),
        (
            "Q6 V1",
            newest_posts(POST.0) + read(USER.0) * 100 + average_counts(100),
            "2059.4",
            2063.54,
        ),
        ("Q6 V2", newest_posts(POST.1), "530.29", 532.33),
        ("Q6 V3", one_partition(100, SHORT_POST, 100), "17", 16.97),
    ]
}

#[test]
fn the_thirty_cells_of_the_table() {
    // Three printed numbers did not move when the items they are about grew.
    let unexplained = ["C1 V3", "C2 V2", "C2 V3"];
    for (name, charge, expect, published) in cells() {
        assert_eq!(charge.to_string(), expect, "{name}");
        let error = (charge.as_f64() / published - 1.0).abs();
        let most = if unexplained.contains(&name) { 0.17 } else { 0.025 };
        assert!(error <= most, "{name}: {charge}, published {published}");
    }
    assert_eq!(cells().len(), 30);
}

#[test]
fn other_published_charges() {
    let replace = |terms| CLIENT.both((1024, 1024), terms);
    let mut patched = replace(4);
    CLIENT.patch(&mut patched, 2);
    let scan = {
        let meter = Meter::default();
        meter.at(0).visited();
        // 60,951 items of 399,998,938 bytes.
        (0..60_950).for_each(|_| meter.at(0).item_scanned(6562));
        meter.at(0).item_scanned(399_998_938 - 60_950 * 6562);
        priced(&meter)
    };
    for (what, charge, expect) in [
        ("create 1 KB with 10 terms", create(1024, 10), "6.86"),
        ("create 1 KB that is not indexed", create(1024, 3), "5.52"),
        ("create 1 KB with 24 leaves", create(1024, terms(24)), "14.29"),
        ("replace 1 KB with one value changed", replace(4).charge(), "10.67"),
        ("patch it by two operations", patched.charge(), "11.47"),
        ("refused for its etag", of_failure(&Error::PreconditionFailed), "1.24"),
        ("a partition without a match", one_partition(0, 0, 0), "2.58"),
        ("one item of 10 KB by index", one_partition(1, 10 * 1024, 0), "3.58"),
        ("one item of 1 KB by id", one_partition(1, 1024, 0), "2.76"),
        ("a scan of 400 MB", scan, "3995.03"),
    ] {
        assert_eq!(charge.to_string(), expect, "{what}");
    }
}

/// A trigger that keeps a feed of a hundred posts short: it counts, finds the oldest, deletes it.
#[test]
fn a_full_feed_is_cut_short() {
    let delete = SCRIPT.whole(Work::Deleted(SHORT_POST), SHORT_POST, terms(10)).charge();
    let oldest = one_partition(1, SHORT_POST, 1);
    let in_2019 = SCRIPT_START + one_partition(100, SHORT_POST, 0) + oldest + delete;
    assert_eq!(in_2019.to_string(), "26.52");
    let meter = Meter::default();
    asked(&meter, 0, 100, SHORT_POST, 0);
    let modern = QueryTerms { profile: Profile::Modern, filters: 0, is_covered: true };
    let count = query(false, &meter, modern).0.charge();
    assert_eq!((SCRIPT_START + count + oldest + delete).to_string(), "12.75");
}

#[test]
fn filters_beyond_three_cost_in_every_partition() {
    let meter = Meter::default();
    (0..2).for_each(|at| meter.at(at).visited());
    let price = |filters| {
        let terms = QueryTerms { profile: Profile::Of2019, filters, is_covered: false };
        query(false, &meter, terms).0.charge().to_string()
    };
    assert_eq!([price(0), price(3), price(4), price(6)], ["5.16", "5.16", "5.26", "5.46"]);
}

#[test]
fn further_pages_cost_a_tenth() {
    let meter = Meter::default();
    (0..10).for_each(|at| meter.at(at).resumed());
    assert_eq!(priced(&meter).to_string(), "2.58");
}

#[test]
fn fuel_is_rounded_half_up() {
    assert_eq!(fuel(2_000_000), RequestCharge::ONE);
    let raw = [0, 1, 9, 10, 19, 20].map(|steps| fuel(steps).raw());
    assert_eq!(raw, [0, 1, 9, 11, 20, 21]);
}

/// The lines of a receipt add up, whatever the work.
#[test]
fn receipts_add_up() {
    let random = base::Random::from_seed(7);
    let below = |most: u64| random.next() % most;
    for _ in 0..500 {
        let meter = Meter::default();
        for at in 0..below(4) as usize {
            (0..below(3)).for_each(|_| meter.at(at).visited());
            (0..below(3)).for_each(|_| meter.at(at).resumed());
            meter.at(at).terms_read(below(10_000));
            (0..below(9)).for_each(|_| meter.at(at).item_read(below(2 << 20) as usize));
            (0..below(9)).for_each(|_| meter.at(at).item_scanned(below(2 << 20) as usize));
        }
        meter.fuel(below(1 << 40));
        let profile = if below(2) == 0 { Profile::Of2019 } else { Profile::Modern };
        let is_covered = below(2) == 0;
        let terms = QueryTerms { profile, filters: below(6) as usize, is_covered };
        let (bill, shares) = query(true, &meter, terms);
        let (charge, receipt) = bill.finish();
        assert_eq!(receipt.unwrap().total(), charge);
        assert_eq!(shares.into_iter().sum::<RequestCharge>(), charge);
        assert_eq!(query(false, &meter, terms).0.charge(), charge, "with a receipt or without");
        let till = Till { origin: Origin::Script, wants_receipt: true };
        let (old, new) = (below(2 << 20) as usize, below(2 << 20) as usize);
        let mut bill = till.both((old, new), below(500));
        till.patch(&mut bill, below(10) as usize);
        bill.add_operation(|| "inner".into(), till.whole(Work::Deleted(old), old, below(500)));
        let (charge, receipt) = bill.finish();
        let receipt = receipt.unwrap();
        assert!(receipt.total() == charge && receipt.is_consistent());
    }
}
