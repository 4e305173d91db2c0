//! The table of attacks.

use std::pin::Pin;

use crate::attacks::{bodies, documents, gate, rates, stock, workers};
use crate::scene::Scene;
use crate::victim::{Kind, Victims};

/// An attack on a scene.
pub type Attack = for<'a> fn(&'a Scene, &'a Victims) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// The bound of the 95th percentile of a kind of request while the attack goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// At most twice its undisturbed value and this many milliseconds more.
    Twice(f64),
    /// At most this many milliseconds.
    Milliseconds(f64),
}

impl Bound {
    /// The bound of all requests unless a row names another one (docs/reliability.md#attacks).
    pub const USUAL: Self = Self::Twice(100.0);

    /// The bound in milliseconds for an undisturbed value. The short form tolerates a busy machine and debug builds.
    pub fn of(self, baseline: f64, short: bool) -> f64 {
        /// The tolerance of the short form in milliseconds.
        const TOLERANCE: f64 = 1000.0;
        match (self, short) {
            (Self::Twice(more), false) => 2.0 * baseline + more,
            (Self::Twice(more), true) => 2.0 * baseline + more.max(TOLERANCE),
            (Self::Milliseconds(most), false) => most,
            (Self::Milliseconds(most), true) => most.max(2.0 * baseline) + TOLERANCE,
        }
    }
}

/// An attack, and what it may do.
pub struct Row {
    /// The number, which `--only` takes.
    pub number: u8,
    pub name: &'static str,
    pub attack: Attack,
    /// Statuses that the attacker may see. A connection that is closed is always allowed.
    pub may: &'static [u16],
    /// Statuses that it must see, because they are the defence.
    pub must: &'static [u16],
    /// Bounds other than [`Bound::USUAL`].
    pub bounds: &'static [(Kind, Bound)],
    /// Requests of the victims in addition to the mix.
    pub extra: &'static [Kind],
    /// Variables of the processes.
    pub env: &'static [(&'static str, &'static str)],
    pub gateways: usize,
    /// The second victim has the address of the attacker.
    pub neighbor: bool,
    /// The attack stops services, so it needs its own.
    pub own_services: bool,
    /// The processes have a name server that does not answer.
    pub dead_nameserver: bool,
}

impl Row {
    const fn new(number: u8, name: &'static str, attack: Attack, may: &'static [u16], must: &'static [u16]) -> Self {
        Self {
            number,
            name,
            attack,
            may,
            must,
            bounds: &[],
            extra: &[],
            env: &[],
            gateways: 1,
            neighbor: false,
            own_services: false,
            dead_nameserver: false,
        }
    }

    /// The bound of a kind of request.
    pub fn bound(&self, kind: Kind) -> Bound {
        self.bounds.iter().find(|(bounded, _)| *bounded == kind).map_or(Bound::USUAL, |(_, bound)| *bound)
    }
}

/// The rows of the short form, which is part of `tests/run --all`: one for each mechanism.
pub const SHORT: [u8; 6] = [6, 8, 11, 18, 26, 29];

const SLOWER: Bound = Bound::Twice(1000.0);
/// The attack fills the queue of the worker: what waits there, a start or an import, waits for the first free slot.
const FULL_QUEUE: &[(Kind, Bound)] = &[(Kind::Running, Bound::Milliseconds(2000.0)), (Kind::Import, SLOWER)];
const SMALL_QUOTA: &[(&str, &str)] = &[("CANVAS_ACCOUNT_STORAGE_MAX", stock::QUOTA)];
/// An address of an attacker is a proxy that is trusted.
const PROXY: &[(&str, &str)] = &[("CANVAS_TRUSTED_PROXIES", "127.0.1.1/32")];

