import {
  decodeAbiParameters,
  decodeFunctionResult,
  encodeFunctionData,
  pad,
  parseAbi,
  parseSignature,
  toEventSelector,
} from 'viem';
import type { Hex } from 'viem';
import type { MicroUsd } from '#billing';
import { ChainUnavailable } from '../chain.ts';
import { Reverted, type EvmLog, type EvmNode } from './rpc.ts';

/** EIP-3009, and what else of USDC's FiatToken v2 is used. */
const ASSET_ABI = parseAbi([
  'function decimals() view returns (uint8)',
  'function DOMAIN_SEPARATOR() view returns (bytes32)',
  'function balanceOf(address account) view returns (uint256)',
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
]);

export const TRANSFER = toEventSelector('Transfer(address,address,uint256)');
export const AUTHORIZATION_USED = toEventSelector('AuthorizationUsed(address,bytes32)');
export const AUTHORIZATION_CANCELED = toEventSelector('AuthorizationCanceled(address,bytes32)');

/** EIP-712 types of what a payer signs (EIP-3009). */
export const AUTHORIZATION_TYPES = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const;

/** EIP-712 domain of an asset. */
export interface AssetDomain {
  readonly name: string;
  readonly version: string;
  readonly chainId: number;
  readonly verifyingContract: Hex;
}

/**
 * An EIP-3009 authorization. Addresses and nonce in lower case, times in epoch seconds: it can be carried out after
 * `validAfter` and before `validBefore`.
 */
export interface Authorization {
  readonly from: Hex;
  readonly to: Hex;
  readonly value: bigint;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly nonce: Hex;
}

/** The contract at the asset's address has no such function: a wrong address, or a node that has lost the state. */
export class NoSuchAsset extends ChainUnavailable {}

/** The token contract, asked by its functions. */
export interface EvmAsset {
  readonly address: Hex;
  decimals(): Promise<number>;
  domainSeparator(): Promise<Hex>;
  balanceOf(account: Hex, at: 'latest' | bigint): Promise<MicroUsd>;
  /**
   * Whether an authorization was used up: carried out or cancelled. Once true it stays true on that chain of
   * blocks.
   */
  authorizationState(authorizer: Hex, nonce: Hex, at: 'latest' | bigint): Promise<boolean>;
}

export function createEvmAsset(node: EvmNode, address: Hex): EvmAsset {
  type View = 'decimals' | 'DOMAIN_SEPARATOR' | 'balanceOf' | 'authorizationState';
  async function view(functionName: View, args: readonly unknown[], at: 'latest' | bigint): Promise<unknown> {
    const call = { abi: ASSET_ABI, functionName, args } as Parameters<typeof encodeFunctionData>[0];
    let data: Hex;
    try {
      data = await node.call({ to: address, data: encodeFunctionData(call) }, at);
    } catch (error) {
      if (error instanceof Reverted)
        throw new NoSuchAsset(`${address} does not answer ${functionName}: ${error.message}`, { cause: error });
      throw error;
    }
    if (data === '0x') throw new NoSuchAsset(`${address} does not answer ${functionName}`);
    try {
      return decodeFunctionResult({ abi: ASSET_ABI, functionName, data });
    } catch (error) {
      throw new ChainUnavailable(`The node answers nonsense (${functionName} of ${address})`, { cause: error });
    }
  }
  return {
    address,
    decimals: async () => (await view('decimals', [], 'latest')) as number,
    domainSeparator: async () => (await view('DOMAIN_SEPARATOR', [], 'latest')) as Hex,
    async balanceOf(account, at) {
      try {
        return (await view('balanceOf', [account], at)) as bigint;
      } catch (error) {
        // Before there was such a token nobody had any of it: a chain of one's own starts with that.
        if (error instanceof NoSuchAsset && (await node.code(address, at)) === '0x') return 0n;
        throw error;
      }
    },
    authorizationState: async (authorizer, nonce, at) =>
      (await view('authorizationState', [authorizer, nonce], at)) as boolean,
  };
}

/**
 * Call data that carries out an authorization. 65 bytes go to the function that every EIP-3009 token has, longer
 * signatures (of contract wallets) to FiatToken v2.2's.
 */
export function transferCall(authorization: Authorization, signature: Hex): Hex {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const args = [from, to, value, validAfter, validBefore, nonce] as const;
  const functionName = 'transferWithAuthorization';
  if (!isPlainSignature(signature))
    return encodeFunctionData({ abi: ASSET_ABI, functionName, args: [...args, signature] });
  const { r, s, yParity } = parseSignature(withRecoveryByte(signature));
  return encodeFunctionData({ abi: ASSET_ABI, functionName, args: [...args, 27 + yParity, r, s] });
}

/** 65 bytes. */
export const isPlainSignature = (signature: Hex): boolean => signature.length === 132;

/**
 * Tokens know 27 and 28 only, and some wallets end a signature with 0 or 1. What ends otherwise is a contract
 * wallet's own matter: it is left as it is.
 */
export function withRecoveryByte(signature: Hex): Hex {
  if (!isPlainSignature(signature)) return signature;
  const last = Number.parseInt(signature.slice(-2), 16);
  return last < 2 ? (`${signature.slice(0, -2)}${(27 + last).toString(16)}` as Hex) : signature;
}

/** An address as an indexed argument of a log. */
export const topicOf = (address: Hex): Hex => pad(address).toLowerCase() as Hex;

/** A Transfer of the asset; null for any other log. */
export function transferOf(log: EvmLog): { readonly from: Hex; readonly to: Hex; readonly value: bigint } | null {
  const [kind, from, to] = log.topics;
  if (kind !== TRANSFER || from === undefined || to === undefined) return null;
  try {
    const [value] = decodeAbiParameters([{ type: 'uint256' }], log.data);
    return { from: addressOf(from), to: addressOf(to), value };
  } catch (error) {
    throw new ChainUnavailable('The node answers nonsense (a Transfer without an amount)', { cause: error });
  }
}

const addressOf = (topic: Hex): Hex => `0x${topic.slice(26)}`;

/**
 * An authorization that was carried out, in a transaction's logs: the Transfer that is its own, where one went to
 * `payee`.
 */
interface CarriedOut {
  readonly authorizer: Hex;
  readonly nonce: Hex;
  /** Log index of AuthorizationUsed. */
  readonly index: number;
  readonly transfer: { readonly log: EvmLog; readonly value: bigint } | null;
}

/**
 * Which Transfer belongs to which authorization, of one transaction's logs in order: FiatToken says
 * AuthorizationUsed and then moves. So it is the first Transfer from the authorizer to `payee` after it and before
 * the next authorization: a token that takes a fee says more than one.
 */
export function carriedOut(logs: readonly EvmLog[], asset: Hex, payee: Hex): CarriedOut[] {
  const found: CarriedOut[] = [];
  let current: CarriedOut | null = null;
  const close = (): void => void (current && found.push(current));
  for (const log of logs) {
    if (log.address !== asset.toLowerCase()) continue;
    const [kind, authorizer, nonce] = log.topics;
    if (kind === AUTHORIZATION_USED && authorizer !== undefined && nonce !== undefined) {
      close();
      current = { authorizer: addressOf(authorizer), nonce, index: log.index, transfer: null };
      continue;
    }
    const transfer = transferOf(log);
    if (!current || current.transfer || !transfer) continue;
    if (transfer.from === current.authorizer && transfer.to === payee.toLowerCase())
      current = { ...current, transfer: { log, value: transfer.value } };
  }
  close();
  return found;
}
