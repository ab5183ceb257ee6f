//! The spatial index: which squares of the Earth a geometry lies in.
//!
//! Longitude and latitude make a square that is divided into four again and again, thirty times.
//! A cell of any size has a number, and the numbers of the cells inside of it are the ones around
//! its own:
//!
//! ```text
//! 00 10 01 10 1 0000…     first quarter, third, second, third, end
//! ```
//!
//! An item has a term for each of the few cells that its geometry lies in: a point for one of the
//! smallest, an area for some that cover it. A query looks for the cells that cover what it asks
//! for, with all cells inside of them, and for each cell around them.
//!
//! ```text
//! {path}{cell, 8 bytes}
//! ```
//!
//! INVARIANTS
//! (G1) Two geometries that share a point are found through each other: among their cells are two
//!      of which one contains the other.
//! (G2) Every geometry at the path of a spatial index has terms, whatever types the index names.
//!      An index that left some out could not answer for them.

use item::{Kind, Node};
use model::container::path::{IndexPath, Segment};

use crate::geometry::{Geometry, Position};
use crate::path::Path;
use crate::policy::Policy;
use crate::range::TermRange;
use crate::sphere::{Arc, Ball, Side, Vector};
use crate::terms::Terms;

/// Most cells of one geometry of an item.
pub const ITEM_CELLS_MAX: usize = 8;

/// Most cells that a query looks into, besides those around them.
pub const QUERY_CELLS_MAX: usize = 12;

/// How often the Earth is divided.
const LEVELS: u32 = 30;

/// The smallest radius of curvature of the Earth in meters: no place is further away, in radians,
/// than its distance in meters by this.
const RADIUS_MIN: f64 = 6_335_439.0;

/// More than what functions take for the same place, in meters.
const MARGIN: f64 = 1.0;

/// A path whose geometries are indexed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spatial {
    path: Path,
}

impl Spatial {
    pub(crate) fn new(path: &IndexPath) -> Spatial {
        Spatial { path: Path::new(path.segments().to_vec()) }
    }

    fn push_terms(&self, root: Node<'_>, terms: &mut Terms) {
        let path = self.path.to_bytes();
        for_each_at(root, &self.path.segments, &mut |node| {
            let Ok(geometry) = Geometry::read(node) else { return };
            for cell in cover(&Region::of(&geometry).rectangles, ITEM_CELLS_MAX) {
                terms.push(true, |out| {
                    out.extend_from_slice(&path);
                    out.extend_from_slice(&cell.number().to_be_bytes());
                });
            }
        });
    }
}

/// Calls `report` with each object at a path.
fn for_each_at<'a>(node: Node<'a>, path: &[Segment], report: &mut impl FnMut(Node<'a>)) {
    match path {
        [] if node.kind() == Kind::Object => report(node),
        [] => {}
        [Segment::Property(name), rest @ ..] => {
            if let Some(child) = node.get(name) {
                for_each_at(child, rest, report);
            }
        }
        [Segment::Elements, rest @ ..] if node.kind() == Kind::Array => {
            node.elements().for_each(|element| for_each_at(element, rest, report));
        }
        [Segment::Elements, ..] => {}
    }
}

impl Policy {
    /// The spatial terms of an item. Values that are no geometries have none.
    pub fn spatial_terms(&self, root: Node<'_>) -> Terms {
        let mut terms = Terms::default();
        if self.is_consistent() {
            self.spatials().iter().for_each(|spatial| spatial.push_terms(root, &mut terms));
        }
        terms.finish()
    }

    /// Whether every geometry at a path has spatial terms.
    pub fn is_spatial(&self, path: &Path) -> bool {
        self.is_consistent() && self.spatials().iter().any(|spatial| spatial.path == *path)
    }
}

/// A part of the Earth that is at least as large as what it is made from.
#[derive(Debug, Clone)]
pub struct Region {
    rectangles: Vec<Rectangle>,
}

impl Region {
    /// Where a geometry lies.
    pub fn of(geometry: &Geometry) -> Region {
        let extents = extents(geometry);
        Region { rectangles: extents.iter().flat_map(|extent| extent.rectangles()).collect() }
    }

