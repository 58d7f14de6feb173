import { randomBytes } from 'node:crypto';
import {
  getCompiledTransactionMessageDecoder,
  getCompiledTransactionMessageEncoder,
  getTransactionDecoder,
  getTransactionEncoder,
  signBytes,
  type AccountMeta,
  type Address,
  type CompiledTransactionMessage,
  type Instruction,
} from '@solana/kit';
import { getApproveInstruction, getCloseAccountInstruction, getSetAuthorityInstruction } from '@solana-program/token';
import bs58 from 'bs58';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PaymentProblem, type PaymentRequirements, type SignedPayment } from '../../../src/billing/chains/chain.ts';
import { ataOf, tokenAccountBytes, TOKEN_PROGRAM, USDC } from '../../support/chain/solana-accounts.ts';
import { solanaStage, type SolanaStage } from '../../support/chain/solana-stage.ts';
import {
  budget,
  build,
  memo,
  newPayer,
  pay,
  plainTransfer,
  transfer,
  type BuildOptions,
  type Payer,
} from '../../support/chain/solana-wallet.ts';

/**
 * The treasury's key pays the fee of a payment, and owns all that the treasury has: whatever else a transaction
 * carries must never get its signature.
 */
const TOKEN_2022 = 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb' as Address;
const SYSTEM = '11111111111111111111111111111111' as Address;
const LIGHTHOUSE = 'L2TExMFKdjpN9kozasaurPirfHy9P8sbXoAN1qA3S95' as Address;
const MEMO_TEXT = 'solana:who is credited';
const AMOUNT = 1_000_000n;

let stage: SolanaStage;
let thief: Payer;
let accomplice: Payer;
let requirements: PaymentRequirements;
beforeAll(async () => {
  stage = await solanaStage();
  stage.twin.fundUsdc(stage.treasury.address, 500_000_000n);
  thief = await stage.payer();
  accomplice = await stage.payer();
  requirements = await stage.chain.requirements(AMOUNT, MEMO_TEXT);
});
afterAll(() => stage.close());

interface Attack {
  readonly instructions: () => Instruction[];
  readonly says: RegExp;
  readonly options?: BuildOptions;
  readonly signers?: () => Payer[];
  readonly feePayer?: () => Address;
}

const treasury = () => stage.treasury.address;
const honest = () => transfer({ from: thief.address, to: treasury(), amount: AMOUNT });
const text = () => memo(MEMO_TEXT);
const signed = (address: Address) => ({ address, signTransactions: () => Promise.resolve([]) });
const account = (address: string, role: number): AccountMeta => ({ address: address as Address, role });
const system = (data: number[], accounts: AccountMeta[]): Instruction => ({
  programAddress: SYSTEM,
  accounts,
  data: Uint8Array.from(data),
});
const with_ = (...more: Instruction[]) => [...budget(), honest(), text(), ...more];

