//! The memory of one runtime, which can be brought back to how it once was.
//!
//! Making a runtime and freeing it again costs a thousand times what a short script does. Both are
//! done once per thread here: when a runtime is made, with everything in it that a script finds, its
//! memory is kept. After a script, every byte is put back:
//!
//! ```text
//!            keep                        restore
//! ┌───┬───┐  ───▶  ┌───┬───┐ ┌───┬───┐   ───▶  ┌───┬───┐
//! │ a │ b │        │ a │ ß │ │ c │ d │         │ a │ b │   a copy was taken of a and b;
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
//!
//! ELSEWHERE  Who may restore, and when: `machine`. The limit on the memory: the engine counts.

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
    }

    /// Puts every byte back to how it was when it was kept, and frees what was added since.
    ///
    /// # Safety
    ///
    /// The runtime is not running. No handle on its values that was made since is there any more, and
    /// all that were there then still are.
    pub(crate) unsafe fn restore(&self) {
        let mut blocks = self.0.borrow_mut();
        blocks.free_young();
        blocks.kept.iter().for_each(Kept::restore);
    }
}

// SAFETY: blocks come from the global allocator, with at least the size asked for, aligned to `ALIGN`,
// and behind a header that has their size.
unsafe impl Allocator for Memory {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        self.0.borrow_mut().add(Block::new(size, Fill::Any))
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        let block = count.checked_mul(size).and_then(|size| Block::new(size, Fill::Zero));
        self.0.borrow_mut().add(block)
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

#[derive(Default)]
struct Blocks {
    kept: Vec<Kept>,
    /// Each knows its place in this list.
    young: Vec<Block>,
}

impl Blocks {
    fn add(&mut self, block: Option<Block>) -> *mut u8 {
        let Some(block) = block else { return ptr::null_mut() };
        block.set_place(self.young.len());
        self.young.push(block);
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
        block.free();
    }

    fn resize(&mut self, block: Block, size: usize) -> *mut u8 {
        let place = block.place();
        if place != KEPT {
            let Some(resized) = block.resized(size) else { return ptr::null_mut() };
            self.young[place] = resized;
            return resized.payload();
        }
        if size <= block.size() {
            return block.payload();
        }
        // A1.
        let at = self.add(Block::new(size, Fill::Any));
        if !at.is_null() {
            // SAFETY: two blocks, both of at least this size.
            unsafe { ptr::copy_nonoverlapping(block.payload(), at, block.size()) };
        }
        at
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
        unsafe { ptr::copy_nonoverlapping(block.payload().cast(), bytes.as_mut_ptr(), bytes.len()) };
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
