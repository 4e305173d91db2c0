-- What was deleted within the changes that are kept of a canvas, so that it can be restored. A row is deleted together with the
-- change that deleted the node or connection, and thus with the canvas.
--
-- The foreign keys are deferred, because a change is recorded after what it changes. A process of the previous release
-- deletes without a row here: what it deletes cannot be restored.
CREATE TABLE deleted_nodes (
    canvas_key  bigint NOT NULL,
    id          text COLLATE "C" NOT NULL,
    -- The change that deleted it.
    sequence    bigint NOT NULL,
    -- Its place in the list of nodes.
    ordinal     bigint NOT NULL,
    type        text NOT NULL,
    title       text NOT NULL,
    x           double precision NOT NULL,
    y           double precision NOT NULL,
    width       double precision NOT NULL,
    height      double precision NOT NULL,
    agent_owned boolean NOT NULL,
    metadata    json NOT NULL,
    server      json NOT NULL,
    asset_owner text COLLATE "C",
    asset_id    text COLLATE "C",
    -- The job that it waited for.
    active_job  uuid,
    -- The nodes that belonged to it, if it was a Section.
    members     text[] COLLATE "C" NOT NULL DEFAULT '{}',
    PRIMARY KEY (canvas_key, id),
    FOREIGN KEY (canvas_key, sequence) REFERENCES canvas_changes ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX deleted_nodes_change ON deleted_nodes (canvas_key, sequence);

CREATE TABLE deleted_connections (
    canvas_key   bigint NOT NULL,
    id           text COLLATE "C" NOT NULL,
    -- The change that deleted it.
    sequence     bigint NOT NULL,
    -- Its place in the list of connections.
    ordinal      bigint NOT NULL,
    from_node_id text COLLATE "C" NOT NULL,
    to_node_id   text COLLATE "C" NOT NULL,
    purpose      text NOT NULL,
    role         text,
    PRIMARY KEY (canvas_key, id),
    FOREIGN KEY (canvas_key, sequence) REFERENCES canvas_changes ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX deleted_connections_change ON deleted_connections (canvas_key, sequence);
