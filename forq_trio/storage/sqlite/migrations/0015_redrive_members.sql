-- The column task of redrives has the members that callers see, under their names in JSON, and the cursor.
UPDATE redrives SET task = json_object(
    'id', task -> 'id',
    'queue', task -> 'queue',
    'action', json(coalesce(task -> 'action', '"redrive"')),
    'state', task -> 'state',
    'dryRun', task -> 'dry_run',
    'filter', json_object(
        'reason', task -> '$.wanted.reason',
        'since', task -> '$.wanted.since_ms',
        'until', task -> '$.wanted.until_ms',
        'attributes', task -> '$.wanted.attributes',
        'text', task -> '$.wanted.text',
        'error', task -> '$.wanted.error',
        'aboveSequence', task -> '$.wanted.above_sequence',
        'errorLike', task -> '$.wanted.error_like'
    ),
    'target', task -> 'target',
    'ratePerSecond', task -> 'rate_per_second',
    'searched', task -> 'searched',
    'total', task -> 'total',
    'matched', task -> 'matched',
    'skipped', task -> 'skipped',
    'moved', task -> 'moved',
    'startedAt', task -> 'started_at',
    'startedBy', task -> 'started_by',
    'pausedAt', task -> 'paused_at',
    'finishedAt', task -> 'finished_at',
    'error', task -> 'error',
    'beforeSequence', task -> 'before_sequence'
) WHERE json_valid(task);