/// Every attack.
pub static ROWS: [Row; 43] = [
    Row::new(1, "distinct methods of 30 KB", |s, _| Box::pin(gate::methods(s)), &[400, 405], &[405]),
    Row::new(2, "10020 silent sockets of one address", |s, _| Box::pin(gate::silent_address(s)), &[503], &[]),
    Row::new(3, "10020 silent sockets of 40 addresses", |s, _| Box::pin(gate::silent_addresses(s)), &[503], &[]),
    Row::new(4, "256 heads of one byte a second", |s, _| Box::pin(gate::slow_heads(s)), &[400, 408, 503], &[]),
    Row::new(5, "10240 idle connections of 40 addresses", |s, _| Box::pin(gate::idle(s)), &[200, 503], &[200]),
    Row::new(
        6,
        "140 slow bodies to sign-in, 1 MiB announced",
        |s, _| Box::pin(bodies::sign_ins(s)),
        &[413, 429, 503],
        &[413],
    ),
    Row::new(
        7,
        "140 chunked bodies to sign-in, 4 KiB a second",
        |s, _| Box::pin(bodies::chunked_sign_ins(s)),
        &[400, 413, 429, 503],
        &[413],
    ),
    Row::new(
        8,
        "9 slow bodies of 16 MiB of one token",
        |s, _| Box::pin(bodies::slow_batches(s)),
        &[400, 429, 503],
        &[],
    ),
    Row::new(9, "64 bodies of 16 MiB of one account", |s, _| Box::pin(bodies::full_speed(s)), &[404, 429, 503], &[503]),
    Row {
        extra: &[Kind::Large],
        bounds: &[(Kind::Large, Bound::Twice(2000.0)), (Kind::Upload, Bound::Twice(2000.0))],
        ..Row::new(
            10,
            "64 bodies of 16 MiB of 4 accounts",
            |s, _| Box::pin(bodies::four_accounts(s)),
            &[400, 404, 429, 503],
            &[],
        )
    },
    Row::new(
        11,
        "24 dry runs of 1.6 MB of small objects",
        |s, _| Box::pin(bodies::dry_runs(s)),
        &[200, 429, 503],
        &[200],
    ),
    Row::new(
        12,
        "bodies that take 200 MiB when parsed",
        |s, _| Box::pin(bodies::swelling(s)),
        &[413, 429, 503],
        &[413],
    ),
    Row::new(
        13,
        "64 bodies of 1 MiB with 1000 violations",
        |s, _| Box::pin(bodies::violations(s)),
        &[400, 429, 503],
        &[400],
    ),
    Row::new(
        14,
        "100000 nested arrays, 60000 unknown members",
        |s, _| Box::pin(bodies::deep(s)),
        &[400, 429, 503],
        &[400],
    ),
    Row::new(
        15,
        "64 reads of a canvas of 58 MB, compressed",
        |s, _| Box::pin(documents::compressed(s)),
        &[200, 429, 503],
        &[200],
    ),
    Row::new(
        16,
        "20 canvases of 58 MB in turn, gzip",
        |s, _| Box::pin(documents::in_turn(s)),
        &[200, 429, 503],
        &[200],
    ),
    Row::new(
        17,
        "64 slow readers of a canvas of 58 MB",
        |s, _| Box::pin(documents::slow_readers(s)),
        &[200, 429, 503],
        &[200],
    ),
    Row::new(
        18,
        "1200 requests a minute of each of 20 tokens",
        |s, _| Box::pin(rates::tokens(s)),
        &[200, 429],
        &[200, 429],
    ),
    Row::new(
        19,
        "tokens made and revoked in a loop",
        |s, _| Box::pin(rates::renewed_tokens(s)),
        &[200, 201, 204, 429],
        &[201, 429],
    ),
    Row::new(
        20,
        "64 streams of each of 20 tokens and 10 sessions",
        |s, _| Box::pin(rates::streams(s)),
        &[200, 429, 503],
        &[200, 429],
    ),
    Row::new(
        21,
        "64 long polls and 64 reads of large changes",
        |s, _| Box::pin(rates::polls_and_changes(s)),
        &[200, 429, 503],
        &[200],
    ),
    Row {
        neighbor: true,
        ..Row::new(
            22,
            "600 bad tokens a second of one address",
            |s, _| Box::pin(rates::bad_tokens(s)),
            &[401, 429],
            &[401, 429],
        )
    },
    Row {
        bounds: &[
            (Kind::Read, Bound::Twice(200.0)),
            (Kind::Batch, Bound::Twice(200.0)),
            (Kind::Outline, Bound::Twice(200.0)),
            (Kind::Start, Bound::Twice(200.0)),
            (Kind::Running, Bound::Twice(200.0)),
            (Kind::Preview, Bound::Twice(200.0)),
            (Kind::Upload, Bound::Twice(200.0)),
            (Kind::Tools, Bound::Twice(200.0)),
            (Kind::Stream, Bound::Twice(200.0)),
            (Kind::Import, Bound::Twice(200.0)),
        ],
        ..Row::new(
            23,
            "bad tokens of 1000 addresses",
            |s, _| Box::pin(rates::bad_tokens_from_everywhere(s)),
            &[401, 429],
            &[401],
        )
    },
    Row::new(
        24,
        "X-Forwarded-For of an untrusted peer",
        |s, _| Box::pin(gate::forged_address(s)),
        &[401, 429],
        &[401, 429],
    ),
    Row {
        env: PROXY,
        ..Row::new(
            25,
            "100000 entries in X-Forwarded-For of a proxy",
            |s, _| Box::pin(gate::many_entries(s)),
            &[400, 401, 429],
            &[400, 401],
        )
    },
    Row {
        bounds: &[(Kind::Import, SLOWER)],
        ..Row::new(
            26,
            "imports from a server of one byte a second",
            |s, _| Box::pin(workers::slow_imports(s)),
            &[422, 429, 502, 503, 504],
            &[429],
        )
    },
    Row {
        bounds: &[(Kind::Import, Bound::Milliseconds(10_000.0))],
        ..Row::new(
            27,
            "the same of 3 accounts",
            |s, _| Box::pin(workers::slow_imports_of_three(s)),
            &[422, 429, 502, 503, 504],
            &[429],
        )
    },
    Row {
        bounds: &[(Kind::Import, SLOWER)],
        ..Row::new(
            28,
            "product pages with 200 images of 50 MiB",
            |s, _| Box::pin(workers::large_gallery(s)),
            &[200, 422, 429, 502, 503, 504],
            &[],
        )
    },
    Row {
        extra: &[Kind::Action],
        ..Row::new(
            29,
            "free Actions of 49 megapixels",
            |s, _| Box::pin(workers::large_actions(s)),
            &[202, 422, 429],
            &[202],
        )
    },
    Row::new(
        30,
        "renditions of new images of 49 megapixels",
        |s, _| Box::pin(workers::renditions(s)),
        &[200, 201, 422, 429, 503],
        &[201],
    ),
    Row {
        extra: &[Kind::Render],
        ..Row::new(31, "PNG renders", |s, _| Box::pin(workers::renders(s)), &[200, 429, 503], &[200])
    },
    Row {
        bounds: FULL_QUEUE,
        ..Row::new(
            32,
            "generations of a provider that hangs",
            |s, _| Box::pin(workers::hanging_generations(s)),
            &[202, 422, 429],
            &[202],
        )
    },
    Row {
        bounds: FULL_QUEUE,
        ..Row::new(33, "a thousand Recipe runs", |s, _| Box::pin(workers::recipes(s)), &[202, 402, 422, 429], &[202])
    },
    Row {
        env: SMALL_QUOTA,
        ..Row::new(
            34,
            "batches of 12 MB as fast as it goes",
            |s, _| Box::pin(stock::large_batches(s)),
            &[200, 201, 422, 429, 503],
            &[200, 422],
        )
    },
    Row {
        extra: &[Kind::List],
        ..Row::new(35, "empty canvases", |s, _| Box::pin(stock::many_canvases(s)), &[201, 422, 429], &[201, 422])
    },
    Row {
        env: SMALL_QUOTA,
        ..Row::new(
            36,
            "nodes created and deleted in turn",
            |s, _| Box::pin(stock::undo(s)),
            &[200, 201, 409, 422, 429, 503],
            &[200, 422],
        )
    },
    Row::new(37, "uploads of one pixel", |s, _| Box::pin(stock::small_uploads(s)), &[201, 422, 429], &[201]),
    Row {
        extra: &[Kind::Delivery],
        bounds: &[(Kind::Delivery, SLOWER)],
        ..Row::new(
            38,
            "webhooks to 500 dead destinations",
            |s, _| Box::pin(workers::dead_destinations(s)),
            &[202, 422, 429],
            &[202],
        )
    },
    Row {
        extra: &[Kind::Shared],
        bounds: &[(Kind::Shared, SLOWER)],
        ..Row::new(
            39,
            "64 writers of one shared canvas",
            |s, v| Box::pin(bodies::writers(s, &v.shared)),
            &[200, 409, 422, 429, 503],
            &[200],
        )
    },
    Row {
        dead_nameserver: true,
        ..Row::new(
            40,
            "imports from hosts with slow names",
            |s, _| Box::pin(workers::slow_names(s)),
            &[422, 429, 502, 503, 504],
            &[],
        )
    },
    Row {
        own_services: true,
        ..Row::new(
            41,
            "row 18 while Redis is stopped",
            |s, _| Box::pin(rates::tokens_without_redis(s)),
            &[200, 429],
            &[200],
        )
    },
    Row {
        gateways: 2,
        bounds: &[
            (Kind::Read, SLOWER),
            (Kind::Batch, SLOWER),
            (Kind::Outline, SLOWER),
            (Kind::Start, SLOWER),
            (Kind::Running, SLOWER),
            (Kind::Preview, SLOWER),
            (Kind::Upload, SLOWER),
            (Kind::Tools, SLOWER),
            (Kind::Stream, SLOWER),
            (Kind::Import, SLOWER),
        ],
        ..Row::new(
            42,
            "row 11 while one of two gateways is killed",
            |s, _| Box::pin(bodies::dry_runs_and_a_death(s)),
            &[200, 429, 503],
            &[200],
        )
    },
    Row::new(43, "the contract document without a credential", |s, _| Box::pin(documents::contract(s)), &[200], &[200]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_numbered_in_order_and_the_short_form_names_some() {
        assert!(ROWS.iter().zip(1..).all(|(row, number)| row.number == number));
        assert!(SHORT.iter().all(|number| ROWS.iter().any(|row| row.number == *number)));
        assert!(ROWS.iter().all(|row| row.must.iter().all(|status| row.may.contains(status))));
    }

    #[test]
    fn the_short_form_is_more_tolerant() {
        assert_eq!((Bound::USUAL.of(20.0, false), Bound::USUAL.of(20.0, true)), (140.0, 1040.0));
        let second = Bound::Milliseconds(2000.0);
        assert_eq!((second.of(20.0, false), second.of(20.0, true)), (2000.0, 3000.0));
    }
}
