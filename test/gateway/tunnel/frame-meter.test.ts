import { describe, expect, it } from 'vitest';
import { createFrameBudget, createFrameMeter } from '../../../src/network/tunnel/frame-meter.ts';

const frame = (type: number, length: number) =>
  Buffer.concat([
    Buffer.from([length >> 16, (length >> 8) & 255, length & 255, type, 0, 0, 0, 0, 1]),
    Buffer.alloc(length),
  ]);
const many = (count: number, one: Buffer) => Buffer.concat(Array.from({ length: count }, () => one));

describe('the meter of small frames', () => {
  it('lets large frames through without counting them', () => {
    const budget = createFrameBudget(() => 0);
    const bytes = many(1_000, frame(0, 16_384));
    expect(createFrameMeter(budget).admit(bytes)).toBe(bytes.length);
    expect(budget.left()).toBe(10_000);
  });

  it.each([
    ['data of one byte', frame(0, 1)],
    ['pings', frame(6, 8)],
    ['continuations', frame(9, 1)],
  ])('stops at a frame after 256 of %s', (_name, one) => {
    const budget = createFrameBudget(() => 0);
    const meter = createFrameMeter(budget);
    expect(meter.admit(many(1_000, one))).toBe(256 * one.length);
    expect(budget.left()).toBe(10_000 - 256);
    expect(meter.waitMs()).toBe(0);
  });

  it('reads on where it stopped, however the bytes are cut', () => {
    const bytes = many(100, frame(0, 3));
    const budget = createFrameBudget(() => 0);
    const meter = createFrameMeter(budget);
    for (const byte of bytes) expect(meter.admit(Buffer.from([byte]))).toBe(1);
    expect(budget.left()).toBe(9_900);
  });

  it('is shared by the connections of a network, and fills steadily', () => {
    let now = 0;
    const budget = createFrameBudget(() => now);
    const meters = [createFrameMeter(budget), createFrameMeter(budget)];
    const bytes = many(300, frame(0, 1));
    let taken = 0;
    for (let turn = 0; turn < 100; turn++) taken += meters[turn % 2]!.admit(bytes) / 10;
    expect(taken).toBe(10_000);
    expect(meters[0]!.waitMs()).toBeCloseTo(25.6);
    now = 26;
    expect(createFrameMeter(budget).admit(bytes)).toBe(2_560);
  });
});
