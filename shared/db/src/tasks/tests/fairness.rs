//! Fairness keys are served in turn, and none beyond its cap.

use super::*;

async fn claim_capped(conn: &mut PgConnection, limit: usize, cap: usize, held: &[(String, usize)]) -> Vec<Claim> {
    let held: Vec<HeldKey> = held.iter().map(|(name, held)| HeldKey { name: name.clone(), held: *held, cap }).collect();
    claim_within(conn, limit, cap, &held).await
}

async fn claim_within(conn: &mut PgConnection, limit: usize, cap: usize, held: &[HeldKey]) -> Vec<Claim> {
    let caps = Some(FairnessCaps { cap, held, tenant_cap: usize::MAX, tenants: &[] });
    let wanted = ClaimRequest { queue: Queue::Image, limit, quarantined: false, caps, lease: LEASE, owner: "test" };
    claim(conn, &wanted).await.expect("claims")
}

#[tokio::test]
async fn a_key_that_comes_late_is_served_next() {
    database!(conn);
    for _ in 0..50 {
        enqueue_in(conn, "busy", None).await;
    }
    assert_eq!(claim_up_to(conn, 10, LEASE).await.len(), 10);
    let late = enqueue_in(conn, "late", None).await;
    let next: Vec<Uuid> = claim_up_to(conn, 2, LEASE).await.iter().map(|claim| claim.id).collect();
    assert!(next.contains(&late), "one task of the busy key at most comes first");
}

#[tokio::test]
async fn keys_of_equal_load_are_served_alternately() {
    database!(conn);
    for fairness_key in ["a", "a", "a", "a", "b", "b", "c"] {
        enqueue_in(conn, fairness_key, None).await;
    }
    let mut order = Vec::new();
    while let Some(claim) = claim_up_to(conn, 1, LEASE).await.pop() {
        order.push(claim.fairness_key);
    }
    assert_eq!(order, ["a", "b", "c", "a", "b", "a", "a"]);
}

#[tokio::test]
async fn a_key_with_a_cap_of_its_own_is_filled_up_to_that_cap() {
    database!(conn);
    // More tasks than a claim reads by position, so that it also goes from key to key.
    for (fairness_key, count) in [("fast", 90), ("slow", 90), ("new", 9)] {
        for _ in 0..count {
            enqueue_in(conn, fairness_key, None).await;
        }
    }
    let held = |name: &str, held, cap| HeldKey { name: name.to_owned(), held, cap };
    let count = |claims: &[Claim], name| claims.iter().filter(|claim| claim.fairness_key == name).count();
    let claims = claim_within(conn, 60, 4, &[held("fast", 16, 32), held("slow", 3, 5)]).await;
    assert_eq!(["fast", "slow", "new"].map(|name| count(&claims, name)), [16, 0, 4]);
    let claims = claim_within(conn, 60, 4, &[held("fast", 17, 32), held("slow", 2, 5)]).await;
    assert_eq!(["fast", "slow", "new"].map(|name| count(&claims, name)), [0, 3, 4]);
}

#[tokio::test]
async fn an_idle_key_saves_up_no_credit() {
    database!(conn);
    // Key "a" is alone for a while. When "b" and "a" both come again, neither has an advantage.
    for _ in 0..20 {
        let id = enqueue_in(conn, "a", None).await;
        let claim = only(conn).await;
        assert!(settle(conn, id, claim.lease_token).await.expect("settles"));
    }
    for fairness_key in ["a", "b", "b", "a"] {
        enqueue_in(conn, fairness_key, None).await;
    }
    let first_turn: HashSet<String> =
        claim_up_to(conn, 2, LEASE).await.into_iter().map(|claim| claim.fairness_key).collect();
    assert_eq!(first_turn.len(), 2);
}

#[tokio::test]
async fn promoted_tasks_of_one_key_get_consecutive_numbers() {
    database!(conn);
    for _ in 0..5 {
        enqueue_in(conn, "busy", Some(Duration::ZERO)).await;
    }
    assert_eq!(promote(conn, Queue::Image, 10).await.expect("promotes").due, 5);
    let late = enqueue_in(conn, "late", None).await;
    let next: Vec<Uuid> = claim_up_to(conn, 2, LEASE).await.iter().map(|claim| claim.id).collect();
    assert!(next.contains(&late));
    // A task that is enqueued after them with their fairness key comes last.
    let last = enqueue_in(conn, "busy", None).await;
    let rest: Vec<Uuid> = claim_up_to(conn, 3, LEASE).await.iter().map(|claim| claim.id).collect();
    assert!(!rest.contains(&last));
}

