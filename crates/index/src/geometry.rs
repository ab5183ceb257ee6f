//! GeoJSON geometries, as the spatial index and the spatial functions read them.
//!
//! Longitude comes before latitude, both in degrees. Of a polygon the first ring is the outer one,
//! the others are holes. The area is to the left of the outer ring: counterclockwise is the inside,
//! clockwise everything else.

use std::fmt;

use item::{Kind, Node, Value};

/// Most positions of one polygon.
pub const POLYGON_POSITIONS_MAX: usize = 4096;

/// A place on the Earth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// In degrees, east is positive.
    pub longitude: f64,
    /// In degrees, north is positive.
    pub latitude: f64,
}

/// What GeoJSON calls the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeometryType {
    /// One position.
    Point,
    /// Several positions.
    MultiPoint,
    /// A line through positions.
    LineString,
    /// Several lines.
    MultiLineString,
    /// An area, maybe with holes.
    Polygon,
    /// Several areas.
    MultiPolygon,
}

/// The rings of a polygon, each closed: its last position is its first.
pub type Rings = Vec<Vec<Position>>;

/// A geometry whose parts have the right form. Whether its rings cross themselves is not checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Geometry {
    /// Its type.
    pub kind: GeometryType,
    /// The positions of points.
    pub points: Vec<Position>,
    /// The lines, of two positions or more.
    pub lines: Vec<Vec<Position>>,
    /// The polygons.
    pub polygons: Vec<Rings>,
}

/// Why a value is no geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// No object with a known type and with coordinates of its form.
    Form,
    /// A latitude outside of ±90 degrees.
    Latitude,
    /// A longitude outside of ±180 degrees.
    Longitude,
    /// A line of fewer than two positions.
    ShortLine,
    /// A ring, counted from one, of fewer than four positions or fewer than three different ones.
    ShortRing(usize),
    /// A ring, counted from one, that does not end where it begins.
    OpenRing(usize),
    /// A polygon of more than [`POLYGON_POSITIONS_MAX`] positions.
    TooManyPositions,
    /// Two successive positions on opposite sides of the Earth: no line between them is shortest.
    Antipodes,
    /// A ring, counted from one, with edges that cross.
    CrossedRing(usize),
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flaw::Form => f.write_str("The input is not a valid GeoJSON geometry."),
            Flaw::Latitude => f.write_str("Latitude values must be between -90 and 90 degrees."),
            Flaw::Longitude => {
                f.write_str("Longitude values must be between -180 and 180 degrees.")
            }
            Flaw::ShortLine => f.write_str(
                "The LineString input is not valid because it does not have enough points. A \
                 LineString must have at least two points.",
            ),
            Flaw::ShortRing(ring) => write!(
                f,
                "The Polygon input is not valid because the ring number {ring} does not have \
                 enough points. Each ring of a polygon must contain at least four points.",
            ),
            Flaw::OpenRing(ring) => write!(
                f,
                "The Polygon input is not valid because the start and end points of the ring \
                 number {ring} are not the same. Each ring of a polygon must have the same start \
                 and end points.",
            ),
            Flaw::TooManyPositions => write!(
                f,
                "The Polygon input is not valid because it has more than {POLYGON_POSITIONS_MAX} \
                 points.",
            ),
            Flaw::Antipodes => f.write_str(
                "The input is not valid because it has an edge between antipodal points.",
            ),
            Flaw::CrossedRing(ring) => write!(
                f,
                "The Polygon input is not valid because edges of the ring number {ring} cross.",
            ),
        }
    }
}

/// JSON that a geometry is read from, wherever it lives.
pub trait Json: Sized {
    /// The property of this name.
    fn get(&self, name: &str) -> Option<Self>;
    /// The elements, if it is an array.
    fn elements(&self) -> Option<Vec<Self>>;
    /// The number it is.
    fn number(&self) -> Option<f64>;
    /// The type that this string names.
    fn geometry_type(&self) -> Option<GeometryType>;
}

impl Json for Node<'_> {
    fn get(&self, name: &str) -> Option<Self> {
        Node::get(*self, name)
    }

    fn elements(&self) -> Option<Vec<Self>> {
        (self.kind() == Kind::Array).then(|| Node::elements(*self).collect())
    }

    fn number(&self) -> Option<f64> {
        self.as_f64()
    }

    fn geometry_type(&self) -> Option<GeometryType> {
        self.as_str().and_then(|name| GeometryType::from_name(&name))
    }
}

