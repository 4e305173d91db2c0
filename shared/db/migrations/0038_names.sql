-- Others see the name of an account and never its email (docs/reference/console.md#name). The name is `accounts.display_name`, or the
-- part of the email before the @ when that is empty. Sessions and activity were labelled with the email.
UPDATE tokens t SET label = left(coalesce(nullif(a.display_name, ''), split_part(a.email, '@', 1)), 80)
FROM accounts a WHERE a.uid = t.account_uid AND t.kind = 'session' AND t.parent IS NULL AND a.purged_at IS NULL;

UPDATE canvas_changes SET activity = jsonb_set(activity, '{actor,label}',
    to_jsonb(left(split_part(activity #>> '{actor,label}', '@', 1), 80)))
WHERE activity #>> '{actor,surface}' = 'browser' AND activity #>> '{actor,label}' ~ '^[^@[:space:]]+@';

-- A purge left the labels of the account in the activity of canvases of others.
UPDATE canvas_changes SET activity = jsonb_set(activity, '{actor,label}', '"deleted account"')
WHERE activity #>> '{actor,ownerUid}' IN (SELECT uid FROM accounts WHERE purged_at IS NOT NULL);
