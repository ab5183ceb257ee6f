//! The markers of binary JSON, by value. Ranges are written by their ends.

/// First byte of every buffer.
pub(super) const PREAMBLE: u8 = 0x80;

/// Integers that are their own marker: 00 to here.
pub(super) const LITERAL_MAX: u8 = 0x1f;

pub(super) const STRINGS_MIN: u8 = SYSTEM_MIN;
pub(super) const STRINGS_MAX: u8 = REFERENCE_4;

pub(super) const SYSTEM_MIN: u8 = 0x20;
pub(super) const SYSTEM_MAX: u8 = 0x3f;
pub(super) const BASE64_1: u8 = 0x71;
pub(super) const BASE64_2: u8 = 0x72;
pub(super) const BASE64_URL_1: u8 = 0x73;
pub(super) const BASE64_URL_2: u8 = 0x74;
pub(super) const GUID_LOWER: u8 = 0x75;
pub(super) const GUID_UPPER: u8 = 0x76;
pub(super) const GUID_QUOTED: u8 = 0x77;
pub(super) const HEX_LOWER: u8 = 0x78;
pub(super) const HEX_UPPER: u8 = 0x79;
pub(super) const DATE_TIME: u8 = 0x7a;
pub(super) const PACKED_4: u8 = 0x7b;
pub(super) const PACKED_5: u8 = 0x7c;
pub(super) const PACKED_6: u8 = 0x7d;
pub(super) const PACKED_7_1: u8 = 0x7e;
pub(super) const PACKED_7_2: u8 = 0x7f;
pub(super) const SHORT_MIN: u8 = 0x80;
pub(super) const SHORT_MAX: u8 = 0xbf;
pub(super) const STRING_1: u8 = 0xc0;
pub(super) const STRING_2: u8 = 0xc1;
pub(super) const STRING_4: u8 = 0xc2;
pub(super) const REFERENCE_1: u8 = 0xc3;
pub(super) const REFERENCE_2: u8 = 0xc4;
pub(super) const REFERENCE_3: u8 = 0xc5;
pub(super) const REFERENCE_4: u8 = 0xc6;

pub(super) const UINT64: u8 = 0xc7;
pub(super) const UINT8: u8 = 0xc8;
pub(super) const INT16: u8 = 0xc9;
pub(super) const INT32: u8 = 0xca;
pub(super) const INT64: u8 = 0xcb;
pub(super) const DOUBLE: u8 = 0xcc;
pub(super) const FLOAT32: u8 = 0xcd;
pub(super) const FLOAT64: u8 = 0xce;
pub(super) const FLOAT16: u8 = 0xcf;

pub(super) const NULL: u8 = 0xd0;
pub(super) const FALSE: u8 = 0xd1;
pub(super) const TRUE: u8 = 0xd2;
pub(super) const GUID: u8 = 0xd3;

pub(super) const TYPED_UINT8: u8 = 0xd7;
pub(super) const TYPED_INT8: u8 = 0xd8;
pub(super) const TYPED_INT16: u8 = 0xd9;
pub(super) const TYPED_INT32: u8 = 0xda;
pub(super) const TYPED_INT64: u8 = 0xdb;
pub(super) const TYPED_UINT32: u8 = 0xdc;

pub(super) const BINARY_1: u8 = 0xdd;
pub(super) const BINARY_2: u8 = 0xde;
pub(super) const BINARY_4: u8 = 0xdf;

pub(super) const ARRAY_EMPTY: u8 = 0xe0;
pub(super) const ARRAY_COUNTED_4: u8 = 0xe7;
pub(super) const OBJECT_EMPTY: u8 = 0xe8;
pub(super) const OBJECT_COUNTED_4: u8 = 0xef;
pub(super) const NUMBERS_1: u8 = 0xf0;
pub(super) const NUMBERS_2: u8 = 0xf1;
pub(super) const MATRIX_1: u8 = 0xf2;
pub(super) const MATRIX_2: u8 = 0xf3;

/// Strings that are their own marker, from `SYSTEM_MIN` on.
pub(super) const SYSTEM_STRINGS: [&str; 32] = [
    "$s",
    "$t",
    "$v",
    "_attachments",
    "_etag",
    "_rid",
    "_self",
    "_ts",
    "attachments/",
    "coordinates",
    "geometry",
    "GeometryCollection",
    "id",
    "url",
    "Value",
    "label",
    "LineString",
    "link",
    "MultiLineString",
    "MultiPoint",
    "MultiPolygon",
    "name",
    "Name",
    "Type",
    "Point",
    "Polygon",
    "properties",
    "type",
    "value",
    "Feature",
    "FeatureCollection",
    "_id",
];
