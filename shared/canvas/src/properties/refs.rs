//! Refs over the life of a canvas, compared with a list of what each was given to: every node and connection has one, it never changes,
//! none is given again, and each names what it was given to, also once that is deleted and restored.

use proptest::sample::Index;

use super::restore::Store;
use super::*;
use crate::fixture::{at, batch};

/// A write. Indexes choose among what is there, or among what is deleted.
#[derive(Clone, Debug)]
enum Change {
    /// Nodes, of which the first is connected to the others.
    Create(usize),
    Duplicate(Index),
    Connect(Index, Index),
    /// A Section around a node.
    Group(Index),
    Delete(Index),
    Disconnect(Index),
    Restore(Index),
    Reconnect(Index),
    /// A node is deleted, another one made, and the first restored.
    Return(Index),
    /// A node is made and deleted.
    Nothing,
    /// A batch that is refused after it made nodes.
    Refused,
}

fn change() -> impl Strategy<Value = Change> {
    let index = any::<Index>;
    prop_oneof![
        3 => (1..4usize).prop_map(Change::Create),
        1 => index().prop_map(Change::Duplicate),
        2 => (index(), index()).prop_map(|(from, to)| Change::Connect(from, to)),
        1 => index().prop_map(Change::Group),
        3 => index().prop_map(Change::Delete),
        1 => index().prop_map(Change::Disconnect),
        2 => index().prop_map(Change::Restore),
        1 => index().prop_map(Change::Reconnect),
        1 => index().prop_map(Change::Return),
        1 => Just(Change::Nothing),
        1 => Just(Change::Refused),
    ]
}

/// Ids of a canvas that another service made may have the form of refs that are not given yet.
fn imported() -> Store {
    let node = |(number, name): (i32, &str)| with_ref(at(text(name), 400.0 * f64::from(number), 0.0), number);
    let nodes: Vec<Node> = (1..).zip(["n9", "a", "n10", "n13"]).map(node).collect();
    let link = |(number, name, from, to): (i32, &str, &str, &str)| {
        with_connection_ref(connection(name, from, to, Purpose::Flow), number)
    };
    let links = [(1, "c3", "n9", "n10"), (2, "c6", "n10", "n13")].map(link);
    Store::new(nodes, links.into())
}

/// The operations of a change, if there is what it is about.
fn operations_of(store: &Store, change: &Change) -> Option<Value> {
    let (nodes, links) = store.present();
    let (gone_nodes, gone_links) = store.deleted();
    // What has an id of the form of a ref stays: its id must not be free when the counter comes to it.
    let nodes: Vec<&Node> = nodes.iter().filter(|node| node.id.as_str().parse::<NodeRef>().is_err()).collect();
    let links: Vec<&Connection> =
        links.iter().filter(|link| link.id.as_str().parse::<ConnectionRef>().is_err()).collect();
    let node = |index: &Index| (!nodes.is_empty()).then(|| nodes[index.index(nodes.len())].id.to_string());
    let link = |index: &Index| (!links.is_empty()).then(|| links[index.index(links.len())].id.to_string());
    let create = |name: String| json!({"type": "node.create", "clientId": name, "node": {"type": "text"}});
    let delete = |id: &str| json!({"type": "node.delete", "nodeId": id});
    Some(match change {
        Change::Create(count) => {
            let connect = |at| json!({"type": "connection.create", "fromNodeId": "m0", "toNodeId": format!("m{at}")});
            (0..*count).map(|at| create(format!("m{at}"))).chain((1..*count).map(connect)).collect()
        }
        Change::Duplicate(at) => {
            json!([{"type": "node.duplicate", "nodeId": node(at)?, "position": {"x": 0, "y": 900}}])
        }
        Change::Connect(from, to) => {
            json!([{"type": "connection.create", "fromNodeId": node(from)?, "toNodeId": node(to)?}])
        }
        Change::Group(at) => json!([{"type": "section.create", "title": "S", "nodeIds": [node(at)?]}]),
        Change::Delete(at) => json!([delete(&node(at)?)]),
        Change::Disconnect(at) => json!([{"type": "connection.delete", "connectionId": link(at)?}]),
        Change::Restore(at) => {
            let id = (!gone_nodes.is_empty()).then(|| &gone_nodes[at.index(gone_nodes.len())])?;
            json!([{"type": "node.restore", "nodeId": id}])
        }
        Change::Reconnect(at) => {
            let id = (!gone_links.is_empty()).then(|| &gone_links[at.index(gone_links.len())])?;
            json!([{"type": "connection.restore", "connectionId": id}])
        }
        Change::Return(at) => {
            let id = node(at)?;
            json!([delete(&id), create("m".into()), {"type": "node.restore", "nodeId": id}])
        }
        Change::Nothing => json!([create("m".into()), delete("m")]),
        Change::Refused => json!([create("m".into()), delete("missing")]),
    })
}

/// Notes what was given refs, and finds what has none, another one than before, or one that was given already.
fn note(
    known: &mut BTreeMap<i32, String>,
    present: impl Iterator<Item = (Option<i32>, String)>,
) -> Result<(), TestCaseError> {
    let last = known.keys().last().copied().unwrap_or_default();
    for (number, id) in present {
        let Some(number) = number else { return Err(TestCaseError::fail(format!("{id} has no ref"))) };
        if let Some(named) = known.get(&number) {
            prop_assert_eq!(named, &id, "{} is given again", number);
        } else {
            prop_assert!(number > last, "{number} is given after {last}");
            prop_assert!(!known.values().any(|named| *named == id), "{id} has another ref than before");
            known.insert(number, id);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_ref_is_given_once_and_names_what_it_was_given_to(changes in prop::collection::vec(change(), 1..40)) {
        let mut store = imported();
        let (mut nodes, mut links) = (BTreeMap::new(), BTreeMap::new());
        for change in std::iter::once(Change::Refused).chain(changes) {
            if let Some(operations) = operations_of(&store, &change) {
                let before = store.present();
                if store.apply(&batch(operations), Options::default()).is_err() {
                    prop_assert_eq!(store.present(), before);
                }
            }
            let (present, connected) = store.present();
            note(&mut nodes, present.iter().map(|it| (it.short.map(NodeRef::number), it.id.to_string())))?;
            note(&mut links, connected.iter().map(|it| (it.short.map(ConnectionRef::number), it.id.to_string())))?;
            // An exact id is what a name means first.
            for (number, id) in &nodes {
                let name = format!("n{number}");
                prop_assert!(*id == name || present.iter().all(|node| node.id.as_str() != name), "{name} is an id");
            }
            for (number, id) in &links {
                let name = format!("c{number}");
                prop_assert!(*id == name || connected.iter().all(|link| link.id.as_str() != name), "{name} is an id");
            }
        }
    }
}
