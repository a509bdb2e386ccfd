//! Pull of a model: planned, locked, downloaded file by file, published at once.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    atomic_files::make_folder,
    download::{Downloads, Paths},
    error::Error,
    http::Http,
    hub_source::{self, DEFAULT_REVISION, Repository},
    journal::has_unfinished,
    layout::{folders, remove_revision},
    lock::Lock,
    manifest::{FileEntry, Manifest, now},
    model_name::{ModelId, ModelName, Source},
    model_store::ModelStore,
    options::{ProgressListener, PullEvent, PullOptions},
    pull_plan::{Plan, PullResult, is_commit},
    retry::Fault,
    small_files::SmallFile,
    stored_files::Stored,
    stored_model::{StoredModel, StoredRevision},
    url_source::UrlSource,
};

/// Times that a pull is planned before its source counts as one that keeps changing.
const PLANS: u32 = 4;

impl ModelStore {
    /// Pulls a model, or what is missing of it. `listener` receives its progress, from several
    /// threads.
    ///
    /// What has arrived is kept whatever happens, and the next pull requests the rest alone. The
    /// model is listed once it is complete. Of one that is there already the sizes are compared, or
    /// the hashes (see [`PullOptions::verify_stored`]); what differs is downloaded once more.
    ///
    /// # Errors
    ///
    /// If the name names no model, the network or the disk fails, or the bytes are wrong.
    pub fn pull(
        &self,
        name: &str,
        options: &PullOptions,
        listener: ProgressListener<'_>,
    ) -> Result<StoredModel, Error> {
        let parsed = self.parse(name)?;
        if let Some(because) = self.settings.offline {
            return match self.find(&parsed)? {
                StoredRevision::Whole(model) => Ok(model),
                StoredRevision::Damaged(damaged) => Err(self.damaged_error(name, damaged)),
                StoredRevision::Absent => Err(Error::Offline { name: name.into(), because }),
            };
        }
        if let Some(model) = self.pinned(&parsed, options, listener)? {
            there(listener, &model);
            return Ok(model);
        }
        let pull =
            Pull { store: self, http: Http::new(&self.settings, options)?, options, listener };
        let mut last = String::new();
        for _ in 0..PLANS {
            let plan = pull.plan(name, &parsed)?;
            match pull.run(&plan) {
                Ok(model) => return Ok(model),
                Err(Fault::Changed(reason)) => {
                    listener(PullEvent::SourceChanged {
                        file: plan.source.clone(),
                        reason: reason.clone(),
                    });
                    last = reason;
                }
                Err(Fault::Final(error) | Fault::Later { error, .. }) => return Err(error),
                Err(Fault::NoRanges) => "it gives no parts".clone_into(&mut last),
            }
        }
        Err(Error::SourceChanged { address: name.into(), reason: last })
    }

    /// A model of which a commit was named, where it is there and sound: it cannot be another by
    /// now.
    fn pinned(
        &self,
        name: &ModelName,
        options: &PullOptions,
        listener: ProgressListener<'_>,
    ) -> Result<Option<StoredModel>, Error> {
        match &name.source {
            Source::Hub { revision: Some(revision), .. } if is_commit(revision) => {
                let found = self.find(name)?.whole();
                let found = found.filter(|model| model.path(name.file.as_deref()).is_ok());
                let Some(model) = found else { return Ok(None) };
                if !options.verify_stored {
                    return Ok(Some(model));
                }
                let look =
                    |file: &FileEntry| listener(PullEvent::Verifying { file: file.name.clone() });
                let is_sound = model.verify(options, look)?.iter().all(|check| check.good);
                Ok(Some(model).filter(|_| is_sound))
            }
            _ => Ok(None),
        }
    }
}

fn there(listener: ProgressListener<'_>, model: &StoredModel) {
    let revision = model.manifest.revision.clone();
    listener(PullEvent::AlreadyStored { model: model.id.to_string(), revision });
}

struct Pull<'a> {
    store: &'a ModelStore,
    http: Http,
    options: &'a PullOptions,
    listener: ProgressListener<'a>,
}

