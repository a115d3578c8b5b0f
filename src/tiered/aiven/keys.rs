//! [`EncryptionKeys`]: RSA private keys by the ids that the plugin's settings have for them.
//!
//! The setting `encryption.key.pairs.<id>.private.key.file` names a PEM file in PKCS#8 (`BEGIN PRIVATE KEY`). After a
//! rotation, old segments still name the old id, so several keys may be needed.
//!
//! Source: `EncryptionConfig` and `RsaKeyReader` of the plugin.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rsa::RsaPrivateKey;
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::pkcs8::DecodePrivateKey;
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::io::Location;

/// Largest size of a PEM file in bytes.
const MAX_PEM_LEN: usize = 1 << 16;

type Load = dyn Fn(&str) -> Result<Option<String>> + Send + Sync;

/// Private keys by id. Its `Debug` shows only the ids.
#[derive(Clone, Default)]
pub struct EncryptionKeys {
    keys: BTreeMap<String, Arc<RsaPrivateKey>>,
    callback: Option<Arc<KeyLoader>>,
}

/// Loads keys on demand, each once.
struct KeyLoader {
    load: Box<Load>,
    loaded: Mutex<BTreeMap<String, Arc<RsaPrivateKey>>>,
}

impl fmt::Debug for EncryptionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncryptionKeys").field("ids", &self.keys.keys()).finish_non_exhaustive()
    }
}

impl EncryptionKeys {
    /// Creates an empty set of keys.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether there is neither a key nor a callback.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.callback.is_none()
    }

    /// Adds a private key from the text of a PEM file.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if the text is not an RSA private key. The
    /// message does not repeat any of the text.
    pub fn insert_pem(&mut self, id: impl Into<String>, pem: &str) -> Result<()> {
        let id = id.into();
        let key = parse_pem(&id, pem)?;
        self.keys.insert(id, Arc::new(key));
        Ok(())
    }

    /// Adds a private key from a PEM file.
    ///
    /// # Errors
    /// The errors of [`EncryptionKeys::insert_pem`]; I/O errors.
    pub fn insert_file(&mut self, id: impl Into<String>, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let pem = Zeroizing::new(Location::local(path).read_small(MAX_PEM_LEN)?);
        let text = std::str::from_utf8(&pem).unwrap_or_default();
        self.insert_pem(id, text).map_err(|error| error.with_path(path))
    }

    /// Sets a function that returns the PEM text of an id that was not added, or `None` if it does not know the id.
    /// Its results are kept.
    pub fn set_callback(&mut self, load: impl Fn(&str) -> Result<Option<String>> + Send + Sync + 'static) {
        self.callback = Some(Arc::new(KeyLoader { load: Box::new(load), loaded: Mutex::default() }));
    }

    /// Returns the key of an id.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) that names the known ids; errors of the
    /// callback.
    pub(super) fn find(&self, id: &str) -> Result<Arc<RsaPrivateKey>> {
        if let Some(key) = self.keys.get(id) {
            return Ok(Arc::clone(key));
        }
        if let Some(key) = self.callback.as_ref().map(|callback| callback.find(id)).transpose()?.flatten() {
            return Ok(key);
        }
        let known: Vec<String> = self.keys.keys().map(|id| format!("{id:?}")).collect();
        let known = match (known.is_empty(), self.callback.is_some()) {
            (true, true) => "the callback does not know it".to_owned(),
            (true, false) => "no encryption keys were passed".to_owned(),
            (false, _) => format!("encryption keys were passed for {}", known.join(", ")),
        };
        Err(Error::argument(format!("the segment is encrypted with the key {id:?}: {known}")))
    }
}

impl KeyLoader {
    fn find(&self, id: &str) -> Result<Option<Arc<RsaPrivateKey>>> {
        let known = self.loaded.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        if known.is_some() {
            return Ok(known);
        }
        // not under the lock: the callback may be slow, or read a segment itself
        let Some(pem) = (self.load)(id)?.map(Zeroizing::new) else { return Ok(None) };
        let key = Arc::new(parse_pem(id, &pem)?);
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned(), Arc::clone(&key));
        Ok(Some(key))
    }
}

/// Parses a key. The parser's own messages are not repeated, because they are about a secret.
fn parse_pem(id: &str, pem: &str) -> Result<RsaPrivateKey> {
    let pem = pem.trim();
    let key = if pem.starts_with("-----BEGIN RSA PRIVATE KEY") {
        RsaPrivateKey::from_pkcs1_pem(pem).ok()
    } else {
        RsaPrivateKey::from_pkcs8_pem(pem).ok()
    };
    key.ok_or_else(|| Error::argument(format!("the encryption key {id:?} is {}", advice_on(pem))))
}

/// Why a text is not a key, from its label.
fn advice_on(pem: &str) -> &'static str {
    if pem.contains("BEGIN ENCRYPTED PRIVATE KEY") || pem.contains("Proc-Type: 4,ENCRYPTED") {
        "protected by a passphrase: decrypt it with openssl pkcs8"
    } else if pem.contains("PUBLIC KEY") || pem.contains("BEGIN CERTIFICATE") {
        "public: pass the private key of the pair"
    } else if pem.contains("BEGIN PRIVATE KEY") || pem.contains("BEGIN RSA PRIVATE KEY") {
        "not a valid RSA private key"
    } else {
        "not a PEM file: expected a text that begins with -----BEGIN PRIVATE KEY-----"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pem_of_another_kind_is_named_and_not_repeated() {
        let cases = [
            ("", "not a PEM file"),
            ("c2VjcmV0", "not a PEM file"),
            ("-----BEGIN PUBLIC KEY-----\nc2VjcmV0\n-----END PUBLIC KEY-----", "public"),
            ("-----BEGIN ENCRYPTED PRIVATE KEY-----\nc2VjcmV0\n-----END ENCRYPTED PRIVATE KEY-----", "passphrase"),
            ("-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n", "not a valid"),
            ("-----BEGIN RSA PRIVATE KEY-----\nc2VjcmV0\n-----END RSA PRIVATE KEY-----\n", "not a valid"),
        ];
        for (pem, expected) in cases {
            let error = EncryptionKeys::new().insert_pem("key1", pem).unwrap_err().to_string();
            assert!(error.contains("\"key1\"") && error.contains(expected), "{error}");
            assert!(!error.contains("c2VjcmV0"), "{error}");
        }
    }

    #[test]
    fn unknown_id_names_the_known_ones() {
        let mut keys = EncryptionKeys::new();
        assert!(keys.is_empty());
        assert!(keys.find("k").unwrap_err().to_string().contains("no encryption keys"));
        keys.set_callback(|_| Ok(None));
        assert!(keys.find("k").unwrap_err().to_string().contains("callback"));
        keys.set_callback(|_| Err(Error::other("vault is sealed")));
        assert!(keys.find("k").unwrap_err().to_string().contains("vault is sealed"));
    }
}
