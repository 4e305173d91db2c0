-- The poster of a video that is kept with its job (docs/reference/videos.md#poster), until the video becomes an asset. The sweeper of
-- the previous release does not know it, as it does not know that of an asset (0045).
ALTER TABLE jobs ADD COLUMN video_poster uuid REFERENCES blobs;
CREATE INDEX IF NOT EXISTS jobs_video_poster ON jobs (video_poster) WHERE video_poster IS NOT NULL;
