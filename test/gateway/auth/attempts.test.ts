import { describe, expect, it } from 'vitest';
import { createAttempts } from '../../../src/gateway/auth/attempts.ts';
import { GatewayError } from '../../../src/foundation/errors.ts';
import { DatabaseError } from '../../../src/foundation/store/database.ts';

const START = Date.parse('2026-03-04T05:06:07Z');

function world(perMinute: number) {
  const clock = { now: START };
  const attempts = createAttempts({ perMinute, now: () => clock.now });
  let runs = 0;
  const wrong = () => ((runs += 1), Promise.reject(new GatewayError('unauthorized', 'wrong')));
  /** `failed`, `refused` or `passed`, and for refused the seconds to wait. */
  const outcome = (address: string, run: () => unknown = wrong) =>
    attempts.check(address, run).then(
      () => 'passed',
      (error: GatewayError) => (error.code === 'rate_limit_exceeded' ? error.retryAfterS! : 'failed'),
    );
  return { clock, attempts, wrong, outcome, runs: () => runs };
}

describe('credentials that fail', () => {
  it('are checked so often in a minute, and refused unseen after that', async () => {
    const { clock, outcome, runs } = world(3);
    for (let round = 0; round < 3; round += 1) {
      clock.now = START + round * 10_000;
      expect(await outcome('192.0.2.1')).toBe('failed');
    }
    expect(await outcome('192.0.2.1')).toBe(40);
    expect(await outcome('192.0.2.1', () => 'good')).toBe(40);
    expect(runs()).toBe(3);
    clock.now = START + 59_999;
    expect(await outcome('192.0.2.1')).toBe(1);
    clock.now = START + 60_000;
    expect(await outcome('192.0.2.1', () => 'good')).toBe('passed');
    expect(await outcome('192.0.2.1')).toBe('failed');
    expect(await outcome('192.0.2.1')).toBe(10);
  });

  it('are counted for each address, and for a whole IPv6 network of 64 bits', async () => {
    const { outcome } = world(1);
    const groups = [
      ['192.0.2.1', '::ffff:192.0.2.1'],
      ['192.0.2.2'],
      ['2001:db8:1:2::1', '2001:db8:1:2:ffff::', '2001:0DB8:0001:0002:3:4:5:6', '2001:db8:1:2::'],
      ['2001:db8:1:3::1'],
      ['2001:db8::1', '2001:db8:0:0:1::'],
      ['::1', '::2', '0:0:0:0:9::'],
      ['fe80::1%eth0', 'fe80::2%eth0', 'fe80::3'],
    ];
    for (const [first, ...others] of groups) {
      expect(await outcome(first!), first).toBe('failed');
      for (const other of others) expect(await outcome(other), other).toBe(60);
    }
  });

  it('wait for each other, so that never more are checked than may fail', async () => {
    const { attempts } = world(3);
    let running = 0;
    let most = 0;
    let checked = 0;
    const ends: (() => void)[] = [];
    const check = () =>
      attempts.check('192.0.2.1', async () => {
        checked += 1;
        most = Math.max(most, (running += 1));
        await new Promise<void>((resolve) => ends.push(resolve));
        running -= 1;
        throw new GatewayError('unauthorized', 'wrong');
      });
    const results = Promise.allSettled(Array.from({ length: 100 }, check));
    for (let round = 0; round < 3; round += 1) ends[round]!();
    const codes = (await results).map((result) => (result as PromiseRejectedResult).reason.code);
    expect({ most, checked }).toEqual({ most: 3, checked: 3 });
    expect(codes.filter((code) => code === 'rate_limit_exceeded')).toHaveLength(97);
  });

  it('hold up no number of good ones', async () => {
    const { outcome } = world(2);
    const results = await Promise.all(
      Array.from({ length: 500 }, (_, index) => outcome('192.0.2.1', async () => index)),
    );
    expect(new Set(results)).toEqual(new Set(['passed']));
  });

  it('do not count while it is the database that fails', async () => {
    const { attempts, outcome } = world(1);
    for (let round = 0; round < 5; round += 1) {
      await expect(
        attempts.check('192.0.2.1', () =>
          Promise.reject(new DatabaseError('gone', { code: 'connection', unavailable: true })),
        ),
      ).rejects.toThrow('gone');
    }
    expect(await outcome('192.0.2.1')).toBe('failed');
  });

  it('are forgotten when the clock is set back, and for the address that failed longest ago when there are too many', async () => {
    const { clock, outcome } = world(1);
    expect(await outcome('192.0.2.1')).toBe('failed');
    clock.now -= 5_000;
    expect(await outcome('192.0.2.1', () => 'good')).toBe('passed');
    clock.now += 5_000;
    for (let index = 0; index < 10_001; index += 1)
      expect(await outcome(`10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`)).toBe('failed');
    expect(await outcome('10.0.0.0')).toBe('failed');
    expect(await outcome('10.0.39.16')).toBe(60);
  });
});
