import { createAttempts } from '../src/gateway/auth/attempts.ts';
import { keccak } from '../src/server/config/evm-address.ts';
import { personalDigest, viemRecovery } from '../src/gateway/auth/siwx/wallet-signature.ts';
import { createNonces } from '../src/gateway/auth/siwx/nonces.ts';
import { createSignIn } from '../src/gateway/auth/siwx/sign-in.ts';
import {
  encode,
  evmWallet,
  fieldsFor,
  solanaWallet,
  START,
  textOf,
  type TestWallet,
} from '../test/gateway/auth/siwx/wallets.ts';

/* `node bench/sign-in.ts`: the cost of a wallet's sign-in on one thread. Each header is decoded, parsed, verified
   and remembered. */
const MEASURE_MS = Number(process.env['BENCH_MS'] ?? 2_000);
const HEADERS = 200;
const ADDRESS = '192.0.2.1';

const open = async () => {
  const attempts = createAttempts({ perMinute: 1_000, now: () => START });
  return createSignIn({
    domains: ['gateway.example'],
    lifetimeMsMax: 3_600_000,
    skewMs: 30_000,
    chains: [],
    attempts,
    now: () => START,
    elapsed: () => START,
    verifiedMax: 1,
  });
};
const headersOf = (wallet: TestWallet) =>
  Promise.all(
    Array.from({ length: HEADERS }, async (_, index) => {
      const message = textOf(fieldsFor(wallet, { requestId: String(index) }));
      return encode({ message, signature: await wallet.sign(message) });
    }),
  );

const loading = performance.now();
const signIn = await open();
console.log(
  `ready after ${(performance.now() - loading).toFixed(0)} ms\n\n${'what'.padEnd(34)}${'a second'.padStart(12)}${'CPU µs each'.padStart(14)}`,
);

for (const [name, wallet] of [
  ['Solana', solanaWallet()],
  ['EVM, native addon', evmWallet()],
] as const) {
  const headers = await headersOf(wallet);
  await measure(name, (index) => signIn.verify(headers[index % HEADERS]!, ADDRESS));
}

const recover = await viemRecovery();
const wallet = evmWallet();
const text = textOf(fieldsFor(wallet));
const signature = Buffer.from((await wallet.sign(text)).slice(2), 'hex');
await measure('EVM, viem (recovery alone)', () =>
  recover(personalDigest(text), signature.subarray(0, 64), signature[64] === 27 ? 0 : 1),
);

const [known] = await headersOf(solanaWallet('known'));
await signIn.verify(known!, ADDRESS);
const bytes = Buffer.from(known!);
await measure('known, each in a string of its own', () => void (signIn.known(bytes.toString('latin1')) ?? fail()));

const wrong = encode({ message: text.replace('Sign in.', 'Sign out.'), signature: await wallet.sign(text) });
await measure('refused before its signature', () => signIn.verify(wrong.slice(0, -40), ADDRESS).catch(() => {}));

const nonces = createNonces({
  secret: keccak(Buffer.from('bench')),
  database: { query: async () => [] },
  now: () => START,
});
await measure('nonce issued', () => void nonces.issue());

function fail(): never {
  throw new Error('it should have been known');
}

async function measure(
  name: string,
  once: (index: number) => Promise<unknown> | Uint8Array | null | void,
): Promise<void> {
  for (let index = 0; index < HEADERS; index += 1) await once(index);
  const start = performance.now();
  const cpu = process.cpuUsage();
  let done = 0;
  let elapsed = 0;
  while (elapsed < MEASURE_MS) {
    for (let index = 0; index < HEADERS; index += 1) {
      const result = once(index);
      // Awaits only if necessary, because an `await` costs more than the lookup.
      if (result instanceof Promise) await result;
    }
    done += HEADERS;
    elapsed = performance.now() - start;
  }
  const { user, system } = process.cpuUsage(cpu);
  console.log(
    name.padEnd(34) +
      Math.round(done / (elapsed / 1_000))
        .toLocaleString('en')
        .padStart(12) +
      ((user + system) / done).toFixed(2).padStart(14),
  );
}
