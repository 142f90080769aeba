-- default_max_receives   how many deliveries are enough for a claim whose redrive policy names no bound, NULL for no bound
ALTER TABLE messages ADD COLUMN default_max_receives INTEGER;