    /// What is at most so many meters away from a geometry; 0 is what shares a point with it.
    pub fn around(geometry: &Geometry, meters: f64) -> Region {
        let extents = extents(geometry).into_iter().map(|extent| extent.expanded(meters));
        Region { rectangles: extents.flat_map(|extent| extent.rectangles()).collect() }
    }
}

/// The terms that every geometry at a path has one of if it shares a point with a region. Sorted,
/// without overlap. Most of what they find is near, not all; an item can be found several times.
pub fn spatial_ranges(path: &Path, region: &Region) -> Vec<TermRange> {
    let path = path.to_bytes();
    let term = |number: u64| [&path[..], &number.to_be_bytes()].concat();
    let range = |(start, end)| TermRange { start: term(start), end: term(end), exact: false };
    numbers(region).into_iter().map(range).collect()
}

/// The ranges of cell numbers that a region is looked for in.
fn numbers(region: &Region) -> Vec<(u64, u64)> {
    let mut numbers = Vec::new();
    for cell in cover(&region.rectangles, QUERY_CELLS_MAX) {
        numbers.push(cell.inside());
        let around = std::iter::successors(cell.parent(), Cell::parent);
        numbers.extend(around.map(|cell| (cell.number(), cell.number() + 1)));
    }
    numbers.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::with_capacity(numbers.len());
    for (start, end) in numbers {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}

/// Longitudes and latitudes between which something lies, in degrees.
#[derive(Debug, Clone, Copy)]
struct Extent {
    /// May lie outside of ±180, less than one turn from it.
    west: f64,
    east: f64,
    south: f64,
    north: f64,
}

const EVERYWHERE: Extent = Extent { west: -180.0, east: 180.0, south: -90.0, north: 90.0 };

const NORTH_POLE: Vector = Vector { x: 0.0, y: 0.0, z: 1.0 };
const SOUTH_POLE: Vector = Vector { x: 0.0, y: 0.0, z: -1.0 };

/// The extents of the parts of a geometry.
fn extents(geometry: &Geometry) -> Vec<Extent> {
    let points = geometry.points.iter().map(|point| Extent::of_point(*point));
    let lines = geometry.lines.iter().map(|line| Extent::of_line(line));
    let polygons = geometry.polygons.iter().map(|rings| Extent::of_polygon(&rings[0]));
    points.chain(lines).chain(polygons).collect()
}

impl Extent {
    fn of_point(Position { longitude, latitude }: Position) -> Extent {
        Extent { west: longitude, east: longitude, south: latitude, north: latitude }
    }

    fn of_line(line: &[Position]) -> Extent {
        let vertices: Vec<Vector> = line.iter().map(|position| Vector::of(*position)).collect();
        Extent::inside(&vertices, &Ball::around(&vertices))
    }

    /// What is to the left of a ring, if that is what the ball around it contains.
    fn of_polygon(ring: &[Position]) -> Extent {
        let vertices: Vec<Vector> = ring.iter().map(|position| Vector::of(*position)).collect();
        let ball = Ball::around(&vertices);
        match ball.side_of(&vertices) {
            Side::Left | Side::Neither => Extent::inside(&vertices, &ball),
            Side::Right => EVERYWHERE,
        }
    }

    /// What a line or ring spans. The extremes are on it, but for the poles: around a pole are all
    /// longitudes, elsewhere a line runs between those of its ends.
    fn inside(vertices: &[Vector], ball: &Ball) -> Extent {
        if ball.is_all() {
            return EVERYWHERE;
        }
        let arcs = || vertices.windows(2).map(|ends| Arc { start: ends[0], end: ends[1] });
        let latitude = |pole| move |arc: Arc| arc.nearest(pole).position().latitude;
        let south = arcs().map(latitude(SOUTH_POLE)).fold(90.0, f64::min);
        let north = arcs().map(latitude(NORTH_POLE)).fold(-90.0, f64::max);
        if ball.contains(NORTH_POLE) {
            return Extent { south, ..EVERYWHERE };
        }
        if ball.contains(SOUTH_POLE) {
            return Extent { north, ..EVERYWHERE };
        }
        let center = ball.center.position().longitude;
        let offsets = vertices.iter().map(|v| turned(v.position().longitude - center));
        let (west, east) = offsets.fold((0.0, 0.0), |(west, east): (f64, f64), offset| {
            (west.min(offset), east.max(offset))
        });
        Extent { west: center + west, east: center + east, south, north }
    }

    /// What is at most so many meters away. Towards a pole a distance spans more degrees.
    fn expanded(self, meters: f64) -> Extent {
        let meters = if meters < 0.0 { 0.0 } else { meters };
        let angle = (meters + MARGIN) / RADIUS_MIN;
        let (south, north) = (self.south - angle.to_degrees(), self.north + angle.to_degrees());
        // Not a number is everywhere, too.
        if !(south > -90.0 && north < 90.0) {
            return Extent { south: south.max(-90.0), north: north.min(90.0), ..EVERYWHERE };
        }
        let highest = self.south.abs().max(self.north.abs()).to_radians();
        let wide = (angle.sin() / highest.cos()).min(1.0).asin().to_degrees();
        let (west, east) = (self.west - wide, self.east + wide);
        if east - west >= 360.0 {
            return Extent { south, north, ..EVERYWHERE };
        }
        Extent { west, east, south, north }
    }

    /// The extent on the grid; two rectangles if it goes over the antimeridian.
    fn rectangles(self) -> Vec<Rectangle> {
        let (south, north) = (row(self.south), row(self.north));
        let between = |west: f64, east: f64| {
            let (west, east) = (column(west), column(east));
            Rectangle { west, east, south, north }
        };
        match (self.west < -180.0, self.east > 180.0) {
            (true, _) => vec![between(self.west + 360.0, 180.0), between(-180.0, self.east)],
            (_, true) => vec![between(self.west, 180.0), between(-180.0, self.east - 360.0)],
            _ => vec![between(self.west, self.east)],
        }
    }
}

/// An angle in degrees without full turns, in ±180.
fn turned(angle: f64) -> f64 {
    if angle > 180.0 {
        angle - 360.0
    } else if angle < -180.0 {
        angle + 360.0
    } else {
        angle
    }
}

/// The smallest cells by which longitudes are counted.
fn column(longitude: f64) -> u32 {
    place((longitude + 180.0) / 360.0)
}

/// The smallest cells by which latitudes are counted.
fn row(latitude: f64) -> u32 {
    place((latitude + 90.0) / 180.0)
}

fn place(share: f64) -> u32 {
    let cells = 1u32 << LEVELS;
    ((share * f64::from(cells)) as u32).min(cells - 1)
}

/// A rectangle of smallest cells; all bounds belong to it.
#[derive(Debug, Clone, Copy)]
struct Rectangle {
    west: u32,
    east: u32,
    south: u32,
    north: u32,
}

/// One square of some size.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cell {
    /// How often the Earth was divided to get it.
    level: u32,
    column: u32,
    row: u32,
}

