-- Sums of calls by what their consumers named them. The columns are those of usage_days; a call counts once for each of
-- its tags. A value of '' is not stored: it stands for calls without the tag.
CREATE TABLE tag_days (
  day BIGINT NOT NULL,
  account TEXT NOT NULL,
  tag TEXT NOT NULL,
  value TEXT NOT NULL,
  key TEXT NOT NULL,
  primitive TEXT NOT NULL,
  service TEXT NOT NULL,
  provider TEXT NOT NULL,
  requests BIGINT NOT NULL,
  failed BIGINT NOT NULL,
  charged BIGINT NOT NULL,
  fee BIGINT NOT NULL,
  prompt BIGINT NOT NULL,
  completion BIGINT NOT NULL,
  reasoning BIGINT NOT NULL,
  cached BIGINT NOT NULL,
  images BIGINT NOT NULL,
  seconds BIGINT NOT NULL,
  PRIMARY KEY (account, tag, day, value, key, primitive, service, provider)
);
CREATE INDEX tag_days_day ON tag_days (day);
