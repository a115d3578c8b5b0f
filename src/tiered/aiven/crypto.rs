//! [`Cipher`]: decrypts chunks and indexes of a segment.
//!
//! | bytes | content |
//! |---|---|
//! | 0..12 | initialization vector, random for each chunk |
//! | 12..len − 16 | ciphertext |
//! | len − 16..len | authentication tag |
//!
//! AES-256-GCM with the segment's data key. The additional authenticated data are the bytes of the manifest's `aad`.
//!
//! The data key is encrypted with RSA-OAEP: SHA3-512 for the label and for the mask generation function, empty label.
//!
//! Source: `AesEncryptionProvider` and `RsaEncryptionProvider` of the plugin.

use aes_gcm::{AeadInOut, Aes256Gcm, KeyInit};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rsa::Oaep;
use sha3::Sha3_512;
use zeroize::Zeroizing;

use super::json::{JsonObject, invalid};
use super::keys::EncryptionKeys;
use crate::error::{Error, Result};

const IV_LEN: usize = 12;
const TAG_LEN: usize = 16;
/// Bytes that encryption adds: initialization vector and tag.
pub(super) const OVERHEAD_LEN: u32 = 28;

/// The data key and authenticated data of a segment. Its `Debug` shows neither.
pub(super) struct Cipher {
    aes: Aes256Gcm,
    aad: Vec<u8>,
}

impl std::fmt::Debug for Cipher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cipher").finish_non_exhaustive()
    }
}

/// The encryption of a segment. Nothing in it is secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encryption {
    /// Id of the RSA key pair.
    pub key_id: String,
    /// The AES key of the segment, encrypted with the RSA key.
    pub wrapped_key: Vec<u8>,
    /// Additional authenticated data of every chunk and index.
    pub aad: Vec<u8>,
}

impl Encryption {
    pub(super) fn parse(encryption: &JsonObject<'_>) -> Result<Self> {
        let data_key = encryption.text("dataKey")?;
        let parts = data_key.split_once(':').filter(|(id, key)| !id.is_empty() && !key.contains(':'));
        let Some((key_id, key)) = parts else {
            return Err(invalid("encryption.dataKey is malformed: expected <key id>:<base64>"));
        };
        let decode = |name: &str, text: &str| {
            STANDARD.decode(text).map_err(|error| invalid(format!("encryption.{name} is not base64: {error}")))
        };
        Ok(Self {
            key_id: key_id.to_owned(),
            wrapped_key: decode("dataKey", key)?,
            aad: decode("aad", encryption.text("aad")?)?,
        })
    }
}

impl Cipher {
    /// Decrypts the data key of a segment.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if the key pair is unknown or the wrong one.
    pub(super) fn new(encryption: &Encryption, keys: &EncryptionKeys) -> Result<Self> {
        let id = &encryption.key_id;
        let private_key = keys.find(id)?;
        let wrong = || {
            Error::argument(format!(
                "the encryption key {id:?} does not decrypt the segment's data key: pass the private key of the pair \
                 that the plugin had under this id"
            ))
        };
        // Without blinding: decryption times are of use only to an attacker who measures many chosen inputs.
        let data_key = private_key.decrypt(Oaep::new::<Sha3_512>(), &encryption.wrapped_key).map_err(|_| wrong())?;
        let data_key = Zeroizing::new(data_key);
        let aes = Aes256Gcm::new_from_slice(&data_key).map_err(|_| wrong())?;
        Ok(Self { aes, aad: encryption.aad.clone() })
    }

    /// Decrypts a chunk in place. Returns `None` if it is shorter than its overhead, or differs from the chunk that was
    /// encrypted.
    pub(super) fn open<'b>(&self, chunk: &'b mut [u8]) -> Option<&'b [u8]> {
        let (iv, rest) = chunk.split_first_chunk_mut::<IV_LEN>()?;
        let (body, tag) = rest.split_last_chunk_mut::<TAG_LEN>()?;
        let iv: aes_gcm::aead::Nonce<Aes256Gcm> = (*iv).into();
        let tag: aes_gcm::aead::Tag<Aes256Gcm> = (*tag).into();
        self.aes.decrypt_inout_detached(&iv, &self.aad, (&mut *body).into(), &tag).ok()?;
        Some(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encrypts like the plugin.
    fn seal(cipher: &Cipher, iv: [u8; IV_LEN], plain: &[u8]) -> Vec<u8> {
        let mut body = plain.to_vec();
        let nonce: aes_gcm::aead::Nonce<Aes256Gcm> = iv.into();
        let tag = cipher.aes.encrypt_inout_detached(&nonce, &cipher.aad, body.as_mut_slice().into()).unwrap();
        [iv.as_slice(), &body, tag.as_slice()].concat()
    }

    fn cipher() -> Cipher {
        Cipher { aes: Aes256Gcm::new_from_slice(&[7; 32]).unwrap(), aad: b"aad".to_vec() }
    }

    #[test]
    fn chunk_round_trips_and_every_flipped_bit_is_noticed() {
        let sealed = seal(&cipher(), [1; IV_LEN], b"original");
        assert_eq!(sealed.len(), 36);
        assert_eq!(cipher().open(&mut sealed.clone()), Some(&b"original"[..]));
        for byte in 0..sealed.len() {
            for bit in [1_u8, 2, 4, 8, 16, 32, 64, 128] {
                let mut damaged = sealed.clone();
                damaged[byte] ^= bit;
                assert_eq!(cipher().open(&mut damaged), None, "bit {bit} of byte {byte}");
            }
        }
        for len in 0..sealed.len() {
            assert_eq!(cipher().open(&mut sealed[..len].to_vec()), None, "{len} bytes");
        }
    }

    #[test]
    fn debug_shows_no_secret() {
        assert_eq!(format!("{:?}", cipher()), "Cipher { .. }");
    }
}
