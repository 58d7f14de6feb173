import { verify, createPublicKey } from 'node:crypto';
import nacl from 'tweetnacl';
import { loadRecovery, personalDigest, viemRecovery } from '../src/gateway/auth/siwx/wallet-signature.ts';
import { createEvmChain } from '../src/billing/chains/evm/evm-chain.ts';
import { createSolanaChain } from '../src/billing/chains/solana/solana-chain.ts';
import { evmMoney, solanaMoney } from '../test/support/chain/money-chain.ts';
import { evmWallet } from '../test/support/wallets.ts';

/* `node bench/payments.ts`: the cost of signatures and payments on one thread. The first rows are signatures alone,
   with the figures on which the design is based. The others are x402 payments by the libraries' own clients, with an
   EVM node and a Solana virtual machine on this machine. */
const MEASURE_MS = Number(process.env['BENCH_MS'] ?? 2_000);
const PAYMENTS = 100;

console.log(`${'what'.padEnd(44)}${'a second'.padStart(12)}${'CPU µs each'.padStart(14)}${'design'.padStart(12)}`);

async function measure(name: string, work: (index: number) => unknown, design: number | null = null): Promise<void> {
  for (let index = 0; index < 20; index += 1) await work(index);
  const cpu = process.cpuUsage();
  const began = performance.now();
  let count = 0;
  while (performance.now() - began < MEASURE_MS) await work(count++);
  const seconds = (performance.now() - began) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  const figure = (value: number) => value.toLocaleString('en', { maximumFractionDigits: value < 100 ? 1 : 0 });
  console.log(
    `${name.padEnd(44)}${figure(count / seconds).padStart(12)}${figure((user + system) / count).padStart(14)}${(design === null ? '' : figure(design)).padStart(12)}`,
  );
}

const { publicKey, secretKey } = nacl.sign.keyPair();
const text = Buffer.from(
  'What a wallet signs of a sign-in message, some two hundred and fifty bytes of it. '.repeat(3),
);
const ed25519 = nacl.sign.detached(text, secretKey);
const key = createPublicKey({
  key: { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(publicKey).toString('base64url') },
  format: 'jwk',
});
await measure('Ed25519, node:crypto', () => verify(null, text, key, ed25519) || fail(), 15_400);
await measure('Ed25519, tweetnacl', () => nacl.sign.detached.verify(text, ed25519, publicKey) || fail(), 121);

const wallet = evmWallet();
const signature = Buffer.from((await wallet.sign(text.toString())).slice(2), 'hex');
const digest = personalDigest(text.toString());
const parity = signature[64] === 27 ? 0 : 1;
const native = await loadRecovery();
const slow = await viemRecovery();
await measure('secp256k1 recovery, native addon', () => native(digest, signature.subarray(0, 64), parity), 16_300);
await measure('secp256k1 recovery, viem', () => slow(digest, signature.subarray(0, 64), parity), 650);

const settings = { facilitator: 'in-process', finality: null, timeoutMs: 5_000, now: Date.now } as const;
for (const [name, money, create] of [
  ['EVM', await evmMoney(), createEvmChain],
  ['Solana', await solanaMoney(), createSolanaChain],
] as const) {
  const chain = create({ ...money.setup, rpcUrl: money.url, ...settings });
  await chain.open();
  await money.finalize();
  const payer = await money.payer(1_000_000_000n);
  const terms = await chain.requirements(1_000n, null);
  await measure(`${name}: a client signs`, () => payer.sign(terms));
  const payloads = await Promise.all(Array.from({ length: PAYMENTS }, () => payer.sign(terms)));
  await measure(`${name}: a payment is read`, (index) => chain.read(payloads[index % PAYMENTS]!));
  const payments = payloads.map((payload) => chain.read(payload));
  await measure(`${name}: verified, with its node`, (index) => chain.verify(payments[index % PAYMENTS]!));
  chain.close();
  await money.stop();
}

function fail(): never {
  throw new Error('a good signature was refused');
}