impl Json for &Value {
    fn get(&self, name: &str) -> Option<Self> {
        Some(Value::get(self, name)).filter(|value| !value.is_undefined())
    }

    fn elements(&self) -> Option<Vec<Self>> {
        self.as_array().map(|elements| elements.iter().collect())
    }

    fn number(&self) -> Option<f64> {
        self.as_f64()
    }

    fn geometry_type(&self) -> Option<GeometryType> {
        self.as_str().and_then(GeometryType::from_name)
    }
}

impl GeometryType {
    fn from_name(name: &str) -> Option<GeometryType> {
        Some(match name {
            "Point" => GeometryType::Point,
            "MultiPoint" => GeometryType::MultiPoint,
            "LineString" => GeometryType::LineString,
            "MultiLineString" => GeometryType::MultiLineString,
            "Polygon" => GeometryType::Polygon,
            "MultiPolygon" => GeometryType::MultiPolygon,
            _ => return None,
        })
    }
}

impl Geometry {
    /// Reads a geometry. Members besides `type` and `coordinates` mean nothing.
    pub fn read(json: impl Json) -> Result<Geometry, Flaw> {
        let kind = json.get("type").and_then(|name| name.geometry_type()).ok_or(Flaw::Form)?;
        let coordinates = json.get("coordinates").ok_or(Flaw::Form)?;
        let mut geometry = Geometry { kind, points: vec![], lines: vec![], polygons: vec![] };
        match kind {
            GeometryType::Point => geometry.points = vec![position(&coordinates)?],
            GeometryType::MultiPoint => geometry.points = each(&coordinates, position)?,
            GeometryType::LineString => geometry.lines = vec![line(&coordinates)?],
            GeometryType::MultiLineString => geometry.lines = each(&coordinates, line)?,
            GeometryType::Polygon => geometry.polygons = vec![rings(&coordinates)?],
            GeometryType::MultiPolygon => geometry.polygons = each(&coordinates, rings)?,
        }
        Ok(geometry)
    }
}

/// Reads every element; there must be one.
fn each<J: Json, T>(json: &J, read: fn(&J) -> Result<T, Flaw>) -> Result<Vec<T>, Flaw> {
    let elements = json.elements().filter(|elements| !elements.is_empty()).ok_or(Flaw::Form)?;
    elements.iter().map(read).collect()
}

/// Two numbers; an altitude and more may follow.
fn position<J: Json>(json: &J) -> Result<Position, Flaw> {
    let numbers = each(json, |number| number.number().ok_or(Flaw::Form))?;
    let &[longitude, latitude, ..] = &numbers[..] else { return Err(Flaw::Form) };
    if !(-90.0..=90.0).contains(&latitude) {
        return Err(Flaw::Latitude);
    }
    if !(-180.0..=180.0).contains(&longitude) {
        return Err(Flaw::Longitude);
    }
    Ok(Position { longitude, latitude })
}

fn line<J: Json>(json: &J) -> Result<Vec<Position>, Flaw> {
    let positions = each(json, position)?;
    if positions.len() < 2 {
        return Err(Flaw::ShortLine);
    }
    check_edges(&positions)?;
    Ok(positions)
}

fn rings<J: Json>(json: &J) -> Result<Rings, Flaw> {
    let rings = each(json, |ring| each(ring, position))?;
    if rings.iter().map(Vec::len).sum::<usize>() > POLYGON_POSITIONS_MAX {
        return Err(Flaw::TooManyPositions);
    }
    for (ring, number) in rings.iter().zip(1..) {
        check_ring(ring, number)?;
    }
    Ok(rings)
}

fn check_ring(ring: &[Position], number: usize) -> Result<(), Flaw> {
    if ring.first() != ring.last() {
        return Err(Flaw::OpenRing(number));
    }
    let others = || ring.iter().filter(|position| !is_same_place(position, &ring[0]));
    let second = others().next().ok_or(Flaw::ShortRing(number))?;
    if ring.len() < 4 || !others().any(|position| !is_same_place(position, second)) {
        return Err(Flaw::ShortRing(number));
    }
    check_edges(ring)
}

/// A pole has every longitude, the antimeridian two.
fn is_same_place(a: &Position, b: &Position) -> bool {
    let turn = (a.longitude - b.longitude).abs();
    a.latitude == b.latitude && (turn == 0.0 || turn == 360.0 || a.latitude.abs() == 90.0)
}

