//! The specification, chapter by chapter, as behaviour seen from outside.
//!
//! Each module is a chapter; each of its suites is a stack, and each behaviour a function named after what it shows.
//! Sections of `canvas-service-api.md` are cited by name, those of `decisions.md` by number.

mod access;
mod actions;
mod administration;
mod assets;
mod authentication;
mod belongings;
mod buckets;
mod campaigns;
mod canvases;
mod configuration;
mod conventions;
mod elements;
mod faults;
mod findings;
mod following;
mod hostile;
mod images;
mod imports;
mod invalid;
mod jobs;
mod metadata;
mod models;
mod operations;
mod operators;
mod previews;
mod processes;
mod prompts;
mod rates;
mod recipes;
mod render;
mod retention;
mod secrets;
mod storage;
mod text;
mod traces;
mod videos;
mod webhooks;