impl Cell {
    const EARTH: Cell = Cell { level: 0, column: 0, row: 0 };

    /// Its place among the cells of its level, in the order in which they are divided.
    fn order(&self) -> u64 {
        spread(self.column) << 1 | spread(self.row)
    }

    fn shift(&self) -> u32 {
        2 * (LEVELS - self.level)
    }

    fn number(&self) -> u64 {
        (self.order() << 1 | 1) << self.shift()
    }

    /// The numbers of the cell and of all cells inside of it, half-open.
    fn inside(&self) -> (u64, u64) {
        let shift = self.shift() + 1;
        // Those around it have the numbers at which it begins or ends.
        ((self.order() << shift) + 1, (self.order() + 1) << shift)
    }

    fn parent(&self) -> Option<Cell> {
        let level = self.level.checked_sub(1)?;
        Some(Cell { level, column: self.column / 2, row: self.row / 2 })
    }

    fn children(&self) -> [Cell; 4] {
        [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(column, row)| Cell {
            level: self.level + 1,
            column: 2 * self.column + column,
            row: 2 * self.row + row,
        })
    }

    /// The smallest cells in it.
    fn rectangle(&self) -> Rectangle {
        let shift = LEVELS - self.level;
        let first = |at: u32| at << shift;
        let last = |at: u32| (((u64::from(at) + 1) << shift) - 1) as u32;
        Rectangle {
            west: first(self.column),
            east: last(self.column),
            south: first(self.row),
            north: last(self.row),
        }
    }
}

