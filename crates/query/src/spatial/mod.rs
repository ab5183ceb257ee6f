//! How geometries lie to each other: distance, containment, intersection, area.
//!
//! Measures are taken on the WGS 84 ellipsoid; which parts are nearest, cross or contain each other
//! is decided on the sphere of [`index::sphere`], where the antimeridian and the poles are places
//! like others. The boundary of an area belongs to it.

mod measure;
#[cfg(test)]
mod properties;
mod relate;
mod ring;
mod shape;

pub(crate) use measure::{area, distance};
pub(crate) use relate::{intersects, is_within};
pub(crate) use shape::Shape;
