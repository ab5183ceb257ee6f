//! Directions from the center of the Earth, and the shortest lines between them.
//!
//! Latitudes become geocentric on the way, so that lengths on the sphere keep their proportions in
//! every place: what is nearest on the sphere is nearest on the Earth. The line between two places
//! lies in the plane through them and the center.

use std::ops::{Add, Mul, Neg, Sub};

use crate::geometry::Position;

/// The square of the second axis of the Earth in terms of the first, by WGS 84.
const AXES_SQUARED: f64 = (1.0 - 1.0 / 298.257_223_563) * (1.0 - 1.0 / 298.257_223_563);

/// A direction, of length one, or another vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vector {
    /// Towards longitude 0 on the equator.
    pub x: f64,
    /// Towards longitude 90 on the equator.
    pub y: f64,
    /// Towards the north pole.
    pub z: f64,
}

impl Vector {
    /// The direction of a position.
    pub fn of(position: Position) -> Vector {
        let (sine, cosine) = position.longitude.to_radians().sin_cos();
        let (height, width) = position.latitude.to_radians().sin_cos();
        Vector { x: width * cosine, y: width * sine, z: height * AXES_SQUARED }.unit()
    }

    /// The position in a direction.
    pub fn position(self) -> Position {
        Position {
            longitude: self.y.atan2(self.x).to_degrees(),
            latitude: (self.z / AXES_SQUARED).atan2(self.x.hypot(self.y)).to_degrees(),
        }
    }

    /// The scalar product.
    pub fn dot(self, other: Vector) -> f64 {
        self.x * other.x + self.y * other.y + self.z * other.z
    }

    /// The vector product. Precise for directions that are close together, too.
    pub fn cross(self, other: Vector) -> Vector {
        let (sum, difference) = (self + other, other - self);
        Vector {
            x: sum.y * difference.z - sum.z * difference.y,
            y: sum.z * difference.x - sum.x * difference.z,
            z: sum.x * difference.y - sum.y * difference.x,
        } * 0.5
    }

    /// Its length.
    pub fn length(self) -> f64 {
        self.dot(self).sqrt()
    }

    /// The same direction with length one. Nothing has no direction.
    pub fn unit(self) -> Vector {
        self * (1.0 / self.length())
    }

    /// The straight distance to another direction: 2 between opposite ones.
    pub fn distance(self, other: Vector) -> f64 {
        (self - other).length()
    }
}

impl Add for Vector {
    type Output = Vector;

    fn add(self, other: Vector) -> Vector {
        Vector { x: self.x + other.x, y: self.y + other.y, z: self.z + other.z }
    }
}

impl Sub for Vector {
    type Output = Vector;

    fn sub(self, other: Vector) -> Vector {
        self + -other
    }
}

impl Neg for Vector {
    type Output = Vector;

    fn neg(self) -> Vector {
        self * -1.0
    }
}

impl Mul<f64> for Vector {
    type Output = Vector;

    fn mul(self, factor: f64) -> Vector {
        Vector { x: self.x * factor, y: self.y * factor, z: self.z * factor }
    }
}

/// A ball that contains directions and the lines between them, and what they enclose unless that is
/// more than half of the Earth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ball {
    /// A direction.
    pub center: Vector,
    /// A straight distance.
    pub radius: f64,
}

/// A ball of this radius is half of the Earth. What lies in a smaller one lies there with all lines
/// between its points.
const HALF: f64 = std::f64::consts::SQRT_2;

impl Ball {
    /// The ball around one direction or more.
    pub fn around(directions: &[Vector]) -> Ball {
        let sum = directions.iter().fold(directions[0], |sum, direction| sum + *direction);
        let center = if sum.length() > TOLERANCE { sum.unit() } else { directions[0] };
        let farthest = |far: f64, direction: &Vector| far.max(center.distance(*direction));
        let radius = directions.iter().fold(0.0, farthest) + TOLERANCE;
        // All of the Earth, if it is not clearly less than half.
        Ball { center, radius: if radius < 0.99 * HALF { radius } else { 2.0 + TOLERANCE } }
    }

    /// Whether it contains all of the Earth.
    pub fn is_all(&self) -> bool {
        self.radius > 2.0
    }

    /// Whether a direction is in it.
    pub fn contains(&self, direction: Vector) -> bool {
        self.center.distance(direction) <= self.radius
    }

    /// Whether two balls can have something in common.
    pub fn meets(&self, other: &Ball) -> bool {
        self.center.distance(other.center) <= self.radius + other.radius
    }

    /// The least straight distance that something in the ball can have.
    pub fn least_distance(&self, from: Vector) -> f64 {
        self.center.distance(from) - self.radius
    }

    /// On which side of a ring that lies in the ball is what it encloses. Seen from the center of
    /// the Earth on a plane that touches the ball, all lines are straight.
    pub fn side_of(&self, ring: &[Vector]) -> Side {
        if self.is_all() {
            return Side::Right;
        }
        let twice_area = |ends: &[Vector]| {
            let scale = ends[0].dot(self.center) * ends[1].dot(self.center);
            ends[0].cross(ends[1]).dot(self.center) / scale
        };
        let area: f64 = ring.windows(2).map(twice_area).sum();
        // What rounding makes of nothing.
        let least = 1e-15 * self.radius * ring.len() as f64;
        match area {
            _ if area.abs() <= least => Side::Neither,
            _ if area > 0.0 => Side::Left,
            _ => Side::Right,
        }
    }
}

