-- A question to the provider about a person that may end without an answer. A provider that gives a refresh token once
-- may then have given the next one, which nobody has stored.
-- Until when a gateway has the answer to the question under way. NULL: none is under way.
ALTER TABLE people ADD COLUMN asked_until BIGINT;
-- 1 after a question whose answer was lost, until another one is answered.
ALTER TABLE people ADD COLUMN unclear BIGINT NOT NULL DEFAULT 0;
