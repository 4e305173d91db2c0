-- The poster of an uploaded video is a rendition of width 1280. What was allowed still is.
ALTER TABLE renditions
    DROP CONSTRAINT renditions_width_check,
    ADD CONSTRAINT renditions_width_check
        CHECK (width IN (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1280, 2048)) NOT VALID;
