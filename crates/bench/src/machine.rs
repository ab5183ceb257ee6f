//! What the numbers were measured on, and what the kernel knows about processes.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// Ticks per second of the times in `/proc`; Linux tells user space 100 everywhere.
const TICKS_PER_SECOND: f64 = 100.0;

/// The machine and the versions, for the report. What cannot be found out is empty.
pub fn describe(directory: &Path, binary: &Path) -> Value {
    let lines = |path: &str, name: &str| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name));
        let value = line.and_then(|line| line.split_once(':'));
        value.map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let file_system = output(Command::new("stat").args(["-f", "-c", "%T"]).arg(directory));
    json!({
        "cpu": lines("/proc/cpuinfo", "model name"),
        "cores": cores,
        "memory": lines("/proc/meminfo", "MemTotal"),
        "kernel": output(Command::new("uname").args(["-sr"])),
        "file_system": file_system,
        "load_average_at_start": std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim(),
        "commit": commit(),
        "rustc": output(Command::new("rustc").arg("--version")),
        "cosmolabe": output(Command::new(binary).arg("--version")),
        "binary": binary.display().to_string(),
    })
}

fn commit() -> String {
    let git = |arguments: &[&str]| {
        let here = env!("CARGO_MANIFEST_DIR");
        output(Command::new("git").args(["-C", here]).args(arguments))
    };
    let changes = match git(&["status", "--porcelain", "--untracked-files=no"]).is_empty() {
        true => "",
        false => " with changes",
    };
    format!("{}{changes}", git(&["rev-parse", "--short", "HEAD"]))
}

/// What a command prints, without the end of its line.
pub fn output(command: &mut Command) -> String {
    let output = command.output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).trim().to_owned()
}

/// CPU seconds a process has spent so far, all its threads included. A process that is gone has
/// spent none.
pub fn cpu_seconds(process: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, in parentheses, may contain blanks.
    let rest = text.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / TICKS_PER_SECOND
}

/// CPU seconds of a process and its children, as a database with a process per connection has.
pub fn cpu_seconds_with_children(process: u32) -> f64 {
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let children = children.unwrap_or_default();
    let ids = children.split_whitespace().filter_map(|id| id.parse().ok());
    cpu_seconds(process) + ids.map(cpu_seconds).sum::<f64>()
}

/// Resident memory of a process in MB, in 2^20 bytes.
pub fn resident_mb(process: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    let kb = line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok());
    kb.unwrap_or(0.0) / 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_has_a_size() {
        assert!(resident_mb(std::process::id()) > 0.1);
        assert!(cpu_seconds(std::process::id()) >= 0.0);
        assert_eq!(resident_mb(u32::MAX), 0.0);
    }
}
