use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

type Waiter<'a> = Pin<Box<dyn Future<Output = Held> + Send + 'a>>;

fn key(name: &str) -> Key {
    Key::account(name)
}

fn poll<T>(future: Pin<&mut (impl Future<Output = T> + ?Sized)>) -> Option<T> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// A waiter for `units` that does not get them at once.
fn waiting<'a>(shares: &'a Shares, key: &'a Key, units: u64) -> Waiter<'a> {
    let mut waiter: Waiter<'a> = Box::pin(shares.hold(key, units));
    assert!(poll(waiter.as_mut()).is_none(), "{units} are held at once");
    waiter
}

/// The units that are held at once.
fn held(shares: &Shares, key: &Key, units: u64) -> Held {
    poll(std::pin::pin!(shares.hold(key, units))).expect("nobody has to wait")
}

fn assert_empty(shares: &Shares) {
    let state = shares.lock();
    assert_eq!(state.held, 0);
    assert!(state.keys.is_empty() && state.order.is_empty());
}

#[test]
fn the_total_and_the_limit_of_a_key_are_reached_and_never_passed() {
    let shares = Shares::new("test", 10, 6);
    let [a, b] = ["a", "b"].map(key);
    let most = held(&shares, &a, 6);
    assert!(shares.try_hold(&a, 1).is_none(), "the limit of the key");
    let rest = held(&shares, &b, 4);
    assert!(shares.try_hold(&b, 1).is_none(), "the total");
    assert_eq!((shares.held(), shares.heaviest()), (10, Some((a.clone(), 6))));
    assert!(shares.try_hold(&b, 0).is_some(), "nothing waits for nothing");
    drop((most, rest));
    assert_eq!(held(&shares, &a, 7).units(), 6, "as many as a key may hold");
    assert_empty(&shares);
}

#[test]
fn shares_of_all_sizes_admit_something() {
    for (total, per_key) in [(0, 0), (1, 5), (5, 0)] {
        let shares = Shares::new("test", total, per_key);
        assert_eq!(held(&shares, &key("a"), u64::MAX).units(), 1);
        assert_empty(&shares);
    }
}

#[test]
fn the_key_that_holds_least_is_next() {
    let shares = Shares::new("test", 6, 6);
    let [a, b, c] = ["a", "b", "c"].map(key);
    let (three, two, one) = (held(&shares, &a, 3), held(&shares, &b, 2), held(&shares, &c, 1));
    let (mut first, mut second, mut third) =
        (waiting(&shares, &a, 1), waiting(&shares, &b, 1), waiting(&shares, &c, 1));
    drop(one);
    let third = poll(third.as_mut()).expect("holds nothing");
    assert!(poll(first.as_mut()).is_none() && poll(second.as_mut()).is_none());
    drop(third);
    let second = poll(second.as_mut()).expect("holds less");
    drop(two);
    let first = poll(first.as_mut()).expect("fits");
    drop((three, first, second));
    assert_empty(&shares);
}

#[test]
fn keys_that_hold_the_same_take_turns_and_each_admits_in_order() {
    let shares = Shares::new("test", 1, 1);
    let [busy, other] = ["busy", "other"].map(key);
    let mut now = held(&shares, &busy, 1);
    let mut many: Vec<_> = (0..3).map(|_| waiting(&shares, &busy, 1)).collect();
    let mut one = waiting(&shares, &other, 1);
    drop(now);
    now = poll(many[0].as_mut()).expect("waited first");
    assert!(poll(many[1].as_mut()).is_none() && poll(one.as_mut()).is_none());
    drop(now);
    now = poll(one.as_mut()).expect("has its turn before the second of the busy key");
    drop(now);
    assert!(poll(many[2].as_mut()).is_none(), "nobody overtakes its own key");
    drop(poll(many[1].as_mut()).expect("fits"));
    drop(poll(many[2].as_mut()).expect("fits"));
    assert_empty(&shares);
}

#[test]
fn a_key_at_its_limit_waits_for_itself_alone() {
    let shares = Shares::new("test", 10, 4);
    let [a, b] = ["a", "b"].map(key);
    let mine = held(&shares, &a, 3);
    let mut more = waiting(&shares, &a, 2);
    assert!(shares.try_hold(&a, 1).is_none(), "is behind the first of its key");
    drop(held(&shares, &b, 4));
    drop(mine);
    drop(poll(more.as_mut()).expect("fits now"));
    assert_empty(&shares);
}

