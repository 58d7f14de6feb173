import { afterEach, describe, expect, it, vi } from 'vitest';
import { createKeepAlive, createSilent } from '../../src/server/http/keep-alive.ts';
import { gate, startGateway } from './support/gateway.ts';
import { usualStream } from './support/replies.ts';

afterEach(() => vi.useRealTimers());

describe('keep-alive', () => {
  it('beats after silence only, with one timer for all, and none when nobody listens', () => {
    vi.useFakeTimers();
    const keepAlive = createKeepAlive(15_000);
    const beats = [0, 0];
    const streams = beats.map((_, i) => createSilent(() => void (beats[i]! += 1)));
    for (const stream of streams) keepAlive.watch(stream);
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(14_000);
    streams[1]!.quietTicks = 0;
    vi.advanceTimersByTime(1_000);
    expect(beats).toEqual([1, 0]);
    vi.advanceTimersByTime(15_000);
    expect(beats).toEqual([2, 1]);
    keepAlive.forget(streams[0]!);
    keepAlive.forget(streams[0]!);
    vi.advanceTimersByTime(15_000);
    expect(beats).toEqual([2, 2]);
    keepAlive.forget(streams[1]!);
    vi.advanceTimersByTime(1_000);
    expect(vi.getTimerCount()).toBe(0);
    expect(beats).toEqual([2, 2]);
    keepAlive.watch(streams[0]!);
    expect(vi.getTimerCount()).toBe(1);
  });

  it('beats earlier where that is asked for, and as ever after that', () => {
    vi.useFakeTimers();
    const keepAlive = createKeepAlive(15_000);
    let beats = 0;
    const stream = createSilent(() => void (beats += 1));
    keepAlive.watch(stream);
    keepAlive.soon(stream);
    vi.advanceTimersByTime(4_999);
    expect(beats).toBe(0);
    vi.advanceTimersByTime(1);
    expect(beats).toBe(1);
    vi.advanceTimersByTime(14_999);
    expect(beats).toBe(1);
    vi.advanceTimersByTime(1);
    expect(beats).toBe(2);
    keepAlive.forget(stream);
  });

  it('is a comment between events', async () => {
    const rest = gate();
    const gateway = await startGateway({
      keepAliveMs: 5,
      reply: () => ({
        chunks: (async function* () {
          await rest.opened;
          yield usualStream();
        })(),
      }),
    });
    const response = await gateway.post({
      model: 'acme/small',
      stream: true,
      messages: [{ role: 'user', content: 'hi' }],
    });
    const body = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    expect((await body.read()).value).toMatch(/^(?:: keep-alive\n\n)+$/);
    rest.open();
    let text = '';
    for (let read = await body.read(); !read.done; read = await body.read()) text += read.value;
    expect(text.replaceAll(': keep-alive\n\n', '')).toMatch(/^data: \{.*data: \[DONE\]\n\n$/s);
    await gateway.close();
  });
});
