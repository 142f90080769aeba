-- Errors that differ only by numbers and ids are found together, by a number that stands for their fingerprint
-- (forq_trio/model/fingerprints.py).
ALTER TABLE messages ADD COLUMN error_key INTEGER;
UPDATE messages SET error_key = fingerprint_key(last_error) WHERE last_error IS NOT NULL;
ALTER TABLE history ADD COLUMN error_key INTEGER;
UPDATE history SET error_key = fingerprint_key(last_error) WHERE last_error IS NOT NULL;