#[test]
fn sixteen_keys_that_hold_nothing_pass_one_that_does_not_fit() {
    let shares = Shares::new("test", 4, 4);
    let keys: Vec<Key> = (0..20).map(|number| key(&number.to_string())).collect();
    let large = held(&shares, &keys[0], 3);
    let some = shares.try_hold(&keys[1], 1);
    let mut blocked = waiting(&shares, &keys[2], 4);
    let mut holder = waiting(&shares, &keys[1], 1);
    drop(some);
    // The second key holds nothing now.
    drop(poll(holder.as_mut()).expect("passes first"));
    for passing in &keys[3..18] {
        drop(held(&shares, passing, 1));
    }
    let mut last = waiting(&shares, &keys[18], 1);
    drop(large);
    let blocked = poll(blocked.as_mut()).expect("was waited for");
    assert!(poll(last.as_mut()).is_none());
    drop(blocked);
    drop(poll(last.as_mut()).expect("fits"));
    assert_empty(&shares);
}

#[test]
fn a_key_that_holds_something_passes_nobody() {
    let shares = Shares::new("test", 4, 4);
    let [a, b, c] = ["a", "b", "c"].map(key);
    let (_one, _two) = (held(&shares, &a, 1), held(&shares, &b, 1));
    let _blocked = waiting(&shares, &c, 4);
    let _holder = waiting(&shares, &a, 1);
}

#[test]
fn a_waiter_that_is_dropped_holds_nothing_and_blocks_nobody() {
    let shares = Shares::new("test", 4, 4);
    let [a, b, c] = ["a", "b", "c"].map(key);
    let (one, two) = (held(&shares, &a, 2), held(&shares, &b, 1));
    let large = waiting(&shares, &c, 4);
    let mut small = waiting(&shares, &b, 1);
    drop(large);
    let small = poll(small.as_mut()).expect("those behind it go on");
    let admitted = waiting(&shares, &c, 1);
    drop(one);
    assert_eq!(shares.held(), 3, "it is admitted and was not polled");
    drop(admitted);
    drop((small, two));
    assert_empty(&shares);
}

#[test]
fn a_holder_grows_and_shrinks() {
    let shares = Shares::new("test", 9, 6);
    let [a, b] = ["a", "b"].map(key);
    let mut mine = held(&shares, &a, 2);
    let other = held(&shares, &b, 4);
    assert_eq!(poll(std::pin::pin!(mine.grow(5))), Some(Err(Full)), "would never fit");
    assert_eq!(poll(std::pin::pin!(mine.grow(3))), Some(Ok(())));
    assert_eq!((mine.units(), shares.held()), (5, 9));
    assert_eq!(shares.blocker(&b, 1), Some(a.clone()), "the heaviest");
    assert_eq!(shares.blocker(&a, 2), Some(a.clone()), "its own limit");
    assert_eq!(shares.blocker(&b, 0), None);
    {
        let mut growth = Box::pin(mine.grow(1));
        assert!(poll(growth.as_mut()).is_none());
        drop(other);
        assert_eq!(poll(growth.as_mut()), Some(Ok(())));
    }
    for (units, left) in [(7, 6), (6, 6), (1, 1), (0, 0)] {
        mine.shrink_to(units);
        assert_eq!((mine.units(), shares.held()), (left, left), "{units}");
    }
    assert_empty(&shares);
}