fn check_edges(positions: &[Position]) -> Result<(), Flaw> {
    let are_antipodes = |edge: &[Position]| {
        let apart = (edge[0].longitude - edge[1].longitude).abs();
        let at_poles = edge[0].latitude.abs() == 90.0;
        edge[0].latitude == -edge[1].latitude && (apart == 180.0 || at_poles)
    };
    if positions.windows(2).any(are_antipodes) { Err(Flaw::Antipodes) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Geometry, Flaw> {
        let value = Value::parse(text.as_bytes()).expect("JSON");
        Geometry::read(&value)
    }

    fn check(kind: &str, coordinates: &str, expect: Result<(), Flaw>) {
        let text = format!(r#"{{"type": "{kind}", "coordinates": {coordinates}}}"#);
        assert_eq!(read(&text).map(|_| ()), expect, "{text}");
    }

    #[test]
    fn every_type_is_read() {
        check("Point", "[5, 6]", Ok(()));
        check("Point", "[5, 6, 100.5, 7]", Ok(()));
        check("Point", "[-180, 90]", Ok(()));
        check("MultiPoint", "[[5, 6], [7, 8]]", Ok(()));
        check("LineString", "[[5, 6], [7, 8]]", Ok(()));
        check("MultiLineString", "[[[5, 6], [7, 8]], [[5, 6], [7, 8]]]", Ok(()));
        check("Polygon", "[[[0, 0], [1, 0], [1, 1], [0, 0]]]", Ok(()));
        check("Polygon", "[[[0, 0], [0, 0], [1, 0], [1, 1], [0, 0]]]", Ok(()));
        check("MultiPolygon", "[[[[0, 0], [1, 0], [1, 1], [0, 0]]]]", Ok(()));
    }

    #[test]
    fn flaws() {
        for text in ["{}", "[]", "5", r#"{"type": "Point"}"#, r#"{"coordinates": [5, 6]}"#] {
            assert_eq!(read(text), Err(Flaw::Form), "{text}");
        }
        check("point", "[5, 6]", Err(Flaw::Form));
        check("Circle", "[5, 6]", Err(Flaw::Form));
        check("Point", "[5]", Err(Flaw::Form));
        check("Point", "[5, null]", Err(Flaw::Form));
        check("Point", "[[5, 6]]", Err(Flaw::Form));
        check("Point", "[5, 96]", Err(Flaw::Latitude));
        check("Point", "[181, 6]", Err(Flaw::Longitude));
        check("Point", "[-181, -91]", Err(Flaw::Latitude));
        check("LineString", "[5, 6]", Err(Flaw::Form));
        check("LineString", "[[5, 6]]", Err(Flaw::ShortLine));
        check("LineString", "[[0, 0], [180, 0]]", Err(Flaw::Antipodes));
        check("LineString", "[[7, 90], [8, -90]]", Err(Flaw::Antipodes));
        check("Polygon", "[]", Err(Flaw::Form));
        check("Polygon", "[[[0, 0], [1, 0], [1, 1], [0, 1]]]", Err(Flaw::OpenRing(1)));
        check("Polygon", "[[[0, 0], [1, 0], [0, 0]]]", Err(Flaw::ShortRing(1)));
        check("Polygon", "[[[0, 0], [1, 0], [1, 0], [0, 0]]]", Err(Flaw::ShortRing(1)));
        check("Polygon", "[[[7, 0], [0, 90], [10, 90], [7, 0]]]", Err(Flaw::ShortRing(1)));
        check("Polygon", "[[[180, 0], [7, 9], [-180, 0], [180, 0]]]", Err(Flaw::ShortRing(1)));
        let hole = "[[0.5, 0.5], [0.5, 0.6], [0.6, 0.6], [0.6, 0.5]]";
        let polygon = format!("[[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]], {hole}]");
        check("Polygon", &polygon, Err(Flaw::OpenRing(2)));
    }

    #[test]
    fn the_largest_polygon() {
        let ring = |positions: usize| {
            let all = (0..positions - 1).map(|at| format!("[{}, 0],", at as f64 / 100.0));
            format!("[[{}[0, 0]]]", all.collect::<String>())
        };
        check("Polygon", &ring(POLYGON_POSITIONS_MAX - 1), Ok(()));
        check("Polygon", &ring(POLYGON_POSITIONS_MAX), Ok(()));
        check("Polygon", &ring(POLYGON_POSITIONS_MAX + 1), Err(Flaw::TooManyPositions));
    }

    #[test]
    fn the_service_names_the_reason() {
        assert_eq!(
            Flaw::Latitude.to_string(),
            "Latitude values must be between -90 and 90 degrees."
        );
        assert!(Flaw::OpenRing(1).to_string().contains("ring number 1 are not the same"));
    }
}
