import { randomBytes } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createFiles, createSealedContent } from '#batch-jobs';
import { createLedger } from '#billing/compose';
import { escrowOf, treasuryOf } from '#billing';
import { ENGINES, type EngineName, openEngine } from '../../support/engines.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const CHUNK = 64 * KIB;
/** Of the files of all accounts together. */
const ROOM = 4 * MIB;
const GIFT = { from: treasuryOf('test'), to: escrowOf('alice'), amount: 1_000_000n, memo: 'test' };
const PART_SIZES = { name: 'test/parts', text: 'SELECT LENGTH(content) AS size FROM file_parts WHERE file = $1' };
const OLD_PART = { name: 'test/old', text: 'UPDATE file_parts SET content = $2 WHERE file = $1 AND n = 0' };

async function filesOn(engine: EngineName) {
  const { database, dispose } = await openEngine(engine);
  const ledger = await createLedger({ database, now: Date.now });
  onTestFinished(async () => {
    await ledger.close();
    await dispose();
  });
  const content = createSealedContent(randomBytes(32));
  const limits = { fileBytesMax: 10 * MIB, accountBytesMax: ROOM, accountCountMax: 100, bytesMax: ROOM };
  const files = createFiles({ database, content, limits, now: Date.now });
  const write = (account: string, bytes: Buffer) =>
    files.write(
      { account, within: null },
      {
        name: 'a.jsonl',
        content: (async function* () {
          for (let at = 0; at < bytes.length; at += CHUNK) yield bytes.subarray(at, at + CHUNK);
        })(),
        keepMs: async () => 3_600_000,
      },
    );
  return { database, ledger, content, files, write };
}

/** Bytes that cannot be compressed, without the end of a line. */
const noise = (bytes: number): Buffer => Buffer.from(randomBytes(bytes).map((byte) => (byte === 10 ? 11 : byte)));

async function read(pieces: AsyncIterable<Buffer>) {
  const all: Buffer[] = [];
  for await (const piece of pieces) all.push(piece);
  return { bytes: Buffer.concat(all), largest: Math.max(...all.map(({ byteLength }) => byteLength)) };
}

describe.each(ENGINES)('a large file on %s', (engine) => {
  it('without lines is stored and read in small pieces', async () => {
    const { database, ledger, files, write } = await filesOn(engine);
    await ledger.transfer({ id: 'fund', ...GIFT });
    const bytes = noise(1.9 * MIB);
    const file = await write('alice', bytes);
    const sizes = (await database.query(PART_SIZES, [file.id])).map(({ size }) => Number(size));
    expect(Math.max(...sizes)).toBeLessThan(MIB + 2 * CHUNK);
    const got = await read(files.read(file));
    expect(got.bytes.equals(bytes)).toBe(true);
    expect(got.largest).toBeLessThanOrEqual(256 * KIB);
  });

  it('that was stored in a large part is read in pieces, and its memory is counted before it is read', async () => {
    const { database, content, files, write } = await filesOn(engine);
    const file = await write('alice', Buffer.from('{}\n'));
    const bytes = noise(5 * MIB);
    await database.query(OLD_PART, [file.id, await content.seal('alice', bytes)]);
    const held: number[] = [];
    const got = await read(files.read(file, (now) => held.push(now)));
    expect(got.bytes.equals(bytes)).toBe(true);
    expect(got.largest).toBeLessThanOrEqual(256 * KIB);
    expect(Math.max(...held)).toBeGreaterThan(2 * bytes.byteLength);
    const full = new Error('no memory');
    const refused = files.read(file, () => {
      throw full;
    });
    await expect(read(refused)).rejects.toBe(full);
  });

  it('that unpacks to far more than it takes is made while it is read', async () => {
    const { database, content, files, write } = await filesOn(engine);
    const file = await write('alice', Buffer.from('{}\n'));
    await database.query(OLD_PART, [file.id, await content.seal('alice', Buffer.alloc(20 * MIB, 'x'))]);
    const got = await read(files.read(file));
    expect(got.bytes.byteLength).toBe(20 * MIB);
    expect(got.largest).toBeLessThanOrEqual(256 * KIB);
  });
});

describe.each(ENGINES)('accounts that never had money on %s', (engine) => {
  it('get a quarter of the room together, and others the rest', async () => {
    const { ledger, files, write } = await filesOn(engine);
    const bytes = noise(200 * KIB);
    let stored = 0;
    for (let n = 0; n < 20; n += 1) {
      await write(`poor-${n}`, bytes).then(
        () => (stored += 1),
        (error: unknown) => expect(error).toMatchObject({ code: 'rate_limit_exceeded' }),
      );
    }
    expect(stored * bytes.byteLength).toBeLessThanOrEqual(ROOM / 4);
    expect(stored).toBeGreaterThan(1);
    await ledger.transfer({ id: 'fund', ...GIFT });
    await write('alice', noise(MIB));
    expect(await files.shareOf('alice')).toBe('alice');
    expect(await files.shareOf('poor-0')).toBe(await files.shareOf('poor-1'));
  });
});
