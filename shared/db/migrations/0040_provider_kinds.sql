-- The kinds of providers are those of `domain::model::ProviderKind`; the list here was a second one. The constraint keeps its name
-- and the rule that what the operator runs is no connection. Processes of the previous release save only kinds that it admitted.
ALTER TABLE provider_connections
    DROP CONSTRAINT provider_connections_provider_check,
    ADD CONSTRAINT provider_connections_provider_check CHECK (provider <> 'managed');
