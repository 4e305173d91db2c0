-- What a render embeds of a picture has no side longer than 512 pixels (decisions 3.10): of one that is more than eight times as
-- high as wide it is narrower than the narrowest preview. Nothing that was allowed is refused, so no row is looked at.
ALTER TABLE renditions
    DROP CONSTRAINT renditions_width_check,
    ADD CONSTRAINT renditions_width_check
        CHECK (width IN (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)) NOT VALID;
