//! The memory of one runtime, which can be brought back to how it once was.
//!
//! Making a runtime and freeing it again costs twenty times what a short script does. Both are
//! done once per thread here: when a runtime is made, with everything in it that a script finds, its
//! memory is kept. After a script, every byte is put back:
//!
//! ```text
//!            keep                        restore
//! ┌───┬───┐  ───▶  ┌───┬───┐ ┌───┬───┐   ───▶  ┌───┬───┐
//! │ a │ b │        │ a │ ? │ │ c │ d │         │ a │ b │   a copy was taken of a and b;
//! └───┴───┘        └───┴───┘ └───┴───┘         └───┴───┘   c and d are freed
//!   kept             kept      young             kept
//! ```
//!
//! The engine has all its state in blocks of its allocator, which this is, and none in variables of its
//! own: it forbids itself any other allocation. So a script finds the very runtime that the one before
//! it found, whatever that one did: prototypes, promise jobs, memory that ran out.
//!
//! INVARIANTS
//! (A1) A kept block stays where it is until the runtime is gone: freeing it does nothing, and growing
//!      it makes a young one.
//! (A2) Blocks that nobody freed go with the runtime, so nothing leaks.
//! (A3) What the bytes of a kept block point to outside of the runtime lives as long as the runtime.
//! (A4) All blocks together are no larger than the limit, or what they were when it was set.
//!
//! ELSEWHERE  Who may restore, and when: `machine`.

#![allow(unsafe_code)] // An allocator of a C library; this module is the place for it.

use std::alloc::Layout;
use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::rc::Rc;

use rquickjs::allocator::Allocator;

/// A handle on the memory of one runtime. Its other owner is the runtime.
#[derive(Clone, Default)]
pub(crate) struct Memory(Rc<RefCell<Blocks>>);

impl Memory {
    /// Takes a copy of everything. Once.
    pub(crate) fn keep(&self) {
        let mut blocks = self.0.borrow_mut();
        assert!(blocks.kept.is_empty(), "kept twice");
        let young = std::mem::take(&mut blocks.young);
        blocks.kept = young.into_iter().map(Kept::new).collect();
        blocks.kept_bytes = blocks.bytes;
    }

    /// Sets the size up to which it may grow; usize::MAX: any.
    pub(crate) fn set_limit(&self, bytes_max: usize) {
        self.0.borrow_mut().bytes_max = bytes_max;
    }

    /// Whether there was not enough of it, since it was made or restored.
    pub(crate) fn has_run_out(&self) -> bool {
        self.0.borrow().has_run_out
    }

    /// Puts every byte back to how it was when it was kept, and frees what was added since. There is no
    /// limit then.
    ///
    /// # Safety
    ///
    /// The runtime is not running. No handle on its values that was made since is there any more, and
    /// all that were there then still are.
    pub(crate) unsafe fn restore(&self) {
        let mut blocks = self.0.borrow_mut();
        blocks.free_young();
        blocks.kept.iter().for_each(Kept::restore);
        blocks.bytes = blocks.kept_bytes;
        blocks.bytes_max = usize::MAX;
        blocks.has_run_out = false;
    }
}

// SAFETY: blocks come from the global allocator, with at least the size asked for, aligned to `ALIGN`,
// and behind a header that has their size.
unsafe impl Allocator for Memory {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        self.0.borrow_mut().add(size, Fill::Any)
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        self.0.borrow_mut().add(count.saturating_mul(size), Fill::Zero)
    }

    unsafe fn dealloc(&mut self, at: *mut u8) {
        // SAFETY: the caller got it from here.
        let block = unsafe { Block::from_payload(at) };
        self.0.borrow_mut().free(block);
    }

    unsafe fn realloc(&mut self, at: *mut u8, new_size: usize) -> *mut u8 {
        // SAFETY: the caller got it from here.
        let block = unsafe { Block::from_payload(at) };
        self.0.borrow_mut().resize(block, new_size)
    }

    unsafe fn usable_size(at: *mut u8) -> usize {
        // SAFETY: the caller got it from here.
        unsafe { Block::from_payload(at) }.size()
    }
}

struct Blocks {
    kept: Vec<Kept>,
    /// Each knows its place in this list.
    young: Vec<Block>,
    /// Of all of them.
    bytes: usize,
    kept_bytes: usize,
    bytes_max: usize,
    has_run_out: bool,
}

impl Default for Blocks {
    fn default() -> Blocks {
        Blocks {
            kept: Vec::new(),
            young: Vec::new(),
            bytes: 0,
            kept_bytes: 0,
            bytes_max: usize::MAX,
            has_run_out: false,
        }
    }
}

impl Blocks {
    /// Null if there is not enough memory.
    fn add(&mut self, size: usize, fill: Fill) -> *mut u8 {
        if !self.has_room(size) {
            return ptr::null_mut();
        }
        let Some(block) = Block::new(size, fill) else { return self.run_out() };
        block.set_place(self.young.len());
        self.young.push(block);
        self.bytes += size;
        block.payload()
    }

