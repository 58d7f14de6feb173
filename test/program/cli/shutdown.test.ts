import { readdir } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { chat, makePlace, type Place } from './tollgate.ts';

let place: Place;
beforeEach(async () => {
  place = await makePlace();
});
afterEach(() => place.clear());

/** Starts a stream that lasts about `pieces` times `paceMs`, and reads its first bytes. */
async function openStream(pieces: number, paceMs: number) {
  const dev = (await place.read('dev.json')) as { base_url: string; api_key: string };
  const content = Array.from({ length: pieces }, (_, index) => `word${index}`).join(' ');
  const response = await chat(dev, { stream: true, pace_ms: paceMs, messages: [{ role: 'user', content }] });
  expect(response.status).toBe(200);
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  const first = await reader.read();
  return {
    dev,
    async next() {
      const { done } = await reader.read();
      expect(done).toBe(false);
    },
    async rest() {
      let text = first.value ?? '';
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return text;
        text += value;
      }
    },
  };
}

describe('a stop', () => {
  it('lets running streams finish, says so to load balancers, and leaves nothing behind', async () => {
    const gateway = await place.gateway(['start']);
    const { base_url: url } = (await place.read('dev.json')) as { base_url: string };
    await expect.poll(async () => (await fetch(`${url}/health/ready`)).status, { timeout: 60_000 }).toBe(200);
    const stream = await openStream(20, 200);
    gateway.signal('SIGTERM');
    await gateway.wrote('Stopping');
    const ready = await fetch(`${stream.dev.base_url}/health/ready`);
    expect([ready.status, await ready.json()]).toEqual([
      503,
      { status: 'unavailable', message: 'The gateway is shutting down', checks: { gateway: 'is shutting down' } },
    ]);
    const refused = await chat(stream.dev, {});
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
    const text = await stream.rest();
    expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true);
    expect(text).toContain('"finish_reason":"stop"');
    await gateway.exited;
    expect(gateway.exitCode).toBe(0);
    expect(await readdir(place.data)).not.toContain('gateway.json');
    const audit = await place.run(['audit', '--json']);
    expect(audit.code).toBe(0);
    expect(JSON.parse(audit.stdout)).toMatchObject({ ok: true, totals: { locksHeld: 0, locksSettled: 1 } });
  });

  it('is delayed after a SIGTERM, not after a Ctrl-C, and a second signal ends the delay', async () => {
    const delay = { TOLLGATE_SHUTDOWN_DELAY_MS: '3600000' };
    const gateway = await place.gateway(['start'], delay);
    const stream = await openStream(20, 200);
    gateway.signal('SIGTERM');
    const ready = async () => (await fetch(`${stream.dev.base_url}/health/ready`)).status;
    await expect.poll(ready).toBe(503);
    expect((await chat(stream.dev, {})).status).toBe(200);
    // Signals in the first half second count as one.
    const again = setInterval(() => gateway.signal('SIGTERM'), 100);
    await gateway.wrote('Stopping');
    clearInterval(again);
    expect((await stream.rest()).trimEnd().endsWith('data: [DONE]')).toBe(true);
    await gateway.exited;
    expect(gateway.exitCode).toBe(0);

    const other = await place.gateway(['start'], delay);
    other.signal('SIGINT');
    await other.exited;
    expect(other.exitCode).toBe(0);
  });

  it('counts one Ctrl-C that arrives twice as one, and ends at once on a second', async () => {
    const gateway = await place.gateway(['start']);
    const stream = await openStream(500, 100);
    // Two of a kind at once are one to the kernel already.
    gateway.signal('SIGINT');
    gateway.signal('SIGTERM');
    await gateway.wrote('Stopping');
    await stream.next();
    expect(gateway.exitCode).toBeNull();
    const again = setInterval(() => gateway.signal('SIGINT'), 100);
    await gateway.exited;
    clearInterval(again);
    expect(gateway.exitCode).toBe(130);
    const audit = await place.run(['audit', '--json']);
    expect(JSON.parse(audit.stdout)).toMatchObject({ ok: true, totals: { locksHeld: 1 } });
  });

  it('comes with the end of the shell that npm runs its scripts in', async () => {
    const shell = await place.gateway(['start'], { npm_lifecycle_event: 'start' }, 'shell');
    shell.signal('SIGTERM');
    // Its output is open for as long as the gateway lives.
    await shell.exited;
    expect(shell.signalCode).toBe('SIGTERM');
    expect(shell.output()).toContain('Stopping');
    expect(await readdir(place.data)).not.toContain('gateway.json');
  });
});
