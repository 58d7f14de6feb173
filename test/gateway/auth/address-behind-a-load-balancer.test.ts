import { expect, test } from 'vitest';
import { createKey } from '../../../src/gateway/auth/api-key.ts';
import { startSpine } from '../../support/spine.ts';

test.each([
  ['counts failures by the address that a trusted load balancer names', '["127.0.0.1"]', 401],
  ['takes no stranger’s word for where it is', '[]', 429],
])('%s', async (_, trusted, other) => {
  const spine = await startSpine({
    toml: `[server]\ntrusted_proxies = ${trusted}\n[sign_in]\nfailures_per_minute = 3\n`,
  });
  try {
    const key = async (behind: string) => {
      // A well-formed key that nobody has: its look-up is what counts.
      const headers = { authorization: `Bearer ${createKey('live').text}`, 'x-forwarded-for': behind };
      return (await spine.get('/key', headers)).status;
    };
    for (let i = 0; i < 3; i++) expect(await key('192.0.2.1')).toBe(401);
    expect(await key('192.0.2.1')).toBe(429);
    expect(await key('192.0.2.2')).toBe(other);
  } finally {
    await spine.stop();
  }
});
