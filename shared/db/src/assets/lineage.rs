//! Where assets come from, and what became of them (docs/reference/assets.md#lineage).
//!
//! **Guarantee.** Of an asset that the reader cannot read, nothing but its existence is returned.

use std::collections::{BTreeSet, HashMap, HashSet};

use domain::id::{AccountUid, AssetHandle, AssetId, CanvasHandle, CanvasId, NodeId};
use domain::lineage::{AssetInput, AssetPlace, InputRole, LineageDirection, LineageEdge, Made};
use domain::refs::NodeRef;
use sqlx::PgConnection;
use sqlx::types::Json;
use sqlx::types::chrono::{DateTime, Utc};

use super::columns;
use crate::Result;
use crate::error::known;

fn handle(owner: String, id: String) -> AssetHandle {
    AssetHandle { owner: AccountUid::from_stored(owner), id: AssetId::from_stored(id) }
}

fn role(name: Option<&str>) -> Result<Option<InputRole>> {
    name.map(|name| known("asset_parents.role", name)).transpose()
}

fn dated(made: Option<Json<Made>>, at: Option<DateTime<Utc>>) -> Option<Made> {
    Some(Made { at: Some(at?.into()), ..made?.0 })
}

/// How an asset came to be, if that is recorded. The caller of this function has checked access to the asset.
#[tracing::instrument(skip_all, name = "db.asset.made")]
pub async fn made(conn: &mut PgConnection, asset: &AssetHandle) -> Result<Option<Made>> {
    let row = sqlx::query!(
        r#"SELECT made AS "made: Json<Made>", created_at FROM assets WHERE owner_uid = $1 AND id = $2"#,
        asset.owner.as_str(),
        asset.id.as_str(),
    );
    Ok(row.fetch_optional(conn).await?.and_then(|row| dated(row.made, Some(row.created_at))))
}

/// The inputs of an asset that `reader` may know, in order, and the number of the others. A deleted asset is known to its owner alone.
/// The caller of this function has checked access to the asset.
#[tracing::instrument(skip_all, name = "db.asset.inputs")]
pub async fn inputs(
    conn: &mut PgConnection,
    reader: &AccountUid,
    asset: &AssetHandle,
) -> Result<(Vec<AssetInput>, i64)> {
    let rows = sqlx::query!(
        r#"SELECT p.parent_owner, p.parent_id, p.role, a.name AS "name?",
                  p.parent_owner = $1 OR EXISTS (
                      SELECT FROM canvas_shares s WHERE s.canvas_key = a.canvas_key AND s.account_uid = $1
                  ) AS "is_readable!"
           FROM asset_parents p LEFT JOIN assets a ON a.owner_uid = p.parent_owner AND a.id = p.parent_id
           WHERE p.child_owner = $2 AND p.child_id = $3 ORDER BY p.position"#,
        reader.as_str(),
        asset.owner.as_str(),
        asset.id.as_str(),
    );
    let (mut inputs, mut hidden) = (Vec::new(), 0);
    for row in rows.fetch_all(conn).await? {
        if row.is_readable {
            let role = role(row.role.as_deref())?.map(Into::into);
            let gone = row.name.is_none();
            inputs.push(AssetInput { handle: handle(row.parent_owner, row.parent_id), role, name: row.name, gone });
        } else {
            hidden += 1;
        }
    }
    Ok((inputs, hidden))
}

/// The nodes that show each of these assets on canvases that `reader` may read, at most `max` of each, newest first.
#[tracing::instrument(skip_all, name = "db.asset.places")]
pub async fn places(
    conn: &mut PgConnection,
    reader: &AccountUid,
    assets: &[AssetHandle],
    max: i64,
) -> Result<HashMap<AssetHandle, Vec<AssetPlace>>> {
    let (places, lacking) = read_places(conn, reader, assets, max).await?;
    if lacking.is_empty() {
        return Ok(places);
    }
    // The previous release made nodes that have no refs yet.
    for canvas_key in lacking {
        sqlx::query!("SELECT slug FROM ensure_refs($1)", canvas_key).fetch_one(&mut *conn).await?;
    }
    Ok(read_places(conn, reader, assets, max).await?.0)
}

type Places = HashMap<AssetHandle, Vec<AssetPlace>>;

