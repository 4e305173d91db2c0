//! `place` and `connect` of a start: targets that the start adds (docs/reference/jobs.md#new-targets).

use app::job::{Destination, Targets};
use canvas::placement::Location;
use canvas::targets::Place;
use domain::graph::{NodeType, Position};
use domain::id::{NodeId, NodeReference};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::extract::check::Check;

/// Where the service adds the targets of a start: empty nodes on free places, images or of a video start one video.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TargetPlace {
    /// Node next to which they are placed. Only without `x` and `y`.
    #[schema(value_type = Option<NodeReference>)]
    near: Option<String>,
    /// Section that they lie in and belong to. It grows if it has no room for them.
    #[schema(value_type = Option<NodeReference>)]
    section_id: Option<String>,
    /// Left edge of the first one, in canvas units; moved to the nearest free place if it is occupied. With `y`.
    #[schema(minimum = -10_000_000, maximum = 10_000_000)]
    x: Option<f64>,
    /// Top edge of the first one, in canvas units. With `x`.
    #[schema(minimum = -10_000_000, maximum = 10_000_000)]
    y: Option<f64>,
    /// Title of each. Default: the title of the source or the beginning of the prompt, with a number.
    #[schema(max_length = 160)]
    title: Option<String>,
    /// How many to add. Default: the `count` of the start, or 1. An Action and a video have one target.
    #[schema(minimum = 1, maximum = 4)]
    count: Option<u32>,
}

impl TargetPlace {
    /// The number of nodes, if the request gives it.
    pub fn count(&self) -> Option<u32> {
        self.count
    }

    /// The place for `count` nodes of this type.
    pub fn check(self, check: &mut Check, kind: NodeType, count: u32) -> Place {
        let at = position_of(check, self.near.is_some(), self.x, self.y);
        Place {
            kind,
            location: location_of(check, "place.", self.near.as_deref(), self.section_id.as_deref()),
            at,
            title: self.title,
            count: count as usize,
        }
    }
}

/// The position of a place, which is whole and without a node to be near.
pub fn position_of(check: &mut Check, has_near: bool, x: Option<f64>, y: Option<f64>) -> Option<Position> {
    check.note_if(x.is_some() && y.is_none(), "place.y", "must be sent together with place.x");
    check.note_if(y.is_some() && x.is_none(), "place.x", "must be sent together with place.y");
    let has_position = x.is_some() || y.is_some();
    check.note_if(has_near && has_position, "place.near", "must be omitted when a position is given");
    x.zip(y).map(|(x, y)| Position { x, y })
}

/// A node to be near and a Section to lie in, under fields that begin with `prefix`.
pub fn location_of(check: &mut Check, prefix: &str, near: Option<&str>, section: Option<&str>) -> Location {
    let mut node = |field: &str, node: Option<&str>| check.parsed(format!("{prefix}{field}"), NodeId::parse(node?));
    Location { near: node("near", near), section: node("sectionId", section) }
}

/// The canonical body of a request with what it names, if it names anything.
pub fn with_location(mut body: Value, Location { near, section }: &Location) -> Value {
    for (field, node) in [("near", near), ("sectionId", section)] {
        if let Some(node) = node {
            body[field] = json!(node);
        }
    }
    body
}

/// Where the results of a start go. With a place they are connected unless the request says otherwise, and shown whole.
pub fn destination(targets: Targets, connect: Option<bool>, fit: bool) -> Destination {
    let is_placed = matches!(targets, Targets::Place(_));
    Destination { targets, connect: connect.unwrap_or(is_placed), fit: fit || is_placed }
}

/// The canonical body of a start with `fit`, unless that is its default.
pub fn with_fit(mut body: Value, fit: bool) -> Value {
    if fit {
        body["fit"] = json!(true);
    }
    body
}

/// The canonical body of a start with its place and connections, if it has any.
pub fn with_destination(body: Value, destination: &Destination) -> Value {
    let mut body = with_fit(body, destination.fit && !matches!(destination.targets, Targets::Place(_)));
    if destination.connect {
        body["connect"] = json!(true);
    }
    if let Targets::Place(Place { location, at, title, count, .. }) = &destination.targets {
        body["place"] = json!({
            "near": location.near, "sectionId": location.section, "at": at, "title": title, "count": count,
        });
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(place: Value) -> (Place, Vec<String>) {
        let place: TargetPlace = serde_json::from_value(place).expect("has the right shape");
        let mut check = Check::default();
        let count = place.count().unwrap_or(1);
        let place = place.check(&mut check, NodeType::Image, count);
        let violations = check.finish(|| Some(())).err().unwrap_or_default();
        (place, violations.into_iter().map(|violation| violation.field).collect())
    }

    #[test]
    fn a_position_is_whole_and_excludes_a_neighbour() {
        for (place, fields) in [
            (json!({}), &[][..]),
            (json!({"near": "node:n", "sectionId": "s"}), &[]),
            (json!({"x": 1, "y": 2.5, "sectionId": "s"}), &[]),
            (json!({"x": 1}), &["place.y"]),
            (json!({"y": 1}), &["place.x"]),
            (json!({"x": 1, "y": 1, "near": "n"}), &["place.near"]),
            (json!({"near": "a b", "sectionId": "canvas:c"}), &["place.near", "place.sectionId"]),
        ] {
            assert_eq!(checked(place.clone()).1, fields, "{place}");
        }
        let (place, _) = checked(json!({"x": 1, "y": 2.5, "count": 3, "title": "T"}));
        assert_eq!((place.at, place.count, place.title), (Some(Position { x: 1.0, y: 2.5 }), 3, Some("T".into())));
    }

    #[test]
    fn new_targets_are_connected_by_default_and_other_ones_on_request() {
        let place = || Targets::Place(checked(json!({})).0);
        let nodes = || Targets::Nodes(Vec::new());
        let connects = |targets, connect| destination(targets, connect, false).connect;
        assert!(connects(place(), None) && connects(place(), Some(true)));
        assert!(!connects(place(), Some(false)) && !connects(nodes(), None));
        assert!(connects(nodes(), Some(true)));
        let plain = json!({"inputs": []});
        let body = |targets, connect| with_destination(plain.clone(), &destination(targets, connect, false));
        assert_eq!(body(nodes(), None), plain, "the fingerprint of a start without them is as before");
        assert_eq!(body(nodes(), Some(false)), plain);
        assert_eq!(body(place(), None), body(place(), Some(true)));
        assert_ne!(body(place(), None), body(place(), Some(false)));
    }

    #[test]
    fn new_targets_fit_their_results_and_other_ones_on_request() {
        let place = || Targets::Place(checked(json!({})).0);
        let nodes = || Targets::Nodes(Vec::new());
        let fits = |targets, fit| destination(targets, None, fit).fit;
        assert!(fits(place(), false) && fits(place(), true) && fits(nodes(), true) && !fits(nodes(), false));
        let body = |targets, fit| with_destination(json!({"inputs": []}), &destination(targets, None, fit));
        assert_eq!(body(nodes(), false), json!({"inputs": []}), "the fingerprint of a start without it is as before");
        assert_eq!(body(place(), true), body(place(), false));
        assert!(body(place(), false).get("fit").is_none(), "and that of a place");
        assert_ne!(body(nodes(), true), body(nodes(), false));
    }
}
