//! The adapters against simulators of their providers: what succeeds, what fails and how it is told, and what is never
//! done twice (decisions 12.5; reliability.md, Provider submits).

mod capabilities;
mod faults;
mod money;
mod refusals;
mod texts;
mod world;
