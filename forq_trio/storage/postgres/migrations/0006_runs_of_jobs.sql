-- A process also says which jobs it ran.
ALTER TABLE processes DROP CONSTRAINT processes_state_check, ADD CHECK (octet_length(state) <= 16384);
