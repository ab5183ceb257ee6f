//! What must hold of any bytes whatsoever.

use query::{STATE_BYTES_MAX, State};

/// What decodes encodes to the same state. Numbers have one short form; bytes with longer ones
/// shrink, all others stay as they are.
pub fn run(data: &[u8]) {
    let Ok(state) = State::decode(data) else { return };
    let bytes = state.encode();
    assert!(bytes.len() <= STATE_BYTES_MAX.min(data.len()), "{} bytes", bytes.len());
    if bytes.len() == data.len() {
        assert_eq!(bytes, data);
    }
    assert_eq!(State::decode(&bytes).expect("what was encoded decodes"), state);
}
