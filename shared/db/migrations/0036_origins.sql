-- The origin of an asset: a term of the IPTC vocabulary for digital source types, and who says so (`domain::origin`). Both are NULL
-- where it is not known.
ALTER TABLE assets ADD COLUMN origin text, ADD COLUMN origin_from text;

-- What the service made, by content: an upload of equal bytes is known again.
CREATE INDEX IF NOT EXISTS assets_made ON assets (blob_key, owner_uid) WHERE origin_from = 'service';

-- Outputs of models, as far as the jobs that made them are still recorded. The embedded runtime is no trained model.
UPDATE assets a
SET origin = CASE j.operation WHEN 'edit' THEN 'compositeWithTrainedAlgorithmicMedia' ELSE 'trainedAlgorithmicMedia' END,
    origin_from = 'service'
FROM jobs j CROSS JOIN LATERAL jsonb_array_elements(j.outcome -> 'images') AS made (image)
WHERE j.kind = 'image' AND jsonb_typeof(j.outcome -> 'images') = 'array'
  AND NOT (j.request #>> '{model,provider}' = 'managed' AND j.request #>> '{model,id}' IN ('sketch', 'outline', 'animatic'))
  AND a.owner_uid = split_part(made.image ->> 'asset', ':', 2) AND a.id = split_part(made.image ->> 'asset', ':', 3);
