//! Black-box tests of the documented behavior (docs/reference), one module for each subject.
//!
//! Each suite runs on one stack, and each function is named after the behavior that it checks.

mod access;
mod actions;
mod administration;
mod assets;
mod authentication;
mod belongings;
mod bodies;
mod buckets;
mod campaigns;
mod canvases;
mod configuration;
mod conventions;
mod elements;
mod events;
mod examples;
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
