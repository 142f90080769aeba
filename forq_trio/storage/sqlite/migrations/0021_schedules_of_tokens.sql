-- How many schedules each token has made, and which of these is due next.
DROP INDEX schedules_made_by;
CREATE INDEX schedules_made_by ON schedules (made_by, due_at, name);