    fn free(&mut self, block: Block) {
        let place = block.place();
        // A1.
        if place == KEPT {
            return;
        }
        self.young.swap_remove(place);
        if let Some(moved) = self.young.get(place) {
            moved.set_place(place);
        }
        self.bytes -= block.size();
        block.free();
    }

    /// The block, perhaps elsewhere. Null if there is not enough memory: then it is as it was.
    fn resize(&mut self, block: Block, size: usize) -> *mut u8 {
        let (place, old_size) = (block.place(), block.size());
        if place == KEPT {
            return self.resize_kept(block, size);
        }
        if !self.has_room(size.saturating_sub(old_size)) {
            return ptr::null_mut();
        }
        let Some(resized) = block.resized(size) else { return self.run_out() };
        self.young[place] = resized;
        self.bytes = self.bytes - old_size + size;
        resized.payload()
    }

    /// A1.
    fn resize_kept(&mut self, block: Block, size: usize) -> *mut u8 {
        if size <= block.size() {
            return block.payload();
        }
        let at = self.add(size, Fill::Any);
        if !at.is_null() {
            // SAFETY: two blocks, both of at least this size.
            unsafe { ptr::copy_nonoverlapping(block.payload(), at, block.size()) };
        }
        at
    }

    /// A4.
    fn has_room(&mut self, more: usize) -> bool {
        let has_room = self.bytes.checked_add(more).is_some_and(|bytes| bytes <= self.bytes_max);
        self.has_run_out |= !has_room;
        has_room
    }

    fn run_out(&mut self) -> *mut u8 {
        self.has_run_out = true;
        ptr::null_mut()
    }

    fn free_young(&mut self) {
        self.young.drain(..).for_each(Block::free);
    }
}

/// A2.
impl Drop for Blocks {
    fn drop(&mut self) {
        self.free_young();
        self.kept.drain(..).for_each(|kept| kept.block.free());
    }
}

/// A block, and what was in it.
struct Kept {
    block: Block,
    bytes: Box<[MaybeUninit<u8>]>,
}

impl Kept {
    fn new(block: Block) -> Kept {
        block.set_place(KEPT);
        let mut bytes = Box::new_uninit_slice(block.size());
        // SAFETY: the block has this size.
        unsafe {
            ptr::copy_nonoverlapping(block.payload().cast(), bytes.as_mut_ptr(), bytes.len())
        };
        Kept { block, bytes }
    }

    fn restore(&self) {
        // SAFETY: the block had this size when it was kept, and by A1 it still has.
        unsafe {
            let to = self.block.payload().cast();
            ptr::copy_nonoverlapping(self.bytes.as_ptr(), to, self.bytes.len());
        }
    }
}

/// What comes before the payload of a block.
#[repr(C)]
struct Header {
    /// Bytes of the payload.
    size: usize,
    /// In the list of young blocks, or [`KEPT`].
    place: usize,
}

const KEPT: usize = usize::MAX;
const HEADER_BYTES: usize = size_of::<Header>();
const ALIGN: usize = 16;

const _: () = assert!(HEADER_BYTES.is_multiple_of(ALIGN), "payloads are aligned");

enum Fill {
    Any,
    Zero,
}

/// One allocation. A copy of this is the same allocation.
#[derive(Clone, Copy)]
struct Block(NonNull<Header>);

impl Block {
    /// None if there is no memory.
    fn new(size: usize, fill: Fill) -> Option<Block> {
        let layout = layout(size)?;
        // SAFETY: the layout has at least the size of the header.
        let at = unsafe {
            match fill {
                Fill::Any => std::alloc::alloc(layout),
                Fill::Zero => std::alloc::alloc_zeroed(layout),
            }
        };
        Block::with_size(at, size)
    }

    fn with_size(at: *mut u8, size: usize) -> Option<Block> {
        let header = NonNull::new(at.cast::<Header>())?;
        // SAFETY: there is room for a header, and it is ours.
        unsafe { (*header.as_ptr()).size = size };
        Some(Block(header))
    }

    /// # Safety
    ///
    /// `at` is the payload of a block that was not freed.
    unsafe fn from_payload(at: *mut u8) -> Block {
        // SAFETY: the header comes before it.
        Block(unsafe { NonNull::new_unchecked(at.sub(HEADER_BYTES).cast()) })
    }

    fn payload(self) -> *mut u8 {
        // SAFETY: the payload follows the header in the same allocation.
        unsafe { self.0.as_ptr().cast::<u8>().add(HEADER_BYTES) }
    }

    fn size(self) -> usize {
        // SAFETY: a block is there until it is freed, and then nobody has it.
        unsafe { (*self.0.as_ptr()).size }
    }

    fn place(self) -> usize {
        // SAFETY: as above; it was set when the block came into the list.
        unsafe { (*self.0.as_ptr()).place }
    }

    fn set_place(self, place: usize) {
        // SAFETY: as above.
        unsafe { (*self.0.as_ptr()).place = place };
    }

    /// The block with another size; it may have moved. None if there is no memory: then it is as it was.
    fn resized(self, size: usize) -> Option<Block> {
        let (old, new) = (layout(self.size())?, layout(size)?);
        // SAFETY: it was allocated with the old layout. The header moves with the rest.
        let at = unsafe { std::alloc::realloc(self.0.as_ptr().cast(), old, new.size()) };
        Block::with_size(at, size)
    }

