//! A geometry prepared for questions about it.

use index::geometry::{Flaw, Geometry, Rings};
use index::sphere::{Arc, Vector};

use super::ring::{Chain, Ring};

/// A valid geometry.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(super) points: Vec<Vector>,
    pub(super) lines: Vec<Chain>,
    pub(super) polygons: Vec<Polygon>,
    pub(super) geometry: Geometry,
}

/// An area to the left of all its rings.
#[derive(Clone, Debug)]
pub(super) struct Polygon {
    pub rings: Vec<Ring>,
}

impl Shape {
    /// Prepares a geometry, unless one of its rings crosses itself.
    pub fn new(geometry: Geometry) -> Result<Shape, Flaw> {
        Ok(Shape {
            points: geometry.points.iter().map(|position| Vector::of(*position)).collect(),
            lines: geometry.lines.iter().map(|line| Chain::new(line)).collect(),
            polygons: geometry.polygons.iter().map(Polygon::new).collect::<Result<_, _>>()?,
            geometry,
        })
    }

    /// Lines and rings.
    pub(super) fn chains(&self) -> impl Iterator<Item = &Chain> + Clone {
        self.lines.iter().chain(self.rings())
    }

    /// Rings of all polygons.
    pub(super) fn rings(&self) -> impl Iterator<Item = &Chain> + Clone {
        self.polygons.iter().flat_map(|polygon| &polygon.rings).map(|ring| &ring.chain)
    }

    /// Whether a direction belongs to the geometry.
    pub(super) fn contains(&self, direction: Vector) -> bool {
        self.points.iter().any(|point| is_same(*point, direction))
            || self.lines.iter().any(|line| line.touches(direction))
            || self.polygons.iter().any(|polygon| polygon.contains(direction))
    }
}

impl Polygon {
    fn new(rings: &Rings) -> Result<Polygon, Flaw> {
        let outer = Ring::outer(&rings[0]);
        let holes = rings[1..].iter().filter_map(|hole| Ring::hole(hole));
        let rings: Vec<Ring> = std::iter::once(outer).chain(holes).collect();
        match rings.iter().position(|ring| ring.chain.crosses_itself()) {
            Some(at) => Err(Flaw::CrossedRing(at + 1)),
            None => Ok(Polygon { rings }),
        }
    }

    /// Whether a direction is in the area or on its boundary.
    pub fn contains(&self, direction: Vector) -> bool {
        self.rings.iter().all(|ring| ring.contains(direction))
    }

    /// Whether a direction is in the area, not on its boundary.
    pub fn surrounds(&self, direction: Vector) -> bool {
        self.contains(direction) && !self.rings.iter().any(|ring| ring.chain.touches(direction))
    }

    /// A direction in the area. `None` if it is too small for one to be found.
    pub fn some_inside(&self) -> Option<Vector> {
        let arcs = self.rings[0].chain.arcs();
        let candidates =
            [0.1, 1e-2, 1e-3].into_iter().flat_map(|share| arcs.clone().map(move |a| (a, share)));
        candidates.map(|(arc, share)| beside(arc, share)).find(|inside| self.surrounds(*inside))
    }
}

/// A direction to the left of the middle of an arc, or to the right of it, by a share of its length.
pub(super) fn beside(arc: Arc, share: f64) -> Vector {
    let left = arc.normal().unit() * (share * arc.start.distance(arc.end));
    (arc.middle() + left).unit()
}

/// Whether two directions are the same place.
pub(super) fn is_same(a: Vector, b: Vector) -> bool {
    a.distance(b) <= index::sphere::TOLERANCE
}