/// [`places`], and the keys of the canvases whose nodes lack refs.
async fn read_places(
    conn: &mut PgConnection,
    reader: &AccountUid,
    assets: &[AssetHandle],
    max: i64,
) -> Result<(Places, BTreeSet<i64>)> {
    let (owners, ids) = columns(assets);
    let rows = sqlx::query!(
        r#"SELECT named.owner_uid AS "owner!", named.id AS "id!", shown.canvas_key AS "canvas_key!",
                  shown.canvas_owner AS "canvas_owner!", shown.canvas_id AS "canvas_id!", shown.node AS "node!", shown.ref AS number,
                  shown.title AS "title!"
           FROM unnest((SELECT $2::text[]), (SELECT $3::text[])) AS named (owner_uid, id)
           CROSS JOIN LATERAL (
               SELECT n.canvas_key, c.owner_uid AS canvas_owner, c.id AS canvas_id, n.id AS node, n.ref, n.title, n.ordinal
               FROM nodes n JOIN canvases c ON c.key = n.canvas_key
               WHERE n.asset_owner = named.owner_uid AND n.asset_id = named.id AND (c.owner_uid = $1 OR EXISTS (
                   SELECT FROM canvas_shares s WHERE s.canvas_key = c.key AND s.account_uid = $1
               ))
               ORDER BY n.ordinal DESC LIMIT $4
           ) AS shown
           ORDER BY shown.ordinal DESC"#,
        reader.as_str(),
        &owners,
        &ids,
        max,
    );
    let (mut places, mut lacking) = (Places::new(), BTreeSet::new());
    for row in rows.fetch_all(conn).await? {
        if row.number.is_none() {
            lacking.insert(row.canvas_key);
        }
        let canvas =
            CanvasHandle { owner: AccountUid::from_stored(row.canvas_owner), id: CanvasId::from_stored(row.canvas_id) };
        let node = NodeId::from_stored(row.node).handle();
        let place = AssetPlace { canvas, node, short: row.number.map(NodeRef::new), title: row.title };
        places.entry(handle(row.owner, row.id)).or_default().push(place);
    }
    Ok((places, lacking))
}

/// The provider's ids of the models that made these assets, of those that one made. The caller of this function has checked access to the
/// assets.
#[tracing::instrument(skip_all, name = "db.asset.models")]
pub async fn models(conn: &mut PgConnection, assets: &[AssetHandle]) -> Result<HashMap<AssetHandle, String>> {
    let (owners, ids) = columns(assets);
    let rows = sqlx::query!(
        r#"SELECT a.owner_uid, a.id, a.made ->> 'model' AS "model!"
           FROM unnest((SELECT $1::text[]), (SELECT $2::text[])) AS named (owner_uid, id)
           JOIN assets a ON a.owner_uid = named.owner_uid AND a.id = named.id
           WHERE a.made ->> 'model' IS NOT NULL"#,
        &owners,
        &ids,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    Ok(rows.map(|row| (handle(row.owner_uid, row.id), row.model)).collect())
}

/// The number of nodes that show an asset on canvases that `reader` may not read.
#[tracing::instrument(skip_all, name = "db.asset.hidden_places")]
pub async fn hidden_places(conn: &mut PgConnection, reader: &AccountUid, asset: &AssetHandle) -> Result<i64> {
    let count = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM nodes n JOIN canvases c ON c.key = n.canvas_key
           WHERE n.asset_owner = $2 AND n.asset_id = $3 AND c.owner_uid <> $1 AND NOT EXISTS (
               SELECT FROM canvas_shares s WHERE s.canvas_key = c.key AND s.account_uid = $1
           )"#,
        reader.as_str(),
        asset.owner.as_str(),
        asset.id.as_str(),
    );
    Ok(count.fetch_one(conn).await?)
}

/// A parent or a child of assets, as a reader may know it.
#[derive(Clone, Debug, PartialEq)]
pub struct Relative {
    pub asset: AssetHandle,
    /// `false`: it was deleted.
    pub is_stored: bool,
    /// `true` if the reader may read it; of a deleted one: if it was the reader's own.
    pub is_readable: bool,
    /// How it came to be, if that is recorded.
    pub made: Option<Made>,
}

