-- What only jobs of videos have (specification, VideoJob; decisions 11.3). Their submit to a provider is on record as that of
-- any output: in `job_outputs`, position 0.
-- How far the work is, in percent; it never goes back, and 100 is success, which the state says.
ALTER TABLE jobs ADD COLUMN progress double precision NOT NULL DEFAULT 0 CHECK (progress >= 0 AND progress < 100);
-- The stored video. It is no asset: it goes with the record.
ALTER TABLE jobs ADD COLUMN video_blob uuid REFERENCES blobs;
CREATE INDEX jobs_video ON jobs (video_blob) WHERE video_blob IS NOT NULL;
