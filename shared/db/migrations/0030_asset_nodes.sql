-- Nodes by the asset that they show, for the deletion of an asset (docs/reference/console.md#delete-an-asset).
CREATE INDEX IF NOT EXISTS nodes_asset ON nodes (asset_owner, asset_id) WHERE asset_id IS NOT NULL;
