//! Many events while their dispatchers die (docs/reliability.md#r9-no-event-is-lost).

use std::collections::BTreeMap;
use std::time::Duration;

use e2e::{Chance, Part, Service, Services, Stack, checker};
use futures_util::future::join_all;
use testkit::Receiver;

use super::scale::{Scale, measured, scale};
use super::{OTHER_DISPATCHER, doubled};

/// Rounds, the events of each round, and its kills of a dispatcher, of the broker and of the database.
const R9_ROUNDS: Scale<usize> = scale(1, 10);
const R9_EVENTS: Scale<usize> = scale(2000, 20_000);
const R9_DISPATCHER_KILLS: Scale<usize> = scale(4, 10);
const R9_BROKER_KILLS: Scale<usize> = scale(1, 2);
const R9_DATABASE_STOPS: Scale<usize> = scale(1, 2);

const DISPATCHERS: [Part; 2] = [Part::DISPATCHER, OTHER_DISPATCHER];
/// Long enough that a lease does not expire on a busy machine, so that only attempts in flight are repeated.
const LEASE_SECONDS: u64 = 5;
/// The longest time for the events of one round, outages included.
const ROUND: Duration = Duration::from_secs(1800);
/// The most deliveries to one destination that a dispatcher holds (`canvas-webhook-dispatcher`, CLAIMED_MAX).
const IN_FLIGHT: usize = 64;

/// What can die. Each has a number of dispatchers that lose their deliveries in flight. Without RabbitMQ they continue.
#[derive(Clone, Copy, Debug)]
enum Death {
    Dispatcher,
    Broker,
    Database,
}

impl Death {
    fn loses(self) -> usize {
        match self {
            Self::Dispatcher => 1,
            Self::Broker => 0,
            Self::Database => 2,
        }
    }

    async fn strike(self, stack: &Stack, services: &Services, chance: &mut Chance) {
        match self {
            Self::Dispatcher => {
                let part = chance.pick(&DISPATCHERS);
                stack.kill(part);
                stack.restart(part).await;
            }
            Self::Broker => restart(services, Service::RabbitMq).await,
            Self::Database => restart(services, Service::Postgres).await,
        }
    }
}

async fn restart(services: &Services, service: Service) {
    services.kill(service).await;
    services.start_again().await;
}

/// The deaths of a round in random order.
fn deaths(chance: &mut Chance) -> Vec<Death> {
    let mut left = [
        vec![Death::Dispatcher; R9_DISPATCHER_KILLS.now()],
        vec![Death::Broker; R9_BROKER_KILLS.now()],
        vec![Death::Database; R9_DATABASE_STOPS.now()],
    ]
    .concat();
    let mut deaths = Vec::with_capacity(left.len());
    while !left.is_empty() {
        deaths.push(left.swap_remove(chance.below(left.len())));
    }
    deaths
}

/// Asserts that every event arrived, each time under its id and with its body. Returns how many arrived more than once.
fn duplicates(receiver: &Receiver, events: &BTreeMap<String, Vec<u8>>, chance: &Chance) -> usize {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    let requests = receiver.requests();
    for request in &requests {
        let id = request.header("service-webhook-id").expect("an id");
        let body = events.get(id).unwrap_or_else(|| panic!("seed {}: {id} was never created", chance.seed()));
        assert!(request.body == body.as_slice(), "seed {}: {id} came with another body", chance.seed());
        request.verify_signature(e2e::load::SECRET).expect("is signed");
        *times.entry(id).or_default() += 1;
    }
    let lost: Vec<_> = events.keys().filter(|id| !times.contains_key(id.as_str())).collect();
    assert!(lost.is_empty(), "seed {}: {} events are lost: {:?}", chance.seed(), lost.len(), lost.first());
    requests.len() - events.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_event_is_lost_over_kills_of_dispatchers_broker_and_database() {
    let (chance, services) = (Chance::new(), Services::start().await);
    let (rounds, count) = (R9_ROUNDS.now(), R9_EVENTS.now());
    let builder = doubled().gateways(1).image_workers(0).receivers(rounds).env("CANVAS_LEASE_SECONDS", LEASE_SECONDS);
    let stack = builder.on(&services).start().await;
    let (mut twice, mut struck) = (0, BTreeMap::<String, usize>::new());
    for round in 0..rounds {
        let mut chance = chance.fork(round as u64);
        let (receiver, deaths) = (stack.take_receiver(), deaths(&mut chance));
        // All events wait when the dispatchers start, so that deliveries are in flight until the last kill.
        join_all(DISPATCHERS.map(|part| stack.stop(part))).await;
        let events = stack.leave_events(count, &receiver.url("/events")).await;
        join_all(DISPATCHERS.map(|part| stack.restart(part))).await;
        for (number, death) in deaths.iter().enumerate() {
            // The kills are spread over the whole round.
            receiver.wait_for(count * (number + 1) / (deaths.len() + 1), ROUND).await;
            death.strike(&stack, &services, &mut chance).await;
            *struck.entry(format!("{death:?}")).or_default() += 1;
        }
        checker::settled(&stack, ROUND).await;
        assert_eq!(stack.count("SELECT count(*) FROM webhook_deliveries WHERE status <> 'delivered'").await, 0);
        let duplicates = duplicates(&receiver, &events, &chance);
        let in_flight = IN_FLIGHT * deaths.iter().map(|death| death.loses()).sum::<usize>();
        println!("round {round}: {duplicates} duplicates of at most {in_flight} in flight");
        assert!(
            duplicates <= in_flight,
            "seed {}: {duplicates} duplicates, but only {in_flight} in flight",
            chance.seed()
        );
        twice += duplicates;
        checker::forget(&stack).await;
    }
    measured("R9", format_args!("{} events over {struck:?}: 0 lost, {twice} duplicates", rounds * count));
}
