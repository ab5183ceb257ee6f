//! From flags to checked settings: defaults, and what may go together.
//!
//! INVARIANTS
//! (N1) A key that everybody knows is served on loopback only, unless the operator insists.
//! (N2) A flag whose meaning this version does not have is refused, never ignored.

use std::fmt::{Display, Formatter};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use engine::Profile;
use gateway::{Key, Keys, Tls};
use store::Durability;

use crate::cli::{DATA_DIR, DurabilityMode, RuProfile, ServeFlags, Size, TlsMode};

/// The key of the service's emulator: in every SDK's samples, and no secret at all.
const DEVELOPMENT_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

const LISTEN: &str = "127.0.0.1:8081";
const CACHE_BYTES: u64 = 256 << 20;
const KEYS_MAX: usize = 4;

/// Flags that cannot be followed. Ends the process with exit code 2.
#[derive(Debug)]
pub struct Usage(pub String);

impl Display for Usage {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// A refusal of flags.
fn refuse<T>(sentence: impl Into<String>) -> Result<T> {
    Err(Usage(sentence.into()).into())
}

/// Where a database is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a directory.
    Directory(PathBuf),
    /// In memory.
    Memory,
}

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Directory(path) => path.display().fmt(f),
            Place::Memory => f.write_str("memory"),
        }
    }
}

/// What `serve` does.
#[derive(Debug)]
pub struct ServeConfig {
    /// Addresses of the host to listen on; the first that works is taken.
    pub listen: Vec<SocketAddr>,
    /// Where the data is.
    pub place: Place,
    /// The account's keys.
    pub keys: Keys,
    /// Whether one of them is the development key.
    pub is_development_key: bool,
    /// Serve TLS.
    pub tls: Option<Tls>,
    /// Believe the headers of a proxy.
    pub trust_forwarded: bool,
    /// When writes are answered.
    pub durability: Durability,
    /// Memory for caches.
    pub cache_bytes: u64,
    /// What to load on first start.
    pub load: Option<PathBuf>,
    /// The price list.
    pub profile: Profile,
    /// Whether requests beyond the provisioned throughput are refused.
    pub enforces_throughput: bool,
}

impl ServeConfig {
    /// Checks the flags and reads the files they name.
    pub fn of(flags: ServeFlags) -> Result<ServeConfig> {
        refuse_unsupported(&flags)?;
        let place = match (flags.in_memory.unwrap_or(false), flags.data_dir) {
            (true, Some(_)) => {
                return refuse("--in-memory and --data-dir exclude each other; choose one.");
            }
            (true, None) => Place::Memory,
            (false, directory) => Place::Directory(directory.unwrap_or_else(|| DATA_DIR.into())),
        };
        let listen = resolve(flags.listen.as_deref().unwrap_or(LISTEN))?;
        let (keys, is_development_key) = match &flags.key_file {
            Some(path) => read_keys(path)?,
            None => (parse_keys(DEVELOPMENT_KEY)?, true),
        };
        if is_development_key && !flags.insecure_development_key.unwrap_or(false) {
            refuse_public(&listen)?; // N1
        }
        Ok(ServeConfig {
            tls: tls(flags.tls, flags.tls_cert.as_deref(), flags.tls_key.as_deref(), &listen)?,
            listen,
            place,
            keys,
            is_development_key,
            trust_forwarded: flags.trust_forwarded.unwrap_or(false),
            durability: match flags.durability {
                Some(DurabilityMode::Relaxed) => Durability::Relaxed,
                Some(DurabilityMode::Sync) | None => Durability::Sync,
            },
            cache_bytes: flags.cache_size.map_or(CACHE_BYTES, |Size(bytes)| bytes),
            load: flags.load,
            profile: match flags.ru_profile {
                Some(RuProfile::Modern) => Profile::Modern,
                Some(RuProfile::Of2019) | None => Profile::Of2019,
            },
            enforces_throughput: flags.enforce_throughput.unwrap_or(false),
        })
    }
}

/// Flags of versions to come (N2).
fn refuse_unsupported(flags: &ServeFlags) -> Result<()> {
    if flags.store.is_some() {
        return refuse(
            "--store: this version keeps data in a directory (--data-dir) or in memory \
             (--in-memory); stores elsewhere are not supported yet.",
        );
    }
    Ok(())
}

fn resolve(listen: &str) -> Result<Vec<SocketAddr>> {
    let found = listen.to_socket_addrs().map(Vec::from_iter).unwrap_or_default();
    match found.is_empty() {
        true => refuse(format!(
            "--listen {listen}: no such address; write it like 127.0.0.1:8081 or [::1]:8081."
        )),
        false => Ok(found),
    }
}

fn refuse_public(listen: &[SocketAddr]) -> Result<()> {
    match listen.iter().find(|address| !address.ip().to_canonical().is_loopback()) {
        Some(address) => refuse(format!(
            "Refusing to listen on {address} with the well-known development key: everybody who \
             can reach it could read and change everything. Give the account keys of its own with \
             --key-file, listen on loopback, or insist with --insecure-development-key."
        )),
        None => Ok(()),
    }
}

/// The keys in a file, and whether the development key is among them.
fn read_keys(path: &Path) -> Result<(Keys, bool)> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("--key-file {} cannot be read", path.display()))?;
    let keys = parse_keys(&text).with_context(|| format!("--key-file {}", path.display()))?;
    Ok((keys, key_lines(&text).any(|line| line == DEVELOPMENT_KEY)))
}

