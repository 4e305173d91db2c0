//! The operations of the API: one file for each, with request, response, documentation, handler and tests.

pub mod actions;
pub mod assets;
pub mod auth;
pub mod campaigns;
pub mod canvases;
pub mod deliveries;
pub mod element_collections;
pub mod elements;
pub mod events;
pub mod images;
pub mod imports;
pub mod jobs;
pub mod models;
pub mod providers;
pub mod recipes;
pub mod runs;
pub mod status;
pub mod videos;
