//! The application layer on a real database.

mod canvas_locks;
mod commands;
mod fixture;
mod graphs;
mod jobs;
mod keyed_locks;
mod recipe_runs;
mod refs;
mod start_facts;
mod starts;
