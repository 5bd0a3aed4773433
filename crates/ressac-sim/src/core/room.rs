//! Room for what a run holds a million of.

/// An empty vector with room for so many, on huge pages where the system gives them on request.
///
/// A million clients are most of a gigabyte that is touched at random: with pages of 4 kB each touch
/// misses the address cache too, which costs as much as the miss of the data.
pub(crate) fn roomy<T>(count: usize) -> Vec<T> {
    let mut room = Vec::with_capacity(count);
    #[cfg(target_os = "linux")]
    advise(room.spare_capacity_mut());
    room
}

/// Less is on few pages anyway.
#[cfg(target_os = "linux")]
const WORTH_IT: usize = 16 << 20;

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn advise<T>(room: &mut [std::mem::MaybeUninit<T>]) {
    use rustix::mm::{Advice, madvise};

    let bytes = size_of_val(room);
    if bytes < WORTH_IT {
        return;
    }
    let page = rustix::param::page_size();
    let begin = room.as_mut_ptr().cast::<u8>();
    let skipped = begin.align_offset(page);
    let Some(whole) = bytes.checked_sub(skipped) else {
        return;
    };
    let begin = begin.wrapping_add(skipped);
    // SAFETY: the range lies inside `room`, which this function alone borrows, and begins at a page.
    // MADV_HUGEPAGE changes how the kernel backs these pages and never what is in them
    // (madvise(2)); where it is refused nothing has happened, so the answer does not matter.
    let _ = unsafe { madvise(begin.cast(), whole / page * page, Advice::LinuxHugepage) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_room_whether_advised_or_not() {
        for count in [0, 1, 3_000_001] {
            let mut room = roomy::<u64>(count);
            let before = room.as_ptr();
            room.extend(0..count as u64);
            assert_eq!(room.as_ptr(), before);
            assert!(
                room.iter()
                    .enumerate()
                    .all(|(at, value)| at as u64 == *value)
            );
        }
    }
}
