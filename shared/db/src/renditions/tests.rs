use testkit::TestDatabase;

use super::*;

struct Fixture {
    database: TestDatabase,
    owner: AccountUid,
    source: Uuid,
}

async fn fixture() -> Fixture {
    let database = TestDatabase::new().await;
    let source = stored(&database, 1).await;
    Fixture { database, owner: AccountUid::parse("a").expect("valid"), source }
}

async fn stored(database: &TestDatabase, content: u8) -> Uuid {
    let mut transaction = database.pool().begin().await.expect("begins");
    let key = blobs::stage_unknown(&mut transaction).await.expect("stages");
    let adopted = blobs::adopt(&mut transaction, key, &[content; 32], 1).await.expect("adopts");
    transaction.commit().await.expect("commits");
    adopted.expect("is there")
}

impl Fixture {
    async fn conn(&self) -> crate::Connection {
        self.database.pool().acquire().await.expect("connects")
    }

    async fn request(&self, width: u32) -> bool {
        let ready = ReadyTasks::new();
        request(&mut *self.conn().await, self.source, width, &self.owner, None, &ready).await.expect("asks");
        !ready.take().is_empty()
    }

    async fn state(&self, width: u32) -> Option<RenditionState> {
        let found = find(&mut *self.conn().await, self.source, width).await.expect("finds");
        found.map(|(rendition, _)| rendition.state)
    }

    async fn task(&self, width: i32) -> Uuid {
        sqlx::query_scalar("SELECT task_id FROM renditions WHERE source_key = $1 AND width = $2")
            .bind(self.source)
            .bind(width)
            .fetch_one(self.database.pool())
            .await
            .expect("finds")
    }

    async fn tasks(&self) -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM task_queue").fetch_one(self.database.pool()).await.expect("counts")
    }
}

#[tokio::test]
async fn a_rendition_is_asked_for_once_and_each_width_apart() {
    let fixture = fixture().await;
    assert_eq!(fixture.state(512).await, None);
    assert!(fixture.request(512).await && !fixture.request(512).await && fixture.request(64).await);
    assert_eq!((fixture.state(512).await, fixture.tasks().await), (Some(RenditionState::Pending), 2));
}

#[tokio::test]
async fn everybody_who_asks_at_once_gets_one_task() {
    let fixture = fixture().await;
    let (a, b, c, d) =
        tokio::join!(fixture.request(512), fixture.request(512), fixture.request(512), fixture.request(512));
    assert_eq!(([a, b, c, d].iter().filter(|asked| **asked).count(), fixture.tasks().await), (1, 1));
}

#[tokio::test]
async fn several_are_found_at_once_with_their_sizes() {
    let fixture = fixture().await;
    let mut conn = fixture.conn().await;
    assert!(fixture.request(512).await && fixture.request(64).await);
    let key = blobs::stage_unknown(&mut conn).await.expect("stages");
    let made = Result::Ready { blob_key: key, sha256: [2; 32], bytes: 9, mime_type: "image/jpeg" };
    assert!(finish(&mut conn, fixture.task(512).await, &made).await.expect("notes"));
    let wanted = [(fixture.source, 512), (fixture.source, 512), (fixture.source, 64), (fixture.source, 128)];
    let mut found = find_many(&mut conn, &wanted).await.expect("finds");
    found.sort_by_key(|found| found.rendition.width);
    let seen: Vec<_> = found.iter().map(|found| (found.rendition.width, found.bytes)).collect();
    assert_eq!(seen, [(64, 0), (512, 9)]);
    assert_eq!(found[0].rendition.state, RenditionState::Pending);
    assert!(find_many(&mut conn, &[]).await.expect("finds").is_empty());
}

#[tokio::test]
async fn a_tall_image_gets_a_narrower_copy_for_renders_as_well() {
    for (size, widths) in [
        ((1000, 500), vec![512]),
        ((600, 600), vec![512]),
        ((600, 900), vec![256, 512]),
        ((100, 1000), vec![32, 512]),
        ((100, 30_000), vec![1, 512]),
        ((1, 30_000), vec![512]),
    ] {
        let fixture = fixture().await;
        let mut conn = fixture.conn().await;
        let ready = ReadyTasks::new();
        request_eager(&mut conn, fixture.source, size, &fixture.owner, None, &ready).await.expect("asks");
        assert_eq!(ready.take().len(), widths.len());
        let mut asked: Vec<i32> =
            sqlx::query_scalar("SELECT width FROM renditions").fetch_all(fixture.database.pool()).await.expect("reads");
        asked.sort_unstable();
        assert_eq!(asked, widths, "{size:?}");
    }
}

#[tokio::test]
async fn nothing_is_made_of_an_image_that_is_being_removed() {
    let fixture = fixture().await;
    let grace = std::time::Duration::ZERO;
    assert!(blobs::begin_removal(&mut *fixture.conn().await, fixture.source, grace).await.expect("begins"));
    assert!(!fixture.request(512).await);
    assert_eq!((fixture.state(512).await, fixture.tasks().await), (None, 0));
}

#[tokio::test]
async fn what_came_of_it_is_noted_once() {
    let fixture = fixture().await;
    let mut conn = fixture.conn().await;
    for (width, made, state) in
        [(64, Result::Undecodable, RenditionState::Undecodable), (128, Result::GivenUp, RenditionState::GivenUp)]
    {
        assert!(fixture.request(width).await);
        let task = fixture.task(width as i32).await;
        let found = of_task(&mut conn, task).await.expect("finds").expect("is there");
        assert_eq!((found.source_key, found.width), (fixture.source, width));
        assert!(finish(&mut conn, task, &made).await.expect("notes"));
        assert_eq!(fixture.state(width).await, Some(state.clone()));
        let other = if made == Result::GivenUp { Result::Undecodable } else { Result::GivenUp };
        assert!(finish(&mut conn, task, &other).await.expect("is noted already"));
        assert_eq!(fixture.state(width).await, Some(state));
    }
}

#[tokio::test]
async fn a_copy_that_was_put_is_adopted_and_one_that_was_removed_is_put_again() {
    let fixture = fixture().await;
    let mut conn = fixture.conn().await;
    assert!(fixture.request(512).await);
    let task = fixture.task(512).await;
    let made = |blob_key| Result::Ready { blob_key, sha256: [2; 32], bytes: 9, mime_type: "image/jpeg" };
    assert!(!finish(&mut conn, task, &made(Uuid::now_v7())).await.expect("asks"), "no such blob");
    assert_eq!(fixture.state(512).await, Some(RenditionState::Pending));
    let key = blobs::stage_unknown(&mut conn).await.expect("stages");
    assert!(finish(&mut conn, task, &made(key)).await.expect("notes"));
    assert_eq!(fixture.state(512).await, Some(RenditionState::Ready { blob_key: key, mime_type: "image/jpeg".into() }));
    assert!(!blobs::begin_removal(&mut conn, key, std::time::Duration::ZERO).await.expect("asks"), "it is referenced");
}

#[tokio::test]
async fn renditions_go_with_their_image() {
    let fixture = fixture().await;
    let mut conn = fixture.conn().await;
    assert!(fixture.request(512).await);
    assert!(blobs::begin_removal(&mut conn, fixture.source, std::time::Duration::ZERO).await.expect("begins"));
    blobs::forget(&mut conn, fixture.source).await.expect("forgets");
    assert_eq!(fixture.state(512).await, None);
}
