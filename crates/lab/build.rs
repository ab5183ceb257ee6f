//! Puts the workloads of the repository into the binary: a table of their files and texts.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root =
        Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../../workloads");
    println!("cargo:rerun-if-changed={}", root.display());
    let mut table = String::from("&[\n");
    for directory in sorted(&root)?.iter().filter(|path| path.is_dir()) {
        println!("cargo:rerun-if-changed={}", directory.display());
        for file in sorted(directory)?.iter().filter(|path| path.is_file()) {
            println!("cargo:rerun-if-changed={}", file.display());
            let name =
                |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let (directory, name, path) = (name(directory), name(file), file.display().to_string());
            // Writing to memory cannot fail.
            let _ = writeln!(table, "    ({directory:?}, {name:?}, include_str!({path:?})),");
        }
    }
    table.push(']');
    fs::write(Path::new(&env::var("OUT_DIR").unwrap_or_default()).join("workloads.rs"), table)
}

fn sorted(directory: &Path) -> io::Result<Vec<std::path::PathBuf>> {
    let entries: io::Result<Vec<_>> =
        fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect();
    let mut paths = entries?;
    paths.sort();
    Ok(paths)
}
