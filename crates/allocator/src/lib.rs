//! Where memory comes from: mimalloc, by its shortest way in.
//!
//! The crate `mimalloc` asks for every block with an alignment, which is checked each time, and a query
//! asks for some two hundred. A block of mimalloc is aligned to a word whatever its size, and few types
//! want more.

#![allow(unsafe_code)] // A global allocator is nothing else.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;

use libmimalloc_sys as mimalloc;

/// What every block is aligned to without being asked.
const ALIGNED: usize = size_of::<usize>();

/// The allocator of a program.
pub struct Allocator;

// SAFETY: Blocks come from mimalloc and go back to it, whichever way each was asked for: it tells from
// the address. A layout has no size of zero here, and an alignment beyond a word is always asked for.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: Both take any size, and an alignment that is a power of two.
        let block = match align <= ALIGNED {
            true => unsafe { mimalloc::mi_malloc(size) },
            false => unsafe { mimalloc::mi_malloc_aligned(size, align) },
        };
        block.cast()
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: As in `alloc`.
        let block = match align <= ALIGNED {
            true => unsafe { mimalloc::mi_zalloc(size) },
            false => unsafe { mimalloc::mi_zalloc_aligned(size, align) },
        };
        block.cast()
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: The caller has it from here.
        unsafe { mimalloc::mi_free(block.cast::<c_void>()) };
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (block, align) = (block.cast::<c_void>(), layout.align());
        // SAFETY: The caller has it from here, and gives it up for what is returned.
        let block = match align <= ALIGNED {
            true => unsafe { mimalloc::mi_realloc(block, size) },
            false => unsafe { mimalloc::mi_realloc_aligned(block, size, align) },
        };
        block.cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_and_keep_their_bytes() {
        for align in (0..13).map(|shift| 1 << shift) {
            for size in [1, 2, 3, 7, 8, 9, 16, 17, 24, 100, 1000, 5000, 100_000] {
                let layout = Layout::from_size_align(size, align).unwrap();
                let larger = Layout::from_size_align(3 * size, align).unwrap();
                // SAFETY: Every block is written within its size and freed once, by its layout.
                unsafe {
                    let zeroed = Allocator.alloc_zeroed(layout);
                    let bytes = std::slice::from_raw_parts_mut(zeroed, size);
                    assert!(bytes.iter().all(|byte| *byte == 0), "{layout:?}");
                    bytes.fill(7);
                    let other = Allocator.alloc(layout);
                    other.write_bytes(9, size);
                    let grown = Allocator.realloc(zeroed, layout, 3 * size);
                    let kept = std::slice::from_raw_parts(grown, size);
                    assert!(kept.iter().all(|byte| *byte == 7), "{layout:?}");
                    for block in [other, grown] {
                        assert_eq!(block.align_offset(align), 0, "{layout:?}");
                    }
                    Allocator.dealloc(other, layout);
                    Allocator.dealloc(grown, larger);
                }
            }
        }
    }
}
