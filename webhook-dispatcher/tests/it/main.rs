//! Tests of the dispatcher with a real database and broker and with failing receivers.

mod deliver;
mod harness;
mod isolate;
mod survive;
