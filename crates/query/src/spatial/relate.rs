//! Whether geometries share a point, and whether one lies in the other.

use index::sphere::{Arc, Ball};

use super::ring::Chain;
use super::shape::{Polygon, Shape, beside, is_same};

/// Whether two geometries share a point. If no lines meet, one of two parts that do contains the
/// other, and with it any vertex.
pub(crate) fn intersects(a: &Shape, b: &Shape) -> bool {
    has_part_in(a, b) || has_part_in(b, a) || a.chains().any(|a| b.chains().any(|b| a.meets(b)))
}

/// Whether a point or the first vertex of a line or polygon is in another geometry.
fn has_part_in(a: &Shape, b: &Shape) -> bool {
    let firsts = a.chains().map(|chain| chain.vertices[0]);
    a.points.iter().copied().chain(firsts).any(|direction| b.contains(direction))
}

/// Whether all of one geometry lies in another.
pub(crate) fn is_within(a: &Shape, b: &Shape) -> bool {
    a.points.iter().all(|point| b.contains(*point))
        && a.chains().all(|chain| is_chain_within(chain, b))
        && a.polygons.iter().all(|polygon| is_area_within(polygon, b))
}

fn is_chain_within(chain: &Chain, b: &Shape) -> bool {
    chain.arcs().all(|arc| {
        let mut pieces = pieces(arc, b.chains()).into_iter();
        b.contains(arc.start)
            && b.contains(arc.end)
            && pieces.all(|piece| b.contains(piece.start) && b.contains(piece.middle()))
    })
}

/// Whether the area of a polygon whose boundary lies in a geometry lies there, too: there is no
/// boundary of the other inside, and so one point stands for all.
fn is_area_within(polygon: &Polygon, b: &Shape) -> bool {
    let is_cut = b.rings().any(|ring| {
        ring.arcs().any(|arc| {
            let chains = polygon.rings.iter().map(|ring| &ring.chain).chain(b.rings());
            pieces(arc, chains).into_iter().any(|piece| {
                // To its left is the geometry. To its right may be another polygon of it.
                polygon.surrounds(piece.middle()) && !b.contains(beside(piece, -1e-3))
            })
        })
    });
    !is_cut && polygon.some_inside().is_none_or(|inside| b.contains(inside))
}

/// The pieces into which other lines divide an arc, from its start to its end.
fn pieces<'a>(arc: Arc, chains: impl Iterator<Item = &'a Chain>) -> Vec<Arc> {
    let mut cuts = vec![arc.start, arc.end];
    let ball = Ball::around(&cuts);
    for other in chains.filter(|chain| chain.ball.meets(&ball)).flat_map(Chain::arcs) {
        cuts.extend(arc.crossing(other));
        cuts.extend([other.start, other.end].into_iter().filter(|end| arc.contains(*end)));
    }
    cuts.sort_by(|a, b| arc.start.distance(*a).total_cmp(&arc.start.distance(*b)));
    cuts.dedup_by(|next, kept| is_same(*next, *kept));
    cuts.windows(2).map(|ends| Arc { start: ends[0], end: ends[1] }).collect()
}
