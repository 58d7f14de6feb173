import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import {
  createPublicClient,
  createWalletClient,
  encodeFunctionData,
  http,
  parseAbi,
  parseSignature,
  toHex,
} from 'viem';
import type { Abi, Hex, LocalAccount } from 'viem';
import { mnemonicToAccount, privateKeyToAccount } from 'viem/accounts';
import type { PrivateKeyAccount } from 'viem/accounts';
import type { PaymentPayload, PaymentRequirements } from '../../../src/billing/chains/chain.ts';
import type { Anvil } from './anvil.ts';
import { receiptOf } from './evm-receipt.ts';

/** The modes of `HostileUsdc`, in the order of its enum. */
export const HOSTILE_MODES = [
  'honest',
  'moves-nothing',
  'claims-transfer',
  'hidden-fee',
  'shown-fee',
  'returns-false',
] as const;
export type HostileMode = (typeof HOSTILE_MODES)[number];

/** The test USDC on an anvil node. Amounts are micro-USD. */
export interface EvmToken {
  readonly address: Hex;
  readonly name: string;
  readonly version: string;
  mint(to: Hex, amount: bigint): Promise<void>;
  balanceOf(account: Hex): Promise<bigint>;
  /** Makes a plain transfer. Resolves with the transaction when it is in a block. */
  transfer(from: PrivateKeyAccount, to: Hex, amount: bigint): Promise<Hex>;
  /** Sets the mode of a token that was deployed as hostile. */
  setMode(mode: HostileMode): Promise<void>;
  /** Signs an authorization like a payer's wallet. */
  authorize(
    from: PrivateKeyAccount,
    terms: AuthorizationTerms,
  ): Promise<{ readonly authorization: Readonly<Record<string, string>>; readonly signature: Hex }>;
  /** Executes an authorization, as anybody may. Resolves with the transaction. */
  carryOut(signed: { readonly authorization: Readonly<Record<string, string>>; readonly signature: Hex }): Promise<Hex>;
  /** Uses up a nonce without a payment. */
  cancel(from: PrivateKeyAccount, nonce: Hex): Promise<Hex>;
  /** Allows the `batch` contract to move the account's tokens. */
  allowBatch(from: PrivateKeyAccount): Promise<void>;
  /** Makes several calls in one transaction. */
  batch(calls: readonly { readonly target: Hex; readonly data: Hex }[]): Promise<Hex>;
}

export interface AuthorizationTerms {
  readonly to: Hex;
  readonly value: bigint;
  readonly nonce?: Hex;
  readonly validAfter?: bigint;
  readonly validBefore?: bigint;
  /** The account of the authorization, if it is a contract whose owner signs. */
  readonly as?: Hex;
}

export interface TokenOptions {
  readonly hostile?: boolean;
  readonly name?: string;
  readonly version?: string;
  readonly decimals?: number;
  /** The address to deploy to, for example the one that x402 clients know as USDC. Default: any address. */
  readonly at?: Hex;
}

/** USDC of Base Sepolia, the only token that x402 clients there pay with by default. */
export const BASE_SEPOLIA_USDC: Hex = '0x036CbD53842c5426634e7929541eC2318f3dCF7e';

/** The first of anvil's own accounts. It has ETH, and it isn't a treasury. */
const DEPLOYER = mnemonicToAccount('test test test test test test test test test test test junk');

const TYPES = {
  TransferWithAuthorization: [
    'address from',
    'address to',
    'uint256 value',
    'uint256 validAfter',
    'uint256 validBefore',
    'bytes32 nonce',
  ].map((field) => {
    const [type, name] = field.split(' ');
    return { name: name!, type: type! };
  }),
  CancelAuthorization: [
    { name: 'authorizer', type: 'address' },
    { name: 'nonce', type: 'bytes32' },
  ],
};

