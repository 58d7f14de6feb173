import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { openSignIn } from './sign-in-world.ts';
import { encode, evmWallet, fieldsFor, solanaWallet, textOf } from './wallets.ts';
import { anyCharacter } from '../../../support/any-character.ts';

const INPUTS = process.env['TOLLGATE_DEEP'] === '1' ? 1_000_000 : 600;
/** CPU of this thread: what the event loop is held up by, however busy the machine is. */
const STALL_MICROS = 100_000;

const texts = [solanaWallet(), evmWallet()].map((wallet) =>
  textOf(fieldsFor(wallet, { nonce: 'abcdefgh', requestId: 'r', resources: ['https://gateway.example/'] })),
);
const anything = fc.string({ unit: anyCharacter, maxLength: 400 });

/** A good message after some cuts, insertions and swaps of lines. */
const broken = fc
  .tuple(
    fc.constantFrom(...texts),
    fc.array(
      fc.record({
        at: fc.double({ min: 0, max: 1, noNaN: true }),
        cut: fc.nat(12),
        insert: fc.oneof(fc.constantFrom('\n', '\r\n', ' ', 'URI: ', 'Nonce: 12345678', '\0', '0'), anything),
      }),
      { minLength: 1, maxLength: 3 },
    ),
  )
  .map(([text, edits]) =>
    edits.reduce((now, { at, cut, insert }) => {
      const place = Math.floor(at * now.length);
      return now.slice(0, place) + insert + now.slice(place + cut);
    }, text),
  );
const signature = fc.oneof(
  fc.constantFrom(
    '',
    '0x',
    `0x${'00'.repeat(65)}`,
    `0x${'ff'.repeat(65)}`,
    '1'.repeat(64),
    '1'.repeat(88),
    'A'.repeat(86),
  ),
  fc.string({
    unit: fc.constantFrom(...Array.from('123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz')),
    minLength: 86,
    maxLength: 88,
  }),
  fc.uint8Array({ minLength: 65, maxLength: 65 }).map((bytes) => `0x${Buffer.from(bytes).toString('hex')}`),
  anything,
);
const fields = fc.dictionary(
  fc.constantFrom(
    'domain',
    'address',
    'statement',
    'uri',
    'version',
    'chainId',
    'type',
    'nonce',
    'issuedAt',
    'expirationTime',
    'resources',
    'signatureScheme',
    'signature',
    '__proto__',
  ),
  fc.oneof(
    anything,
    fc.constantFrom(
      'gateway.example',
      'https://gateway.example/',
      '1',
      'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
      'eip155:1',
    ),
    fc.jsonValue({ maxDepth: 2 }),
  ),
);
const header = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(broken, signature).map(([message, made]) => encode({ message, signature: made })) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.constantFrom(...texts), signature)
      .map(([message, made]) => encode({ message, signature: made })),
  },
  { weight: 3, arbitrary: fields.map(encode) },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 4 }).map(encode) },
  { weight: 1, arbitrary: anything.map((text) => Buffer.from(text).toString('base64')) },
  { weight: 1, arbitrary: anything },
);

it('answers every header that nobody signed with 401, at once', { timeout: 3_600_000 }, async () => {
  const { signIn } = await openSignIn({ failuresPerMinute: Number.MAX_SAFE_INTEGER });
  const verify = (value: string) => signIn.verify(value, '192.0.2.1');
  const cpuOf = async (work: () => Promise<unknown>): Promise<number> => {
    const before = process.threadCpuUsage();
    await work();
    const { user, system } = process.threadCpuUsage(before);
    return user + system;
  };
  await fc.assert(
    fc.asyncProperty(header, async (value) => {
      let error: unknown = null;
      const micros = await cpuOf(() => verify(value).catch((reason: unknown) => (error = reason)));
      // What holds the event loop up does so each time; a collection of garbage that fell into it does not.
      if (micros >= STALL_MICROS) expect(await cpuOf(() => verify(value).catch(() => {}))).toBeLessThan(STALL_MICROS);
      expect(error).toMatchObject({ code: 'unauthorized' });
      expect((error as Error).message.length).toBeLessThan(600);
    }),
    { numRuns: INPUTS },
  );
});