    fn free(self) {
        let layout = layout(self.size()).expect("it was allocated with this layout");
        // SAFETY: it was, and its owner gives it up.
        unsafe { std::alloc::dealloc(self.0.as_ptr().cast(), layout) };
    }
}

/// The layout of a block; none if it is larger than any memory.
fn layout(size: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_add(HEADER_BYTES)?, ALIGN).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(at: *mut u8, size: usize, byte: u8) {
        assert!(!at.is_null());
        assert_eq!(at.align_offset(ALIGN), 0);
        // SAFETY: the tests only pass blocks of this size.
        unsafe { ptr::write_bytes(at, byte, size) };
    }

    fn bytes(at: *mut u8, size: usize) -> Vec<u8> {
        // SAFETY: as above, and they were written.
        unsafe { std::slice::from_raw_parts(at, size) }.to_vec()
    }

    fn free(memory: &mut Memory, at: *mut u8) {
        // SAFETY: the tests free what they got, once.
        unsafe { memory.dealloc(at) };
    }

    fn resize(memory: &mut Memory, at: *mut u8, size: usize) -> *mut u8 {
        // SAFETY: the tests resize what they got.
        unsafe { memory.realloc(at, size) }
    }

    fn restore(memory: &Memory) {
        // SAFETY: there is no runtime.
        unsafe { memory.restore() };
    }

    fn young(memory: &Memory) -> usize {
        memory.0.borrow().young.len()
    }

    fn held(memory: &Memory) -> usize {
        memory.0.borrow().bytes
    }

    #[test]
    fn blocks_come_and_go() {
        let mut memory = Memory::default();
        let at: Vec<_> = (1..=5).map(|n| memory.alloc(n * 100)).collect();
        (0..5).for_each(|n| fill(at[n], (n + 1) * 100, n as u8));
        free(&mut memory, at[1]);
        let grown = resize(&mut memory, at[4], 5000);
        assert_eq!(bytes(grown, 500), [4; 500]);
        fill(grown, 5000, 9);
        free(&mut memory, at[0]);
        assert_eq!((young(&memory), held(&memory)), (3, 300 + 400 + 5000));
        assert_eq!((bytes(at[2], 300), bytes(at[3], 400)), (vec![2; 300], vec![3; 400]));
        let shrunk = resize(&mut memory, grown, 10);
        assert_eq!((bytes(shrunk, 10), held(&memory)), (vec![9; 10], 710));
        let zeroed = memory.calloc(10, 30);
        assert_eq!(bytes(zeroed, 300), [0; 300]);
        assert!(memory.calloc(usize::MAX, 2).is_null());
    }

    /// A1: whatever happens to blocks that are kept, they are back afterwards, and others are gone.
    #[test]
    fn restored_as_kept() {
        let mut memory = Memory::default();
        let at: Vec<_> = (0..4).map(|_| memory.alloc(64)).collect();
        (0..4).for_each(|n| fill(at[n], 64, n as u8));
        memory.keep();
        for round in 0..3 {
            fill(at[0], 64, 100 + round);
            free(&mut memory, at[1]);
            let grown = resize(&mut memory, at[2], 65);
            assert_ne!(grown, at[2]);
            assert_eq!(bytes(grown, 64), [2; 64]);
            assert_eq!(resize(&mut memory, at[3], 63), at[3]);
            assert_eq!(resize(&mut memory, at[3], 64), at[3]);
            let new = memory.alloc(1000);
            fill(new, 1000, 7);
            assert_eq!((young(&memory), held(&memory)), (2, 4 * 64 + 65 + 1000));
            restore(&memory);
            assert_eq!((young(&memory), held(&memory)), (0, 4 * 64));
            (0..4).for_each(|n| assert_eq!(bytes(at[n], 64), [n as u8; 64]));
        }
    }

    /// A4.
    #[test]
    fn bounded() {
        let mut memory = Memory::default();
        let kept = memory.alloc(100);
        memory.keep();
        memory.set_limit(1000);
        let at = memory.alloc(899);
        assert!(!resize(&mut memory, at, 900).is_null() && !memory.has_run_out());
        assert!(memory.alloc(1).is_null() && memory.has_run_out());
        restore(&memory);
        assert!(!memory.has_run_out());
        memory.set_limit(1000);
        let at = memory.alloc(500);
        fill(at, 500, 1);
        assert!(resize(&mut memory, at, 901).is_null() && memory.has_run_out());
        assert_eq!(bytes(at, 500), [1; 500]);
        assert!(resize(&mut memory, kept, 401).is_null());
        assert!(!resize(&mut memory, kept, 400).is_null());
        assert!(memory.calloc(1, 1).is_null());
        free(&mut memory, at);
        assert!(memory.calloc(1, 501).is_null());
        assert!(!memory.calloc(1, 500).is_null());
        restore(&memory);
        assert!(!memory.alloc(10_000).is_null());
    }
}
