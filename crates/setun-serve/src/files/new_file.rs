//! A file that is being uploaded.

use std::fs;

use axum::body::Bytes;
use tokio::{fs::File, io::AsyncWriteExt};

use super::{
    disk::sync_folder,
    records::{Purpose, StoredFile},
    service::Owner,
    store::FileStore,
};
use crate::{blocking::beside, error::ApiError, request_id::new_id};

/// A file that is written piece by piece. Dropped before its end, nothing is left of it.
pub(crate) struct NewFile {
    store: FileStore,
    owner: Owner,
    id: String,
    file: Option<File>,
    bytes: u64,
    is_kept: bool,
}

impl NewFile {
    pub(crate) async fn create(store: &FileStore, owner: Owner) -> Result<Self, ApiError> {
        store.take_file(&owner.id, owner.is_one_of_several)?;
        let mut new = Self {
            store: store.clone(),
            owner,
            id: new_id("file-"),
            file: None,
            bytes: 0,
            is_kept: false,
        };
        let file = File::create_new(store.part(&new.id)).await;
        new.file = Some(file.map_err(|error| ApiError::of_storage(&error))?);
        Ok(new)
    }

    /// Adds a piece, within the limits.
    pub(crate) async fn write(&mut self, piece: &Bytes) -> Result<(), ApiError> {
        let (more, most) = (piece.len() as u64, self.store.limits().file_bytes);
        if self.bytes.saturating_add(more) > most {
            return Err(ApiError::body_too_large(usize::try_from(most).unwrap_or(usize::MAX)));
        }
        self.store.take_bytes(&self.owner.id, more, self.owner.is_one_of_several)?;
        self.bytes += more;
        match &mut self.file {
            Some(file) => file.write_all(piece).await.map_err(|error| ApiError::of_storage(&error)),
            None => Err(ApiError::internal("the file was closed")),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Keeps the file: its content is on the disk before it has a record.
    pub(crate) async fn keep(
        mut self,
        filename: String,
        expires_at: Option<u64>,
        now: u64,
    ) -> Result<StoredFile, ApiError> {
        let failed = |error: std::io::Error| ApiError::of_storage(&error);
        if let Some(mut file) = self.file.take() {
            file.flush().await.map_err(failed)?;
            file.sync_all().await.map_err(failed)?;
        }
        let record = StoredFile {
            id: self.id.clone(),
            owner: self.owner.id.clone(),
            number: 0,
            bytes: self.bytes,
            created_at: now,
            filename,
            purpose: Purpose::Batch,
            expires_at,
        };
        beside(move || {
            let mut new = self;
            let content = new.store.content(&new.id);
            let put = fs::rename(new.store.part(&new.id), &content);
            let put = put.and_then(|()| sync_folder(&content));
            let kept = put.and_then(|()| new.store.add_file(record));
            new.is_kept = kept.is_ok();
            kept.map_err(|error| ApiError::of_storage(&error))
        })
        .await
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_kept {
            for path in [self.store.part(&self.id), self.store.content(&self.id)] {
                let _ = fs::remove_file(path); // the next start removes it, too
            }
            self.store.give_back(&self.owner.id, self.bytes, 1);
        }
    }
}
