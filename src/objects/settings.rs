//! [`StoreOptions`]: how to open the store of a URL.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::memory::InMemory;
use object_store::{BackoffConfig, ClientConfigKey, ClientOptions, ObjectStore, RetryConfig};

use crate::error::{Error, Result};

/// Options of a store, with the names of the crate `object_store`, such as `aws_access_key_id` or `endpoint`. Defaults
/// come from the environment, such as `AWS_ACCESS_KEY_ID`, or from the role of the machine.
///
/// Values may be secrets, and never appear in messages.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct StoreOptions {
    options: Vec<(String, String)>,
}

/// Names that fsspec and s3fs use, and the names here.
const FSSPEC: [(&str, &str); 7] = [
    ("key", "access_key_id"),
    ("secret", "secret_access_key"),
    ("client_kwargs", "endpoint, region"),
    ("config_kwargs", "timeout, connect_timeout"),
    ("anon", "skip_signature"),
    ("account_name", "azure_storage_account_name"),
    ("profile", "access_key_id and secret_access_key, or AWS_PROFILE resolved by your shell"),
];

/// Objects of `memory://`, shared by the process.
static MEMORY: OnceLock<Arc<InMemory>> = OnceLock::new();

impl fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.options.iter().map(|(name, _)| name)).finish()
    }
}

impl StoreOptions {
    /// Sets options by name.
    #[must_use]
    pub fn new<N: Into<String>, V: Into<String>>(options: impl IntoIterator<Item = (N, V)>) -> Self {
        Self { options: options.into_iter().map(|(name, value)| (name.into(), value.into())).collect() }
    }

    /// Whether no option is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.options.is_empty()
    }

    /// Refuses options for a path in the file system, on which they have no effect.
    pub(super) fn refuse_for_files(&self, path: &str) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let message = "storage_options have no effect on a path in the file system: remove them, or name a URL";
        Err(Error::argument(message).with_path(Path::new(path)))
    }

    /// Opens the store of a URL without its key.
    pub(crate) fn open(&self, scheme: &str, base: &str) -> Result<Arc<dyn ObjectStore>> {
        self.check()?;
        // fails if the program has chosen another provider, which is fine
        let _ = rustls::crypto::ring::default_provider().install_default();
        let built = match scheme {
            "memory" => return Ok(shared(Arc::clone(MEMORY.get_or_init(Arc::default)))),
            "s3" | "s3a" => {
                let builder = AmazonS3Builder::from_env().with_url(base).with_retry(retries());
                let mut builder = self
                    .apply(builder, scheme, |builder, key: AmazonS3ConfigKey, value| builder.with_config(key, value))?;
                if is_plain_http(builder.get_config_value(&AmazonS3ConfigKey::Endpoint)) {
                    builder = builder.with_allow_http(true);
                }
                builder.build().map(|store| shared(Arc::new(store)))
            }
            "gs" => {
                let builder = GoogleCloudStorageBuilder::from_env().with_url(base).with_retry(retries());
                self.apply(builder, scheme, |builder, key: GoogleConfigKey, value| builder.with_config(key, value))?
                    .build()
                    .map(|store| shared(Arc::new(store)))
            }
            "http" | "https" => {
                let mut options = ClientOptions::new().with_allow_http(scheme == "http");
                options = self
                    .apply(options, scheme, |options, key: ClientConfigKey, value| options.with_config(key, value))?;
                HttpBuilder::new()
                    .with_url(base)
                    .with_retry(retries())
                    .with_client_options(options)
                    .build()
                    .map(|store| shared(Arc::new(store)))
            }
            _ => {
                let builder = MicrosoftAzureBuilder::from_env().with_url(base).with_retry(retries());
                let mut builder =
                    self.apply(builder, scheme, |builder, key: AzureConfigKey, value| builder.with_config(key, value))?;
                if is_plain_http(builder.get_config_value(&AzureConfigKey::Endpoint)) {
                    builder = builder.with_allow_http(true);
                }
                builder.build().map(|store| shared(Arc::new(store)))
            }
        };
        built.map_err(|error| {
            let mut message = self.without_values(&error.to_string());
            if message.ends_with("as Duration") {
                message.push_str(": write a number and a unit, such as \"30s\"");
            }
            Error::argument(message).with_path(Path::new(base))
        })
    }

    /// Refuses values that no store accepts. Some of them make the HTTP library panic.
    fn check(&self) -> Result<()> {
        for (name, value) in &self.options {
            if value.chars().any(char::is_control) {
                return Err(Error::argument(format!(
                    "the value of the storage option {name:?} has a control character"
                )));
            }
            if name.to_ascii_lowercase().contains("endpoint") {
                let rest = value.split_once("://").filter(|(scheme, _)| ["http", "https"].contains(scheme));
                let Some((_, rest)) = rest.filter(|(_, rest)| !rest.is_empty()) else {
                    let message = format!("the storage option {name:?} must be a URL with http:// or https://");
                    return Err(Error::argument(message));
                };
                if rest.split('/').next().is_some_and(|host| host.contains('@')) {
                    let message = format!(
                        "the storage option {name:?} has a user name or password: pass access_key_id and \
                         secret_access_key instead"
                    );
                    return Err(Error::argument(message));
                }
            }
        }
        Ok(())
    }

    /// Replaces the values of options, which may be secrets, in a message.
    fn without_values(&self, message: &str) -> String {
        let mut values: Vec<&(String, String)> = self.options.iter().filter(|(_, value)| value.len() > 3).collect();
        values.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        values.into_iter().fold(message.to_owned(), |text, (name, value)| text.replace(value, &format!("<{name}>")))
    }

    /// Sets every option of a builder. Unknown names are errors.
    fn apply<B, K: FromStr>(&self, builder: B, scheme: &str, set: impl Fn(B, K, String) -> B) -> Result<B> {
        self.options.iter().try_fold(builder, |builder, (name, value)| {
            let lower = name.to_ascii_lowercase();
            let key = lower.parse::<K>().map_err(|_| unknown(&lower, scheme))?;
            Ok(set(builder, key, value.clone()))
        })
    }
}

fn unknown(name: &str, scheme: &str) -> Error {
    let hint = if let Some((_, ours)) = FSSPEC.iter().find(|(theirs, _)| *theirs == name) {
        format!("that is the name in fsspec; use {ours}")
    } else {
        let examples = match scheme {
            "s3" | "s3a" => "access_key_id, secret_access_key, session_token, region, endpoint",
            "gs" => "google_service_account, google_service_account_key",
            "http" | "https" => "timeout, connect_timeout, proxy_url",
            _ => "azure_storage_account_name, azure_storage_account_key, azure_storage_sas_token",
        };
        format!("the names are those of object_store, such as {examples}")
    };
    Error::argument(format!("storage_options has no option {name:?} for {scheme}://: {hint}"))
}

/// Requests are repeated for up to half a minute, after pauses that grow to five seconds.
fn retries() -> RetryConfig {
    let backoff = BackoffConfig { max_backoff: Duration::from_secs(5), ..BackoffConfig::default() };
    RetryConfig { backoff, max_retries: 8, retry_timeout: Duration::from_secs(30) }
}

/// Forgets the type of a store.
fn shared(store: Arc<impl ObjectStore>) -> Arc<dyn ObjectStore> {
    store
}

/// Whether an endpoint has the scheme `http`, so that TLS is not wanted.
fn is_plain_http(endpoint: Option<String>) -> bool {
    endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"))
}
