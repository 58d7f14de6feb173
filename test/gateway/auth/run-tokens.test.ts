import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createRunTokens, RUN_TOKEN_PREFIX } from '../../../src/gateway/auth/credential.ts';

const GRANT = { parent: 'gen-1', account: 'solana:7S3P4HxJpyyigGzodYwHtCxZyUQe9JiBMHyRWXArAaKv', key: 'a'.repeat(64) };
const secret = randomBytes(32);
const clock = { now: 1_000 };
const tokens = createRunTokens({ secret, now: () => clock.now });

describe('a run token', () => {
  it('says whose call it is for to the gateways that share its secret, until its time is over', () => {
    const token = tokens.issue(GRANT, 2_000);
    expect(createRunTokens({ secret, now: () => 1_999 }).open(token)).toEqual(GRANT);
    expect(createRunTokens({ secret, now: () => 2_000 }).open(token)).toBeNull();
    expect(createRunTokens({ secret: randomBytes(32), now: () => 1_000 }).open(token)).toBeNull();
  });

  it('tells the agent that holds it nothing of its consumer', () => {
    const text = tokens.issue(GRANT, 2_000).slice(RUN_TOKEN_PREFIX.length);
    for (const told of [text, Buffer.from(text, 'base64url').toString('latin1')])
      for (const secretly of [GRANT.account, GRANT.key, GRANT.parent, 'solana']) expect(told).not.toContain(secretly);
  });

  it('is none where a single character of it was changed', () => {
    const token = tokens.issue(GRANT, 2_000);
    for (let at = 0; at < token.length; at += 1) {
      // The last character of base64url may hold bits that say nothing.
      const changed = token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1);
      const opened = tokens.open(changed);
      if (at < token.length - 1) expect(opened, String(at)).toBeNull();
    }
    for (const text of ['', RUN_TOKEN_PREFIX, `${RUN_TOKEN_PREFIX}.`, `${RUN_TOKEN_PREFIX}${'A'.repeat(2_000)}`])
      expect(tokens.open(text)).toBeNull();
  });
});
