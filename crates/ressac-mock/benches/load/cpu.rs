//! Time on the processor, of the servers alone.

use std::time::Duration;

/// What a tick of `/proc/PID/stat` is (`USER_HZ`).
const TICK: Duration = Duration::from_millis(10);

/// What a process has used, all its threads together; `None`: this one, without this thread.
pub(crate) fn used(process: Option<u32>) -> Option<Duration> {
    match process {
        Some(id) => of_process(id),
        None => of_others(),
    }
}

fn of_process(id: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name may hold anything but ends with the last parenthesis; after it come the state and,
    // as the 12th and 13th field, the ticks in the program and in the kernel.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u32>().ok()? + fields.get(12)?.parse::<u32>().ok()?;
    Some(TICK * ticks)
}

/// Of all threads but this one.
fn of_others() -> Option<Duration> {
    let own = std::fs::read_link("/proc/thread-self").ok()?;
    let own = own.file_name()?.to_owned();
    let mut sum = 0;
    for task in std::fs::read_dir("/proc/self/task").ok()? {
        let task = task.ok()?;
        if task.file_name() == own {
            continue;
        }
        // A thread may end while we look.
        if let Ok(text) = std::fs::read_to_string(task.path().join("schedstat")) {
            sum += text.split(' ').next()?.parse::<u64>().ok()?;
        }
    }
    Some(Duration::from_nanos(sum))
}
