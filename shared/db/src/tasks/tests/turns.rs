//! Lanes take turns, and none is served beyond its cap.

use super::*;

async fn claim_capped(conn: &mut PgConnection, limit: usize, cap: usize, held: &[(String, usize)]) -> Vec<Claim> {
    let lanes = Some(LaneCap { cap, held, tenant_cap: usize::MAX, tenants: &[] });
    let wanted = Wanted { queue: Queue::Image, limit, suspects: false, lanes, lease: LEASE, owner: "test" };
    claim(conn, &wanted).await.expect("claims")
}

#[tokio::test]
async fn a_lane_that_comes_late_stands_in_the_next_turn() {
    database!(conn);
    for _ in 0..50 {
        enqueue_in(conn, "busy", None).await;
    }
    assert_eq!(claim_up_to(conn, 10, LEASE).await.len(), 10);
    let late = enqueue_in(conn, "late", None).await;
    let next: Vec<Uuid> = claim_up_to(conn, 2, LEASE).await.iter().map(|claim| claim.id).collect();
    assert!(next.contains(&late), "one task of the busy lane at most comes first");
}

#[tokio::test]
async fn lanes_of_equal_load_are_served_alternately() {
    database!(conn);
    for lane in ["a", "a", "a", "a", "b", "b", "c"] {
        enqueue_in(conn, lane, None).await;
    }
    let mut order = Vec::new();
    while let Some(claim) = claim_up_to(conn, 1, LEASE).await.pop() {
        order.push(claim.lane);
    }
    assert_eq!(order, ["a", "b", "c", "a", "b", "a", "a"]);
}

#[tokio::test]
async fn an_idle_lane_saves_up_no_credit() {
    database!(conn);
    // "a" works alone for long; when "b" and "a" both come again, neither owes the other anything.
    for _ in 0..20 {
        let id = enqueue_in(conn, "a", None).await;
        let claim = only(conn).await;
        assert!(settle(conn, id, claim.lease_token).await.expect("settles"));
    }
    for lane in ["a", "b", "b", "a"] {
        enqueue_in(conn, lane, None).await;
    }
    let first_turn: HashSet<String> = claim_up_to(conn, 2, LEASE).await.into_iter().map(|claim| claim.lane).collect();
    assert_eq!(first_turn.len(), 2);
}

#[tokio::test]
async fn promoted_tasks_of_one_lane_stand_in_turns_of_their_own() {
    database!(conn);
    for _ in 0..5 {
        enqueue_in(conn, "busy", Some(Duration::ZERO)).await;
    }
    assert_eq!(promote(conn, Queue::Image, 10).await.expect("promotes").due, 5);
    let late = enqueue_in(conn, "late", None).await;
    let next: Vec<Uuid> = claim_up_to(conn, 2, LEASE).await.iter().map(|claim| claim.id).collect();
    assert!(next.contains(&late));
    // And one that is enqueued after them in their lane comes last.
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
    // The early lane has been served for long when another one comes with as many tasks.
    for _ in 0..20 {
        let claim = claim_capped(conn, 1, 2, &dead).await.remove(0);
        assert!(settle(conn, claim.id, claim.lease_token).await.expect("settles"));
    }
    let in_service = claim_capped(conn, 1, 2, &dead).await;
    assert_eq!(in_service[0].lane, "early");
    for _ in 0..9 {
        enqueue_in(conn, "late", None).await;
        enqueue_in(conn, "later", Some(Duration::ZERO)).await;
    }
    promote(conn, Queue::Image, 100).await.expect("promotes");
    let lanes: Vec<String> =
        claim_capped(conn, 20, 9, &[("dead".to_owned(), 9)]).await.into_iter().map(|claim| claim.lane).collect();
    for lane in ["early", "late", "later"] {
        let served = lanes.iter().filter(|served| *served == lane).count();
        assert!(served >= 5, "{lane} is served {served} times of {}: {lanes:?}", lanes.len());
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
async fn who_stands_behind_the_long_backlog_of_a_full_lane_is_found() {
    database!(conn);
    for _ in 0..200 {
        enqueue_in(conn, "full", None).await;
    }
    // Awakened with the turn in service, as who comes later is; here it stands behind all the others.
    let other = enqueue_in(conn, "other", None).await;
    sqlx::query("UPDATE tasks SET turn = turn + 1000 WHERE id = $1")
        .bind(other)
        .execute(&mut *conn)
        .await
        .expect("moves");
    let claims = claim_capped(conn, 10, 4, &[("full".to_owned(), 3)]).await;
    assert_eq!(claims.iter().map(|claim| claim.id).collect::<Vec<_>>(), [other]);
    // Down to half of its cap it is filled up.
    assert_eq!(claim_capped(conn, 10, 4, &[("full".to_owned(), 2)]).await.len(), 2);
}

#[tokio::test]
async fn a_tenant_at_its_cap_is_passed_over_in_all_its_lanes() {
    database!(conn);
    for lane in 0..6 {
        let (id, lane) = (Uuid::now_v7(), format!("tarpit {lane}"));
        let new =
            NewTask { id, queue: Queue::Image, kind: TaskKind::Action, lane: &lane, due_in: None, traceparent: None };
        enqueue_for(conn, &new, "attacker").await.expect("enqueues");
    }
    let healthy = enqueue_in(conn, "healthy", None).await;
    let claim_with = async |conn: &mut PgConnection, tenants: &[(String, usize)]| {
        let lanes = Some(LaneCap { cap: 4, held: &[], tenant_cap: 2, tenants });
        let wanted = Wanted { queue: Queue::Image, limit: 10, suspects: false, lanes, lease: LEASE, owner: "test" };
        claim(conn, &wanted).await.expect("claims")
    };
    let first = claim_with(conn, &[]).await;
    let tenants: Vec<_> = first.iter().filter_map(|claim| claim.tenant.as_deref()).collect();
    assert_eq!((tenants, first.len()), (vec!["attacker"; 2], 3));
    assert!(first.iter().any(|claim| claim.id == healthy), "who has no tenant has no share");
    assert!(claim_with(conn, &[("attacker".to_owned(), 2)]).await.is_empty());
    assert_eq!(claim_with(conn, &[("attacker".to_owned(), 1)]).await.len(), 1);
}
