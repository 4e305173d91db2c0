-- Under which lease an attempt was counted: at most one a lease, so that asking again after a commit whose outcome is unknown
-- finds the attempt instead of counting another (decisions 15.4).
ALTER TABLE webhook_attempts ADD COLUMN lease_token uuid;
CREATE UNIQUE INDEX webhook_attempts_lease ON webhook_attempts (delivery_id, lease_token);

-- Whose share of a worker's slots a task takes, where its lane does not say so: a delivery's lane is its destination, and one
-- account may have any number of destinations.
ALTER TABLE tasks ADD COLUMN tenant text COLLATE "C";
