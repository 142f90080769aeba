-- How far a consumer that was forgotten had acknowledged: what its leases behind that had was given back.
--
-- acknowledged  NULL for those that were forgotten before this version, which count as acknowledged up to `number`
ALTER TABLE consumer_numbers ADD COLUMN acknowledged INTEGER;
