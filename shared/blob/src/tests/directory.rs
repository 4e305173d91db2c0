//! Tests of directories.

use bytes::Bytes;

use super::*;

#[tokio::test]
async fn what_a_killed_write_left_goes_with_its_object() {
    let place = TestStore::directory();
    let Kind::Directory(directory) = &place.kind else { unreachable!("it is one") };
    let (mine, other) = (key(), key());
    place.store.put(mine, Bytes::from_static(b"x")).await.expect("writes");
    for key in [mine, other] {
        let object = directory.join(key.path().as_ref());
        std::fs::create_dir_all(object.parent().expect("is in a directory")).expect("makes it");
        for number in 1..=2 {
            std::fs::write(format!("{}#{number}", object.display()), "half").expect("writes");
        }
    }
    place.store.delete(mine).await.expect("deletes");
    assert_eq!(place.contents().await.len(), 2, "those of the other");
    place.store.delete(other).await.expect("deletes what was never whole");
    assert_eq!(place.contents().await, [""; 0]);
}