/// At most `max` parents, or children, of these assets that are not among `seen`, each once, in the order of their handles. Children are
/// stored; a parent can have been deleted.
#[tracing::instrument(skip_all, name = "db.asset.relatives")]
pub async fn relatives(
    conn: &mut PgConnection,
    reader: &AccountUid,
    assets: &[AssetHandle],
    direction: LineageDirection,
    seen: &[AssetHandle],
    max: i64,
) -> Result<Vec<Relative>> {
    let ((owners, ids), (seen_owners, seen_ids)) = (columns(assets), columns(seen));
    let rows = sqlx::query!(
        r#"SELECT next.owner AS "owner!", next.id AS "id!", a.id IS NOT NULL AS "is_stored!",
                  next.owner = $1 OR EXISTS (
                      SELECT FROM canvas_shares s WHERE s.canvas_key = a.canvas_key AND s.account_uid = $1
                  ) AS "is_readable!",
                  a.made AS "made: Json<Made>", a.created_at AS "created_at?"
           FROM (
               SELECT DISTINCT edge.owner, edge.id
               FROM unnest((SELECT $2::text[]), (SELECT $3::text[])) AS named (owner, id)
               CROSS JOIN LATERAL (
                   SELECT parent_owner, parent_id FROM asset_parents
                   WHERE $4 AND child_owner = named.owner AND child_id = named.id
                   UNION ALL
                   SELECT child_owner, child_id FROM asset_parents
                   WHERE NOT $4 AND parent_owner = named.owner AND parent_id = named.id
               ) AS edge (owner, id)
               WHERE NOT EXISTS (
                   SELECT FROM unnest((SELECT $5::text[]), (SELECT $6::text[])) AS seen (owner, id)
                   WHERE seen.owner = edge.owner AND seen.id = edge.id
               )
               ORDER BY edge.owner, edge.id LIMIT $7
           ) AS next LEFT JOIN assets a ON a.owner_uid = next.owner AND a.id = next.id
           ORDER BY next.owner, next.id"#,
        reader.as_str(),
        &owners,
        &ids,
        direction == LineageDirection::Parents,
        &seen_owners,
        &seen_ids,
        max,
    );
    let relatives = rows.fetch_all(conn).await?.into_iter().map(|row| Relative {
        asset: handle(row.owner, row.id),
        is_stored: row.is_stored,
        is_readable: row.is_readable,
        made: dated(row.made, row.created_at),
    });
    Ok(relatives.collect())
}

/// Which of these assets were made from which of them. The caller of this function has checked that the reader may know them.
#[tracing::instrument(skip_all, name = "db.asset.edges")]
pub async fn edges(conn: &mut PgConnection, assets: &[AssetHandle]) -> Result<Vec<LineageEdge>> {
    let (owners, ids) = columns(assets);
    let rows = sqlx::query!(
        r#"SELECT p.child_owner, p.child_id, p.parent_owner, p.parent_id, p.role
           FROM asset_parents p
           JOIN unnest((SELECT $1::text[]), (SELECT $2::text[])) AS child (owner, id)
               ON child.owner = p.child_owner AND child.id = p.child_id
           JOIN unnest((SELECT $1::text[]), (SELECT $2::text[])) AS parent (owner, id)
               ON parent.owner = p.parent_owner AND parent.id = p.parent_id
           GROUP BY p.child_owner, p.child_id, p.parent_owner, p.parent_id, p.role
           ORDER BY p.child_owner, p.child_id, min(p.position)"#,
        &owners,
        &ids,
    );
    let edge = |(child, parent, name): (_, _, Option<String>)| {
        Ok(LineageEdge { child, parent, role: role(name.as_deref())?.map(Into::into) })
    };
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| (handle(row.child_owner, row.child_id), handle(row.parent_owner, row.parent_id), row.role))
        .map(edge)
        .collect()
}

/// Says of those of these assets whose inputs are recorded, whether all images that they were made from are stored. Masks do not count.
#[tracing::instrument(skip_all, name = "db.asset.has_sources")]
pub async fn has_sources(conn: &mut PgConnection, assets: &HashSet<AssetHandle>) -> Result<HashMap<AssetHandle, bool>> {
    if assets.is_empty() {
        return Ok(HashMap::new());
    }
    let (owners, ids) = columns(assets);
    let rows = sqlx::query!(
        r#"SELECT p.child_owner, p.child_id, bool_and(a.id IS NOT NULL) AS "has_all!"
           FROM unnest((SELECT $1::text[]), (SELECT $2::text[])) AS named (owner, id)
           JOIN asset_parents p ON p.child_owner = named.owner AND p.child_id = named.id
           LEFT JOIN assets a ON a.owner_uid = p.parent_owner AND a.id = p.parent_id
           WHERE p.role IS DISTINCT FROM 'mask'
           GROUP BY p.child_owner, p.child_id"#,
        &owners,
        &ids,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    Ok(rows.map(|row| (handle(row.child_owner, row.child_id), row.has_all)).collect())
}
