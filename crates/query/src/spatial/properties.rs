//! Goal: the spatial index finds whatever the spatial functions accept.
//! Method: pairs of random geometries near each other, often at a pole or the antimeridian; the
//! terms of one must lie in the ranges for the other.

use index::geometry::Geometry;
use index::{Policy, Region, spatial_ranges};
use item::{Draft, Value};
use model::container::IndexingPolicy;
use proptest::prelude::*;

use super::{Shape, distance, intersects, is_within};

/// A place, more often a special one.
fn place() -> impl Strategy<Value = (f64, f64)> {
    let longitude = prop_oneof![-180.0..180.0, Just(180.0), Just(-180.0), Just(0.0), Just(90.0)];
    let latitude = prop_oneof![-90.0..90.0, Just(90.0), Just(-90.0), Just(0.0), 85.0..90.0];
    (longitude, latitude)
}

/// Degrees from a place: far, near, or the same.
fn offset() -> impl Strategy<Value = f64> {
    prop_oneof![-30.0..30.0, -1.0..1.0, -1e-6..1e-6, Just(0.0)]
}

/// Coordinates near a place, brought back onto the Earth.
fn position((longitude, latitude): (f64, f64), (east, north): (f64, f64)) -> String {
    let longitude = (longitude + east + 540.0).rem_euclid(360.0) - 180.0;
    format!("[{longitude}, {}]", (latitude + north).clamp(-90.0, 90.0))
}

/// Positions around a place, in the order of their angles and so mostly without crossings.
fn ring(at: (f64, f64), size: f64, corners: &[f64], clockwise: bool) -> String {
    let mut angles: Vec<f64> =
        corners.iter().map(|corner| corner.fract() * std::f64::consts::TAU).collect();
    angles.sort_by(f64::total_cmp);
    if clockwise {
        angles.reverse();
    }
    let wide = 1.0 / at.1.to_radians().cos().max(0.02);
    let corner = |angle: &f64| position(at, (size * wide * angle.cos(), size * angle.sin()));
    let corners: Vec<String> = angles.iter().chain(angles.first()).map(corner).collect();
    format!("[{}]", corners.join(","))
}

fn polygon(at: (f64, f64)) -> impl Strategy<Value = String> {
    let size = prop_oneof![1e-6..1e-3, 1e-3..5.0, 5.0..80.0];
    let moved = (offset(), offset());
    (moved, size, proptest::collection::vec(0.0..1.0, 3..12), proptest::bool::weighted(0.1))
        .prop_map(move |((east, north), size, corners, clockwise)| {
            let middle = (at.0 + east, (at.1 + north).clamp(-90.0, 90.0));
            format!("[{}]", ring(middle, size, &corners, clockwise))
        })
}

fn geometry(at: (f64, f64)) -> impl Strategy<Value = String> {
    let positions = |least: usize| {
        proptest::collection::vec((offset(), offset()), least..6).prop_map(move |offsets| {
            let all: Vec<String> = offsets.into_iter().map(|offset| position(at, offset)).collect();
            format!("[{}]", all.join(","))
        })
    };
    let of = |kind: &'static str, coordinates: BoxedStrategy<String>| {
        coordinates.prop_map(move |c| format!(r#"{{"type": "{kind}", "coordinates": {c}}}"#))
    };
    let point = (offset(), offset()).prop_map(move |offset| position(at, offset));
    let polygons = proptest::collection::vec(polygon(at), 1..3);
    prop_oneof![
        of("Point", point.boxed()),
        of("MultiPoint", positions(1).boxed()),
        of("LineString", positions(2).boxed()),
        of("Polygon", polygon(at).boxed()),
        of("MultiPolygon", polygons.prop_map(|all| format!("[{}]", all.join(","))).boxed()),
    ]
}

fn pair() -> impl Strategy<Value = (String, String)> {
    place().prop_flat_map(|at| (geometry(at), geometry(at)))
}

fn read(text: &str) -> Option<Shape> {
    let value = Value::parse(text.as_bytes()).expect("JSON");
    Geometry::read(&value).and_then(Shape::new).ok()
}

/// Whether an item with a geometry has a term in the ranges of a region.
fn is_found(text: &str, region: &Region) -> bool {
    let policy = serde_json::json!({"spatialIndexes": [{"path": "/loc/*"}]});
    let policy = Policy::compile(&IndexingPolicy::parse(&policy).expect("a policy"));
    let path = index::Path::of_properties(["loc"]);
    assert!(policy.is_spatial(&path));
    let item = Draft::parse(format!(r#"{{"id": "1", "loc": {text}}}"#).as_bytes()).expect("JSON");
    let terms = policy.spatial_terms(item.root());
    let ranges = spatial_ranges(&path, region);
    terms.iter().any(|term| ranges.iter().any(|range| range.contains(term)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_index_finds_what_the_functions_accept((a, b) in pair()) {
        let (Some(one), Some(other)) = (read(&a), read(&b)) else { return Ok(()) };
        let meters = distance(&one, &other);
        prop_assert!(is_found(&a, &Region::around(&other.geometry, meters)));
        prop_assert!(is_found(&b, &Region::around(&one.geometry, meters)));
        if intersects(&one, &other) {
            prop_assert!(is_found(&a, &Region::around(&other.geometry, 0.0)));
            prop_assert!(is_found(&b, &Region::around(&one.geometry, 0.0)));
        }
    }

    #[test]
    fn the_functions_agree((a, b) in pair()) {
        let (Some(a), Some(b)) = (read(&a), read(&b)) else { return Ok(()) };
        prop_assert!(intersects(&a, &a) && distance(&a, &a) == 0.0);
        // Polygons that overlap by less than a millimeter hide from each other.
        prop_assert!(is_within(&a, &a) || a.polygons.len() > 1);
        prop_assert_eq!(intersects(&a, &b), intersects(&b, &a));
        prop_assert_eq!(distance(&a, &b) < 1e-3, distance(&b, &a) < 1e-3);
        prop_assert!(!is_within(&a, &b) || intersects(&a, &b));
        prop_assert!(!intersects(&a, &b) || distance(&a, &b) < 1e-3);
    }
}