#[tokio::test]
async fn a_lane_that_stays_at_its_cap_gives_those_that_come_later_no_credit() {
    database!(conn);
    for _ in 0..5 {
        enqueue_in(conn, "dead", None).await;
    }
    let dead = [("dead".to_owned(), claim_capped(conn, 10, 2, &[]).await.len())];
    for _ in 0..30 {
        enqueue_in(conn, "early", None).await;
    }
    // The early fairness key has been served for a while when another one comes with as many tasks.
    for _ in 0..20 {
        let claim = claim_capped(conn, 1, 2, &dead).await.remove(0);
        assert!(settle(conn, claim.id, claim.lease_token).await.expect("settles"));
    }
    let in_service = claim_capped(conn, 1, 2, &dead).await;
    assert_eq!(in_service[0].fairness_key, "early");
    for _ in 0..9 {
        enqueue_in(conn, "late", None).await;
        enqueue_in(conn, "later", Some(Duration::ZERO)).await;
    }
    promote(conn, Queue::Image, 100).await.expect("promotes");
    let fairness_keys: Vec<String> = claim_capped(conn, 20, 9, &[("dead".to_owned(), 9)])
        .await
        .into_iter()
        .map(|claim| claim.fairness_key)
        .collect();
    for fairness_key in ["early", "late", "later"] {
        let served = fairness_keys.iter().filter(|served| *served == fairness_key).count();
        assert!(served >= 5, "{fairness_key} is served {served} times of {}: {fairness_keys:?}", fairness_keys.len());
    }
}

#[tokio::test]
async fn a_task_whose_worker_died_keeps_its_turn() {
    database!(conn);
    let first = enqueue_in(conn, "a", None).await;
    for _ in 0..5 {
        enqueue_in(conn, "a", None).await;
    }
    assert_eq!(claim_up_to(conn, 1, EXPIRED).await[0].id, first);
    promote(conn, Queue::Image, 10).await.expect("promotes");
    assert_eq!(claim_up_to(conn, 1, LEASE).await[0].id, first);
}

#[tokio::test]
async fn a_full_lane_is_passed_over() {
    database!(conn);
    for _ in 0..6 {
        enqueue_in(conn, "full", None).await;
    }
    let other = enqueue_in(conn, "other", None).await;
    let claims = claim_capped(conn, 10, 2, &[("full".to_owned(), 2)]).await;
    assert_eq!(claims.iter().map(|claim| claim.id).collect::<Vec<_>>(), [other]);
    // At, below and above the cap.
    assert_eq!(claim_capped(conn, 10, 2, &[("full".to_owned(), 1)]).await.len(), 1);
    assert_eq!(claim_capped(conn, 10, 2, &[("full".to_owned(), 3)]).await.len(), 0);
    assert_eq!(claim_capped(conn, 10, 2, &[]).await.len(), 2);
    assert_eq!(stats(conn, Queue::Image).await.expect("counts").ready, 3);
}

#[tokio::test]
async fn a_task_behind_the_long_backlog_of_a_full_key_is_found() {
    database!(conn);
    for _ in 0..200 {
        enqueue_in(conn, "full", None).await;
    }
    // It is made ready at the position in service, as a later task would be; here it comes after all the others.
    let other = enqueue_in(conn, "other", None).await;
    sqlx::query("UPDATE task_queue SET fair_seq = fair_seq + 1000 WHERE id = $1")
        .bind(other)
        .execute(&mut *conn)
        .await
        .expect("moves");
    let claims = claim_capped(conn, 10, 4, &[("full".to_owned(), 3)]).await;
    assert_eq!(claims.iter().map(|claim| claim.id).collect::<Vec<_>>(), [other]);
    // At half of its cap, the fairness key is filled up.
    assert_eq!(claim_capped(conn, 10, 4, &[("full".to_owned(), 2)]).await.len(), 2);
}

#[tokio::test]
async fn a_tenant_at_its_cap_is_passed_over_in_all_its_lanes() {
    database!(conn);
    for fairness_key in 0..6 {
        let (id, fairness_key) = (Uuid::now_v7(), format!("tarpit {fairness_key}"));
        let new = NewTask {
            id,
            queue: Queue::Image,
            kind: TaskKind::Action,
            fairness_key: &fairness_key,
            due_in: None,
            traceparent: None,
        };
        enqueue_for(conn, &new, "attacker").await.expect("enqueues");
    }
    let healthy = enqueue_in(conn, "healthy", None).await;
    let claim_with = async |conn: &mut PgConnection, tenants: &[(String, usize)]| {
        let caps = Some(FairnessCaps { cap: 4, held: &[], tenant_cap: 2, tenants });
        let wanted =
            ClaimRequest { queue: Queue::Image, limit: 10, quarantined: false, caps, lease: LEASE, owner: "test" };
        claim(conn, &wanted).await.expect("claims")
    };
    let first = claim_with(conn, &[]).await;
    let tenants: Vec<_> = first.iter().filter_map(|claim| claim.tenant.as_deref()).collect();
    assert_eq!((tenants, first.len()), (vec!["attacker"; 2], 3));
    assert!(first.iter().any(|claim| claim.id == healthy), "a task without a tenant has no tenant limit");
    assert!(claim_with(conn, &[("attacker".to_owned(), 2)]).await.is_empty());
    assert_eq!(claim_with(conn, &[("attacker".to_owned(), 1)]).await.len(), 1);
}
