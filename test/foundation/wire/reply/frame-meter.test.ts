import { describe, expect, it, test } from 'vitest';
import { type TokenBucket, createBudget } from '#wire/budgets';
import { PREFACE_BYTES, FRAME_BUDGET, createFrameMeter as createMeter, MeteredBytes } from '#wire/frame-meter';

const frame = (type: number, length: number) =>
  Buffer.concat([
    Buffer.from([length >> 16, (length >> 8) & 255, length & 255, type, 0, 0, 0, 0, 1]),
    Buffer.alloc(length),
  ]);
const many = (count: number, one: Buffer) => Buffer.concat(Array.from({ length: count }, () => one));

/** Each look is a turn of its own. */
const createFrameMeter = (budget: TokenBucket, more: object = {}) =>
  createMeter(budget, { nextTurn: (run) => run(), ...more });

describe('the meter of small frames', () => {
  it('lets large frames through without counting them', () => {
    const budget = createBudget(FRAME_BUDGET, () => 0);
    const bytes = many(1_000, frame(0, 16_384));
    expect(createFrameMeter(budget).admit(bytes)).toBe(bytes.length);
    expect(budget.remaining()).toBe(10_000);
  });

  it.each([
    ['data of 32 bytes', frame(0, 32)],
    ['pings', frame(6, 8)],
    ['continuations', frame(9, 1)],
  ])('stops at a frame after 256 of %s', (_name, one) => {
    const budget = createBudget(FRAME_BUDGET, () => 0);
    const meter = createFrameMeter(budget);
    expect(meter.admit(many(1_000, one))).toBe(256 * one.length);
    expect(budget.remaining()).toBe(10_000 - 256);
    expect(meter.waitMs()).toBe(0);
  });

  it.each([
    ['settings of 16 KiB', frame(4, 16_384), 257],
    ['frames of an unknown type', frame(0x20, 640), 11],
    ['headers of a usual length', frame(1, 300), 1],
    ['headers of 16 KiB', frame(1, 16_384), 17],
  ])('weighs frames without data by their bytes: %s', (_name, one, cost) => {
    const budget = createBudget(FRAME_BUDGET, () => 0);
    createFrameMeter(budget).admit(one);
    expect(budget.remaining()).toBe(10_000 - cost);
  });

  it.each([
    ['a pushed reply', 5],
    ['another address for an origin', 10],
    ['a list of origins', 12],
  ])('ends a connection at %s, before the frame has passed', (_name, type) => {
    const meter = createFrameMeter(createBudget(FRAME_BUDGET, () => 0));
    const bytes = Buffer.concat([frame(6, 8), frame(type, 16_384)]);
    expect(meter.admit(bytes)).toBe(17 + 9);
    expect(meter.flooded()).toBe(`it sent an HTTP/2 frame of type ${type}, for which there is no use here`);
  });

  it('stops at a frame after 64 of data of one byte, which cost four times as much', () => {
    const budget = createBudget(FRAME_BUDGET, () => 0);
    const meter = createFrameMeter(budget);
    expect(meter.admit(many(1_000, frame(0, 1)))).toBe(64 * 10);
    expect(budget.remaining()).toBe(10_000 - 256);
  });

  it('lets what a client sends first pass, which is no frame', () => {
    const budget = createBudget(FRAME_BUDGET, () => 0);
    const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    const bytes = Buffer.concat([preface, many(100, frame(0, 1))]);
    expect(createFrameMeter(budget, { prefaceBytes: PREFACE_BYTES }).admit(bytes)).toBe(24 + 640);
  });

  it('counts the empty last frame of a stream once', () => {
    const budget = createBudget(FRAME_BUDGET, () => 0);
    const last = Buffer.from([0, 0, 0, 0, 1, 0, 0, 0, 1]);
    expect(createFrameMeter(budget).admit(many(1_000, last))).toBe(256 * 9);
  });

  it('tells of a connection that sends more tiny frames than any proxy', () => {
    let now = 0;
    const budget = { remaining: () => 10_000, take: () => {}, waitMs: () => 0 };
    const meter = createFrameMeter(budget, { now: () => now });
    const bytes = many(64, frame(0, 1));
    const send = (turns: number) => {
      for (let turn = 0; turn < turns; turn++) meter.admit(bytes);
    };
    send(312);
    expect(meter.flooded()).toBeNull();
    now = 1_000;
    send(15);
    expect(meter.flooded()).toBeNull();
    send(2);
    expect(meter.flooded()).toBe('it sent more than 20000 frames of a few bytes');
  });

  it('reads on where it stopped, however the bytes are cut', () => {
    const bytes = many(100, frame(0, 3));
    const budget = createBudget(FRAME_BUDGET, () => 0);
    const meter = createFrameMeter(budget);
    for (const byte of bytes) expect(meter.admit(Buffer.from([byte]))).toBe(1);
    expect(budget.remaining()).toBe(9_600);
  });

  it('is shared by the connections of a network, and fills steadily', () => {
    let now = 0;
    const budget = createBudget(FRAME_BUDGET, () => now);
    const meters = [createFrameMeter(budget), createFrameMeter(budget)];
    const bytes = many(300, frame(0, 31));
    let taken = 0;
    for (let turn = 0; turn < 100; turn++) taken += meters[turn % 2]!.admit(bytes) / 40;
    expect(taken).toBe(10_000);
    expect(meters[0]!.waitMs()).toBeCloseTo(25.6);
    now = 26;
    expect(createFrameMeter(budget).admit(bytes)).toBe(256 * 40);
  });
});

test('bytes beyond what one turn of the event loop may have wait for the next, however they are cut', async () => {
  let passed = 0;
  let paused = 0;
  const metered = new MeteredBytes({
    meter: createMeter(createBudget(FRAME_BUDGET)),
    pass: (bytes) => (passed += bytes.length / 10) > 0,
    pause: () => paused++,
    resume: () => {},
    flooded: expect.unreachable,
  });
  const bytes = many(16, frame(0, 1));
  for (let at = 0; at < 40; at++) metered.take(bytes);
  const turns: number[] = [];
  while (passed < 640) {
    turns.push(passed - turns.reduce((sum, one) => sum + one, 0));
    await new Promise((done) => void setImmediate(done));
  }
  expect([Math.max(...turns), turns[0]]).toEqual([64, 64]);
  expect(paused).toBeGreaterThan(0);
});

test('a reader that is full gets no more before it asks', () => {
  const passed: number[] = [];
  const calls: string[] = [];
  const metered = new MeteredBytes({
    meter: createMeter(createBudget(FRAME_BUDGET)),
    pass: (bytes) => passed.push(bytes.length) === 0,
    pause: () => calls.push('pause'),
    resume: () => calls.push('resume'),
    flooded: expect.unreachable,
  });
  metered.take(Buffer.alloc(3));
  metered.take(Buffer.alloc(4));
  expect([passed, calls]).toEqual([[3], ['pause', 'pause']]);
  metered.more();
  metered.more();
  expect([passed, calls]).toEqual([
    [3, 4],
    ['pause', 'pause', 'pause', 'resume'],
  ]);
});
