-- Bounds the bytes of the deletions that are kept of a canvas (docs/reference/operations.md#noderestore): those that do not
-- belong to the last 64 MiB that were deleted from it go first.
--
-- A process of the previous release does not count what it deletes, and leaves 0 in its rows, which then go before all others.
ALTER TABLE canvases ADD COLUMN deleted_bytes bigint NOT NULL DEFAULT 0;
-- `canvases.deleted_bytes` before the change that deleted it.
ALTER TABLE deleted_nodes ADD COLUMN deleted_before bigint NOT NULL DEFAULT 0;
ALTER TABLE deleted_connections ADD COLUMN deleted_before bigint NOT NULL DEFAULT 0;
CREATE INDEX IF NOT EXISTS deleted_nodes_bytes ON deleted_nodes (canvas_key, deleted_before);
CREATE INDEX IF NOT EXISTS deleted_connections_bytes ON deleted_connections (canvas_key, deleted_before);