impl Pull<'_> {
    /// Finds out what is to be brought.
    fn plan(&self, name: &str, parsed: &ModelName) -> Result<Plan, Error> {
        let on_retry = |reason: String, wait: Duration| {
            (self.listener)(PullEvent::Retry { file: name.into(), reason, wait });
        };
        let endpoint = self.store.settings.endpoint.as_str();
        let address = match &parsed.source {
            Source::Address(address) => address.as_str(),
            _ => endpoint,
        };
        (self.listener)(PullEvent::Connecting { address: address.to_owned() });
        let not_here = |hint: String| Error::NotFound {
            name: name.into(),
            root: self.store.settings.root.clone(),
            hint,
            can_pull: false,
        };
        let plan = match &parsed.source {
            Source::Address(address) => {
                let look =
                    UrlSource { http: &self.http, options: self.options, on_retry: &on_retry };
                look.plan(address)?
            }
            Source::Alias(_) => return Err(self.store.not_here(name)),
            Source::Hub { host: Some(host), owner, name, .. }
                if ModelId::of_hub(endpoint, owner, name).host != *host =>
            {
                let hint = format!("to pull it set HF_ENDPOINT to {host}, or name its address");
                return Err(not_here(hint));
            }
            Source::Hub { owner, name, revision, .. } => {
                let revision = revision.as_deref().unwrap_or(DEFAULT_REVISION);
                let file = parsed.file.as_deref();
                let repository = Repository { endpoint, owner, name, revision, file };
                hub_source::plan(&self.http, repository, self.options, &on_retry)?
            }
        };
        (self.listener)(PullEvent::Planned {
            model: plan.id.to_string(),
            revision: plan.revision.clone(),
            files: plan.files.len(),
            bytes: plan.bytes(),
        });
        Ok(plan)
    }

    fn run(&self, plan: &Plan) -> PullResult<StoredModel> {
        let layout = &self.store.layout;
        let _lock = Lock::take(&layout.lock(&plan.id), self.options, self.listener)?;
        let folder = layout.revision(&plan.id, &plan.revision);
        let stored = self.stored(&folder)?;
        let model = match stored.complete() {
            Some(manifest) if plan.files.iter().all(|wanted| stored.has(wanted)) => {
                let model = StoredModel { id: plan.id.clone(), folder, manifest: manifest.clone() };
                there(self.listener, &model);
                model
            }
            _ => self.bring(plan, folder, &stored)?,
        };
        if let Some(reference) = &plan.reference {
            layout.refer(&plan.id, reference, &plan.revision)?;
        }
        Ok(model)
    }

    /// What there is of a revision. Damage is reported to the listener.
    fn stored(&self, folder: &Path) -> Result<Stored, Error> {
        let look = |entry: &FileEntry| {
            if self.options.verify_stored {
                (self.listener)(PullEvent::Verifying { file: entry.name.clone() });
            }
        };
        let stored = Stored::read(folder, self.options, look)?;
        for check in stored.damaged() {
            let (file, chunks) = (check.file.clone(), check.chunks.clone());
            (self.listener)(PullEvent::Corrupt { file, chunks });
        }
        Ok(stored)
    }

    /// Brings the files, and then shows the model.
    fn bring(&self, plan: &Plan, folder: PathBuf, stored: &Stored) -> PullResult<StoredModel> {
        make_folder(&folder)?;
        if plan.reference.is_none() && !is_commit(&plan.revision) {
            self.clear_others(plan)?;
        }
        stored.keep_good_chunks(&plan.files, &folder)?;
        let mut manifest = if let Some(manifest) = stored.complete() {
            manifest.clone()
        } else {
            let (model, revision) = (plan.id.to_string(), plan.revision.clone());
            let mut manifest = Manifest::new(model, revision, plan.source.clone());
            manifest.licence.clone_from(&plan.licence);
            manifest.put(stored.good());
            manifest.write(&folder)?; // not complete: it says what is under way
            manifest
        };
        let downloads =
            Downloads { http: &self.http, options: self.options, listener: self.listener };
        let mut entries: Vec<FileEntry> = vec![];
        for wanted in &plan.files {
            if let Some(entry) = stored.get(wanted) {
                entries.push(entry.clone());
                continue;
            }
            entries.push(downloads.bring(wanted, &folder)?);
        }
        manifest.put(entries);
        manifest.complete = true;
        manifest.pulled = now();
        manifest.write(&folder)?;
        for wanted in &plan.files {
            Paths::new(&folder, &wanted.name).clear()?;
        }
        Ok(StoredModel { id: plan.id.clone(), folder, manifest })
    }

    /// Removes what unfinished pulls of an address have left: no server has those files any more.
    fn clear_others(&self, plan: &Plan) -> PullResult<()> {
        let layout = &self.store.layout;
        let keep = layout.revision(&plan.id, &plan.revision);
        for revision in folders(&layout.model(&plan.id))? {
            let folder = layout.model(&plan.id).join(revision);
            let is_unfinished = match Manifest::look(&folder) {
                Ok(SmallFile::Found(manifest)) => !manifest.complete,
                Ok(SmallFile::Absent) => true,
                Ok(SmallFile::Damaged(_)) | Err(_) => false, // it may have been complete
            };
            if folder != keep && is_unfinished {
                let (file, reason) =
                    (plan.source.clone(), "it was another when it was pulled before".into());
                if has_unfinished(&folder) {
                    (self.listener)(PullEvent::SourceChanged { file, reason });
                }
                remove_revision(&folder)?;
            }
        }
        Ok(())
    }
}
