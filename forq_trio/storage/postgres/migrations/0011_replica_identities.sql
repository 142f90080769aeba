-- A publication for all tables (of a blue/green upgrade, or of Debezium) refuses changes of rows that nothing identifies.
-- Tables of one row that has no key, and that of the gate, which has none:
ALTER TABLE history_ends REPLICA IDENTITY FULL;
ALTER TABLE consumers_forgotten REPLICA IDENTITY FULL;
ALTER TABLE gate REPLICA IDENTITY FULL;
