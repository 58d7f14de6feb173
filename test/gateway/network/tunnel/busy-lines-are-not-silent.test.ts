import type { Socket } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { keepAlive } from '../../../../src/gateway/network/tunnel/socket-stream.ts';

// What a socket counts, set by the test: a slow line cannot be had on loopback.

const SILENCE_MS = 4_000;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function watch() {
  const wire = { bytesRead: 0, bytesWritten: 0, writableLength: 0 };
  const silent = vi.fn();
  let pings = 0;
  const stop = keepAlive({
    wire: wire as unknown as Socket,
    silenceMs: SILENCE_MS,
    ping: () => pings++,
    silent,
  });
  return { wire, silent, stop, pings: () => pings };
}

test('a line that is full of a large request and takes some of it each turn is alive, though nothing comes', () => {
  const { wire, silent, stop } = watch();
  wire.bytesWritten = 8_000_000;
  wire.writableLength = 8_000_000;
  for (let turn = 0; turn < 40; turn++) {
    wire.writableLength -= 10_000;
    vi.advanceTimersByTime(SILENCE_MS / 4);
  }
  expect(silent).not.toHaveBeenCalled();
  // It takes nothing any more.
  vi.advanceTimersByTime(SILENCE_MS + 1);
  expect(silent).toHaveBeenCalled();
  stop();
});

test('what goes out to a line that is not full says nothing of the other end', () => {
  const { wire, silent, stop } = watch();
  for (let turn = 0; turn < 4; turn++) {
    wire.bytesWritten += 17;
    vi.advanceTimersByTime(SILENCE_MS / 4);
  }
  expect(silent).toHaveBeenCalled();
  stop();
});

test('one ping at a time, and none once it is stopped', () => {
  const { wire, pings, stop } = watch();
  for (let turn = 0; turn < 4; turn++) {
    wire.bytesRead += 1;
    vi.advanceTimersByTime(SILENCE_MS / 4);
  }
  expect(pings()).toBe(1);
  stop();
  expect(vi.getTimerCount()).toBe(0);
});
