//! How much memory the machine has.

use std::path::Path;

/// Bytes of memory that this process may use, as far as the system tells.
pub fn total_bytes() -> Option<u64> {
    let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let limits = limits.iter().filter_map(|path| number_in(Path::new(path)));
    let machine = std::fs::read_to_string("/proc/meminfo").ok();
    limits.chain(machine.as_deref().and_then(total)).min()
}

/// A file that holds one number; a container without a limit says `max`.
fn number_in(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The line `MemTotal: 24612345 kB`.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read() {
        assert_eq!(total("MemFree:  1 kB\nMemTotal:       8388608 kB\n"), Some(8 << 30));
        assert_eq!(total("MemTotal: many kB"), None);
        assert_eq!(total(""), None);
    }
}
