import { expect, test } from 'vitest';
import { createReplyMemory } from '#call';
import { readEntry } from '../../../src/console/rpc/read-body.ts';
import { createHeldReplies, runBatch } from '../../../src/console/rpc/answer-body.ts';
import { resultOf } from '../../../src/console/rpc/outcome.ts';
import { request } from './rpc-world.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const memoryOf = (repliesBytesMax = 64 * MIB) => createReplyMemory({ repliesBytesMax, replyBytesMax: MIB });
const entries = Array.from({ length: 30 }, (_, id) => readEntry(JSON.stringify(request(id, 'some/method')))!);

interface Batch {
  readonly hold: ReturnType<ReturnType<typeof memoryOf>['open']>;
  readonly bytesMax?: number;
  readonly replyBytes: number;
  readonly billed: boolean;
}

/**
 * Runs 30 entries of so many bytes each. Resolves with the places of those that ran, and the codes of the replies;
 * 0 for a result.
 */
async function batch({ hold, bytesMax = 8 * MIB, replyBytes, billed }: Batch) {
  const ran: number[] = [];
  const replies = await runBatch(entries, {
    held: createHeldReplies(hold, bytesMax),
    gone: new AbortController().signal,
    isBilled: () => billed,
    placeOf: () => null,
    async run(_message, place) {
      ran.push(place);
      for (let turns = 10; turns > 0; turns -= 1) await new Promise((resolve) => setImmediate(resolve));
      return resultOf('x'.repeat(replyBytes));
    },
  });
  const read = replies.map(
    (reply) => JSON.parse(reply.toString()) as { id: number; error?: { code: number; message: string; data: object } },
  );
  return {
    ran,
    read,
    codes: read.map(({ error }) => error?.code ?? 0),
    bytes: replies.reduce((sum, { byteLength }) => sum + byteLength, 0),
  };
}

test('what was paid is told however large it is; what has not begun by then is not run', async () => {
  const { ran, codes, read } = await batch({
    hold: memoryOf().open('a', false, null),
    bytesMax: 50 * KIB,
    replyBytes: 10 * KIB,
    billed: true,
  });
  expect(ran.length).toBeGreaterThanOrEqual(5);
  expect(ran.length).toBeLessThanOrEqual(5 + 8);
  expect(codes.filter((code) => code === 0)).toHaveLength(ran.length);
  expect(codes.filter((code) => code === -32015)).toHaveLength(30 - ran.length);
  expect(read.at(-1)!.error!.message).toContain('was not run');
});

test('of what costs nothing a batch is told so much as it may have, and which entry to send alone', async () => {
  const { codes, read, bytes } = await batch({
    hold: memoryOf().open('a', false, null),
    bytesMax: 55 * KIB,
    replyBytes: 10 * KIB,
    billed: false,
  });
  expect(codes.filter((code) => code === 0)).toHaveLength(5);
  expect(bytes).toBeLessThan(60 * KIB);
  expect(read.filter(({ error }) => error?.message.includes('send the entry alone'))).not.toHaveLength(0);
});

test('replies that nobody takes: one account has a quarter, all have the whole, and what was taken is free again', async () => {
  const memory = memoryOf(16 * MIB);
  const large = (hold: Batch['hold']) => batch({ hold, replyBytes: 500 * KIB, billed: false });
  const told = ({ codes }: Awaited<ReturnType<typeof large>>) => codes.filter((code) => code === 0).length * 500 * KIB;
  const mine = [memory.open('mine', false, null), memory.open('mine', false, null)];
  // The first is let come to its end; the second finds the share taken.
  expect(told(await large(mine[0]!))).toBeGreaterThan(4 * MIB);
  const { codes, read } = await large(mine[1]!);
  expect(codes).toEqual(codes.map(() => -32018));
  expect(read[0]!.error).toMatchObject({
    message: expect.stringMatching(/not read.*retry/) as string,
    data: { retry_after_s: 2, status: 503 },
  });
  expect(told(await large(memory.open('other', false, null)))).toBeGreaterThan(3 * MIB);
  // Small ones are never refused.
  expect((await batch({ hold: memory.open('mine', false, null), replyBytes: KIB, billed: false })).codes).toEqual(
    entries.map(() => 0),
  );
  mine[0]!.release();
  expect(told(await large(mine[1]!))).toBeGreaterThan(3 * MIB);
});

test('an account that does not take what it pays for begins nothing more, and no other is kept from beginning', async () => {
  const memory = memoryOf(16 * MIB);
  const paid = (account: string, bytesMax: number) =>
    batch({ hold: memory.open(account, false, null), bytesMax, replyBytes: 500 * KIB, billed: true });
  await paid('greedy', 8 * MIB);
  const refused = await paid('greedy', 8 * MIB);
  expect(refused.ran).toEqual([]);
  expect(refused.codes).toEqual(entries.map(() => -32018));
  for (const account of ['b', 'c', 'd']) await paid(account, 8 * MIB);
  expect((await paid('honest', 2 * MIB)).ran.length).toBeGreaterThan(3);
});

test('one entry of a batch is begun in each turn of the event loop', async () => {
  let turn = 0;
  let over = false;
  const count = () => {
    turn += 1;
    if (!over) setImmediate(count);
  };
  setImmediate(count);
  const begun: number[] = [];
  await runBatch(entries, {
    held: createHeldReplies(memoryOf().open('a', false, null), MIB),
    gone: new AbortController().signal,
    isBilled: () => false,
    placeOf: () => null,
    async run() {
      begun.push(turn);
      return resultOf(null);
    },
  });
  over = true;
  expect(new Set(begun).size).toBe(entries.length);
});