/** Deploys the test USDC. */
export async function deployEvmToken(anvil: Anvil, options: TokenOptions = {}): Promise<EvmToken> {
  const { hostile = false, name = 'USDC', version = '2', decimals = 6 } = options;
  const { abi } = artefact(hostile ? 'HostileUsdc' : 'TestUsdc');
  const deployed = await deployContract(
    anvil,
    hostile ? 'HostileUsdc' : 'TestUsdc',
    hostile ? [name, version] : [name, version, decimals],
  );
  const { at: address = deployed } = options;
  if (address !== deployed)
    await anvil.rpc('anvil_setCode', [address, await anvil.rpc('eth_getCode', [deployed, 'latest'])]);
  const send = senderOf(anvil);
  const write = (functionName: string, args: readonly unknown[]) =>
    send({ to: address, data: encodeFunctionData({ abi, functionName, args }) });
  const domain = { name, version, chainId: anvil.chainId, verifyingContract: address };
  const client = createPublicClient({ transport: http(anvil.url) });
  let made: Promise<Hex> | null = null;
  const batcher = (): Promise<Hex> => (made ??= deployContract(anvil, 'Batch', []));
  return {
    address,
    name,
    version,
    mint: async (to, amount) => void (await write('mint', [to, amount])),
    balanceOf: async (account) =>
      (await client.readContract({ address, abi, functionName: 'balanceOf', args: [account] })) as bigint,
    async transfer(from, to, amount) {
      await anvil.setBalance(from.address, 10n ** 18n);
      return senderOf(
        anvil,
        from,
      )({ to: address, data: encodeFunctionData({ abi, functionName: 'transfer', args: [to, amount] }) });
    },
    setMode: async (mode) => void (await write('setMode', [HOSTILE_MODES.indexOf(mode)])),
    async authorize(from, terms) {
      const {
        to,
        value,
        nonce = toHex(randomBytes(32)),
        validAfter = 0n,
        validBefore = BigInt(Math.floor(Date.now() / 1000) + 300),
        as = from.address,
      } = terms;
      const message = { from: as, to, value, validAfter, validBefore, nonce };
      const signature = await from.signTypedData({
        domain,
        types: TYPES,
        primaryType: 'TransferWithAuthorization',
        message,
      });
      return {
        authorization: {
          from: as,
          to,
          value: `${value}`,
          validAfter: `${validAfter}`,
          validBefore: `${validBefore}`,
          nonce,
        },
        signature,
      };
    },
    carryOut: ({ authorization, signature }) => send({ to: address, data: carryOutCall(authorization, signature) }),
    async cancel(from, nonce) {
      const message = { authorizer: from.address, nonce };
      const { r, s, v } = parseSignature(
        await from.signTypedData({ domain, types: TYPES, primaryType: 'CancelAuthorization', message }),
      );
      return write('cancelAuthorization', [from.address, nonce, Number(v), r, s]);
    },
    async allowBatch(from) {
      await anvil.setBalance(from.address, 10n ** 18n);
      const data = encodeFunctionData({ abi, functionName: 'approve', args: [await batcher(), 2n ** 255n] });
      await senderOf(anvil, from)({ to: address, data });
    },
    batch: async (calls) =>
      send({
        to: await batcher(),
        data: encodeFunctionData({ abi: artefact('Batch').abi, functionName: 'run', args: [calls] }),
      }),
  };
}

/** Call data that executes an authorization. */
export function carryOutCall(authorization: Readonly<Record<string, string>>, signature: Hex): Hex {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const abi = parseAbi([
    'function transferWithAuthorization(address, address, uint256, uint256, uint256, bytes32, bytes)',
  ]);
  const args = [
    from as Hex,
    to as Hex,
    BigInt(value!),
    BigInt(validAfter!),
    BigInt(validBefore!),
    nonce as Hex,
    signature,
  ] as const;
  return encodeFunctionData({ abi, args });
}

/** Call data for a `batch` that moves tokens it was allowed to move. */
export function transferFromCall(from: Hex, to: Hex, amount: bigint): Hex {
  return encodeFunctionData({
    abi: parseAbi(['function transferFrom(address, address, uint256)']),
    args: [from, to, amount],
  });
}

/** Deploys a contract of this folder. */
export async function deployContract(anvil: Anvil, name: string, args: readonly unknown[]): Promise<Hex> {
  const wallet = createWalletClient({ account: DEPLOYER, transport: http(anvil.url) });
  const { abi, bytecode } = artefact(name);
  const hash = await wallet.deployContract({ abi, bytecode, args, chain: null });
  const receipt = await receiptOf(anvil, hash);
  if (receipt.status !== 'success') throw new Error(`${name} was not deployed`);
  return receipt.contractAddress!;
}

/** Makes a random key. */
export const freshKey = (): PrivateKeyAccount & { readonly secret: Uint8Array } => {
  const secret = randomBytes(32);
  return Object.assign(privateKeyToAccount(toHex(secret)), { secret });
};

/** Makes the payment that an x402 client sends: the signed answer to the requirements. */
export async function signPayment(
  token: EvmToken,
  from: PrivateKeyAccount,
  requirements: PaymentRequirements,
  terms: Partial<AuthorizationTerms> = {},
): Promise<PaymentPayload> {
  const payload = await token.authorize(from, {
    to: requirements.payTo as Hex,
    value: BigInt(requirements.amount),
    ...terms,
  });
  return { x402Version: 2, accepted: requirements, payload };
}

/** Sends transactions that must succeed, with plenty of gas. Resolves when they are in a block. */
const lastSent = new Map<string, Promise<void>>();

function senderOf(anvil: Anvil, account: LocalAccount = DEPLOYER) {
  const wallet = createWalletClient({ account, transport: http(anvil.url) });
  return async (call: { readonly to: Hex; readonly data: Hex }): Promise<Hex> => {
    const turn = `${anvil.url} ${account.address}`;
    // Sends one after the other, because each needs the next nonce.
    const sending = (lastSent.get(turn) ?? Promise.resolve()).then(() =>
      wallet.sendTransaction({ chain: null, gas: 2_000_000n, ...call }),
    );
    lastSent.set(
      turn,
      sending.then(
        () => {},
        () => {},
      ),
    );
    const hash = await sending;
    const { status } = await receiptOf(anvil, hash);
    if (status !== 'success') throw new Error(`Transaction ${hash} reverted`);
    return hash;
  };
}

function artefact(name: string): { readonly abi: Abi; readonly bytecode: Hex } {
  return JSON.parse(readFileSync(new URL(`contracts/${name}.json`, import.meta.url), 'utf8')) as {
    abi: Abi;
    bytecode: Hex;
  };
}