const ATTACKS: Readonly<Record<string, Attack>> = {
  'a second transfer, out of the treasury': {
    instructions: () => with_(transfer({ from: treasury(), to: thief.address, amount: 500_000_000n })),
    says: /calls the program Token/,
  },
  'a second transfer, of the payer’s own': {
    instructions: () => with_(transfer({ from: thief.address, to: accomplice.address, amount: 1n })),
    says: /calls the program/,
  },
  'the treasury as the one who pays': {
    instructions: () => [
      ...budget(),
      transfer({ from: treasury(), to: treasury(), amount: AMOUNT }),
      memo(MEMO_TEXT, [thief.address]),
    ],
    says: /authorized by the payer/,
  },
  'the treasury’s account as the source': {
    instructions: () => [
      ...budget(),
      transfer({ from: thief.address, to: treasury(), amount: AMOUNT, source: ataOf(treasury()) }),
      text(),
    ],
    says: /pays from/,
  },
  'a source that is another account of the payer': {
    instructions: () => [
      ...budget(),
      transfer({ from: thief.address, to: treasury(), amount: AMOUNT, source: ataOf(accomplice.address) }),
      text(),
    ],
    says: /pays from/,
  },
  'the token account of somebody else as destination': {
    instructions: () => [
      ...budget(),
      transfer({ from: thief.address, to: accomplice.address, amount: AMOUNT }),
      text(),
    ],
    says: /pays into/,
  },
  'another mint': {
    instructions: () => [
      ...budget(),
      transfer({ from: thief.address, to: treasury(), amount: AMOUNT, mint: accomplice.address }),
      text(),
    ],
    says: /transfers the token/,
  },
  'less than was accepted': {
    instructions: () => [...budget(), transfer({ from: thief.address, to: treasury(), amount: AMOUNT - 1n }), text()],
    says: /transfers 999999/,
  },
  'more than was accepted': {
    instructions: () => [...budget(), transfer({ from: thief.address, to: treasury(), amount: AMOUNT + 1n }), text()],
    says: /exactly 1000000/,
  },
  'other decimals': {
    instructions: () => [
      ...budget(),
      transfer({ from: thief.address, to: treasury(), amount: AMOUNT, decimals: 9 }),
      text(),
    ],
    says: /9 decimals/,
  },
  'a transfer that names no mint': {
    instructions: () => [...budget(), plainTransfer(thief.address, treasury(), AMOUNT), text()],
    says: /one TransferChecked/,
  },
  'the other token program': {
    instructions: () => [...budget(), { ...honest(), programAddress: TOKEN_2022 }, text()],
    says: /SPL Token program/,
  },
  'more accounts in the transfer': {
    instructions: () => [
      ...budget(),
      { ...honest(), accounts: [...(honest().accounts ?? []), account(treasury(), 2)] },
      text(),
    ],
    says: /one TransferChecked/,
  },
  'a transfer of the treasury’s SOL': {
    instructions: () =>
      with_(system([2, 0, 0, 0, ...lamports(900_000_000n)], [account(treasury(), 3), account(thief.address, 1)])),
    says: /calls the program 1111/,
  },
  'a durable nonce: the signature would be good for ever': {
    instructions: () => [
      system(
        [4, 0, 0, 0],
        [
          account(accomplice.address, 1),
          account('SysvarRecentB1ockHashes11111111111111111111', 0),
          account(thief.address, 2),
        ],
      ),
      ...with_(),
    ],
    says: /must begin with SetComputeUnitLimit/,
  },
  'the treasury approves a delegate': {
    instructions: () =>
      with_(
        getApproveInstruction({
          source: ataOf(treasury()) as Address,
          delegate: thief.address,
          owner: signed(treasury()),
          amount: 1_000_000_000n,
        }),
      ),
    says: /calls the program Token/,
  },
  'the treasury gives its account away': {
    instructions: () =>
      with_(
        getSetAuthorityInstruction({
          owned: ataOf(treasury()) as Address,
          owner: signed(treasury()),
          authorityType: 2,
          newAuthority: thief.address,
        }),
      ),
    says: /calls the program Token/,
  },
  'the treasury closes its account': {
    instructions: () =>
      with_(
        getCloseAccountInstruction({
          account: ataOf(treasury()) as Address,
          destination: thief.address,
          owner: signed(treasury()),
        }),
      ),
    says: /calls the program Token/,
  },
  'a priority fee that empties the treasury': {
    instructions: () => [...budget(100_000, 5_000_000n), honest(), text()],
    says: /priority fee of 500000 lamports/,
  },
  'more compute units than anything here needs': {
    instructions: () => [...budget(1_400_000, 0n), honest(), text()],
    says: /1400000 compute units/,
  },
  'no compute budget, which would be the default of 200,000 units': {
    instructions: () => [honest(), text()],
    says: /must begin with/,
  },
  'the price before the limit': {
    instructions: () => [...budget().toReversed(), honest(), text()],
    says: /must begin with/,
  },
  'the price twice': {
    instructions: () => [...budget(), honest(), text(), budget(1, 5_000_000n)[1]!],
    says: /calls the program ComputeBudget/,
  },
  'no memo, where one says who is credited': {
    instructions: () => [...budget(), honest()],
    says: /must have the memo "solana:who is credited"/,
  },
  'another memo': {
    instructions: () => [...budget(), honest(), memo('solana:somebody else')],
    says: /must have the memo/,
  },
  'two memos': { instructions: () => [...budget(), honest(), text(), memo('solana:somebody else')], says: /2 memos/ },
  'a memo that the treasury signs': {
    instructions: () => [...budget(), honest(), memo(MEMO_TEXT, [treasury()])],
    says: /memo without signers/,
  },
  'a third signer': {
    instructions: () => [...budget(), honest(), memo(MEMO_TEXT, [accomplice.address])],
    signers: () => [thief, accomplice],
    says: /asks for 3 signatures/,
  },
  'an assertion program that is given the treasury’s signature': {
    instructions: () =>
      with_({ programAddress: LIGHTHOUSE, accounts: [account(treasury(), 3)], data: Uint8Array.of(0) }),
    says: /payer's own accounts/,
  },
  'an assertion program that is given the treasury’s tokens': {
    instructions: () =>
      with_({ programAddress: LIGHTHOUSE, accounts: [account(ataOf(treasury()), 1)], data: Uint8Array.of(0) }),
    says: /payer's own accounts/,
  },
  'more assertions than a wallet adds': {
    instructions: () =>
      with_(
        ...[1, 2, 3, 4].map((at) => ({
          programAddress: LIGHTHOUSE,
          accounts: [account(ataOf(thief.address), 0)],
          data: Uint8Array.of(at),
        })),
      ),
    says: /4 Lighthouse assertions/,
  },
  'a program of the payer’s own': {
    instructions: () => with_({ programAddress: accomplice.address, data: Uint8Array.of(1) }),
    says: /calls the program/,
  },
  'another fee payer': { instructions: () => with_(), feePayer: () => accomplice.address, says: /has the fee payer/ },
  'nobody’s signature': { instructions: () => with_(), signers: () => [], says: /not signed by its payer/ },
};

