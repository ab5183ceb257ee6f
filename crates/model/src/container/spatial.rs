//! Spatial indexes and the geometry they are over.

use serde_json::{Value, json};

use super::error::DefinitionError;
use super::fields::{
    Object, Parsed, as_array, as_object, as_str, bad_path, fill, get, list, require,
};
use super::path::IndexPath;

/// A shape that a spatial index holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpatialType {
    /// One position.
    Point,
    /// A line through positions.
    LineString,
    /// An area, maybe with holes.
    Polygon,
    /// Several areas.
    MultiPolygon,
}

/// An index over the shapes at a path.
#[derive(Debug, Clone, PartialEq)]
pub struct SpatialIndex {
    /// Where the shapes are.
    pub path: IndexPath,
    /// Which shapes; all if none were named.
    pub types: Vec<SpatialType>,
    /// Extent of the plane for `Geometry`: xmin, ymin, xmax, ymax.
    pub bounding_box: Option<[f64; 4]>,
}

/// How coordinates are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Geospatial {
    /// Longitude and latitude on the earth.
    Geography,
    /// A plane.
    Geometry,
}

const PROPERTY: &str = "indexingPolicy.spatialIndexes";

/// Reads the list and fills in the types of entries that name none.
pub(super) fn parse_spatial_indexes(policy: &mut Object) -> Parsed<Vec<SpatialIndex>> {
    let entries = list(policy, "spatialIndexes", PROPERTY)?;
    let indexes = entries.iter().map(parse_spatial_index).collect::<Parsed<Vec<_>>>()?;
    let entries = policy.get_mut("spatialIndexes").and_then(Value::as_array_mut);
    let entries = entries.into_iter().flatten().filter_map(Value::as_object_mut);
    let all = json!(["Point", "LineString", "Polygon", "MultiPolygon"]);
    entries.for_each(|entry| fill(entry, "types", all.clone()));
    Ok(indexes)
}

fn parse_spatial_index(value: &Value) -> Parsed<SpatialIndex> {
    let entry = as_object(value, PROPERTY)?;
    let text = as_str(require(entry, "path", PROPERTY)?, PROPERTY)?;
    let path = IndexPath::parse(text).map_err(|source| bad_path(PROPERTY, text, source))?;
    let types = match get(entry, "types") {
        Some(types) => as_array(types, PROPERTY)?.iter().map(parse_type).collect::<Parsed<_>>()?,
        None => vec![
            SpatialType::Point,
            SpatialType::LineString,
            SpatialType::Polygon,
            SpatialType::MultiPolygon,
        ],
    };
    let bounding_box = get(entry, "boundingBox").map(parse_box).transpose()?;
    Ok(SpatialIndex { path, types, bounding_box })
}

fn parse_type(value: &Value) -> Parsed<SpatialType> {
    match value.as_str() {
        Some("Point") => Ok(SpatialType::Point),
        Some("LineString") => Ok(SpatialType::LineString),
        Some("Polygon") => Ok(SpatialType::Polygon),
        Some("MultiPolygon") => Ok(SpatialType::MultiPolygon),
        _ => Err(DefinitionError::Invalid {
            property: "indexingPolicy.spatialIndexes.types",
            expected: "'Point', 'LineString', 'Polygon' or 'MultiPolygon'",
        }),
    }
}

fn parse_box(value: &Value) -> Parsed<[f64; 4]> {
    let side = |name: &str| value.get(name).and_then(Value::as_f64);
    let sides = [side("xmin"), side("ymin"), side("xmax"), side("ymax")];
    match sides {
        [Some(x0), Some(y0), Some(x1), Some(y1)] if x0 < x1 && y0 < y1 => Ok([x0, y0, x1, y1]),
        _ => Err(DefinitionError::NoBoundingBox),
    }
}

/// Reads `geospatialConfig`.
pub(super) fn parse_geospatial(value: Option<&Value>) -> Parsed<Geospatial> {
    let Some(value) = value else { return Ok(Geospatial::Geography) };
    match get(as_object(value, "geospatialConfig")?, "type").map(Value::as_str) {
        None | Some(Some("Geography")) => Ok(Geospatial::Geography),
        Some(Some("Geometry")) => Ok(Geospatial::Geometry),
        Some(_) => Err(DefinitionError::Invalid {
            property: "geospatialConfig.type",
            expected: "'Geography' or 'Geometry'",
        }),
    }
}

/// Indexes over a plane need its extent.
pub(super) fn check_spatial(indexes: &[SpatialIndex], geospatial: Geospatial) -> Parsed<()> {
    let unbounded = indexes.iter().any(|index| index.bounding_box.is_none());
    match geospatial == Geospatial::Geometry && unbounded {
        true => Err(DefinitionError::NoBoundingBox),
        false => Ok(()),
    }
}