/// A side of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The ring runs counterclockwise.
    Left,
    /// The ring runs clockwise, or encloses half of the Earth.
    Right,
    /// The ring runs back where it came from and encloses nothing.
    Neither,
}

/// The shortest line between two directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arc {
    /// Where it begins.
    pub start: Vector,
    /// Where it ends.
    pub end: Vector,
}

/// Directions this close are the same: a tenth of a millimeter.
pub const TOLERANCE: f64 = 1.5e-11;

impl Arc {
    /// Points to its left; its length is the sine of the arc.
    pub fn normal(self) -> Vector {
        self.start.cross(self.end)
    }

    /// Its middle.
    pub fn middle(self) -> Vector {
        (self.start + self.end).unit()
    }

    /// The point of the arc that is nearest to a direction.
    pub fn nearest(self, to: Vector) -> Vector {
        let normal = self.normal();
        let square = normal.dot(normal);
        let foot = to - normal * (to.dot(normal) / square);
        let is_between = square > 0.0
            && foot.dot(foot) > 0.0
            && self.start.cross(foot).dot(normal) > 0.0
            && foot.cross(self.end).dot(normal) > 0.0;
        match is_between {
            true => foot.unit(),
            false if to.distance(self.start) <= to.distance(self.end) => self.start,
            false => self.end,
        }
    }

    /// Whether a direction is on the arc.
    pub fn contains(self, direction: Vector) -> bool {
        direction.distance(self.nearest(direction)) <= TOLERANCE
    }

    /// Where two arcs cross, each ending on both sides of the other, not on it.
    pub fn crossing(self, other: Arc) -> Option<Vector> {
        let (normal, other_normal) = (self.normal(), other.normal());
        let least = TOLERANCE * normal.length();
        let other_least = TOLERANCE * other_normal.length();
        let sides = (normal.dot(other.start), normal.dot(other.end));
        let other_sides = (other_normal.dot(self.end), other_normal.dot(self.start));
        let do_cross = |left: (f64, f64), right: (f64, f64)| {
            left.0 > least && left.1 < -least && right.0 > other_least && right.1 < -other_least
        };
        let turned = |sides: (f64, f64)| (-sides.0, -sides.1);
        if !do_cross(sides, other_sides) && !do_cross(turned(sides), turned(other_sides)) {
            return None;
        }
        let line = normal.cross(other_normal).unit();
        let crossing = if line.dot(self.start + self.end) > 0.0 { line } else { -line };
        // Of lines that are almost parallel it is only known roughly where they cross.
        Some(self.nearest(crossing))
    }

    /// Whether two arcs share a point.
    pub fn meets(self, other: Arc) -> bool {
        self.crossing(other).is_some()
            || self.contains(other.start)
            || self.contains(other.end)
            || other.contains(self.start)
            || other.contains(self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(longitude: f64, latitude: f64) -> Vector {
        Vector::of(Position { longitude, latitude })
    }

    fn arc(start: (f64, f64), end: (f64, f64)) -> Arc {
        Arc { start: at(start.0, start.1), end: at(end.0, end.1) }
    }

    #[test]
    fn positions_come_back() {
        for (longitude, latitude) in [(0.0, 0.0), (10.5, 50.25), (-179.9, -89.0), (90.0, 45.0)] {
            let position = at(longitude, latitude).position();
            assert!((position.longitude - longitude).abs() < 1e-12, "{position:?}");
            assert!((position.latitude - latitude).abs() < 1e-12, "{position:?}");
        }
        assert!(at(180.0, 3.0).distance(at(-180.0, 3.0)) < TOLERANCE);
        assert!(at(7.0, 90.0).distance(at(-99.0, 90.0)) < TOLERANCE);
    }

    #[test]
    fn nearest_points() {
        let equator = arc((-10.0, 0.0), (10.0, 0.0));
        assert!(equator.nearest(at(3.0, 40.0)).distance(at(3.0, 0.0)) < TOLERANCE);
        assert_eq!(equator.nearest(at(12.0, 1.0)), equator.end);
        assert_eq!(equator.nearest(at(-90.0, 1.0)), equator.start);
        assert_eq!(equator.nearest(at(180.0, 0.0)).distance(at(180.0, 0.0)).round(), 2.0);
        let nothing = arc((5.0, 5.0), (5.0, 5.0));
        assert_eq!(nothing.nearest(at(6.0, 6.0)), nothing.start);
        assert!(equator.contains(at(0.0, 0.0)) && !equator.contains(at(0.0, 1e-6)));
    }

    #[test]
    fn crossings() {
        let equator = arc((-10.0, 0.0), (10.0, 0.0));
        let crossing = equator.crossing(arc((2.0, -5.0), (2.0, 5.0))).expect("a crossing");
        assert!(crossing.distance(at(2.0, 0.0)) < TOLERANCE);
        assert!(equator.crossing(arc((12.0, -5.0), (12.0, 5.0))).is_none());
        assert!(equator.crossing(arc((178.0, -5.0), (178.0, 5.0))).is_none(), "the far side");
        assert!(equator.meets(arc((2.0, 0.0), (2.0, 5.0))), "they touch");
        assert!(arc((170.0, 1.0), (-170.0, 1.0)).meets(arc((180.0, 0.0), (180.0, 9.0))));
    }
}
