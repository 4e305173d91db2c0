//! Tests of the adapters with simulators of their providers: what succeeds, what fails and how it
//! is reported, and what is never repeated (`docs/reliability.md#provider-submits`).

mod capabilities;
mod failures;
mod forms;
mod harness;
mod masks;
mod money;
mod places;
mod refusals;
mod texts;
