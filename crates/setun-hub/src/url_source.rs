//! URL of a file or folder as the source of a pull.

use std::{collections::BTreeSet, time::Duration};

use serde::Deserialize;

use crate::{
    error::Error,
    file_selection::{BESIDE, EXPECTED, INDEX, WEIGHTS},
    http::{Http, network},
    json,
    manifest::{FileEntry, MANIFEST, Manifest},
    model_name::{ModelId, is_lone_file, is_safe_file},
    options::PullOptions,
    probe::{Probe, probe},
    pull_plan::{Plan, PlannedFile},
    small_files,
    url::{in_folder, last_segment, unescape},
};

/// Most bytes of the list of shards.
const INDEX_BYTES: u64 = 32 << 20;

/// Most shards.
const MAX_SHARDS: usize = 4096;

/// How an address is looked at.
pub(crate) struct UrlSource<'a> {
    pub(crate) http: &'a Http,
    pub(crate) options: &'a PullOptions,
    pub(crate) on_retry: &'a dyn Fn(String, Duration),
}

impl UrlSource<'_> {
    /// Finds out what an address has: a file, a folder with this crate's own manifest, or a
    /// folder in Hugging Face's layout.
    pub(crate) fn plan(&self, address: &str) -> Result<Plan, Error> {
        let mut licence = None;
        let files = if is_lone_file(address) {
            vec![self.lone(address)?]
        } else if let Some(manifest) = self.manifest(address)? {
            licence.clone_from(&manifest.licence);
            manifest.files.into_iter().map(|file| of_manifest(address, file)).collect()
        } else {
            self.usual(address)?
        };
        let revision = Plan::revision_of(&files);
        let (id, source) = (ModelId::of_address(address), address.to_owned());
        Ok(Plan { id, revision, reference: None, source, licence, files })
    }

    fn lone(&self, address: &str) -> Result<PlannedFile, Error> {
        let name = unescape(last_segment(address)).filter(|name| is_safe_file(name));
        let name = name.ok_or_else(|| network(address, "its last part is no file name".into()))?;
        let status = Error::HttpStatus {
            address: address.into(),
            status: 404,
            hint: ": there is no such file",
        };
        self.wanted(name, address.to_owned())?.ok_or(status)
    }

    /// The manifest of a folder that is a store's, or was made like one: it has hashes.
    fn manifest(&self, folder: &str) -> Result<Option<Manifest>, Error> {
        let address = in_folder(folder, MANIFEST);
        let Some(bytes) =
            self.http.small(&address, small_files::MAX_BYTES, self.options, self.on_retry)?
        else {
            return Ok(None);
        };
        // Other software has files of this name too.
        let is_ours = |manifest: &Manifest| manifest.complete && !manifest.files.is_empty();
        Ok(Manifest::parse(&bytes).ok().filter(is_ours))
    }

    fn usual(&self, folder: &str) -> Result<Vec<PlannedFile>, Error> {
        let (mut files, mut names) = (vec![], BESIDE.map(str::to_owned).to_vec());
        let shards = self.shards(folder)?;
        match &shards {
            Some(shards) => {
                names.push(INDEX.into());
                names.extend(shards.iter().cloned());
            }
            None => names.push(WEIGHTS.into()),
        }
        for name in names {
            let address = in_folder(folder, &name);
            if let Some(wanted) = self.wanted(name.clone(), address)? {
                files.push(wanted);
            } else if shards.as_ref().is_some_and(|shards| shards.contains(&name)) {
                return Err(no_model(
                    folder,
                    &files,
                    &format!("no `{name}`, which its index names"),
                ));
            }
        }
        let has = |name: &str| files.iter().any(|file| file.name == name);
        if !has("config.json") || (!has(WEIGHTS) && shards.is_none()) {
            return Err(no_model(folder, &files, "nothing else"));
        }
        Ok(files)
    }

    fn shards(&self, folder: &str) -> Result<Option<BTreeSet<String>>, Error> {
        #[derive(Deserialize)]
        struct Index {
            weight_map: std::collections::BTreeMap<String, String>,
        }
        let address = in_folder(folder, INDEX);
        let Some(bytes) = self.http.small(&address, INDEX_BYTES, self.options, self.on_retry)?
        else {
            return Ok(None);
        };
        let index: Index = json::read(&bytes)
            .map_err(|error| network(&address, format!("the index cannot be read: {error}")))?;
        let shards: BTreeSet<_> = index.weight_map.into_values().collect();
        if let Some(bad) = shards.iter().find(|name| !is_safe_file(name)) {
            return Err(network(&address, format!("the index names the file `{bad}`")));
        }
        if shards.len() > MAX_SHARDS {
            return Err(network(&address, format!("the index names {} files", shards.len())));
        }
        Ok(Some(shards))
    }

    /// What the server reports of a file; `None` where there is none.
    fn wanted(&self, name: String, address: String) -> Result<Option<PlannedFile>, Error> {
        let found = probe(self.http, &address, self.options, self.on_retry)?;
        Ok(found.map(|Probe { bytes, identity, .. }| PlannedFile {
            name,
            address,
            bytes,
            sha256: None,
            identity,
            chunks: None,
        }))
    }
}

fn of_manifest(folder: &str, file: FileEntry) -> PlannedFile {
    let chunks = (file.chunk_bytes, file.chunks);
    PlannedFile {
        address: in_folder(folder, &file.name),
        name: file.name,
        bytes: Some(file.bytes),
        sha256: file.sha256,
        identity: None,
        chunks: Some(chunks).filter(|(_, chunks)| !chunks.is_empty()),
    }
}

fn no_model(folder: &str, found: &[PlannedFile], missing: &str) -> Error {
    let names: Vec<_> = found.iter().map(|file| file.name.as_str()).collect();
    let found = if names.is_empty() {
        missing.to_owned()
    } else {
        format!("{}, but {missing}", names.join(", "))
    };
    Error::NoModel { address: folder.into(), expected: EXPECTED, found }
}