fn parse_keys(text: &str) -> Result<Keys> {
    let lines: Vec<&str> = key_lines(text).collect();
    if lines.is_empty() || lines.len() > KEYS_MAX {
        return refuse(format!(
            "found {} keys; there must be one to {KEYS_MAX}, one per line: primary, secondary, \
             read-only primary, read-only secondary.",
            lines.len()
        ));
    }
    let mut keys = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        match Key::parse(line) {
            Ok(key) => keys.push(key),
            Err(error) => return refuse(format!("key {}: {error}.", at + 1)),
        }
    }
    let mut keys = keys.into_iter();
    let primary = keys.next().expect("there is at least one key");
    let mut next = || keys.next();
    Ok(Keys { secondary: next(), primary_read_only: next(), secondary_read_only: next(), primary })
}

/// The lines of a key file that hold keys.
pub fn key_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn tls(
    mode: Option<TlsMode>,
    certificate: Option<&Path>,
    key: Option<&Path>,
    listen: &[SocketAddr],
) -> Result<Option<Tls>> {
    let read = |path: &Path| {
        std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()))
    };
    match (mode, certificate, key) {
        (None, None, None) => Ok(None),
        (Some(TlsMode::SelfSigned), None, None) => {
            let is_named = |ip: &IpAddr| !ip.is_unspecified();
            let hosts = listen.iter().map(SocketAddr::ip).filter(is_named);
            let hosts: Vec<String> = hosts.map(|ip| ip.to_string()).collect();
            Ok(Some(Tls::self_signed(&hosts)?))
        }
        (None, Some(certificate), Some(key)) => {
            let tls = Tls::from_pem(&read(certificate)?, &read(key)?);
            let files = || format!("{} with {}", certificate.display(), key.display());
            Ok(Some(tls.with_context(files)?))
        }
        (Some(_), _, _) => {
            refuse("--tls self-signed and --tls-cert with --tls-key exclude each other.")
        }
        (None, _, _) => refuse("--tls-cert and --tls-key go together; give both."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "c2VjcmV0";

    fn sentence(flags: ServeFlags) -> String {
        match ServeConfig::of(flags) {
            Ok(_) => String::new(),
            Err(error) => {
                assert!(error.is::<Usage>(), "{error:#}");
                format!("{error:#}")
            }
        }
    }

    fn flags(change: impl FnOnce(&mut ServeFlags)) -> ServeFlags {
        let mut flags = ServeFlags::default();
        change(&mut flags);
        flags
    }

    #[test]
    fn defaults() {
        let config = ServeConfig::of(ServeFlags::default()).unwrap();
        assert_eq!(config.listen, ["127.0.0.1:8081".parse().unwrap()]);
        assert_eq!(config.place, Place::Directory("./cosmolabe-data".into()));
        assert_eq!(config.durability, Durability::Sync);
        assert!(config.is_development_key && config.tls.is_none());
    }

    #[test]
    fn what_does_not_exist_yet_is_refused() {
        let store = flags(|f| f.store = Some("postgres://localhost".into()));
        assert!(sentence(store).starts_with("--store"));
    }

    #[test]
    fn prices_and_limits() {
        let config = |change: fn(&mut ServeFlags)| ServeConfig::of(flags(change)).unwrap();
        let usual = config(|_| ());
        assert_eq!((usual.profile, usual.enforces_throughput), (Profile::Of2019, false));
        assert_eq!(config(|f| f.ru_profile = Some(RuProfile::Modern)).profile, Profile::Modern);
        assert!(config(|f| f.enforce_throughput = Some(true)).enforces_throughput);
    }

    #[test]
    fn the_development_key_stays_on_loopback() {
        let listen = |address: &str| flags(|f| f.listen = Some(address.into()));
        for address in ["127.0.0.1:1", "127.8.8.8:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert_eq!(sentence(listen(address)), "", "{address}");
        }
        for address in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[::ffff:10.0.0.1]:1"] {
            assert!(sentence(listen(address)).contains("--key-file"), "{address}");
        }
        let mut insisted = listen("0.0.0.0:1");
        insisted.insecure_development_key = Some(true);
        assert_eq!(sentence(insisted), "");
        assert!(sentence(listen("8081")).contains("no such address"));
    }

    #[test]
    fn key_files() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        let check = |text: &str, listen: &str| {
            std::fs::write(&path, text).unwrap();
            sentence(flags(|f| {
                f.key_file = Some(path.clone());
                f.listen = Some(listen.into());
            }))
        };
        let public = "0.0.0.0:1";
        assert_eq!(check(KEY, public), "");
        assert_eq!(check(&format!("# ours\n\n{KEY}\n{KEY}\n{KEY}\n{KEY}\n"), public), "");
        assert!(check("# nothing\n", public).contains("found 0 keys"));
        assert!(check(&[KEY; 5].join("\n"), public).contains("found 5 keys"));
        assert!(check("not base64!", public).contains("key 1"));
        assert!(check(DEVELOPMENT_KEY, public).contains("development key"));
        assert_eq!(check(DEVELOPMENT_KEY, "127.0.0.1:1"), "");
    }

    #[test]
    fn what_excludes_each_other() {
        let both = flags(|f| {
            f.in_memory = Some(true);
            f.data_dir = Some("x".into());
        });
        assert!(sentence(both).contains("--in-memory"));
        assert!(sentence(flags(|f| f.tls_cert = Some("x".into()))).contains("--tls-key"));
        let tls = flags(|f| {
            f.tls = Some(TlsMode::SelfSigned);
            f.tls_key = Some("x".into());
        });
        assert!(sentence(tls).contains("exclude"));
        assert_eq!(sentence(flags(|f| f.tls = Some(TlsMode::SelfSigned))), "");
    }
}