function lamports(amount: bigint): number[] {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(amount);
  return [...bytes];
}

/** The honest transaction with its message changed in a way that no builder offers, signed again by its payer. */
async function rebuilt(change: (message: CompiledTransactionMessage) => CompiledTransactionMessage): Promise<string> {
  const transaction = Buffer.from(await build(stage.twin, treasury(), [thief], with_()), 'base64');
  const { messageBytes, signatures } = getTransactionDecoder().decode(transaction);
  const message = change(getCompiledTransactionMessageDecoder().decode(messageBytes));
  const bytes = getCompiledTransactionMessageEncoder().encode(message) as typeof messageBytes;
  const signature = await signBytes(thief.signer.keyPair.privateKey, bytes);
  return Buffer.from(
    getTransactionEncoder().encode({ messageBytes: bytes, signatures: { ...signatures, [thief.address]: signature } }),
  ).toString('base64');
}

/**
 * Neither reading nor any later step gives the treasury's signature to anybody, not even as the id of a transaction
 * that is asked for.
 */
async function expectRefused(transaction: string, says: RegExp): Promise<void> {
  const { chain, twin } = stage;
  expect(() => chain.read({ x402Version: 2, accepted: requirements, payload: { transaction } })).toThrow(says);
  const forged: SignedPayment = {
    id: `${chain.network}/${'0'.repeat(64)}`,
    network: chain.network,
    payer: thief.address,
    payerAccount: `solana:${thief.address}`,
    amount: AMOUNT,
    requirements,
    payload: { transaction },
  };
  const asked = [...twin.asked.values()].reduce((sum, one) => sum + one, 0);
  for (const step of [chain.verify(forged), chain.submit(forged), chain.find(forged, null)])
    await expect(step).rejects.toThrow(PaymentProblem);
  expect([...twin.asked.values()].reduce((sum, one) => sum + one, 0)).toBe(asked);
}

describe('no co-signature for', () => {
  test.each(Object.entries(ATTACKS))('%s', async (_, { instructions, says, options, signers, feePayer }) => {
    const transaction = await build(
      stage.twin,
      feePayer?.() ?? treasury(),
      signers?.() ?? [thief],
      instructions(),
      options,
    );
    await expectRefused(transaction, says);
  });

  test('accounts behind a lookup table, whose contents may change', async () => {
    const lookup = { table: accomplice.address, addresses: [ataOf(treasury()) as Address] };
    await expectRefused(await build(stage.twin, treasury(), [thief], with_(), { lookup }), /lookup tables/);
  });

  test('a second spelling of a transaction: bytes after its end', async () => {
    const transaction = Buffer.from(await build(stage.twin, treasury(), [thief], with_()), 'base64');
    await expectRefused(Buffer.concat([transaction, Buffer.from([0])]).toString('base64'), /no Solana transaction/);
  });

  test('an account that nothing uses, or one that is there twice', async () => {
    const mint = (keys: readonly Address[]) => keys.indexOf(USDC as Address);
    const unused = await rebuilt((message) => ({
      ...message,
      staticAccounts: [...message.staticAccounts, accomplice.address],
    }));
    await expectRefused(unused, /no instruction uses/);
    const twice = await rebuilt((message) => ({
      ...message,
      staticAccounts: [...message.staticAccounts, USDC as Address],
      instructions: message.instructions.map((one, at) => {
        if (at !== 2) return one;
        const last = message.staticAccounts.length;
        return {
          ...one,
          accountIndices: one.accountIndices!.map((index) => (index === mint(message.staticAccounts) ? last : index)),
        };
      }),
    }));
    await expectRefused(twice, /names an account twice/);
  });

  test('the treasury, as a payer whose fee another pays', async () => {
    const remote = stage.another({ facilitator: new URL('http://127.0.0.1:9') });
    const accepted = { ...requirements, extra: { feePayer: accomplice.address } };
    const instructions = [...budget(), transfer({ from: treasury(), to: treasury(), amount: AMOUNT })];
    const transaction = await build(stage.twin, accomplice.address, [stage.treasury], instructions);
    expect(() => remote.read({ x402Version: 2, accepted, payload: { transaction } })).toThrow(
      /paid by the treasury itself/,
    );
  });

  test('a message that was changed after it was signed', async () => {
    const transaction = Buffer.from(await build(stage.twin, treasury(), [thief], with_()), 'base64');
    const at = transaction.indexOf(Buffer.from(MEMO_TEXT));
    transaction.write('SOLANA', at);
    const changed = { ...requirements, extra: { ...requirements.extra, memo: MEMO_TEXT.replace('solana', 'SOLANA') } };
    const payload = { transaction: transaction.toString('base64') };
    expect(() => stage.chain.read({ x402Version: 2, accepted: changed, payload })).toThrow(/not signed by its payer/);
  });

  test('a payer’s account that is delegated to the thief', async () => {
    // The source is not the thief's own account, whatever the token program would allow.
    stage.twin.chain.setAccount(accomplice.address, {
      lamports: 1_000_000_000n,
      data: tokenAccountBytes(USDC, thief.address, 9_000_000n),
      programAddress: TOKEN_PROGRAM,
      executable: false,
    });
    const instructions = [
      ...budget(),
      transfer({ from: thief.address, to: treasury(), amount: AMOUNT, source: accomplice.address }),
      text(),
    ];
    await expectRefused(await build(stage.twin, treasury(), [thief], instructions), /associated token account/);
  });

  test.each([
    '',
    'AA==',
    '%%%',
    'A'.repeat(1_645),
    randomBytes(300).toString('base64'),
    7,
    null,
    undefined,
    { length: 4 },
  ])('garbage: %j', async (garbage) => {
    await expectRefused(garbage as string, /payload\.transaction/);
  });
});