impl Rectangle {
    fn meets(&self, other: &Rectangle) -> bool {
        self.west <= other.east
            && other.west <= self.east
            && self.south <= other.north
            && other.south <= self.north
    }

    fn contains(&self, other: &Rectangle) -> bool {
        self.west <= other.west
            && other.east <= self.east
            && self.south <= other.south
            && other.north <= self.north
    }
}

/// The bits of a number with a zero in front of each.
fn spread(number: u32) -> u64 {
    (0..LEVELS).fold(0, |bits, at| bits | u64::from(number >> at & 1) << (2 * at))
}

/// At most so many cells that cover all rectangles together. The largest are divided first, as
/// long as there is room for the quarters that are needed.
fn cover(rectangles: &[Rectangle], cells_max: usize) -> Vec<Cell> {
    let mut done = Vec::new();
    let mut open = std::collections::VecDeque::from([Cell::EARTH]);
    while let Some(cell) = open.pop_front() {
        let own = cell.rectangle();
        if cell.level == LEVELS || rectangles.iter().any(|rectangle| rectangle.contains(&own)) {
            done.push(cell);
            continue;
        }
        let is_needed = |child: &Cell| {
            let own = child.rectangle();
            rectangles.iter().any(|rectangle| rectangle.meets(&own))
        };
        let needed: Vec<Cell> = cell.children().into_iter().filter(is_needed).collect();
        match done.len() + open.len() + needed.len() <= cells_max {
            true => open.extend(needed),
            false => done.push(cell),
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use item::Value;

    fn geometry(text: &str) -> Geometry {
        Geometry::read(&Value::parse(text.as_bytes()).expect("JSON")).expect("a geometry")
    }

    fn point(longitude: f64, latitude: f64) -> Geometry {
        geometry(&format!(r#"{{"type": "Point", "coordinates": [{longitude}, {latitude}]}}"#))
    }

    fn cells(geometry: &Geometry) -> Vec<Cell> {
        cover(&Region::of(geometry).rectangles, ITEM_CELLS_MAX)
    }

    fn is_found(item: &Geometry, region: &Region) -> bool {
        let numbers = numbers(region);
        let is_in = |number: u64| numbers.iter().any(|range| (range.0..range.1).contains(&number));
        cells(item).iter().any(|cell| is_in(cell.number()))
    }

    #[test]
    fn a_cell_is_among_the_cells_inside_of_it() {
        let mut cell = Cell { level: LEVELS, column: 123_456_789, row: 987_654_321 };
        let number = cell.number();
        while let Some(parent) = cell.parent() {
            assert!(parent.children().contains(&cell));
            let (start, end) = parent.inside();
            assert!((start..end).contains(&number) && (start..end).contains(&cell.number()));
            assert!((start..end).contains(&parent.number()));
            assert!(!(cell.inside().0..cell.inside().1).contains(&parent.number()));
            cell = parent;
        }
        assert_eq!(Cell::EARTH.inside(), (1, 1 << 61));
    }

    #[test]
    fn terms_of_every_geometry_at_a_path() {
        let policy = serde_json::json!({"spatialIndexes": [
            {"path": "/loc/*", "types": ["Polygon"]}, {"path": "/stops/[]/at/?"}, {"path": "/*"},
        ]});
        let policy = model::container::IndexingPolicy::parse(&policy).expect("a policy");
        let policy = Policy::compile(&policy);
        let count = |text: &str| {
            let draft = item::Draft::parse(text.as_bytes()).expect("JSON");
            policy.spatial_terms(draft.root()).len()
        };
        let point = r#"{"type": "Point", "coordinates": [1, 2]}"#;
        let other = r#"{"type": "Point", "coordinates": [3, 4]}"#;
        assert_eq!(count(r#"{"id": "1"}"#), 0);
        assert_eq!(count(&format!(r#"{{"id": "1", "loc": {point}}}"#)), 1); // G2
        assert_eq!(count(&format!(r#"{{"id": "1", "elsewhere": {point}}}"#)), 0);
        assert_eq!(count(r#"{"id": "1", "loc": {"type": "Point", "coordinates": [1, 92]}}"#), 0);
        assert_eq!(count(r#"{"id": "1", "loc": [1, 2], "stops": {"at": 5}}"#), 0);
        let stops = format!(r#"[{{"at": {point}}}, {{"at": {other}}}, {{"at": {point}}}, 5]"#);
        assert_eq!(count(&format!(r#"{{"id": "1", "stops": {stops}}}"#)), 2);
        let stop = |name: &str| Segment::Property(name.to_owned());
        assert!(policy.is_spatial(&Path::of_properties(["loc"])));
        assert!(policy.is_spatial(&Path::new(vec![stop("stops"), Segment::Elements, stop("at")])));
        assert!(!policy.is_spatial(&Path::of_properties(["loc", "type"])));
    }

    #[test]
    fn points_have_one_cell_and_areas_a_few() {
        assert_eq!(cells(&point(10.0, 50.0)).len(), 1);
        assert_eq!(cells(&point(180.0, 90.0))[0].level, LEVELS);
        let square = r#"{"type": "Polygon",
            "coordinates": [[[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]]]}"#;
        let cells = cells(&geometry(square));
        assert!((4..=ITEM_CELLS_MAX).contains(&cells.len()), "{cells:?}");
        assert!(cells.iter().all(|cell| cell.level > 6), "{cells:?}");
    }

    #[test]
    fn a_clockwise_ring_is_everywhere() {
        let rest = r#"{"type": "Polygon",
            "coordinates": [[[-1, -1], [-1, 1], [1, 1], [1, -1], [-1, -1]]]}"#;
        assert_eq!(cells(&geometry(rest)), [Cell::EARTH]);
        assert!(is_found(&geometry(rest), &Region::around(&point(100.0, 3.0), 0.0)));
    }

    #[test]
    fn what_is_near_is_found() {
        let check = |item: (f64, f64), place: (f64, f64), meters: f64, expect: bool| {
            let region = Region::around(&point(place.0, place.1), meters);
            assert_eq!(is_found(&point(item.0, item.1), &region), expect, "{item:?} {place:?}");
        };
        check((10.01, 50.0), (10.0, 50.0), 720.0, true);
        check((10.1, 50.0), (10.0, 50.0), 720.0, false);
        check((180.0, 0.0), (-180.0, 0.0), 0.0, true);
        check((179.999, 0.0), (-179.999, 0.0), 300.0, true);
        check((7.0, 90.0), (-20.0, 90.0), 0.0, true);
        check((0.0, 89.9), (180.0, 89.9), 23_000.0, true);
        check((0.0, 0.0), (180.0, 0.0), 20_100_000.0, true);
        check((0.0, 0.0), (180.0, 0.0), f64::INFINITY, true);
        check((0.0, 0.0), (180.0, 0.0), f64::NAN, true);
        check((0.0, 0.0), (0.0, 0.0), -5.0, true);
    }

    #[test]
    fn a_long_line_is_found_where_it_runs() {
        let line = geometry(r#"{"type": "LineString", "coordinates": [[-60, 50], [60, 50]]}"#);
        assert!(is_found(&line, &Region::around(&point(0.0, 67.2), 10_000.0)));
        let over = geometry(r#"{"type": "LineString", "coordinates": [[0, 80], [170, 80]]}"#);
        assert!(is_found(&over, &Region::around(&point(85.0, 89.1), 10_000.0)));
    }

    #[test]
    fn ranges_are_few_and_apart() {
        let ranges = spatial_ranges(
            &Path::of_properties(["loc"]),
            &Region::around(&point(10.0, 50.0), 1000.0),
        );
        assert!(ranges.len() <= QUERY_CELLS_MAX + 2 * LEVELS as usize, "{}", ranges.len());
        assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
    }
}
