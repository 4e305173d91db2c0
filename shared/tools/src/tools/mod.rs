//! The tools, one in each file.

pub mod action_run;
pub mod asset_download;
pub mod asset_upload;
pub mod canvas_create;
pub mod canvas_delete;
pub mod canvas_edit;
pub mod canvas_read;
pub mod canvas_review;
pub mod canvas_view;
pub mod describe;
pub mod element_manage;
pub mod element_save;
pub mod find;
pub mod image_generate;
pub mod import_url;
pub mod recipe_run;
pub mod run_cancel;
pub mod run_wait;
pub mod status;
pub mod video_generate;
pub mod video_keep;
pub mod workflow_create;