describe('requirements that are not ours', () => {
  test.each<[string, Record<string, unknown>, RegExp]>([
    ['network', { network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp' }, /accepted\.network must be solana:EtW/],
    ['scheme', { scheme: 'upto' }, /accepted\.scheme must be exact/],
    ['asset', { asset: SYSTEM }, /accepted\.asset must be 4zMM/],
    ['payTo', { payTo: SYSTEM }, /accepted\.payTo must be/],
    ['amount', { amount: '1.5' }, /accepted\.amount must be micro-USD/],
    ['amount', { amount: '99999999999999999999' }, /accepted\.amount must be micro-USD/],
    ['amount', { amount: 1_000_000 }, /accepted\.amount must be micro-USD/],
    ['fee payer', { extra: { feePayer: bs58.encode(randomBytes(32)) } }, /extra\.feePayer must be/],
    ['fee payer', { extra: {} }, /extra\.feePayer must be/],
    ['memo', { extra: { feePayer: 'treasury', memo: 'm'.repeat(257) } }, /extra\.memo must be/],
    ['extra', { extra: null }, /accepted must be/],
  ])('%s', async (_, changed, says) => {
    const { payload } = await pay(stage.twin, thief, requirements);
    const extra =
      (changed['extra'] as { feePayer?: string } | null)?.feePayer === 'treasury'
        ? { extra: { ...(changed['extra'] as object), feePayer: treasury() } }
        : {};
    expect(() =>
      stage.chain.read({ x402Version: 2, accepted: { ...requirements, ...changed, ...extra }, payload }),
    ).toThrow(says);
  });

  test('another version of the protocol', async () => {
    expect(() => stage.chain.read({ x402Version: 1, accepted: requirements, payload: {} })).toThrow(
      /x402Version must be 2/,
    );
  });
});

test('what wallets add to protect their owners is let pass, and the treasury loses nothing but the fee', async () => {
  const { chain, twin } = stage;
  const wallet = await newPayer();
  twin.fundUsdc(wallet.address, AMOUNT);
  const lighthouse: Instruction = {
    programAddress: LIGHTHOUSE,
    accounts: [account(ataOf(wallet.address), 0)],
    data: Uint8Array.of(0),
  };
  const instructions = [...budget(), transfer({ from: wallet.address, to: treasury(), amount: AMOUNT }), text()];
  const guarded = await build(twin, treasury(), [wallet], [...instructions, lighthouse], { version: 'legacy' });
  expect(chain.read({ x402Version: 2, accepted: requirements, payload: { transaction: guarded } }).payer).toBe(
    wallet.address,
  );

  const before = twin.chain.account(treasury())!.lamports;
  const payment = chain.read({
    x402Version: 2,
    accepted: requirements,
    payload: { transaction: await build(twin, treasury(), [wallet], instructions, { version: 'legacy' }) },
  });
  await chain.verify(payment);
  await chain.submit(payment);
  expect(before - twin.chain.account(treasury())!.lamports).toBe(10_001n);
  expect(twin.chain.tokens(treasury())).toBe(500_000_000n + AMOUNT);
});
