//! Distances and areas on the ellipsoid.

use std::sync::LazyLock;

use geographiclib_rs::{Geodesic, InverseGeodesic, PolygonArea, Winding};
use index::geometry::{Position, Rings};
use index::sphere::Vector;

use super::relate::intersects;
use super::shape::Shape;

static EARTH: LazyLock<Geodesic> = LazyLock::new(Geodesic::wgs84);

/// The least distance between two geometries, in meters; 0 if they share a point.
pub(crate) fn distance(a: &Shape, b: &Shape) -> f64 {
    if let (Some(a), Some(b)) = (only_point(a), only_point(b)) {
        return between(a, b);
    }
    if intersects(a, b) {
        return 0.0;
    }
    let mut nearest = Nearest { distance: f64::INFINITY, pair: None };
    nearest.look(a, b);
    nearest.look(b, a);
    nearest.pair.map_or(0.0, |(a, b)| between(a.position(), b.position()))
}

fn only_point(shape: &Shape) -> Option<Position> {
    let [point] = shape.geometry.points[..] else { return None };
    Some(point)
}

/// The length of the shortest line between two positions, in meters.
fn between(a: Position, b: Position) -> f64 {
    EARTH.inverse(a.latitude, a.longitude, b.latitude, b.longitude)
}

/// The two nearest points seen so far. Of two lines that do not cross, one has the nearest point
/// at an end.
struct Nearest {
    distance: f64,
    pair: Option<(Vector, Vector)>,
}

impl Nearest {
    /// Looks from the points and vertices of one geometry to all parts of another.
    fn look(&mut self, from: &Shape, to: &Shape) {
        let vertices = from.chains().flat_map(|chain| &chain.vertices);
        for start in from.points.iter().chain(vertices) {
            to.points.iter().for_each(|point| self.offer(*start, *point));
            for chain in to.chains() {
                if chain.ball.least_distance(*start) < self.distance {
                    chain.arcs().for_each(|arc| self.offer(*start, arc.nearest(*start)));
                }
            }
        }
    }

    fn offer(&mut self, a: Vector, b: Vector) {
        let distance = a.distance(b);
        if distance < self.distance {
            (self.distance, self.pair) = (distance, Some((a, b)));
        }
    }
}

/// The area of all polygons, in square meters.
pub(crate) fn area(shape: &Shape) -> f64 {
    shape.geometry.polygons.iter().map(polygon_area).sum()
}

/// A ring that runs clockwise has the rest of the Earth as its area; a hole is what its ring
/// encloses, in whichever direction it runs.
fn polygon_area(rings: &Rings) -> f64 {
    let holes: f64 = rings[1..].iter().map(|hole| ring_area(hole, true).abs()).sum();
    (ring_area(&rings[0], false) - holes).max(0.0)
}

/// The area to the left of a ring, or if `signed` the smaller one with a sign for its side.
fn ring_area(ring: &[Position], signed: bool) -> f64 {
    let mut area = PolygonArea::new(&EARTH, Winding::CounterClockwise);
    ring[1..].iter().for_each(|position| area.add_point(position.latitude, position.longitude));
    let (_, area, _) = area.compute(signed);
    area
}