#[test]
fn who_held_most_of_what_was_almost_taken_is_told() {
    let (full, quiet) = (Shares::new("test_full", 10, 10), Shares::new("test_quiet", 10, 10));
    let address = Key::Address(IpAddr::from([192, 0, 2, 1]));
    let mut notable = Notable::new();
    let parts = [held(&full, &key("a"), 5), held(&full, &key("b"), 1), held(&full, &address, 2)];
    measure(&[full.clone(), quiet.clone()], &mut notable);
    assert!(notable.is_empty(), "at 80 %");
    let more = held(&full, &key("b"), 1);
    let _some = held(&quiet, &key("a"), 1);
    let told = (0.9, r#"test_full 0.90, Account("a") 5, Address(192.0.2.1) 2"#.to_owned());
    measure(&[full.clone(), quiet.clone()], &mut notable);
    assert_eq!(notable, Notable::from([("test_full", told.clone())]));
    // The moment at which most was held counts.
    drop((parts, more));
    measure(&[full.clone(), quiet], &mut notable);
    assert_eq!(notable["test_full"], told);
    assert!(Shares::all().iter().any(|shares| shares.name() == "test_full"));
    drop(full);
    assert!(Shares::all().iter().all(|shares| shares.name() != "test_full"), "what nobody uses is gone");
}

#[derive(Debug, Clone)]
enum Step {
    Hold(usize, u64),
    Drop(usize),
    Release(usize),
    Shrink(usize, u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..5usize, 0..9u64).prop_map(|(key, units)| Step::Hold(key, units)),
        1 => any::<usize>().prop_map(Step::Drop),
        2 => any::<usize>().prop_map(Step::Release),
        1 => (any::<usize>(), 0..9u64).prop_map(|(held, units)| Step::Shrink(held, units)),
    ]
}

proptest! {
    #[test]
    fn after_any_history_the_limits_hold_and_every_waiter_is_admitted(
        total in 1..12u64, per_key in 1..12u64, steps in vec(step(), 1..60),
    ) {
        let shares = Shares::new("test", total, per_key);
        let keys: Vec<Key> = (0..5).map(|number| key(&number.to_string())).collect();
        let mut waiters: Vec<(usize, Waiter<'_>)> = Vec::new();
        let mut holders: Vec<(usize, Held)> = Vec::new();
        for step in steps {
            match step {
                Step::Hold(key, units) => waiters.push((key, Box::pin(shares.hold(&keys[key], units)))),
                Step::Drop(waiter) if !waiters.is_empty() => drop(waiters.remove(waiter % waiters.len())),
                Step::Release(holder) if !holders.is_empty() => drop(holders.remove(holder % holders.len())),
                Step::Shrink(holder, units) if !holders.is_empty() => {
                    let holder = holder % holders.len();
                    holders[holder].1.shrink_to(units);
                }
                _ => {}
            }
            let mut still = Vec::new();
            for (key, mut waiter) in waiters {
                match poll(waiter.as_mut()) {
                    Some(held) => holders.push((key, held)),
                    None => still.push((key, waiter)),
                }
            }
            waiters = still;
            let of = |key| holders.iter().filter(|(holder, _)| *holder == key).map(|(_, held)| held.units()).sum::<u64>();
            let held: Vec<u64> = (0..5).map(of).collect();
            prop_assert_eq!(held.iter().sum::<u64>(), shares.held());
            prop_assert!(shares.held() <= total);
            prop_assert!(held.iter().all(|held| *held <= per_key));
            // Free units are not kept from the only one that waits.
            if let [(key, _)] = &waiters[..] {
                prop_assert!(shares.blocker(&keys[*key], per_key.min(total)).is_some());
            }
        }
        while !holders.is_empty() || !waiters.is_empty() {
            let before = waiters.len();
            let ended = holders.len();
            holders.clear();
            waiters.retain_mut(|(key, waiter)| match poll(waiter.as_mut()) {
                Some(held) => {
                    holders.push((*key, held));
                    false
                }
                None => true,
            });
            prop_assert!(ended > 0 || waiters.len() < before, "{} wait for nobody", waiters.len());
        }
        assert_empty(&shares);
    }

    #[test]
    fn a_key_that_holds_nothing_waits_for_at_most_one_of_a_busy_key(units in 1..5u64, many in 1..40usize) {
        let shares = Shares::new("test", 4, 4);
        let [busy, innocent] = ["busy", "innocent"].map(key);
        let first = held(&shares, &busy, 4);
        let mut queue: Vec<_> = (0..many).map(|_| waiting(&shares, &busy, units)).collect();
        let mut mine = waiting(&shares, &innocent, 1);
        drop(first);
        let mine = poll(mine.as_mut()).or_else(|| {
            drop(poll(queue[0].as_mut()));
            poll(mine.as_mut())
        });
        prop_assert!(mine.is_some(), "waits behind more than one");
    }
}
