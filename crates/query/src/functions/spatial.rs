//! Spatial functions. What is no valid geometry gives undefined, except to those that ask for it.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use index::geometry::{Flaw, Geometry};
use item::{Kind, Object, Value};

use super::{boolean, number};
use crate::datum::Datum;
use crate::spatial::{self, Shape};

pub(super) fn distance(arguments: &[Datum<'_>]) -> Value {
    number(both(arguments).map(|(a, b)| spatial::distance(&a, &b)))
}

pub(super) fn is_within(arguments: &[Datum<'_>]) -> Value {
    boolean(both(arguments).map(|(a, b)| spatial::is_within(&a, &b)))
}

pub(super) fn intersects(arguments: &[Datum<'_>]) -> Value {
    boolean(both(arguments).map(|(a, b)| spatial::intersects(&a, &b)))
}

/// Points and lines have no area.
pub(super) fn area(arguments: &[Datum<'_>]) -> Value {
    number(shape(&arguments[0]).ok().map(|shape| spatial::area(&shape)))
}

pub(super) fn is_valid(arguments: &[Datum<'_>]) -> Value {
    boolean(flaw(&arguments[0]).map(|flaw| flaw.is_none()))
}

/// An object that also says why it is not valid.
pub(super) fn is_valid_detailed(arguments: &[Datum<'_>]) -> Value {
    let Some(flaw) = flaw(&arguments[0]) else { return Value::Undefined };
    let mut details = Object::with_capacity(2);
    details.insert("valid", Value::Bool(flaw.is_none()));
    if let Some(flaw) = flaw {
        details.insert("reason", Value::from(flaw.to_string()));
    }
    Value::object(details)
}

/// What is wrong with an object; `None` for what is none.
fn flaw(argument: &Datum<'_>) -> Option<Option<Flaw>> {
    (argument.kind() == Some(Kind::Object)).then(|| shape(argument).err())
}

fn both(arguments: &[Datum<'_>]) -> Option<(Rc<Shape>, Rc<Shape>)> {
    Some((shape(&arguments[0]).ok()?, shape(&arguments[1]).ok()?))
}

/// A geometry, or what is wrong with it.
type Reading = Result<Rc<Shape>, Flaw>;

/// The geometry an argument is. A constant is the same object in every row, so it is read once.
fn shape(argument: &Datum<'_>) -> Reading {
    match argument {
        Datum::Node(node) => Shape::new(Geometry::read(*node)?).map(Rc::new),
        Datum::Value(Cow::Borrowed(value)) => LATEST.with_borrow_mut(|latest| latest.get(value)),
        Datum::Value(Cow::Owned(value)) => Shape::new(Geometry::read(value)?).map(Rc::new),
    }
}

thread_local! {
    static LATEST: RefCell<Latest> = RefCell::default();
}

/// Objects a thread remembers: as many as one filter has.
const LATEST_MAX: usize = 4;

/// The objects read last, kept so that no other takes their place in memory.
#[derive(Default)]
struct Latest {
    shapes: Vec<(Arc<Object>, Reading)>,
}

impl Latest {
    fn get(&mut self, value: &Value) -> Reading {
        let Value::Object(object) = value else { return Err(Flaw::Form) };
        let known = self.shapes.iter().find(|(known, _)| Arc::ptr_eq(known, object));
        if let Some((_, shape)) = known {
            return shape.clone();
        }
        let shape = Geometry::read(value).and_then(Shape::new).map(Rc::new);
        if self.shapes.len() == LATEST_MAX {
            drop(self.shapes.remove(0));
        }
        self.shapes.push((object.clone(), shape.clone()));
        shape
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SQUARE: &str = "[[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]";

    fn geometry(kind: &str, coordinates: &str) -> Value {
        let text = format!(r#"{{"type": "{kind}", "coordinates": {coordinates}}}"#);
        Value::parse(text.as_bytes()).expect("JSON")
    }

    fn point(longitude: f64, latitude: f64) -> Value {
        geometry("Point", &format!("[{longitude}, {latitude}]"))
    }

    fn call(function: fn(&[Datum<'_>]) -> Value, arguments: &[&Value]) -> Value {
        let arguments: Vec<_> = arguments.iter().map(|value| Datum::borrowed(value)).collect();
        function(&arguments)
    }

    /// Within half a percent.
    fn check_distance(a: &Value, b: &Value, meters: f64) {
        for (a, b) in [(a, b), (b, a)] {
            let actual = call(distance, &[a, b]).as_f64().expect("a distance");
            assert!((actual - meters).abs() <= meters * 0.005, "{actual}, not {meters}");
        }
    }

    fn check_area(geometry: &Value, expect: f64) {
        let actual = call(area, &[geometry]).as_f64().expect("an area");
        assert!((actual - expect).abs() <= expect * 0.005, "{actual}, not {expect}");
    }

    fn check_within(a: &Value, b: &Value, expect: bool) {
        assert_eq!(call(is_within, &[a, b]), Value::Bool(expect), "{a:?} in {b:?}");
    }

    fn check_intersects(a: &Value, b: &Value, expect: bool) {
        assert_eq!(call(intersects, &[a, b]), Value::Bool(expect), "{a:?} and {b:?}");
        assert_eq!(call(intersects, &[b, a]), Value::Bool(expect), "{b:?} and {a:?}");
        let is_zero = call(distance, &[a, b]) == Value::Number(0.0);
        assert_eq!(is_zero, expect, "the distance says the same");
    }

    #[test]
    fn distances_between_points() {
        let here = point(-122.11758113953535, 47.66901087006131);
        let headquarters = point(-122.12826822304672, 47.63980239335718);
        let research = point(-96.84368664765994, 46.81297794314663);
        check_distance(&headquarters, &here, 3345.269817267368);
        check_distance(&research, &here, 1907438.421299902);
        check_distance(&here, &here, 0.0);
        check_distance(&point(179.5, 0.0), &point(-179.5, 0.0), 111_319.5);
        check_distance(&point(0.0, 0.0), &point(180.0, 0.0), 20_003_931.5);
        check_distance(&point(0.0, 89.0), &point(180.0, 89.0), 223_388.0);
        check_distance(&point(7.0, 90.0), &point(-20.0, 90.0), 0.0);
        let several = geometry("MultiPoint", "[[50, 50], [1, 0], [2, 0]]");
        check_distance(&several, &point(0.0, 0.0), 111_319.5);
    }

    #[test]
    fn distances_to_lines_and_areas() {
        let equator = geometry("LineString", "[[0, 0], [10, 0]]");
        check_distance(&point(5.0, 1.0), &equator, 110_574.4);
        check_distance(&point(11.0, 0.0), &equator, 111_319.5);
        check_distance(&point(5.0, 0.0), &equator, 0.0);
        let square = geometry("Polygon", SQUARE);
        check_distance(&point(5.0, 5.0), &square, 0.0);
        check_distance(&point(11.0, 5.0), &square, 110_899.0);
        check_distance(&point(5.0, -1.0), &square, 110_574.4);
        check_distance(&geometry("LineString", "[[12, -3], [12, 8]]"), &square, 220_486.0);
        let other = geometry("Polygon", "[[[12, 2], [13, 2], [13, 3], [12, 3], [12, 2]]]");
        check_distance(&other, &square, 222_332.0);
        let over = geometry("LineString", "[[179, 0], [-179, 0]]");
        check_distance(&point(180.0, 1.0), &over, 110_574.4);
        check_distance(&point(-180.0, -1.0), &over, 110_574.4);
        // The shortest line from a town in the middle of a very long edge.
        let long = geometry("LineString", "[[-60, 50], [60, 50]]");
        check_distance(&point(0.0, 50.0), &long, 1_920_000.0);
    }

    #[test]
    fn points_within_areas() {
        let campus = geometry(
            "Polygon",
            "[[[-122.13236581015025, 47.64606476313813], [-122.13221982500913, 47.633757091363975],
               [-122.11840598103835, 47.641749416109235], [-122.12061400629656, 47.64589264786028],
               [-122.13236581015025, 47.64606476313813]]]",
        );
        check_within(&point(-122.12824857332558, 47.6395516675712), &campus, true);
        check_within(&point(-122.2, 47.64), &campus, false);
        let square = geometry("Polygon", SQUARE);
        check_within(&point(5.0, 5.0), &square, true);
        check_within(&point(5.0, -0.001), &square, false);
        check_within(&point(0.0, 0.0), &square, true);
        check_within(&point(5.0, 0.0), &square, true);
        check_within(&point(-5.0, 0.0), &square, false);
        check_within(&point(-175.0, -5.0), &square, false);
        check_within(&point(5.0, 5.0), &point(5.0, 5.0), true);
        check_within(&point(5.0, 5.0), &point(5.0, 5.001), false);
        check_within(&square, &point(5.0, 5.0), false);
    }

    #[test]
    fn a_clockwise_ring_means_everything_else() {
        let rest = geometry("Polygon", "[[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]]");
        check_within(&point(5.0, 5.0), &rest, false);
        check_within(&point(-5.0, 5.0), &rest, true);
        check_within(&point(-175.0, -5.0), &rest, true);
        check_area(&rest, 510_065_621_724_088.0 - 1_233_204_000_000.0);
        check_intersects(&rest, &geometry("Polygon", SQUARE), true);
        check_within(&rest, &geometry("Polygon", SQUARE), false);
        check_within(&geometry("Polygon", SQUARE), &rest, false);
        check_within(&rest, &rest, true);
        let far = geometry("Polygon", "[[[50, 0], [60, 0], [60, 10], [50, 10], [50, 0]]]");
        check_within(&far, &rest, true);
        check_within(&rest, &far, false);
        let inside = geometry("Polygon", "[[[2, 2], [3, 2], [3, 3], [2, 3], [2, 2]]]");
        check_intersects(&inside, &rest, false);
    }

    #[test]
    fn holes() {
        let outer = "[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]";
        for hole in
            ["[[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]", "[[4, 4], [6, 4], [6, 6], [4, 6], [4, 4]]"]
        {
            let ring = geometry("Polygon", &format!("[{outer}, {hole}]"));
            check_within(&point(5.0, 5.0), &ring, false);
            check_within(&point(2.0, 5.0), &ring, true);
            check_intersects(&point(5.0, 5.0), &ring, false);
            check_distance(&point(5.0, 5.0), &ring, 110_500.0);
            check_area(&ring, 1_233_204_000_000.0 - 49_060_000_000.0);
            let over = geometry("Polygon", "[[[3, 3], [7, 3], [7, 7], [3, 7], [3, 3]]]");
            check_within(&over, &ring, false);
            check_intersects(&over, &ring, true);
            let inside =
                geometry("Polygon", "[[[4.5, 4.5], [5, 4.5], [5, 5], [4.5, 5], [4.5, 4.5]]]");
            check_intersects(&inside, &ring, false);
            let filling = geometry("Polygon", "[[[4, 4], [6, 4], [6, 6], [4, 6], [4, 4]]]");
            check_within(&filling, &ring, false);
            check_within(&geometry("LineString", "[[1, 5], [9, 5]]"), &ring, false);
            check_within(&geometry("LineString", "[[1, 5], [3, 5]]"), &ring, true);
        }
    }

    #[test]
    fn lines_and_areas_within_areas() {
        let square = geometry("Polygon", SQUARE);
        check_within(&geometry("LineString", "[[1, 1], [9, 9]]"), &square, true);
        check_within(&geometry("LineString", "[[1, 1], [19, 9]]"), &square, false);
        check_within(&geometry("LineString", "[[0, 0], [10, 0]]"), &square, true);
        check_within(&geometry("LineString", "[[0, 0], [11, 0]]"), &square, false);
        check_within(&geometry("MultiPoint", "[[1, 1], [2, 2]]"), &square, true);
        check_within(&geometry("MultiPoint", "[[1, 1], [2, 12]]"), &square, false);
        check_within(&geometry("Polygon", "[[[1, 1], [9, 1], [5, 9], [1, 1]]]"), &square, true);
        check_within(&geometry("Polygon", "[[[1, 1], [11, 1], [5, 9], [1, 1]]]"), &square, false);
        check_within(&square, &square, true);
        check_within(&square, &geometry("LineString", "[[0, 0], [10, 0]]"), false);
        let line = geometry("LineString", "[[0, 0], [10, 0]]");
        check_within(&geometry("LineString", "[[2, 0], [3, 0]]"), &line, true);
        check_within(&geometry("LineString", "[[2, 0], [13, 0]]"), &line, false);
        check_within(&point(3.0, 0.0), &line, true);
        // A bay whose ends both lie in the area, though the line between them does not.
        let bay =
            "[[[0, 0], [10, 0], [10, 10], [7, 10], [7, 2], [3, 2], [3, 10], [0, 10], [0, 0]]]";
        let bay = geometry("Polygon", bay);
        check_within(&geometry("LineString", "[[1, 8], [9, 8]]"), &bay, false);
        check_within(&geometry("LineString", "[[1, 1], [9, 1]]"), &bay, true);
        let both = format!("[{SQUARE}, [[[20, 0], [30, 0], [30, 10], [20, 10], [20, 0]]]]");
        let both = geometry("MultiPolygon", &both);
        check_within(&point(25.0, 5.0), &both, true);
        check_within(&point(15.0, 5.0), &both, false);
        check_within(&square, &both, true);
        check_within(&both, &square, false);
        check_area(&both, 2.0 * 1_233_204_000_000.0);
    }

    #[test]
    fn intersections() {
        let highway = geometry(
            "Polygon",
            "[[[-122.13693695285855, 47.64996065621003], [-122.1351662656516, 47.64627863318731],
               [-122.13488295569863, 47.646326350048696], [-122.1366182291613, 47.650016321952904],
               [-122.13693695285855, 47.64996065621003]]]",
        );
        let campus = geometry(
            "Polygon",
            "[[[-122.14034847687708, 47.6494835188378], [-122.14014779899375, 47.64625477474044],
               [-122.13256925774829, 47.646207057813655], [-122.13254564858545, 47.64941990019193],
               [-122.14034847687708, 47.6494835188378]]]",
        );
        check_intersects(&highway, &campus, true);
        let square = geometry("Polygon", SQUARE);
        check_intersects(&square, &square, true);
        check_intersects(&point(10.0, 10.0), &square, true);
        check_intersects(&point(10.1, 10.0), &square, false);
        check_intersects(&geometry("LineString", "[[-5, 5], [15, 5]]"), &square, true);
        check_intersects(&geometry("LineString", "[[-5, 15], [15, 15]]"), &square, false);
        let beside = geometry("Polygon", "[[[10, 0], [20, 0], [20, 10], [10, 10], [10, 0]]]");
        check_intersects(&beside, &square, true);
        let inside = geometry("Polygon", "[[[2, 2], [3, 2], [3, 3], [2, 3], [2, 2]]]");
        check_intersects(&inside, &square, true);
        let lines = geometry("MultiLineString", "[[[50, 50], [51, 51]], [[-1, 5], [1, 5]]]");
        check_intersects(&lines, &square, true);
        let cross = geometry("LineString", "[[0, -5], [0, 5]]");
        check_intersects(&cross, &geometry("LineString", "[[-5, 0], [5, 0]]"), true);
        check_intersects(&cross, &geometry("LineString", "[[1, 0], [5, 0]]"), false);
    }

    #[test]
    fn over_the_antimeridian_and_the_poles() {
        let fiji = "[[[177, -20], [-178, -20], [-178, -15], [177, -15], [177, -20]]]";
        let fiji = geometry("Polygon", fiji);
        check_within(&point(179.5, -17.0), &fiji, true);
        check_within(&point(-179.5, -17.0), &fiji, true);
        check_within(&point(180.0, -17.0), &fiji, true);
        check_within(&point(0.0, -17.0), &fiji, false);
        check_area(&fiji, 293_000_000_000.0);
        let arctic = "[[[-180, 70], [-90, 70], [0, 70], [90, 70], [-180, 70]]]";
        let arctic = geometry("Polygon", arctic);
        check_within(&point(33.0, 89.0), &arctic, true);
        check_within(&point(0.0, 90.0), &arctic, true);
        check_within(&point(0.0, 60.0), &arctic, false);
        check_intersects(&arctic, &fiji, false);
    }

    #[test]
    fn areas() {
        let sample = "[[[31.8, -5], [32, -5], [32, -4.7], [31.8, -4.7], [31.8, -5]]]";
        check_area(&geometry("Polygon", sample), 735970283.0522614);
        check_area(&geometry("Polygon", SQUARE), 1_233_204_000_000.0);
        assert_eq!(call(area, &[&point(1.0, 2.0)]), Value::Number(0.0));
        assert_eq!(call(area, &[&geometry("LineString", "[[0, 0], [1, 1]]")]), Value::Number(0.0));
    }

    #[test]
    fn validity() {
        let check = |value: &Value, reason: Option<&str>| {
            assert_eq!(call(is_valid, &[value]), Value::Bool(reason.is_none()), "{value:?}");
            let details = call(is_valid_detailed, &[value]);
            assert_eq!(details.get("valid"), &Value::Bool(reason.is_none()));
            assert_eq!(details.get("reason").as_str().is_some(), reason.is_some());
            assert!(details.get("reason").as_str().unwrap_or("").contains(reason.unwrap_or("")));
        };
        check(&point(-84.38876194345323, 33.75682784306348), None);
        check(&point(133.756827843, -184.388761943), Some("Latitude values must be"));
        check(&geometry("Polygon", SQUARE), None);
        check(&geometry("Polygon", "[[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]]"), None);
        check(&geometry("Polygon", "[[[0, 0], [9, 9], [9, 0], [0, 9], [0, 0]]]"), Some("cross"));
        check(&geometry("Polygon", "[[[0, 0], [9, 0], [9, 9], [0, 9]]]"), Some("not the same"));
        check(&geometry("Feature", "[5, 6]"), Some("GeoJSON"));
        check(&Value::parse(b"{}").expect("JSON"), Some("GeoJSON"));
        for other in [Value::Null, Value::from("Point"), Value::Number(1.0), Value::array(vec![])] {
            assert!(call(is_valid, &[&other]).is_undefined());
            assert!(call(is_valid_detailed, &[&other]).is_undefined());
        }
    }

    #[test]
    fn what_is_not_valid_has_no_measure() {
        let bad = point(5.0, 96.0);
        let crossed = geometry("Polygon", "[[[0, 0], [9, 9], [9, 0], [0, 9], [0, 0]]]");
        let good = point(5.0, 6.0);
        for bad in [&bad, &crossed, &Value::Null, &Value::from("x")] {
            assert!(call(area, &[bad]).is_undefined());
            for function in [distance, is_within, intersects] {
                assert!(call(function, &[bad, &good]).is_undefined());
                assert!(call(function, &[&good, bad]).is_undefined());
            }
        }
    }

    #[test]
    fn a_constant_is_read_once() {
        let square = geometry("Polygon", SQUARE);
        let read = || shape(&Datum::borrowed(&square)).expect("a shape");
        assert!(Rc::ptr_eq(&read(), &read()));
        let others: Vec<Value> = (0..LATEST_MAX).map(|at| point(at as f64, 0.0)).collect();
        let first = read();
        others.iter().for_each(|other| drop(shape(&Datum::borrowed(other))));
        assert!(!Rc::ptr_eq(&first, &read()));
    }
}
