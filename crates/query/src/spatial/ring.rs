//! Lines and rings: runs of directions, with a ball around them that decides most questions.

use index::geometry::Position;
use index::sphere::{Arc, Ball, Side, TOLERANCE, Vector};

/// A line through several directions. A ring is one that ends where it begins.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    pub vertices: Vec<Vector>,
    pub ball: Ball,
}

impl Chain {
    pub fn new(positions: &[Position]) -> Chain {
        let mut vertices: Vec<Vector> = positions.iter().map(|p| Vector::of(*p)).collect();
        // An edge needs a direction. A line that is one point remains one edge.
        vertices.dedup_by(|next, kept| next.distance(*kept) <= TOLERANCE);
        if vertices.len() == 1 {
            vertices.push(vertices[0]);
        }
        Chain { ball: Ball::around(&vertices), vertices }
    }

    pub fn arcs(&self) -> impl Iterator<Item = Arc> + Clone {
        self.vertices.windows(2).map(|pair| Arc { start: pair[0], end: pair[1] })
    }

    /// The arcs that come near a ball.
    pub fn arcs_near(&self, ball: &Ball) -> impl Iterator<Item = Arc> {
        let ball = *ball;
        let is_near = move |arc: &Arc| ball.contains(arc.nearest(ball.center));
        self.arcs().filter(move |arc| ball.is_all() || is_near(arc))
    }

    /// Whether a direction is on the chain.
    pub fn touches(&self, direction: Vector) -> bool {
        self.ball.contains(direction) && self.arcs().any(|arc| arc.contains(direction))
    }

    /// Whether two chains share a point.
    pub fn meets(&self, other: &Chain) -> bool {
        if !self.ball.meets(&other.ball) {
            return false;
        }
        let others: Vec<Arc> = other.arcs_near(&self.ball).collect();
        self.arcs_near(&other.ball).any(|arc| others.iter().any(|other| arc.meets(*other)))
    }

    /// Whether edges of a ring cross. The edges are compared in the order of their first
    /// coordinate, so that only those that overlap there meet.
    pub fn crosses_itself(&self) -> bool {
        let mut arcs: Vec<(f64, f64, Arc)> = self.arcs().map(with_extent).collect();
        arcs.sort_by(|a, b| a.0.total_cmp(&b.0));
        arcs.iter().enumerate().any(|(at, (_, end, arc))| {
            let overlapping = arcs[at + 1..].iter().take_while(|(start, ..)| start <= end);
            overlapping.into_iter().any(|(.., other)| arc.crossing(*other).is_some())
        })
    }
}

/// An arc between the least and the greatest first coordinate it can have. It lies inside of the
/// ball around its middle.
fn with_extent(arc: Arc) -> (f64, f64, Arc) {
    let middle = (arc.start + arc.end).unit();
    let radius = middle.distance(arc.start) + TOLERANCE;
    (middle.x - radius, middle.x + radius, arc)
}

/// The ring of a polygon: the area is to its left.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    pub chain: Chain,
    /// Where the area is that the ball contains, if it is that small.
    side: Side,
}

impl Ring {
    pub fn outer(positions: &[Position]) -> Ring {
        let chain = Chain::new(positions);
        let side = chain.ball.side_of(&chain.vertices);
        Ring { chain, side }
    }

    /// A hole is what the ring encloses, in whichever direction it runs, if that is anything.
    pub fn hole(positions: &[Position]) -> Option<Ring> {
        let mut ring = Ring::outer(positions);
        if ring.side == Side::Left {
            ring.chain.vertices.reverse();
            ring.side = Side::Right;
        }
        (ring.side == Side::Right).then_some(ring)
    }

    /// Whether a direction is in the area or on the ring.
    pub fn contains(&self, direction: Vector) -> bool {
        if !self.chain.ball.contains(direction) {
            return self.side == Side::Right;
        }
        self.chain.touches(direction) || (self.side != Side::Neither && self.is_left(direction))
    }

    /// Whether a direction that is not on the ring is to its left. On the way from there to the
    /// middle of an edge every crossing changes sides; on arrival the side is known.
    fn is_left(&self, direction: Vector) -> bool {
        let Some((target, way)) = self.target(direction) else { return self.side == Side::Left };
        let side = target.normal().dot(direction) > 0.0;
        let crossings = self.chain.arcs().filter(|arc| *arc != target && passes(way, *arc));
        side != (crossings.count() % 2 == 1)
    }

    /// An edge that a direction sees under a good angle, and the way to its middle.
    fn target(&self, from: Vector) -> Option<(Arc, Arc)> {
        let mut best = None;
        let mut best_quality = 0.0;
        for arc in self.chain.arcs() {
            let way = Arc { start: from, end: arc.middle() };
            let normal = arc.normal().unit();
            // How far it is from lying on the line of the edge, and from being opposite.
            let across = normal.dot(from).abs();
            let quality = across.min((way.start + way.end).length());
            if quality > best_quality {
                (best, best_quality) = (Some((arc, way)), quality);
            }
            if quality > 1e-3 {
                break;
            }
        }
        best
    }
}

/// Whether a way crosses an edge. An end of the edge on the line of the way is on its left, so that
/// a way through a vertex crosses one of its edges or both, as if it passed beside it.
fn passes(way: Arc, edge: Arc) -> bool {
    let normal = way.normal();
    let (start, end) = (normal.dot(edge.start) >= 0.0, normal.dot(edge.end) >= 0.0);
    if start == end {
        return false;
    }
    let line = normal.cross(edge.normal());
    let crossing = if line.dot(edge.start + edge.end) > 0.0 { line } else { -line };
    way.start.cross(crossing).dot(normal) > 0.0 && crossing.cross(way.end).dot(normal) > 0.0
}
